#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {

/// Builds a custom collective from the operations of a file, and finds what is wrong with it as a whole.
class CustomCollectiveBuilder {
 public:
  using Operation = CustomCollective::Operation;
  using Range = CustomCollective::Range;
  /// Makes the error of an operation, which says where it is in its file.
  using Fault = std::function<Error(std::uint32_t operation, std::string_view found, std::string_view expected)>;

  explicit CustomCollectiveBuilder(std::uint32_t num_positions) : first_(num_positions + 1, 0) {}

  /// Adds an operation and returns its number. Operations of a position follow those of the position before.
  std::uint32_t add(Operation operation);
  /// Adds a send to `position` or a receive from it, and returns its number. Messages with one tag between two
  /// positions are received in the order in which they are added.
  std::uint32_t add_message(Operation operation, std::uint32_t position, std::uint64_t tag);
  /// Lets an operation wait for another one of its position.
  void depend(std::uint32_t before, std::uint32_t after);
  /// Says which chunks an operation moves.
  void move(std::uint32_t operation, std::span<const Range> ranges);

  const Operation& operator[](std::uint32_t operation) const { return operations_[operation]; }
  std::uint32_t num_operations() const { return static_cast<std::uint32_t>(operations_.size()); }

  /// Gives every send its receive. Throws fault(operation, ...) for a send without receive, or the other way round.
  void match(const Fault& fault);
  /// Returns all operations in an order in which each comes after those that it waits for. With `last_first` the one
  /// that became ready last is next. Throws fault(operation, ...) for operations that wait for each other in a circle.
  std::vector<std::uint32_t> order(bool last_first, const Fault& fault) const;
  /// Returns the custom collective. `num_chunks`: of the whole; 0 for sizes in bytes.
  /// `sizes`: the least and the most bytes that the whole may have.
  std::shared_ptr<CustomCollective> finish(std::filesystem::path file, std::uint32_t num_chunks,
                                           std::pair<Bytes, Bytes> sizes = {Bytes(0), Bytes(~std::uint64_t{0})});
  /// Lets another custom collective stand for one, depending on the size of the data.
  static void depend_on_size(CustomCollective& collective,
                             std::function<const CustomCollective&(Bytes whole)> of_size) {
    collective.of_size_ = std::move(of_size);
  }

 private:
  struct End {
    std::uint32_t from = 0, to = 0;
    std::uint64_t tag = 0;
    std::uint32_t operation = 0;
  };

  std::vector<Operation> operations_;
  std::vector<std::uint32_t> first_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;  ///< (before, after)
  std::vector<Range> ranges_;
  std::vector<End> sends_, receives_;
};

// The readers of the formats: see read_custom_collective.
std::shared_ptr<const CustomCollective> read_msccl(const std::filesystem::path& file, Kind kind, const Place& named_by);
std::shared_ptr<const CustomCollective> read_mscclpp(const std::filesystem::path& file, Kind kind,
                                                     const Place& named_by);
std::shared_ptr<const CustomCollective> read_chakra(const std::filesystem::path& prefix, const Place& named_by);

}  // namespace orrery::collective
