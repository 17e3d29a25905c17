#include "validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/registry.hpp"

namespace orrery::collective {
namespace {

/// Returns why the groups of an axis cannot be served by their switches; nothing if they can.
std::string fault_of_switch(const topology::Topology& topology, const Options& options, const Axis& axis) {
  if (axis.dimensions.size() != 1) return "no single switch joins the members";
  const topology::Dimension& dimension = topology.dimension(axis.dimensions[0]);
  if (!dimension.shape->has_switch_operations)
    return fmt::format("the dimension is a {}, and only the switch of a Switch dimension carries out operations",
                       topology::name(dimension.shape));
  if (dimension.in_switch_operations == 0) return "its switch only forwards: in-switch-operations is 0";
  const std::uint32_t queues = options.chunks.queues;
  const std::uint64_t share = switch_operations(topology, options, axis);
  if (share >= queues) return {};
  return fmt::format(
      "of the {} that its switch offers to {} NPUs with {} each, {} NPUs have a share of {}, and {} of the dimension "
      "{} at least",
      counted(dimension.in_switch_operations, "operation"), dimension.size,
      counted(options.collectives_at_a_time, "collective"), axis.size, share, counted(queues, "queue"),
      queues == 1 ? "needs 1" : fmt::format("need {}", queues));
}

/// Returns why switches that reduce packet by packet do not carry out a kind; nothing if they do.
std::string fault_of_packets(const Options& options, Kind kind) {
  const bool is_carried_out = kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::broadcast;
  if (!options.switches_send_packets || is_carried_out) return {};
  return "switches of the packet network carry out all-reduce, reduce and broadcast";
}

/// Returns why an algorithm does not carry out a kind in a group of `size`; nothing if it does.
std::string fault_of_algorithm(const AlgorithmEntry& entry, Kind kind, std::uint32_t size) {
  if (!entry.kinds.contains(kind)) return fmt::format("it carries out {}", scope(entry));
  if (entry.powers_of_two_only && !std::has_single_bit(size)) return "the size is not a power of two";
  return {};
}

/// Returns the names of the algorithms that carry out a kind in a group of `size` in any dimension.
std::string possible(Kind kind, std::uint32_t size) {
  std::vector<std::string_view> names;
  for (const AlgorithmEntry& entry : algorithms())
    if (!entry.is_in_switch && fault_of_algorithm(entry, kind, size).empty()) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void validate_custom(const Options& options, const GroupLayout& layout, const PhaseShape& shape, Kind asked) {
  if (shape.custom == nullptr) {
    std::vector<std::string> sizes;
    for (const auto& custom : custom_collectives(options, layout, asked))
      sizes.push_back(fmt::format("{} ({})", custom->num_positions(), custom->file().string()));
    throw Error(ErrorCode::bad_input, Place{},
                fmt::format("custom {}: no file spells it out for {} members", name(asked), layout.num_members),
                fmt::format("communicators of {} members{}", fmt::join(sizes, ", "),
                            layout.custom ? "" : ", or one more file"));
  }
  const std::uint32_t splits = options.chunks.splits;
  if (shape.custom->has_fixed_sizes() && splits > 1)
    throw Error(ErrorCode::bad_input, Place{},
                fmt::format("custom {}: the messages of {} have fixed sizes, which {} chunks would send {} times",
                            name(asked), shape.custom->file().string(), splits, splits),
                "1 chunk (chunks, preferred-dataset-splits), or messages in parts of the whole");
}

void validate_switch_of_custom(const topology::Topology& topology, const Options& options, const Axis& axis,
                               const CustomCollective& custom) {
  std::string why = fault_of_switch(topology, options, axis);
  if (why.empty() && options.switches_send_packets) why = "switches of the packet network carry out no plans";
  if (!why.empty())
    throw Error(ErrorCode::bad_input, Place{},
                fmt::format("{} lets the switch add up and multiply data, but {}", custom.file().string(), why),
                "members in one Switch with in-switch-operations, or a plan with memory or port channels");
}

}  // namespace

std::uint64_t switch_operations(const topology::Topology& topology, const Options& options, const Axis& axis) {
  const topology::Dimension& dimension = topology.dimension(axis.dimensions[0]);
  return std::uint64_t{dimension.in_switch_operations} * axis.size /
         (std::uint64_t{dimension.size} * options.collectives_at_a_time);
}

bool carries_out(const AlgorithmEntry& entry, Kind kind, std::uint32_t size) {
  return fault_of_algorithm(entry, kind, size).empty();
}

bool has_steps(const Phase& phase) {
  if (phase.shape.is_custom) return phase.shape.custom != nullptr;
  return carries_out(entry_of(phase.shape.algorithm), phase.shape.kind, phase.axis->size);
}

void validate_phase(const topology::Topology& topology, const Options& options, const GroupLayout& layout,
                    const Phase& phase, Kind asked) {
  const PhaseShape& shape = phase.shape;
  const std::uint32_t n = phase.axis->size;
  if (shape.is_custom) {
    validate_custom(options, layout, shape, asked);
    if (shape.custom->uses_switch()) validate_switch_of_custom(topology, options, *phase.axis, *shape.custom);
    return;
  }
  const AlgorithmEntry& entry = entry_of(shape.algorithm);
  std::string why = fault_of_algorithm(entry, shape.kind, n);
  if (why.empty() && entry.is_in_switch) why = fault_of_packets(options, shape.kind);
  if (why.empty() && entry.is_in_switch) why = fault_of_switch(topology, options, *phase.axis);
  if (why.empty()) return;
  const std::string where = phase.axis->dimensions.size() == 1 ? fmt::format("dimension {}", phase.axis->dimensions[0])
                                                               : std::string("all members as one group");
  const std::string what =
      shape.kind == asked ? std::string(name(asked)) : fmt::format("{} (part of {})", name(shape.kind), name(asked));
  throw Error(ErrorCode::bad_input, fmt::format("{}: {} does not carry out {} of {} NPUs: {}; possible: {}", where,
                                                name(shape.algorithm), what, n, why, possible(shape.kind, n)));
}

}  // namespace orrery::collective
