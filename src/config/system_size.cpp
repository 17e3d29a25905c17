#include "system_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "section.hpp"

namespace orrery::config {
namespace {

constexpr const char* size_key = "system.npus";

/// Returns the value under a path of keys; null if there is none.
Value* below(Value& from, std::initializer_list<std::string_view> path) {
  Value* at = &from;
  for (const std::string_view key : path) {
    const auto found = std::ranges::find(at->entries, key, &Value::Entry::key);
    if (found == at->entries.end()) return nullptr;
    at = &found->value;
  }
  return at;
}

/// Throws Error (bad_input): the NPUs do not fill groups of so many.
[[noreturn]] void refuse_partial(const Value& wanted, std::uint32_t npus, std::uint64_t group, std::size_t dimension) {
  const std::uint64_t fewer = npus / group * group;
  throw Error(ErrorCode::bad_input, wanted.place(size_key), fmt::format("found {}", npus),
              fmt::format("whole groups of {} NPUs, as dimension {} of the system has them", group, dimension),
              fmt::format("{} or {} would do.", fewer, fewer + group));
}

void resize(const Value& wanted, Value& dimensions, std::uint32_t npus) {
  std::uint64_t group = 1;  // NPUs in one group of the dimensions so far
  for (std::size_t d = 0; d < dimensions.items.size(); ++d) {
    Value* const size = below(dimensions.items[d], {"size"});
    const std::string key = fmt::format("system.network.dimensions.{}.size", d);
    if (size == nullptr || size->text.find_first_not_of("0123456789") != std::string::npos)
      throw Error(ErrorCode::bad_input, wanted.place(size_key),
                  fmt::format("found it beside {}, which is no plain number", key),
                  "a system whose dimensions have plain sizes", "Change the sizes of the dimensions themselves.");
    const bool is_last = d + 1 == dimensions.items.size();
    const std::uint64_t left = npus / group, there = as_count(*size, key);
    const std::uint64_t taken = is_last ? left : std::min(left, there);
    if (npus % (group * taken) != 0) refuse_partial(wanted, npus, group * taken, d);
    size->text = fmt::to_string(taken);
    group *= taken;
  }
}

}  // namespace

void fill_dimensions(Value& root, Faults& faults) {
  Value* const wanted = root.kind == Value::Kind::mapping ? below(root, {"system", "npus"}) : nullptr;
  if (wanted == nullptr || wanted->kind == Value::Kind::null) return;
  faults.attempt([&] {
    const std::uint32_t npus = as_count(*wanted, size_key);
    if (const Value* const graph = below(root, {"system", "network", "graph"}))
      throw Error(ErrorCode::bad_input, graph->place("system.network.graph"), "found a graph beside system.npus",
                  "one of them", "A graph has as many NPUs as it has hosts.");
    Value* const dimensions = below(root, {"system", "network", "dimensions"});
    if (dimensions != nullptr) resize(*wanted, *dimensions, npus);
  });
}

Contradiction contradiction_of_product(const Configuration& configuration, const workload::Parallel& parallel,
                                       std::uint32_t num_npus) {
  using workload::Axis;
  constexpr Axis axes[] = {Axis::dp, Axis::pp, Axis::tp, Axis::cp, Axis::ep};
  const auto key_of = [](Axis axis) {
    return fmt::format("workload.parallel.{}", workload::axis_names[static_cast<std::size_t>(axis)]);
  };
  // The degree that a setting gives last is the one that the user tries out; else it is that of data parallelism.
  std::optional<Axis> blamed;
  for (const Axis axis : axes)
    if (!blamed && configuration.place_of(key_of(axis)).file.starts_with("--set")) blamed = axis;
  for (const Axis axis : axes)
    if (!blamed && parallel[axis] > 1) blamed = axis;
  const std::uint32_t product = parallel.num_npus();
  const auto degree_of = [&](Axis axis) {
    const std::uint32_t others = product / parallel[axis];
    return num_npus % others == 0 ? num_npus / others : 0;
  };
  std::string fits;
  for (const Axis axis : {blamed.value_or(Axis::dp), Axis::dp, Axis::pp})
    if (fits.empty() && degree_of(axis) > 0)
      fits = fmt::format(": {} {} would fit", workload::axis_names[static_cast<std::size_t>(axis)], degree_of(axis));
  return {blamed ? key_of(*blamed) : "workload.parallel", fmt::format("tp * cp * ep * dp * pp is {}", product),
          fmt::format("the number of NPUs of the network, {}{}", num_npus, fits)};
}

}  // namespace orrery::config
