#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "evaluation.hpp"
#include "group_context.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/collective/sliding_window.hpp"
#include "orrery/collective/step.hpp"
#include "position_program.hpp"
#include "sent_bytes.hpp"

namespace orrery::collective {

/// What an algorithm carries out: one chunk of a collective in one dimension group.
struct GroupTask {
  Kind kind = Kind::all_reduce;  ///< one that the algorithm's entry in the registry names
  bool reduces = true;           ///< false: the shape of `kind` without reductions (broadcast, scatter)
  std::uint32_t size = 2;        ///< positions, 2 or more
  Bytes bytes;                   ///< size of a position's data before the collective
  std::uint32_t window = 0;      ///< messages that a position sends at a time, 0: no limit
  bool is_odd_chunk = false;
  bool reduces_every_message = true;  ///< Rules::reduce_every_message
  bool slides = false;                ///< Rules::sliding_windows
  bool in_subgroup = false;           ///< communicator smaller than the world

  /// Returns the bytes of one of `size` blocks: of the data, or in an all-gather what one position brings.
  Bytes block() const { return kind == Kind::all_gather ? bytes : bytes / size; }
  /// Returns whether blocks are added up on their way: in the first half of an all-reduce, and in a reduce-scatter.
  bool scatters() const { return kind == Kind::all_reduce || kind == Kind::reduce_scatter; }
  /// Returns whether blocks are copied to all positions: in the second half of an all-reduce, and in an all-gather.
  bool gathers() const { return kind == Kind::all_reduce || kind == Kind::all_gather; }
};

/// The blocks of data that one message carries. Of an all-to-all among n positions, block from * n + to is what
/// position `from` has for position `to`; else there are n blocks.
struct BlocksOfMessage {
  std::vector<std::uint32_t> blocks;
  bool adds = false;  ///< the receiver adds them to its own; else it keeps them in place of its own
};
/// Returns the blocks 0, 1, ..., size - 1.
BlocksOfMessage all_blocks(std::uint32_t size, bool adds);

/// Under which renumberings of the positions the steps stay the same.
struct Symmetry {
  bool rotation = false;  ///< every position i becomes (i + d) mod n, for any d
  bool exchange = false;  ///< every position i becomes i xor d, for any d
};

/// What carries out a phase in a dimension group: an algorithm of the registry, or a custom collective.
class PhaseAlgorithm : public std::enable_shared_from_this<PhaseAlgorithm> {
 public:
  virtual ~PhaseAlgorithm() = default;

  /// Returns the finishes of the positions as a function of their starts. The axis of `context` must outlive it.
  virtual std::unique_ptr<GroupEvaluator> evaluator(const GroupContext& context) const = 0;
  /// Returns what each position does, message by message. It keeps this algorithm alive.
  virtual std::unique_ptr<PositionProgram> program(const GroupContext& context) const = 0;
  /// Counts what the positions send for so many chunks.
  virtual void count_bytes(std::uint64_t chunks, SentBytes& sent) const = 0;
  /// Returns the least number of endpoint delays between the last start and any finish.
  virtual std::uint64_t fewest_endpoint_delays() const = 0;
  virtual Symmetry symmetry() const = 0;
  /// Returns how many steps follow each other: in a tree the way from the leaves to the root and back. Of a custom
  /// collective the operations of the position that has most.
  virtual std::uint64_t depth() const = 0;
};

/// Makes the evaluator for all groups of the axis, whatever `context.group` is: groups with equal links share one.
std::unique_ptr<GroupEvaluator> evaluate_groups(const PhaseAlgorithm& algorithm, const GroupContext& context);

/// A collective algorithm that says its steps once: who sends how many bytes to whom in which step, and when it
/// reduces. Everything else is derived from the steps. A new algorithm is a class with these steps and one line in
/// registry.cpp. RoundAlgorithm (rounds.hpp) is for algorithms in which all positions do the same in a step.
class SteppedAlgorithm : public PhaseAlgorithm {
 public:
  const GroupTask& task() const { return task_; }
  /// Returns whether a position pays an endpoint delay before its first step.
  virtual bool begins_with_endpoint_delay() const { return true; }
  /// Returns the bytes that the algorithm holds, within a factor of two.
  virtual std::size_t memory() const { return sizeof(*this); }
  virtual std::uint64_t num_steps(std::uint32_t position) const = 0;
  /// Fills `out` with a step of a position.
  void step(std::uint32_t position, std::uint64_t k, Step& out) const {
    out.reset();
    fill(position, k, out);
  }
  /// Returns the blocks of the `message`-th message that the position sends in step k. Of a step through the switch,
  /// message 0 is what the position sends and message 1 what it gets. Only checks of the data ask for it.
  virtual BlocksOfMessage blocks(std::uint32_t position, std::uint64_t k, std::uint32_t message) const = 0;
  /// Returns a faster evaluator that gives the same times as the steps; null: there is none. A property test compares
  /// the times.
  virtual std::unique_ptr<GroupEvaluator> closed_form(const GroupContext&) const { return nullptr; }
  /// Returns how positions go through their steps, which are one message each; null: one step after the other.
  virtual const SlidingWindow* sliding_window() const { return nullptr; }
  /// Returns how many messages of a position share its link to a switch, where messages of a step share links.
  virtual std::uint32_t messages_at_once() const { return 1; }

  std::unique_ptr<GroupEvaluator> evaluator(const GroupContext& context) const final;
  std::unique_ptr<PositionProgram> program(const GroupContext& context) const final;
  /// O(messages), but O(1) for algorithms in rounds.
  void count_bytes(std::uint64_t chunks, SentBytes& sent) const override;
  /// O(messages), but O(1) for algorithms in rounds.
  std::uint64_t fewest_endpoint_delays() const override;
  /// O(messages log positions), but O(1) for algorithms in rounds.
  Symmetry symmetry() const override;
  /// The steps of the position that has most. O(positions).
  std::uint64_t depth() const override;

 protected:
  explicit SteppedAlgorithm(const GroupTask& task) : task_(task) {}

  /// Fills an empty step.
  virtual void fill(std::uint32_t position, std::uint64_t k, Step& out) const = 0;

 private:
  /// Evaluates the steps of each position in an order in which no step comes before those that it waits for. Cost of a
  /// run: O(messages). Throws Error (internal) if steps wait for each other in a circle.
  virtual std::unique_ptr<GroupEvaluator> evaluate(const GroupContext& context) const;

  GroupTask task_;
};

/// One phase of a chunk in the dimension groups of an axis.
struct PhaseShape {
  Algorithm algorithm = {};
  Kind kind = Kind::all_reduce;  ///< one of the first four, or broadcast or reduce: see GroupTask
  Bytes size = {};               ///< size of the chunk as it enters the phase
  bool reduces = true;           ///< GroupTask::reduces
  bool in_subgroup = false;      ///< GroupTask::in_subgroup
  bool begins_odd = false;       ///< even chunks take the steps of odd ones, and odd chunks those of even ones
  /// The groups of this axis are tori or rings whose positions exchange data with all neighbours at once, in place of
  /// what the algorithm does; null: they do not. It must outlive what is made of the shape.
  const Axis* torus = nullptr;
  bool both_directions = false;  ///< use of both directions of the links, in a torus
  /// A custom collective takes the place of the algorithm.
  bool is_custom = false;
  const CustomCollective* custom = nullptr;  ///< custom collective; null: no file spells it out for so many members
};

/// A thing for even chunks and, where these differ, one for odd chunks.
template <class Pointer>
struct ForChunks {
  Pointer even;
  Pointer odd = {};  ///< null: as for even chunks

  const auto& of(std::uint64_t chunk) const { return odd && chunk % 2 == 1 ? *odd : *even; }
  /// Returns what `make` makes of each.
  template <class Make>
  auto map(Make make) const {
    using Made = decltype(make(*even));
    return ForChunks<Made>{make(*even), odd ? make(*odd) : Made()};
  }
};

/// Makes what carries out a phase among `size` positions. What validate_phase refuses must not get here.
ForChunks<std::shared_ptr<const PhaseAlgorithm>> make_algorithms(const PhaseShape& shape, std::uint32_t size,
                                                                 const Rules& rules);

}  // namespace orrery::collective
