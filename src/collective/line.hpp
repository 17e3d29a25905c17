#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "group_layout.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "ps.hpp"

namespace orrery::collective {

/// One phase of a chunk in the lines of an axis.
struct PhaseShape {
  Algorithm algorithm;
  /// One of the first four; broadcast and reduce too by algorithms that have a rule of their own for them.
  Kind kind = Kind::all_reduce;
  Bytes size;           ///< of the chunk as it enters the phase
  bool reduces = true;  ///< false: received data are not added up (broadcast, scatter)
  /// Of AlgorithmKind::custom; none: no file spells out the kind for so many members.
  const CustomCollective* procedure = nullptr;

  /// All data of the collective, of which each member of an all-gather brings a part.
  Bytes whole(std::uint32_t num_members) const;
};

constexpr Bytes control_message{8192};  ///< of a rendezvous (docs/model.md, 4)

/// What the delays of a phase depend on besides its shape.
struct LineContext {
  const network::DelayModel& delays;
  const Rules& rules;
  const Axis& axis;
  Ps endpoint_delay = 0;
  Bandwidth local_memory;  ///< 0: reductions are free
  bool rendezvous = false;
  std::uint64_t share = 1;  ///< chunks in service, of all collectives, that share the bandwidth evenly
  std::uint32_t line = 0;   ///< which of the axis' lines, where they differ
  bool detours = false;     ///< a link that the line may use has failed
  /// Messages that a place sends at a time; they share the one link that it has to a switch.
  std::uint64_t at_once = 1;

  /// All links of the line are alike: Axis::circulant and transitive hold.
  bool is_regular() const;
  bool is_circulant() const { return axis.circulant && is_regular(); }
  bool is_transitive() const { return axis.transitive && is_regular(); }

  /// In the k-th of the axis' dimensions alone, between coordinates that differ by `difference`, of a line that is
  /// regular.
  Ps hop_delay(std::size_t k, std::uint32_t difference, Bytes size) const;
  /// From place i to place j, which differ: link delay of a message (docs/model.md, 3 and 4).
  Ps link(std::uint32_t i, std::uint32_t j, Bytes size) const;
  /// For so long a message from place i to place j, which differ in the axis' k-th dimension, holds one of its links.
  Ps holds(std::size_t k, std::uint32_t i, std::uint32_t j, Bytes size) const;
  /// So many bytes pass between the NPU and its local memory so often.
  Ps memory(Bytes size, std::uint64_t passes) const;
  /// Reducing a received message: one write, two reads (docs/model.md, 6).
  Ps reduction(Bytes size) const { return memory(size, 3); }
  /// With rendezvous the receiver's word to the sender: place j must have posted this long before; else 0.
  Ps control(std::uint32_t i, std::uint32_t j) const;

 private:
  /// What takes as long on a link of dimension d alone as a message does beside those that share it.
  Bytes beside_others(std::uint32_t d, Bytes size) const;
  /// Of a message from place i to place j, in the axis' k-th dimension.
  topology::Port port(std::size_t k, std::uint32_t i, std::uint32_t j) const;
};

/// Arrays that the programs use while they run, kept between calls.
struct Scratch {
  std::vector<Ps> first, second;
};

/// One phase in all lines of an axis, as a function from the members' starts to their finishes: max-plus, hence
/// monotone in every start, and a shift of all starts shifts all finishes.
class LineProgram {
 public:
  virtual ~LineProgram() = default;

  /// Members that start together finish together.
  virtual bool alike() const = 0;
  /// From a start that all share to the last finish. `chunk` matters to double binary trees only.
  virtual Ps duration(std::uint64_t chunk) const = 0;
  /// Bytes that the program holds, within a factor of two.
  virtual std::size_t memory() const = 0;
  /// times: [lines][places] starts, which become the finishes.
  virtual void run(std::uint64_t chunk, std::span<Ps> times, Scratch& scratch) const = 0;
};

/// Steps in which a member waits for others, at the least: every path through a phase pays an endpoint delay for each
/// and one to begin.
std::uint64_t num_steps(const PhaseShape& shape, std::uint32_t size);

std::unique_ptr<LineProgram> make_ring(const PhaseShape& shape, const LineContext& context);
std::unique_ptr<LineProgram> make_direct(const PhaseShape& shape, const LineContext& context);
std::unique_ptr<LineProgram> make_halving_doubling(const PhaseShape& shape, const LineContext& context);
std::unique_ptr<LineProgram> make_double_binary_tree(const PhaseShape& shape, const LineContext& context);
std::unique_ptr<LineProgram> make_binomial_tree(const PhaseShape& shape, const LineContext& context);
std::unique_ptr<LineProgram> make_in_switch(const PhaseShape& shape, const LineContext& context);
std::unique_ptr<LineProgram> make_procedure(const PhaseShape& shape, const LineContext& context);
/// For all lines of the axis, whatever `context.line` is.
std::unique_ptr<LineProgram> make_lines(const PhaseShape& shape, const LineContext& context);

/// The finish of the last member when all start at 0: for programs whose members differ. O(a run on one line).
Ps last_finish(const LineProgram& program, std::uint64_t chunk, std::uint32_t size);

/// Bytes of one message of a ring or of direct (docs/model.md, 6).
inline Bytes message_size(const PhaseShape& shape, std::uint32_t size) {
  return shape.kind == Kind::all_gather ? shape.size : shape.size / size;
}

inline bool reduces_first(const PhaseShape& shape) {
  return shape.reduces && (shape.kind == Kind::all_reduce || shape.kind == Kind::reduce_scatter);
}

/// One of the two trees: a position's parent. Position 0 is the root, its only child the root of an in-order binary
/// tree of the others, in which odd positions are leaves (Sanders, Speck, Traeff: Two-tree algorithms for full
/// bandwidth broadcast, reduction and scan, Parallel Computing 35, 2009).
std::uint32_t tree_parent(std::uint32_t position, std::uint32_t size);
/// The place that has a position in tree 0 (even chunks) or 1. In tree 1 places are positions; tree 0 is the same tree
/// mirrored (even sizes) or shifted by one (odd sizes), so that the leaves of one are inner in the other.
std::uint32_t tree_place(std::uint32_t position, std::uint32_t tree, std::uint32_t size);
/// Reductions of a chunk that a place with so many children pays.
struct TreeReductions {
  std::uint64_t up = 0;    ///< when all children have sent
  std::uint64_t down = 0;  ///< when the parent has
};
TreeReductions tree_reductions(const PhaseShape& shape, std::size_t num_children, const Rules& rules);

}  // namespace orrery::collective
