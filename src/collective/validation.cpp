#include "validation.hpp"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {
namespace {

std::string describe(const Algorithm& algorithm) {
  switch (algorithm.kind) {
    case AlgorithmKind::ring:
      return "ring";
    case AlgorithmKind::direct:
      return algorithm.window == 0 ? "direct" : fmt::format("direct{}", algorithm.window);
    case AlgorithmKind::halving_doubling:
      return "halving-doubling";
    case AlgorithmKind::double_binary_tree:
      return "double binary tree";
    case AlgorithmKind::binomial_tree:
      return "binomial tree";
    case AlgorithmKind::in_switch:
      return "in-switch";
    case AlgorithmKind::custom:
      return "custom";
  }
  return {};
}

constexpr std::string_view all_but_trees = "ring, direct, halving-doubling (a power of two, not for all-to-all)";

/// Why the lines of an axis cannot be served by their switches; empty if they can.
std::string fault_of_switch(const topology::Topology& topology, const Options& options, const Axis& axis) {
  if (axis.dimensions.size() != 1) return "no single switch joins the members";
  const topology::Dimension& dimension = topology.dimension(axis.dimensions[0]);
  if (dimension.shape != topology::Shape::switched)
    return fmt::format("the dimension is a {}, and only the switch of a Switch dimension carries out operations",
                       topology::name(dimension.shape));
  if (dimension.in_switch_operations == 0) return "its switch only forwards: in-switch-operations is 0";
  const std::uint64_t places = in_switch_places(topology, options, axis);
  if (places >= options.queues) return {};
  return fmt::format(
      "of the {} that its switch offers to {} NPUs with {} each, {} NPUs have a share of {}, and {} of the dimension "
      "{} at least",
      counted(dimension.in_switch_operations, "operation"), dimension.size,
      counted(options.collectives_at_a_time, "collective"), axis.size, places, counted(options.queues, "queue"),
      options.queues == 1 ? "needs 1" : fmt::format("need {}", options.queues));
}

void validate_custom(const Options& options, const GroupLayout& layout, const PhaseShape& shape, Kind asked) {
  if (shape.procedure == nullptr) {
    std::vector<std::string> sizes;
    for (const auto& procedure : procedures(options, layout, asked))
      sizes.push_back(fmt::format("{} ({})", procedure->num_positions(), procedure->file().string()));
    throw Error(ErrorCode::bad_input, Place{},
                fmt::format("custom {}: no file spells it out for {} members", name(asked), layout.num_members),
                fmt::format("communicators of {} members{}", fmt::join(sizes, ", "),
                            layout.procedure ? "" : ", or one more file"));
  }
  if (shape.procedure->has_fixed_sizes() && options.splits > 1)
    throw Error(ErrorCode::bad_input, Place{},
                fmt::format("custom {}: the messages of {} have fixed sizes, which {} chunks would send {} times",
                            name(asked), shape.procedure->file().string(), options.splits, options.splits),
                "1 chunk (chunks, preferred-dataset-splits), or messages in parts of the whole");
}

}  // namespace

std::uint64_t in_switch_places(const topology::Topology& topology, const Options& options, const Axis& axis) {
  const topology::Dimension& dimension = topology.dimension(axis.dimensions[0]);
  return std::uint64_t{dimension.in_switch_operations} * axis.size /
         (std::uint64_t{dimension.size} * options.collectives_at_a_time);
}

void validate_phase(const topology::Topology& topology, const Options& options, const GroupLayout& layout,
                    const Phase& phase, Kind asked) {
  const PhaseShape& shape = phase.shape;
  const std::uint32_t n = phase.axis->size;
  if (shape.algorithm.kind == AlgorithmKind::custom) return validate_custom(options, layout, shape, asked);
  const auto refuse = [&](std::string_view why, std::string_view possible) {
    const std::string where = phase.axis->dimensions.size() == 1
                                  ? fmt::format("dimension {}", phase.axis->dimensions[0])
                                  : std::string("all members as one line");
    const std::string part =
        shape.kind == asked ? std::string(name(asked)) : fmt::format("{} (part of {})", name(shape.kind), name(asked));
    throw Error(ErrorCode::bad_input, fmt::format("{}: {} has no rule for {} of {} NPUs: {}; possible: {}", where,
                                                  describe(shape.algorithm), part, n, why, possible));
  };
  switch (shape.algorithm.kind) {
    case AlgorithmKind::ring:
    case AlgorithmKind::direct:
      return;
    case AlgorithmKind::halving_doubling:
      if (shape.kind == Kind::all_to_all) refuse("it does not carry all-to-all", "ring, direct");
      if (!std::has_single_bit(n)) refuse("the size is not a power of two", "ring, direct");
      return;
    case AlgorithmKind::double_binary_tree:
      if (shape.kind != Kind::all_reduce) refuse("it carries all-reduce only", all_but_trees);
      return;
    case AlgorithmKind::binomial_tree:
      if (shape.kind != Kind::all_reduce && shape.kind != Kind::broadcast && shape.kind != Kind::reduce)
        refuse("it carries all-reduce, broadcast and reduce only", all_but_trees);
      return;
    case AlgorithmKind::in_switch:
      if (shape.kind == Kind::all_to_all) refuse("there is nothing to add up or to copy", "ring, direct");
      if (const std::string fault = fault_of_switch(topology, options, *phase.axis); !fault.empty())
        refuse(fault, all_but_trees);
      return;
    case AlgorithmKind::custom:
      return;
  }
}

}  // namespace orrery::collective
