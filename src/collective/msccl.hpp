#pragma once

#include <array>
#include <optional>

#include "custom_collective_builder.hpp"

namespace orrery::collective {

/// An MSCCL algorithm as its file has it.
struct Msccl {
  enum class Buffer : std::uint8_t { input, output, scratch };
  /// Chunks of a buffer, one after the other.
  struct Place {
    Buffer buffer = Buffer::input;
    std::uint32_t offset = 0;
  };
  /// Of what a step does, in this order; each is an operation of the procedure.
  enum Part : std::uint8_t { receives, calculates, sends, num_parts };

  struct Step {
    std::uint32_t block = 0;  ///< thread block's id in the file
    std::uint32_t number = 0;
    int line = 0;
    std::string type;
    Place from, to;
    std::uint32_t count = 0;  ///< chunks
    std::array<std::optional<std::uint32_t>, num_parts> operations;
    bool keeps = true;  ///< what is received or added up is written to `to`

    /// Its last operation.
    std::uint32_t last() const {
      for (const Part part : {sends, calculates})
        if (operations[part]) return *operations[part];
      return *operations[receives];
    }
  };

  std::string file;
  Kind kind = Kind::all_reduce;
  bool in_place = false;
  std::uint32_t root = 0;
  std::uint32_t num_gpus = 0;
  std::uint32_t num_chunks = 0;            ///< of the whole
  std::vector<std::uint32_t> num_scratch;  ///< [gpus]
  std::vector<std::vector<Step>> steps;    ///< [gpus]

  /// "rank 3, thread block 1, step 2: `found`", at its line.
  Error error(std::uint32_t gpu, const Step& step, std::string_view found, std::string_view expected) const;
  /// Chunks of a member's input and output buffers.
  std::uint32_t num_input() const;
  std::uint32_t num_output() const;
};

/// Carries out the steps in this order, with marks in place of data, and throws Error (bad_input) for a step that uses
/// what nobody has put there, and for a member that ends without its result. What each operation moves becomes known to
/// `builder` if one is given. `of_operation`: [operations] rank and index of the step. O(chunks moved + buffers).
void follow_data(const Msccl& algorithm, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& of_operation,
                 const std::vector<std::uint32_t>& order, CustomCollectiveBuilder* moved,
                 const CustomCollectiveBuilder& builder);

}  // namespace orrery::collective
