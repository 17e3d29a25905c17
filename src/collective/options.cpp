#include "orrery/collective/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/registry.hpp"

namespace orrery::collective {
namespace {

void validate_list(const char* key, const std::vector<Algorithm>& list, const topology::Topology& topology) {
  if (list.empty()) return;
  if (list.size() == 1 && list[0].whole_communicator) return;
  if (list.size() != topology.num_dimensions())
    throw Error(ErrorCode::bad_input, {.key = key}, fmt::format("it names {}", counted(list.size(), "algorithm")),
                fmt::format("one for each dimension of the topology, {}", topology.num_dimensions()));
}

void validate_count(const char* key, std::uint32_t count) {
  if (count == 0) throw Error(ErrorCode::bad_input, {.key = key}, "found 0", "1 or more");
}

}  // namespace

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all-reduce";
    case Kind::all_gather:
      return "all-gather";
    case Kind::reduce_scatter:
      return "reduce-scatter";
    case Kind::all_to_all:
      return "all-to-all";
    case Kind::broadcast:
      return "broadcast";
    case Kind::reduce:
      return "reduce";
    case Kind::gather:
      return "gather";
    case Kind::scatter:
      return "scatter";
    case Kind::barrier:
      return "barrier";
    case Kind::expert_dispatch:
      return "expert-dispatch";
    case Kind::expert_combine:
      return "expert-combine";
  }
  ensure_failed("a kind of collective that does not exist", std::source_location::current());
}

bool Options::uses_switch_operations() const {
  const auto uses = [](const std::vector<Algorithm>* list) {
    return std::ranges::any_of(*list, [](const Algorithm& algorithm) { return entry_of(algorithm).is_in_switch; });
  };
  return std::ranges::any_of(std::array{&all_reduce, &all_gather, &reduce_scatter, &all_to_all, &broadcast, &reduce},
                             uses);
}

void Options::validate(const topology::Topology& topology) const {
  validate_list("all-reduce-implementation", all_reduce, topology);
  validate_list("all-gather-implementation", all_gather, topology);
  validate_list("reduce-scatter-implementation", reduce_scatter, topology);
  validate_list("all-to-all-implementation", all_to_all, topology);
  validate_list("broadcast", broadcast, topology);
  validate_list("reduce", reduce, topology);
  validate_count("preferred-dataset-splits", chunks.splits);
  validate_count("active-chunks-per-dimension", chunks.active_chunks);
  validate_count("queues-per-dimension", chunks.queues);
  validate_count("comm-streams", collectives_at_a_time);
  if (endpoint_delay < Time::zero() || endpoint_delay == Time::max())
    throw Error(ErrorCode::bad_input, {.key = "endpoint-delay"}, fmt::format("found {} ps", endpoint_delay.ps()),
                "0 or more");
  if (!(local_memory.bytes_per_ns() >= 0))
    throw Error(ErrorCode::bad_input, {.key = "local-mem-bw"},
                fmt::format("found {} bytes/ns", local_memory.bytes_per_ns()), "0 (reductions are free) or more");
}

std::uint64_t Turn::weight(std::uint32_t dimension, std::uint32_t num_queues) {
  const std::uint64_t base = std::uint64_t{2} * num_queues, most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t weight = 1;
  for (; dimension > 0 && weight > 0; --dimension) weight = weight > most / base / base ? 0 : weight * base;
  return weight;
}

}  // namespace orrery::collective
