#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/trace/graph.hpp"

namespace orrery::synthesis {

/// A way in which NPUs are numbered: NPU i is at coordinate i / stride mod size. The axes of a model are a mixed radix
/// system, innermost first: each stride is the product of the sizes before it.
struct Axis {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;
  bool has_roles = false;    ///< NPUs along it have different roles
  double collectives = 0;    ///< mean number of collectives of an NPU over groups that reach along it
  double messages = 0;       ///< sends of an NPU, on the mean, that go along it
  bool is_pipeline = false;  ///< messages along it go to NPUs of other roles
};

/// Which coordinates along one axis the members of a group have, seen from a member.
struct Extent {
  enum class Kind : std::uint8_t { own, all, listed };
  Kind kind = Kind::own;
  std::vector<std::int32_t> positions = {};  ///< listed: from the start of the axis, or if negative from its end

  friend auto operator<=>(const Extent&, const Extent&) = default;
};

/// A group of a node, seen from a member.
struct GroupShape {
  std::vector<Extent> extents = {};  ///< [axes]
  std::uint32_t twin = 0;            ///< number among the groups of an NPU that have the same members

  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

/// The peer of a message, seen from the NPU: its coordinates are further along each axis by so much, modulo the size.
using Offsets = std::vector<std::int32_t>;

/// What nodes do, but for their sizes.
struct Family {
  trace::NodeKind kind = trace::NodeKind::instant;
  trace::CollectiveKind collective = trace::CollectiveKind::all_reduce;
  std::uint64_t dimensions = 0;  ///< dimensions that take part, for nodes of a group
  GroupShape group = {};         ///< group of the node, for nodes of a group
  Offsets peer = {};             ///< peer of a message
  std::int32_t priority = 0;
  std::uint16_t stream = 0;

  friend auto operator<=>(const Family&, const Family&) = default;
};

/// The sizes of a node.
struct Sizes {
  std::uint64_t flops = 0;  ///< FLOPs of a compute node
  std::uint64_t bytes = 0;
  std::int64_t ps = 0;  ///< recorded duration

  friend auto operator<=>(const Sizes&, const Sizes&) = default;
};

/// Sizes by quantile: `weight` of all nodes have these sizes on the mean.
struct SketchPoint {
  double weight = 0;
  double flops = 0, bytes = 0, ps = 0;
};

/// Sizes of the nodes of one or several slots, ascending, in at most `most_points` points.
struct Sketch {
  static constexpr std::size_t most_points = 16;
  std::vector<SketchPoint> points = {};
};

/// A dependency, relative to the loops of the node that has it (docs/synthesis.md).
struct Edge {
  enum class Over : std::uint8_t {
    none,        ///< the source is in no such loop
    relative,    ///< `value` iterations later than the node's
    from_start,  ///< iteration `value`
    from_end,    ///< iteration count - 1 - `value`
    mirrored,    ///< iteration count - 1 + `value` - the node's
  };
  std::uint32_t token = 0;   ///< token of the source
  std::uint32_t offset = 0;  ///< offset of the source, in the body of its token
  Over micro_batches = Over::none;
  std::int32_t micro_batch = 0;
  std::uint32_t part = 0;  ///< part of the source, among the occurrences of its token in a micro-batch
  Over layers = Over::none;
  std::int32_t layer = 0;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};
using Edges = std::vector<Edge>;

/// What the nodes that list a tensor first and last do with it (trace::Listing).
struct TensorUse {
  bool first_needs = false, first_makes = false, last_needs = false, last_makes = false;

  /// Says whether the tensor is there before the first node.
  bool is_there() const { return first_needs || !first_makes; }
  friend auto operator<=>(const TensorUse&, const TensorUse&) = default;
};

/// A tensor of the local memory, at the node that lists it last.
struct HeldTensor {
  Edge maker = {};  ///< the node that lists it first, which may be the same
  TensorUse use;
  std::uint64_t bytes = 0;

  friend auto operator<=>(const HeldTensor&, const HeldTensor&) = default;
};
using HeldTensors = std::vector<HeldTensor>;

/// A position in a body: the same node of every iteration of its loops.
struct Slot {
  std::uint32_t family = 0;   ///< index into Model::families
  std::uint32_t sketch = 0;   ///< index into Model::sketches
  std::uint32_t rank = 0;     ///< number among the slots of the sketch, by mean size
  std::uint32_t channel = 0;  ///< channel of a message, equal at both ends
  /// By how much sizes change with the size of each axis: [axes] exponents.
  std::vector<double> exponents = {};
};

/// A word of a role's sequence: a node, or a loop over layers.
struct Token {
  std::vector<Slot> body = {};
  std::uint32_t count = 1;            ///< iterations
  bool is_layers = false;             ///< a loop over layers, whose count may be changed
  std::uint32_t occurrences = 0;      ///< occurrences in the sequence
  std::uint32_t per_micro_batch = 0;  ///< occurrences in each micro-batch; 0: none of its loop
  /// [body] the dependencies of each position: index into Role::edges by occurrence, iteration.
  std::vector<std::vector<std::uint32_t>> edges = {};
  /// Likewise of the tensors that each position lists last: index into Role::held.
  std::vector<std::vector<std::uint32_t>> held = {};
};

/// NPUs that do the same.
struct Role {
  std::uint64_t num_npus = 0;
  std::vector<Token> tokens = {};
  std::vector<std::uint32_t> sequence = {};  ///< indices into tokens
  std::vector<Edges> edges = {};             ///< distinct lists
  std::vector<HeldTensors> held = {};        ///< likewise; empty without tensors
  std::uint32_t layers = 0;                  ///< iterations of its loops over layers; 0: it has none
};

/// What was learned from a set of traces. It holds no name and no id of them.
struct Model {
  std::uint32_t num_npus = 0;
  std::vector<Axis> axes = {};
  std::vector<Family> families = {};
  std::vector<Sketch> sketches = {};
  std::vector<Role> roles = {};
  std::vector<std::uint32_t> role_table =
      {};  ///< roles by the coordinates along axes that have roles, innermost fastest
  std::uint32_t micro_batches = 1;
  std::uint32_t layers = 0;        ///< layers of a replica; 0: there are no loops over layers
  std::uint32_t num_channels = 0;  ///< number of channels of messages
  std::uint32_t merged_slots = 0;  ///< slots whose sizes were pooled with those of others
  std::string precision = {};      ///< precision of the arithmetic that the traces name; empty: none

  /// Returns the coordinates of an NPU: [axes].
  std::vector<std::uint32_t> coordinates(std::uint32_t npu) const;
  std::uint32_t npu_at(const std::vector<std::uint32_t>& coordinates) const;
  std::uint32_t role_of(std::uint32_t npu) const;
};

}  // namespace orrery::synthesis
