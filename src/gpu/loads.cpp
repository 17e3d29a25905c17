// Loads from other GPUs.
#include <deque>

#include "device_state.hpp"

namespace orrery::gpu {
namespace {

/// Loads from all sources side by side, in bursts of which few are under way at a time.
Task fetch(BlockRun& block, std::span<const Operand> sources, std::uint64_t each) {
  Device::State& device = block.device;
  const Parameters& parameters = device.parameters;
  const std::uint64_t bytes = sources.front().bytes.count();
  if (bytes == 0) co_return;
  const Time touch = first_touch(block, sources);
  if (touch > Time::zero()) co_await Until{block, device.now() + touch, Stall::load};
  // Where words wait for data, two bursts under way would be too much of a window.
  const std::uint32_t most = parameters.arbitration == Arbitration::fifo ? 0 : device.granularity.bursts;
  const Bursts bursts(bytes, each, most);
  const std::uint64_t unroll = parameters.unroll, size = bursts.size();
  const std::uint64_t window = size == 1 ? unroll : std::max<std::uint64_t>(2, (unroll + size - 1) / size + 1);
  const auto apart = static_cast<std::int64_t>(size == 1 ? (unroll > 1 ? 1 : 0) : size - 1);
  const Time pace = Time::from_ps(parameters.load.ps() * apart / static_cast<std::int64_t>(unroll));
  std::deque<std::uint32_t> under_way;
  Time next = device.now();
  for (std::uint64_t k = 0; k < bursts.count(); ++k) {
    if (under_way.size() >= window) {
      const std::uint32_t oldest = under_way.front();
      under_way.pop_front();
      co_await LoadComes{block, oldest};
    }
    co_await Until{block, next, Stall::load};
    next = device.now() + pace;
    under_way.push_back(ask(block, sources, bursts[k]));
  }
  for (const std::uint32_t load : under_way) co_await LoadComes{block, load};
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
  const std::uint64_t each = bytes_of_iteration(block, operation, false);
  if (operation.order == Order::each_iteration) {
    co_await fetch(block, remote, each);
    co_return;
  }
  for (const Operand& from : remote) co_await fetch(block, std::span(&from, 1), each);
}

}  // namespace orrery::gpu
