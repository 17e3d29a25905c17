// Loads from other GPUs.
#include <algorithm>
#include <deque>
#include <utility>

#include "device_state.hpp"

namespace orrery::gpu {
namespace {

/// Returns the threads of a block that load in lock step.
std::uint64_t lock_step(const BlockRun& block, const Parameters& parameters) {
  const std::uint64_t threads = block.block.threads;
  return parameters.wavefront == 0 ? threads : std::min<std::uint64_t>(threads, parameters.wavefront);
}
/// Returns how many iterations of `each` bytes a block has in flight, each of threads in lock step.
std::uint64_t iterations_in_flight(const BlockRun& block, const Parameters& parameters, std::uint64_t each) {
  const std::uint64_t step = lock_step(block, parameters);
  const std::uint64_t wavefronts = (block.block.threads + step - 1) / step;
  if (wavefronts == 1) return parameters.unroll;
  const std::uint64_t most = std::uint64_t{parameters.outstanding} * parameters.line / each;
  return std::max<std::uint64_t>(1, std::min(parameters.unroll * wavefronts, most));
}

/// Loads from all sources side by side, in bursts of which few are under way at a time. `in_memory`: how often each of
/// their bytes is read or written in the own memory.
Task fetch(BlockRun& block, std::span<const Operand> sources, std::uint64_t each, std::uint32_t in_memory) {
  Device::State& device = block.device;
  const Parameters& parameters = device.parameters;
  const std::uint64_t bytes = sources.front().bytes.count();
  if (bytes == 0) co_return;
  const Time touch = first_touch(block, sources);
  if (touch > Time::zero()) co_await Until{block, device.now() + touch, Stall::load};
  // Where words wait for data, two bursts under way would be too much of a window.
  const std::uint32_t most = parameters.arbitration == Arbitration::fifo ? 0 : device.granularity.bursts;
  const Bursts bursts(bytes, each, most);
  const std::uint64_t unroll = iterations_in_flight(block, parameters, each), size = bursts.size();
  const std::uint64_t window = size == 1 ? unroll : std::max<std::uint64_t>(2, (unroll + size - 1) / size + 1);
  // A burst stands for a loop of its iterations, `unroll` of them under way: so long lies between two bursts, and after
  // the last one.
  const auto pace = [&](std::uint64_t iterations) {
    if (size == 1) return unroll > 1 ? Time::from_ps(parameters.load.ps() / static_cast<std::int64_t>(unroll)) : Time();
    return Time::from_ps(round_trip(block, sources, std::min(each, bytes)).ps() *
                         static_cast<std::int64_t>(iterations) / static_cast<std::int64_t>(unroll));
  };
  std::deque<std::pair<std::uint32_t, std::uint64_t>> under_way;  // loads, and the bytes of their bursts
  Time kept;                                                      // when what has come is through the ports of memory
  const auto keep = [&](std::uint64_t size_of_burst) {
    kept = std::max(kept, device.around.move_memory(device.gpu, in_memory * size_of_burst));
  };
  Time next = device.now();
  for (std::uint64_t k = 0; k < bursts.count(); ++k) {
    if (under_way.size() >= window) {
      const auto [oldest, size_of_burst] = under_way.front();
      under_way.pop_front();
      co_await LoadComes{block, oldest};
      keep(size_of_burst);
    }
    co_await Until{block, next, Stall::load};
    next = device.now() + pace(bursts[k].iterations);
    under_way.emplace_back(ask(block, sources, bursts[k]), bursts[k].bytes());
  }
  for (const auto& [load, size_of_burst] : under_way) {
    co_await LoadComes{block, load};
    keep(size_of_burst);
  }
  co_await Until{block, kept, Stall::load};
  if (size > 1) co_await Until{block, next, Stall::load};
}

}  // namespace

std::uint32_t ask(BlockRun& block, std::span<const Operand> sources, const Bursts::Burst& burst) {
  Device::State& device = block.device;
  const std::uint32_t load = device.loads.put({static_cast<std::uint32_t>(sources.size()), {}});
  for (const Operand& from : sources) {
    const bool in_switch = from.access == Access::in_switch;
    device.send(device.now(), {.kind = in_switch ? RequestKind::switch_load : RequestKind::load,
                               .to = in_switch ? 0 : from.gpu,
                               .group = in_switch ? from.gpu : 0,
                               .block = block.index,
                               .burst = burst.number,
                               .tag = load,
                               .bytes = burst.bytes(),
                               .wire = device.lines(burst.bytes()) * device.parameters.read_header});
  }
  return load;
}

Time round_trip(BlockRun& block, std::span<const Operand> sources, std::uint64_t bytes) {
  Device::State& device = block.device;
  Time time = device.parameters.load;
  for (const Operand& from : sources) {
    const std::uint32_t other = from.access == Access::in_switch ? device.program.groups[from.gpu].front() : from.gpu;
    time += device.around.holds(other, device.gpu, device.data_wire(bytes));
    time += device.around.holds(device.gpu, other, device.lines(bytes) * device.parameters.read_header);
  }
  return time;
}

Time first_touch(BlockRun& block, std::span<const Operand> sources) {
  Time time;
  for (const Operand& from : sources) {
    const std::uint32_t other =
        from.access == Access::in_switch ? block.device.program.groups[from.gpu].front() : from.gpu;
    if (block.touched[other] == 0) time = block.device.parameters.touch;
    block.touched[other] = 1;
  }
  return time;
}

Task load(BlockRun& block, const Operation& operation) {
  const auto all = block.device.self.sources(operation);
  std::vector<Operand> remote;
  for (const Operand& from : all)
    if (from.access != Access::local) remote.push_back(from);
  if (remote.empty()) co_return;
  const std::uint64_t step = lock_step(block, block.device.parameters) * block.device.parameters.width;
  const std::uint64_t each = std::min(bytes_of_iteration(block, operation, false), step);
  const auto local = static_cast<std::uint32_t>(all.size() - remote.size() + operation.num_destinations);
  if (operation.order == Order::each_iteration) {
    co_await fetch(block, remote, each, local);
    co_return;
  }
  // A get keeps each source at a destination of its own; a sum is read and written once.
  const bool is_get = operation.kind == OperationKind::get;
  for (const Operand& from : remote)
    co_await fetch(block, std::span(&from, 1), each, is_get ? 1 : &from == &remote.back() ? local : 0);
}

}  // namespace orrery::gpu
