#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/collective/plan_operations.hpp"

namespace orrery::collective::mscclpp {

/// An execution plan of MSCCL++, as its JSON file has it (docs/gpu.md, Plans). Sizes are in chunks of the data, so a
/// plan is for messages of many sizes. What operations name by way of their block is resolved: channels are those of
/// the GPU, and remote buffers say whose they are.
struct Plan {
  /// Chunks that an operation reads or writes.
  struct Chunks {
    std::uint32_t index = 0;  ///< index of the first chunk
    std::uint32_t count = 0;
    std::uint32_t gpu = 0;  ///< whose buffer it is; of `in_switch` the index of the group in `groups`
    Buffer buffer = Buffer::input;
    Access access = Access::local;
  };
  /// The thread blocks that share an operation cut its bytes into `size` parts.
  struct Share {
    std::uint32_t part = 0, size = 1;
  };
  struct Step {
    OperationKind kind = OperationKind::nop;
    Transport transport = Transport::memory;
    std::vector<Chunks> sources, destinations;
    std::vector<std::uint32_t> ids;  ///< ids of channels (Gpu::channels) or semaphores (Gpu::semaphores)
    std::uint32_t barrier = 0, num_blocks = 0;
    Share share;
    /// Steps that follow each other in a pipeline are repeated together for each `unit` of the bytes of
    /// `pipeline_chunks` chunks. 0: the step is in no pipeline.
    std::uint32_t pipeline = 0;  ///< number of the pipeline in its block, from 1 on
    std::uint32_t unit = 0;      ///< bytes
    std::uint32_t pipeline_chunks = 0;
    std::uint32_t number = 0;  ///< number of the operation in its block
  };
  struct Block {
    std::uint32_t id = 0;
    std::vector<Step> steps;
  };
  struct Gpu {
    std::uint32_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
    std::vector<Block> blocks;
    std::vector<Channel> channels;  ///< those of the file, memory and port, and those made to pair the others'
    std::vector<std::uint32_t> semaphores;
  };

  std::string file, name;
  Kind kind = Kind::all_reduce;
  bool uses_packets = false;  ///< protocol LL
  bool in_place = false;
  bool reuses_scratch = false;
  bool has_double_scratch = false;
  std::uint32_t threads = 1024;          ///< threads of a block
  std::uint32_t alignment = 16;          ///< bytes
  Bytes least, most{~std::uint64_t{0}};  ///< sizes of messages
  std::vector<Gpu> gpus;
  std::vector<std::vector<std::uint32_t>> groups;  ///< the GPUs of each group of a switch, ascending
  std::vector<std::string> warnings;  ///< operations that MSCCL++'s own executor would not execute, or not as written

  /// Returns the chunks of the whole data, which message sizes count: the output of an all-gather, else the input.
  std::uint32_t whole_chunks() const {
    return kind == Kind::all_gather ? gpus.front().output_chunks : gpus.front().input_chunks;
  }
  /// Returns the operations of all GPUs by name. A pipeline counts as one, and what is in it counts once.
  std::map<std::string, std::uint64_t, std::less<>> counts() const;
  /// Returns "GPU 3, thread block 1, operation 2 (put)".
  std::string place(std::uint32_t gpu, const Block& block, const Step& step) const;
};

/// Reads a plan. `named_by` is the place that names the file. Keys that MSCCL++'s executor does not read are ignored.
/// Throws Error (bad_input) with file, GPU, thread block and operation for what is no plan: keys that are missing or
/// have another type, ids and chunks that do not exist, operands that an operation does not have. Cost O(file).
Plan read_plan(const std::filesystem::path& file, const Place& named_by = {});
/// Reads a plan from its text. `file` names it in messages.
Plan parse_plan(std::string_view text, const std::string& file);

}  // namespace orrery::collective::mscclpp
