#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "orrery/partition/contiguous.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::partition {
namespace {

std::optional<std::uint32_t> dimension_number(std::string_view parameter) {
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(parameter.data(), parameter.data() + parameter.size(), value);
  if (failure != std::errc() || end != parameter.data() + parameter.size()) return std::nullopt;
  return value;
}

void check_dimension_syntax(std::string_view parameter, const Place& place) {
  if (dimension_number(parameter)) return;
  throw Error(ErrorCode::bad_input, place, fmt::format("found 'dimension:{}'", parameter), "the number of a dimension",
              "Such as dimension:0, the innermost one.");
}

void check_dimension_range(std::string_view parameter, const topology::Topology& topology, const Place& place) {
  if (dimension_number(parameter).value() < topology.num_dimensions()) return;
  throw Error(ErrorCode::bad_input, place, fmt::format("found dimension:{}", parameter),
              fmt::format("a dimension of the topology, 0 to {}", topology.num_dimensions() - 1));
}

/// Dimension 0 varies fastest, so NPUs that differ in dimensions up to `last` only have consecutive ids.
Partition make_by_dimension(std::string_view parameter, const Problem& problem) {
  const auto& topology = problem.topology;
  const std::uint32_t last = dimension_number(parameter).value();
  ensure(last < topology.num_dimensions(), "a partition by a dimension that is not there");
  return contiguous(topology.num_npus(), topology.stride(last) * topology.dimension(last).size, problem.num_ranks);
}

}  // namespace

Strategy dimension() {
  return {.name = "dimension",
          .parameter = "<d>",
          .example = "dimension:0",
          .help = "NPUs that differ in dimensions 0 to d only stay together; these sets are dealt as in block",
          .check_syntax = check_dimension_syntax,
          .check_range = check_dimension_range,
          .make = make_by_dimension};
}

}  // namespace orrery::partition
