// Words, barriers and semaphores.
#include "device_state.hpp"
#include "orrery/base/error.hpp"

namespace orrery::gpu {

Task send_words(BlockRun& block, const Operation& operation, bool is_relaxed) {
  Device::State& device = block.device;
  if (is_relaxed) {  // words keep their order with the stores before them on the first link
    while (block.not_left > 0) co_await Happens{block, block.for_room, Stall::link};
  } else {
    co_await drain(block);
    co_await Until{block, device.now() + device.parameters.fence, Stall::acks};
  }
  for (const std::uint32_t id : device.self.ids_of(operation)) {
    const Channel& channel = device.self.channels[id];
    device.send(device.now() + device.parameters.out, {.kind = RequestKind::word,
                                                       .to = channel.peer,
                                                       .block = block.index,
                                                       .tag = channel.paired,
                                                       .wire = 8 + std::uint64_t{device.parameters.data_header}});
  }
}

Task await_words(BlockRun& block, const Operation& operation) {
  Device::State& device = block.device;
  for (const std::uint32_t id : device.self.ids_of(operation)) {
    Device::State::Words& words = device.signals.words[id];
    const std::uint64_t wanted = ++words.taken;
    while (words.come < wanted) co_await Happens{block, words.waiters, Stall::words};
  }
  co_await Until{block, device.now() + device.parameters.l2, Stall::poll};
}

Task pass_barrier(BlockRun& block, const Operation& operation) {
  Device::State& device = block.device;
  co_await drain(block);
  Device::State::Barrier& barrier = device.signals.barriers[operation.barrier.id];
  if (++barrier.arrived < operation.barrier.num_blocks) {
    co_await Happens{block, barrier.waiters, Stall::barrier};
    co_return;
  }
  barrier.arrived = 0;
  const Time leave = device.now() + device.parameters.barrier;
  for (const std::coroutine_handle<> waiter : std::exchange(barrier.waiters, {}))
    device.around.resume_at(leave, device.gpu, waiter);
  co_await Until{block, leave, Stall::barrier};
}

Task acquire(BlockRun& block, const Operation& operation) {
  Device::State& device = block.device;
  for (const std::uint32_t id : device.self.ids_of(operation)) {
    Device::State::Semaphore& semaphore = device.signals.semaphores[id];
    while (semaphore.value == 0) co_await Happens{block, semaphore.waiters, Stall::words};
    --semaphore.value;
    co_await Until{block, device.now() + device.parameters.l2, Stall::poll};
  }
}

namespace {

Detached add_one(Device::State& device, std::uint32_t semaphore) {
  co_await Later{device, device.now() + device.parameters.l2};
  ++device.signals.semaphores[semaphore].value;
  resume_all(device.signals.semaphores[semaphore].waiters);
}

}  // namespace

Task release(BlockRun& block, const Operation& operation) {
  co_await drain(block);
  for (const std::uint32_t id : block.device.self.ids_of(operation)) add_one(block.device, id);
}

}  // namespace orrery::gpu
