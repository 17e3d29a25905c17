#include "untimed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::gpu {
namespace {

class Execution {
 public:
  Execution(const Program& program, Observer& observer) : program_(program), observer_(observer) {
    for (std::uint32_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
      semaphores_.push_back(program.gpus[gpu].semaphores);
      words_.emplace_back(program.gpus[gpu].channels.size(), 0);
      barriers_.emplace_back();
      for (std::uint32_t block = 0; block < program.gpus[gpu].blocks.size(); ++block)
        blocks_.push_back({gpu, block, 0});
    }
    joined_.resize(blocks_.size());
  }

  void run(Turns turns) {
    bool moves = true;
    while (moves) {
      moves = false;
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        if (turns == Turns::round_robin) {
          moves |= step(i);
        } else {
          while (step(blocks_.size() - 1 - i)) moves = true;
        }
      }
    }
    check_end();
  }

 private:
  std::uint32_t num_operations(At at) const {
    return static_cast<std::uint32_t>(program_.gpus[at.gpu].blocks[at.block].operations.size());
  }

  /// Carries out the next operation of a block if it need not wait. Returns whether it did.
  bool step(std::size_t block) {
    At& at = blocks_[block];
    if (at.operation == num_operations(at)) return false;
    const Operation& operation = operation_at(program_, at);
    if (operation.kind == OperationKind::barrier) return pass_barrier(block, operation);
    if (!is_ready(at, operation)) return false;
    take(at, operation);
    ++at.operation;
    return true;
  }

  bool is_ready(At at, const Operation& operation) {
    const auto ids = program_.gpus[at.gpu].ids_of(operation);
    if (awaits_words(operation.kind)) return enough(words_[at.gpu], ids);
    if (operation.kind == OperationKind::sem_acquire) return enough(semaphores_[at.gpu], ids);
    return operation.num_sources == 0 || observer_.has_packets(at);
  }
  /// Says whether each id can be taken from once for each time that it is named.
  bool enough(const std::vector<std::uint32_t>& values, std::span<const std::uint32_t> ids) {
    needed_.assign(ids.begin(), ids.end());
    std::ranges::sort(needed_);
    for (std::size_t i = 0, same = 0; i < needed_.size(); ++i) {
      same = i > 0 && needed_[i] == needed_[i - 1] ? same + 1 : 1;
      if (values[needed_[i]] < same) return false;
    }
    return true;
  }

  void take(At at, const Operation& operation) {
    const Gpu& gpu = program_.gpus[at.gpu];
    if (operation.num_sources > 0) observer_.perform(at);
    if (operation.kind == OperationKind::nop) observer_.synchronise(at);
    if (operation.kind == OperationKind::flush) observer_.flush(at);
    for (const std::uint32_t id : gpu.ids_of(operation)) {
      if (sends_words(operation.kind)) {
        const Channel& channel = gpu.channels[id];
        ++words_[channel.peer][channel.paired];
        observer_.send_word(at, {channel.peer, channel.paired});
      } else if (awaits_words(operation.kind)) {
        --words_[at.gpu][id];
        observer_.await_word(at, {at.gpu, id});
      } else if (operation.kind == OperationKind::sem_acquire) {
        --semaphores_[at.gpu][id];
        observer_.acquire(at, id);
      } else if (operation.kind == OperationKind::sem_release) {
        ++semaphores_[at.gpu][id];
        observer_.release(at, id);
      }
    }
  }

  struct Barrier {
    std::vector<std::size_t> blocks;  ///< blocks that have arrived
    std::uint32_t size = 0;
  };
  bool pass_barrier(std::size_t block, const Operation& operation) {
    if (joined_[block]) return false;
    const At at = blocks_[block];
    Barrier& barrier = barriers_[at.gpu][operation.barrier.id];
    if (!barrier.blocks.empty() && barrier.size != operation.barrier.num_blocks)
      throw error_at(program_, at, fmt::format("its num_threadblocks is {}", operation.barrier.num_blocks),
                     fmt::format("{}, as another block at barrier {} has it", barrier.size, operation.barrier.id));
    barrier.size = operation.barrier.num_blocks;
    barrier.blocks.push_back(block);
    joined_[block] = true;
    if (barrier.blocks.size() < barrier.size) return true;
    std::vector<At> places;
    for (const std::size_t other : barrier.blocks) {
      places.push_back(blocks_[other]);
      joined_[other] = false;
      ++blocks_[other].operation;
    }
    barriers_[at.gpu].erase(operation.barrier.id);
    observer_.join_barrier(places);
    return true;
  }

  void check_end() const {
    for (const At at : blocks_)
      if (at.operation < num_operations(at)) throw stuck(at);
    for (std::uint32_t gpu = 0; gpu < words_.size(); ++gpu)
      for (std::uint32_t channel = 0; channel < words_[gpu].size(); ++channel)
        if (words_[gpu][channel] > 0) {
          const Channel& end = program_.gpus[gpu].channels[channel];
          throw Error(ErrorCode::bad_input, {.file = program_.file},
                      fmt::format("GPU {} sends {} to GPU {} on channel {} that nobody awaits", end.peer,
                                  counted(words_[gpu][channel], "word"), gpu, end.paired),
                      "as many waits as signals: what is left over would end the waits of the next run");
        }
  }
  Error stuck(At at) const {
    const Operation& operation = operation_at(program_, at);
    const Gpu& gpu = program_.gpus[at.gpu];
    if (operation.kind == OperationKind::barrier) {
      const Barrier& barrier = barriers_[at.gpu].at(operation.barrier.id);
      return error_at(program_, at,
                      fmt::format("{} of {} come to barrier {}", counted(barrier.blocks.size(), "thread block"),
                                  barrier.size, operation.barrier.id),
                      "as many as num_threadblocks says, equally often");
    }
    for (const std::uint32_t id : gpu.ids_of(operation)) {
      if (awaits_words(operation.kind) && words_[at.gpu][id] == 0)
        return error_at(
            program_, at,
            fmt::format("it waits for ever for a word from GPU {} on channel {}", gpu.channels[id].peer, id),
            "as many signals as waits, and no GPUs that wait for each other");
      if (operation.kind == OperationKind::sem_acquire && semaphores_[at.gpu][id] == 0)
        return error_at(program_, at, fmt::format("it waits for ever for semaphore {}", id),
                        "a sem_release for each sem_acquire beyond the first value");
    }
    if (operation.num_sources > 0)
      return error_at(program_, at, "it waits for ever for packets",
                      "a ppkt or a gstorepkt, or a cpkt of this GPU, to the same bytes");
    return error_at(program_, at, "it waits for ever", "blocks that do not wait for each other");
  }

  const Program& program_;
  Observer& observer_;
  std::vector<At> blocks_;                                  ///< the next operation of each
  std::vector<bool> joined_;                                ///< [blocks] it waits at a barrier
  std::vector<std::vector<std::uint32_t>> words_;           ///< [gpus][channels] that have come
  std::vector<std::vector<std::uint32_t>> semaphores_;      ///< [gpus][semaphores]
  std::vector<std::map<std::uint32_t, Barrier>> barriers_;  ///< [gpus] by id
  std::vector<std::uint32_t> needed_;
};

}  // namespace

void execute_untimed(const Program& program, Turns turns, Observer& observer) {
  Execution(program, observer).run(turns);
}

std::string text_of(const Program& program, At at) {
  return program.place(at.gpu, program.gpus[at.gpu].blocks[at.block], operation_at(program, at));
}

Error error_at(const Program& program, At at, std::string_view found, std::string_view expected) {
  return {ErrorCode::bad_input, {.file = program.file}, text_of(program, at) + ": " + std::string(found), expected};
}

}  // namespace orrery::gpu
