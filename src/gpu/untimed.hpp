#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// An operation of a program, by its GPU, the index of its block there, and its index in the block.
struct At {
  std::uint32_t gpu = 0, block = 0, operation = 0;

  friend bool operator==(const At&, const At&) = default;
  friend auto operator<=>(const At&, const At&) = default;
};

/// One direction of a connection: the GPU that awaits its words, and its end of the channel.
struct WordQueue {
  std::uint32_t gpu = 0, channel = 0;

  friend auto operator<=>(const WordQueue&, const WordQueue&) = default;
};

/// What an untimed execution tells. Events come in the order in which they happen.
class Observer {
 public:
  virtual ~Observer() = default;

  /// Says whether the packets that an operation reads are there.
  virtual bool has_packets(At at) = 0;
  /// Carries out what an operation reads and writes.
  virtual void perform(At at) = 0;
  virtual void send_word(At, WordQueue) {}
  virtual void await_word(At, WordQueue) {}
  virtual void join_barrier(std::span<const At>) {}
  virtual void synchronise(At) {}  ///< the threads of a block
  virtual void flush(At) {}
  virtual void release(At, std::uint32_t) {}
  virtual void acquire(At, std::uint32_t) {}
};

enum class Turns : std::uint8_t {
  round_robin,  ///< blocks ascending, one operation at a time
  last_first,   ///< blocks descending, each as far as it can go
};

/// Executes a program without time: blocks take turns, and a block waits for words, barriers, semaphores and packets.
/// Throws Error (bad_input) with the GPU, block and operation that wait for ever. Cost O(operations) and for each turn
/// in which it waits that of a look.
void execute_untimed(const Program& program, Turns turns, Observer& observer);

/// Returns the error of an operation: "GPU 3, thread block 1, operation 2 (put): FOUND".
Error error_at(const Program& program, At at, std::string_view found, std::string_view expected);

/// Returns the place of an operation, for messages.
std::string text_of(const Program& program, At at);

inline const Operation& operation_at(const Program& program, At at) {
  return program.gpus[at.gpu].blocks[at.block].operations[at.operation];
}

}  // namespace orrery::gpu
