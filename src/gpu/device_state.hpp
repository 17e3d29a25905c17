#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "coverage.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/gpu/device.hpp"
#include "task.hpp"

namespace orrery::gpu {

using Waiters = std::vector<std::coroutine_handle<>>;

/// Lets all go on that wait for something that has happened. What they do may let others wait for it again.
inline void resume_all(Waiters& waiters) {
  const Waiters all = std::exchange(waiters, {});
  for (const std::coroutine_handle<> waiter : all) waiter.resume();
}

/// The state of one thread block.
struct BlockRun {
  Device::State& device;
  const Block& block;
  std::uint32_t index = 0;
  std::uint32_t operation = 0;  ///< operation in progress
  Stall waits_for = Stall::launch;
  bool is_over = false;
  std::uint64_t not_left = 0;   ///< bytes that have not left the first link
  std::uint32_t not_acked = 0;  ///< acknowledgements that are missing
  Waiters for_room = {}, for_acks = {};
  std::vector<char> touched = {};  ///< [GPUs] it has loaded from
  std::array<Time, num_stalls> stalls = {};

  const Operation& current() const { return block.operations[operation]; }
};

struct Device::State {
  State(const Program& the_program, std::uint32_t the_gpu, const Parameters& the_parameters, Granularity granular,
        Simulation& around);

  struct Words {
    std::uint64_t come = 0, taken = 0;
    Waiters waiters;
  };
  struct Barrier {
    std::uint32_t arrived = 0;
    std::uint64_t turn = 0;
    Waiters waiters;
  };
  struct Semaphore {
    std::uint64_t value = 0;
    Waiters waiters;
  };
  /// What blocks wait for that is no data.
  struct Signals {
    std::vector<Words> words;  ///< [channels]
    std::vector<Semaphore> semaphores;
    std::map<std::uint32_t, Barrier> barriers;
  };
  /// How far the kernel is.
  struct Kernel {
    Time begun;
    std::vector<Task> tasks;           ///< [blocks]
    std::deque<std::uint32_t> for_sm;  ///< blocks that wait for an SM
    std::uint32_t num_over = 0, last_block = 0;
  };
  struct PacketReader {
    std::uint64_t begin = 0, end = 0;
    std::coroutine_handle<> reader;
  };
  struct Packets {
    Coverage there;
    std::vector<PacketReader> readers;
  };
  /// A load whose data are not all there.
  struct Load {
    std::uint32_t missing = 0;  ///< answers
    std::coroutine_handle<> waiter;
  };
  struct Proxy {
    Time free;                                   ///< when it may handle the next request
    std::map<std::uint32_t, Time> engine_free;   ///< time at which the engine is free, by peer
    std::map<std::uint32_t, Time> channel_done;  ///< time at which its requests so far are carried out, by channel
  };

  const Program& program;
  const Gpu& self;
  std::uint32_t gpu;
  const Parameters& parameters;
  Granularity granularity;
  Simulation& around;
  bool fits_l2 = true;  ///< the buffers of the collective
  std::deque<BlockRun> blocks;
  Kernel kernel;
  Signals signals;
  std::array<Packets, 3> packets;  // by buffer
  Slots<Load> loads;
  Proxy proxy;
  RequestCounts counts;

  Time now() const { return around.now(); }
  /// The time of one load of data by all threads of a block.
  Time memory() const { return fits_l2 ? parameters.hit : parameters.hbm; }
  /// The time of one poll of packets.
  Time packet_poll() const { return fits_l2 ? parameters.l2 : parameters.hbm; }
  std::uint64_t lines(std::uint64_t bytes) const { return (bytes + parameters.line - 1) / parameters.line; }
  std::uint64_t data_wire(std::uint64_t bytes) const { return bytes + lines(bytes) * parameters.data_header; }
  /// Counts a request and hands it to its first link at `time`.
  void send(Time time, Request request);
  void packets_come(Buffer buffer, std::uint64_t begin, std::uint64_t end);
  void word_comes(std::uint32_t channel);
  void start_blocks();
  void tell_sms();
  void end_block(BlockRun& block);
};

/// Suspends a block until `time`; does nothing if that is past.
struct Until {
  BlockRun& block;
  Time time;
  Stall why;
  Time since = {};

  bool await_ready() {
    since = block.device.now();
    return time <= since;
  }
  void await_suspend(std::coroutine_handle<> here) {
    block.waits_for = why;
    block.device.around.resume_at(time, block.device.gpu, here);
  }
  void await_resume() const { block.stalls[static_cast<std::size_t>(why)] += block.device.now() - since; }
};

/// Suspends a block until something happens that is awaited in `waiters`.
struct Happens {
  BlockRun& block;
  Waiters& waiters;
  Stall why;
  Time since = {};

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> here) {
    since = block.device.now();
    block.waits_for = why;
    waiters.push_back(here);
  }
  void await_resume() const { block.stalls[static_cast<std::size_t>(why)] += block.device.now() - since; }
};

/// Suspends a block until it can see packets.
struct PacketsCome {
  BlockRun& block;
  Buffer buffer;
  std::uint64_t begin, end;
  Time since = Time::max();

  bool await_ready() const { return block.device.packets[static_cast<std::size_t>(buffer)].there.covers(begin, end); }
  void await_suspend(std::coroutine_handle<> here) {
    since = block.device.now();
    block.waits_for = Stall::words;
    block.device.packets[static_cast<std::size_t>(buffer)].readers.push_back({begin, end, here});
  }
  void await_resume() const {
    if (since < Time::max()) block.stalls[static_cast<std::size_t>(Stall::words)] += block.device.now() - since;
  }
};

/// Suspends a block until a load is complete. It frees the load.
struct LoadComes {
  BlockRun& block;
  std::uint32_t load;
  Time since = {};

  bool await_ready() {
    since = block.device.now();
    return block.device.loads[load].missing == 0;
  }
  void await_suspend(std::coroutine_handle<> here) {
    block.waits_for = Stall::load;
    block.device.loads[load].waiter = here;
  }
  void await_resume() const {
    block.device.loads.free(load);
    block.stalls[static_cast<std::size_t>(Stall::load)] += block.device.now() - since;
  }
};

/// How the bytes of an operation are cut into iterations and bursts.
class Bursts {
 public:
  struct Burst {
    std::uint32_t number = 0;
    std::uint64_t iterations = 0;
    std::uint64_t begin = 0, end = 0;  ///< bytes

    std::uint64_t bytes() const { return end - begin; }
  };
  /// Of `bytes` bytes in iterations of `each`, in at most `most` bursts; 0: one for each iteration.
  Bursts(std::uint64_t bytes, std::uint64_t each, std::uint32_t most)
      : bytes_(bytes), each_(each), iterations_((bytes + each - 1) / each) {
    size_ = most == 0 ? 1 : std::max<std::uint64_t>((iterations_ + most - 1) / most, 1);
  }
  std::uint64_t count() const { return (iterations_ + size_ - 1) / size_; }
  Burst operator[](std::uint64_t k) const {
    const std::uint64_t first = k * size_, size = std::min(size_, iterations_ - first);
    return {static_cast<std::uint32_t>(k), size, first * each_, std::min((first + size) * each_, bytes_)};
  }
  std::uint64_t each() const { return each_; }
  std::uint64_t size() const { return size_; }  ///< iterations of a burst, but for the last one

 private:
  std::uint64_t bytes_, each_, iterations_, size_;
};

/// A coroutine that nobody awaits. It begins when it is called, and frees itself when it is over.
struct Detached {
  struct promise_type {
    Detached get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { throw; }
  };
};
/// Suspends a coroutine of no block until `time`.
struct Later {
  Device::State& device;
  Time time;

  bool await_ready() const { return time <= device.now(); }
  void await_suspend(std::coroutine_handle<> here) const { device.around.resume_at(time, device.gpu, here); }
  void await_resume() const {}
};

// The operations of a block, each family in a source of its own.
/// Moves data: reads local memory, packets, other GPUs or the switch, and stores the result.
Task stream(BlockRun& block, const Operation& operation);
/// Stores S[i] to D[i], in the order that the operation says.
Task store_pairs(BlockRun& block, const Operation& operation);
/// Loads data from other GPUs without storing them there.
Task load(BlockRun& block, const Operation& operation);
Task send_words(BlockRun& block, const Operation& operation, bool is_relaxed);
Task await_words(BlockRun& block, const Operation& operation);
Task pass_barrier(BlockRun& block, const Operation& operation);
Task acquire(BlockRun& block, const Operation& operation);
Task release(BlockRun& block, const Operation& operation);
/// Hands put, signal, pws, pwsf or flush to the proxy.
Task ask_proxy(BlockRun& block, const Operation& operation);

/// Suspends a block until all its stores have been acknowledged.
inline Task drain(BlockRun& block) {
  while (block.not_acked > 0) co_await Happens{block, block.for_acks, Stall::acks};
}
/// Returns the bytes of payload that the block moves in an iteration of the operation.
std::uint64_t bytes_of_iteration(const BlockRun& block, const Operation& operation, bool packets);
/// Asks for a piece of each source, and returns the load.
std::uint32_t ask(BlockRun& block, std::span<const Operand> sources, const Bursts::Burst& burst);
/// Returns the time from asking for `bytes` of each source to having them, if nothing else is on the links.
Time round_trip(BlockRun& block, std::span<const Operand> sources, std::uint64_t bytes);
/// Returns the time for the first loads of a block from other GPUs, which it pays once for each of them.
Time first_touch(BlockRun& block, std::span<const Operand> sources);

}  // namespace orrery::gpu
