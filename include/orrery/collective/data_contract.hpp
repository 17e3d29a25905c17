#pragma once

#include <cstdint>

#include "orrery/collective/options.hpp"

namespace orrery::collective {

/// Stands for the data of one chunk: which chunk of the whole it is, and whose contributions are in it.
struct DataMark {
  std::uint64_t chunk = 0;  ///< chunk of the whole
  std::uint32_t count = 0;  ///< number of contributions; 0: nobody has written it
  std::uint64_t ranks = 0;  ///< the sum of the hashes of the ranks that contributed

  friend bool operator==(const DataMark&, const DataMark&) = default;
};

/// What the members of a collective hold at its start, and what they must hold at its end.
class DataContract {
 public:
  /// `num_chunks`: of the whole. Kinds that leave shares need a multiple of `size`. There is no contract of a barrier.
  DataContract(Kind kind, std::uint32_t size, std::uint64_t num_chunks, std::uint32_t root);

  /// Returns the chunks of a member's input and of its output.
  std::uint64_t num_input() const;
  std::uint64_t num_output() const;
  /// Returns how many chunks of an output in turn stand for chunks of the whole in turn: from any multiple of this on,
  /// the mark of the k-th following chunk is that of the first one with a chunk k later.
  std::uint64_t output_run() const;
  /// Returns what chunk `at` of the input of a member holds at the start.
  DataMark input(std::uint32_t rank, std::uint64_t at) const;
  /// Returns what chunk `at` of the output of a member must hold at the end; count 0: anything.
  DataMark output(std::uint32_t rank, std::uint64_t at) const;

 private:
  Kind kind_;
  std::uint32_t size_, root_;
  std::uint64_t num_chunks_, share_;
  std::uint64_t all_ranks_ = 0;
};

}  // namespace orrery::collective
