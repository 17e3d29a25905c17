#pragma once

#include <array>
#include <optional>

#include "custom_collective_builder.hpp"

namespace orrery::collective {

/// An MSCCL algorithm, as the file has it.
struct Msccl {
  enum class Buffer : std::uint8_t { input, output, scratch };
  /// Chunks of a buffer, one after the other.
  struct Location {
    Buffer buffer = Buffer::input;
    std::uint32_t offset = 0;
  };
  /// What a step may do, in this order. Each is an operation of the custom collective.
  enum Action : std::uint8_t { receives, calculates, sends, num_actions };

  struct Step {
    std::uint32_t block = 0;  ///< id of the thread block in the file
    std::uint32_t number = 0;
    int line = 0;
    std::string type;
    Location from, to;
    std::uint32_t count = 0;              ///< chunks
    std::uint32_t copies = 1;             ///< bytes of a message for each byte of data: packets have two
    std::optional<std::uint32_t> of_gpu;  ///< whose thread block it is, if another GPU carries it out
    std::array<std::optional<std::uint32_t>, num_actions> operations;
    bool in_switch = false;       ///< see CustomCollective::Operation
    bool adds_in_switch = false;  ///< only what it adds up is added up in the switch
    bool keeps = true;            ///< what is received or added up is written to `to`

    /// Returns the last operation of the step.
    std::uint32_t last() const {
      for (const Action action : {sends, calculates})
        if (operations[action]) return *operations[action];
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

  /// Returns the error "rank 3, thread block 1, step 2: `found`", at the line of the step.
  Error error(std::uint32_t gpu, const Step& step, std::string_view found, std::string_view expected) const;
  /// Returns the chunks of a member's input buffer and of its output buffer.
  std::uint32_t num_input() const;
  std::uint32_t num_output() const;
};

/// Carries out the steps in this order, with symbols in place of data. Throws Error (bad_input) for a step that uses
/// what no step has written, and for a member that ends without its result. Tells `moved`, if any, what each operation
/// moves. `of_operation`: [operations] rank and index of the step. Cost O(chunks moved + buffers).
void follow_data(const Msccl& algorithm, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& of_operation,
                 const std::vector<std::uint32_t>& order, CustomCollectiveBuilder* moved,
                 const CustomCollectiveBuilder& builder);

}  // namespace orrery::collective
