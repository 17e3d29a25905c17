// Port channels: the proxy on the host and the copy engines that it starts.
#include <algorithm>

#include "device_state.hpp"

namespace orrery::gpu {
namespace {

/// Says when the copy engine to a peer begins with what the proxy has handled at `handled`.
Time& engine(Device::State& device, std::uint32_t peer, Time handled) {
  Time& free = device.proxy.engine_free[peer];
  free = std::max(free, handled);
  return free;
}

/// Copies data, which are on the links in pieces as the engine reads them.
void copy_to_peer(BlockRun& block, const Operand& to, Time handled) {
  Device::State& device = block.device;
  const Parameters& parameters = device.parameters;
  Time& free = engine(device, to.gpu, handled);
  const Time begin = free + parameters.dma_setup;
  const auto takes = [&](std::uint64_t bytes) {
    return delay(0, Bytes(bytes), parameters.dma_rate, Rounding::up_to_ps);
  };
  const Bursts pieces(to.bytes.count(), parameters.dma_line, device.granularity.bursts);
  for (std::uint64_t k = 0; k < pieces.count(); ++k) {
    const Bursts::Burst piece = pieces[k];
    const std::uint64_t lines = (piece.bytes() + parameters.dma_line - 1) / parameters.dma_line;
    const std::uint64_t wire = piece.bytes() + lines * parameters.data_header;
    const Time last = begin + takes(piece.end), holds = device.around.holds(device.gpu, to.gpu, wire);
    device.send(std::max(begin, last - holds), {.kind = RequestKind::store,
                                                .buffer = to.buffer,
                                                .has_packets = to.access == Access::remote_packets,
                                                .to = to.gpu,
                                                .block = block.index,
                                                .burst = piece.number,
                                                .offset = to.offset + piece.begin,
                                                .bytes = piece.bytes(),
                                                .wire = wire});
  }
  free = begin + takes(to.bytes.count());
}

/// Sends a word behind what the engine has copied.
void send_word(BlockRun& block, const Channel& channel, Time handled) {
  Device::State& device = block.device;
  Time& free = engine(device, channel.peer, handled);
  free += device.parameters.dma_setup;
  device.send(free, {.kind = RequestKind::word,
                     .is_behind_data = true,
                     .to = channel.peer,
                     .block = block.index,
                     .burst = ~std::uint32_t{0},
                     .tag = channel.paired,
                     .wire = 8 + std::uint64_t{device.parameters.data_header}});
}

}  // namespace

Task ask_proxy(BlockRun& block, const Operation& operation) {
  Device::State& device = block.device;
  Device::State::Proxy& proxy = device.proxy;
  using enum OperationKind;
  const bool copies =
      operation.kind == put || operation.kind == ppkt || operation.kind == pws || operation.kind == pwsf;
  const bool signals =
      operation.kind == signal || operation.kind == rlxsignal || operation.kind == pws || operation.kind == pwsf;
  const auto to = device.self.destinations(operation);
  const auto ids = device.self.ids_of(operation);
  for (std::size_t i = 0; i < ids.size() && (copies || signals); ++i) {
    const Time handled = std::max(device.now() + device.parameters.proxy, proxy.free);
    proxy.free = handled + device.parameters.proxy_gap;
    const Channel& channel = device.self.channels[ids[i]];
    if (copies && i < to.size()) copy_to_peer(block, to[i], handled);
    if (signals) send_word(block, channel, handled);
    proxy.channel_done[ids[i]] = proxy.engine_free[channel.peer];
  }
  if (operation.kind != flush && operation.kind != pwsf) co_return;
  Time done = device.now();
  for (const std::uint32_t id : ids) done = std::max(done, proxy.channel_done[id]);
  co_await Until{block, done + device.parameters.proxy, Stall::proxy};
}

}  // namespace orrery::gpu
