#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/collective/options.hpp"

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
    std::uint32_t count = 0;   ///< chunks
    std::uint32_t copies = 1;  ///< bytes of a message for each byte of data: packets have two
    /// The step that it waits for besides the one before: the id of its thread block, and its number.
    std::optional<std::pair<std::uint32_t, std::uint32_t>> waits_for;
    std::optional<std::uint32_t> of_gpu;  ///< whose thread block it is, if another GPU carries it out
    std::array<std::optional<std::uint32_t>, num_actions> operations;
    bool in_switch = false;       ///< see CustomCollective::Operation
    bool adds_in_switch = false;  ///< only what it adds up is added up in the switch
    bool keeps = true;            ///< result is written to `to`: the data received or added up

    /// Returns the last operation of the step.
    std::uint32_t last() const {
      for (const Action action : {sends, calculates})
        if (operations[action]) return *operations[action];
      return *operations[receives];
    }
  };

  enum class Protocol : std::uint8_t { simple, ll, ll128 };
  /// The ends of the connections of a thread block.
  struct Block {
    std::uint32_t id = 0;
    std::optional<std::uint32_t> send, receive;  ///< the GPUs at their other ends
    std::uint32_t channel = 0;
  };

  std::string file;
  Protocol protocol = Protocol::simple;
  Kind kind = Kind::all_reduce;
  bool in_place = false;
  std::uint32_t root = 0;
  std::uint32_t num_gpus = 0;
  std::uint32_t num_chunks = 0;            ///< chunks of the whole
  std::vector<std::uint32_t> num_scratch;  ///< [gpus]
  std::vector<std::vector<Step>> steps;    ///< [gpus] thread block by thread block
  std::vector<std::vector<Block>> blocks;  ///< [gpus] in the order of the file

  /// Returns the error "rank 3, thread block 1, step 2: `found`", at the line of the step.
  Error error(std::uint32_t gpu, const Step& step, std::string_view found, std::string_view expected) const;
  /// Returns the chunks of a member's input buffer and of its output buffer.
  std::uint32_t num_input() const;
  std::uint32_t num_output() const;
};

/// Reads and checks an MSCCL algorithm of any kind, as read_custom_collective does.
Msccl read_msccl_algorithm(const std::filesystem::path& file, const Place& named_by);

}  // namespace orrery::collective
