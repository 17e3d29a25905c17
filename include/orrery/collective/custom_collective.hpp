#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::collective {

/// A collective that a file spells out: what each position of a group sends, receives and reduces, and which operation
/// waits for which (docs/collectives.md, Custom collectives). Operations of all positions have one numbering, position
/// by position. Every send has its receive, and no operation waits for itself. Immutable.
class CustomCollective {
 public:
  enum class OperationKind : std::uint8_t {
    send,     ///< ends when the message has left, or been delivered (Rules::bare_custom_collectives)
    receive,  ///< ends after the message has been delivered and the dependencies have ended
    reduce,   ///< adds up two amounts
    copy,     ///< from memory to memory
    compute,  ///< takes the duration that the file has
    nothing,  ///< joins dependencies
  };
  /// Whole chunks of the data.
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Operation {
    OperationKind kind = OperationKind::nothing;
    std::uint32_t position = 0;
    std::uint32_t partner = 0;       ///< the receive of a send, the send of a receive
    std::uint32_t dependencies = 0;  ///< the number of operations of its position that it waits for
    std::uint32_t first_range = 0;   ///< data that it moves: in chunks,
    std::uint32_t num_ranges = 0;
    Bytes fixed = {};    ///< or in bytes, whatever the size of the collective
    Time duration = {};  ///< duration of a computation
    /// The switch carries it out: a reduction takes no time, and a message holds the link of its sender (a send) or of
    /// its receiver (a receive) together with others that hold it instead.
    bool in_switch = false;
  };

  std::uint32_t num_positions() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  std::span<const Operation> operations() const { return operations_; }
  const Operation& operator[](std::uint32_t operation) const { return operations_[operation]; }
  /// Returns the first operation of a position. The last one is first(position + 1) - 1.
  std::uint32_t first(std::uint32_t position) const { return first_[position]; }
  /// Returns the operations that wait for one.
  std::span<const std::uint32_t> successors(std::uint32_t operation) const {
    return std::span(successors_)
        .subspan(first_successor_[operation], first_successor_[operation + 1] - first_successor_[operation]);
  }
  /// Returns whether messages have sizes in bytes, so that it carries out collectives of one size only.
  bool has_fixed_sizes() const { return num_chunks_ == 0; }
  /// Returns what an operation moves if the data have `whole` bytes. Chunk c of N is the bytes from whole * c / N to
  /// whole * (c + 1) / N, each without the remainder: all chunks together are the whole.
  Bytes bytes(std::uint32_t operation, Bytes whole) const;
  /// Returns the least and the most bytes that the whole may have.
  Bytes least() const { return least_; }
  Bytes most() const { return most_; }
  /// Returns whether switches combine or multiply messages.
  bool uses_switch() const { return std::ranges::any_of(operations_, &Operation::in_switch); }
  /// Returns the custom collective for data of `whole` bytes: another one if the number of operations depends on the
  /// size, which lives as long as this one. Cost O(operations) for the first call with a number of operations.
  const CustomCollective& for_whole(Bytes whole) const { return of_size_ ? of_size_(whole) : *this; }
  /// Returns the file, or what the names of the files begin with.
  const std::filesystem::path& file() const { return file_; }
  /// Returns the bytes that it holds, within a factor of two.
  std::size_t memory() const;

 private:
  friend class CustomCollectiveBuilder;

  std::filesystem::path file_;
  std::uint32_t num_chunks_ = 0;  ///< chunks of the whole; 0: sizes are fixed
  Bytes least_, most_{~std::uint64_t{0}};
  std::vector<Operation> operations_;
  std::vector<std::uint32_t> first_;            ///< [positions + 1]
  std::vector<std::uint32_t> first_successor_;  ///< [operations + 1]
  std::vector<std::uint32_t> successors_;
  std::vector<Range> ranges_;
  std::function<const CustomCollective&(Bytes whole)> of_size_;  ///< null: the operations do not depend on the size
};

/// Says whether a file holds JSON, as execution plans of MSCCL++ do.
bool is_execution_plan(const std::filesystem::path& file);

/// Reads an MSCCL XML if the name ends in .xml, a plan of MSCCL++ if the file holds JSON, else Chakra execution traces
/// PREFIX.0.et, PREFIX.1.et, ..., one for each position. `named_by` is the place that names the file. Throws Error
/// (bad_input) with file and line, or position and node: what cannot be read; another kind of collective than `kind`;
/// sends without receives; operations that wait for each other in a circle; in an MSCCL XML, which says where data go,
/// members that end without their result. Cost O(operations) and, of XML, O(chunks of all buffers).
std::shared_ptr<const CustomCollective> read_custom_collective(const std::filesystem::path& file, Kind kind,
                                                               const Place& named_by);

}  // namespace orrery::collective
