// The operations that move data: stores, copies, sums, packets.
#include "device_state.hpp"
#include "orrery/base/error.hpp"

namespace orrery::gpu {
namespace {

constexpr std::uint64_t ll128_data = 120, ll128_line = 128;

bool is_of_packets(Access access) { return access == Access::local_packets || access == Access::remote_packets; }

/// Returns the bytes that carry `bytes` of data and their flags.
std::uint64_t with_flags(std::uint64_t bytes, PacketFormat format) {
  if (format == PacketFormat::ll128) return (bytes + ll128_data - 1) / ll128_data * ll128_line;
  return 2 * bytes;
}

/// What an operation does in each iteration.
struct Pass {
  std::vector<Operand> polled;  ///< packets, one source after the other
  std::vector<Operand> loaded;  ///< from other GPUs, or by the switch
  std::vector<Operand> stored;  ///< to other GPUs, or by the switch
  std::vector<Operand> kept;    ///< packets in its own scratch
  Time local;                   ///< time of its own memory
  std::uint32_t plain = 0;      ///< operands in its own memory, read or written
  std::uint32_t packets = 0;    ///< packets in its own memory, read or written
  std::uint64_t bytes = 0, each = 0;
  PacketFormat format = PacketFormat::ll16;
  bool polls_side_by_side = false;
  bool stores_packets = false;

  /// Returns the bytes, without headers, that carry `bytes` of what it stores.
  std::uint64_t carrying(std::uint64_t data) const { return stores_packets ? with_flags(data, format) : data; }
  /// Returns the bytes of its own memory that are read and written for `data` bytes.
  std::uint64_t in_memory(std::uint64_t data) const { return plain * data + packets * with_flags(data, format); }
};

/// Stores a piece to one destination.
void store(BlockRun& block, const Pass& pass, const Operand& to, const Bursts::Burst& burst) {
  Device::State& device = block.device;
  const bool in_switch = is_of_group(to.access);
  const std::uint64_t held = pass.carrying(burst.bytes());
  block.not_left += held;
  block.not_acked += in_switch ? static_cast<std::uint32_t>(device.program.groups[to.gpu].size()) : 1;
  device.send(device.now() + device.parameters.out, {.kind = in_switch ? RequestKind::switch_store : RequestKind::store,
                                                     .wants_ack = true,
                                                     .buffer = to.buffer,
                                                     .has_packets = pass.stores_packets,
                                                     .to = in_switch ? 0 : to.gpu,
                                                     .group = in_switch ? to.gpu : 0,
                                                     .block = block.index,
                                                     .burst = burst.number,
                                                     .offset = to.offset + burst.begin,
                                                     .bytes = burst.bytes(),
                                                     .held = held,
                                                     .wire = device.data_wire(held)});
}

/// Returns the bytes of a buffer that must be there before a burst of packets can be read.
std::pair<std::uint64_t, std::uint64_t> needed(const Operand& from, const Bursts::Burst& burst) {
  if (from.spread == Bytes(0)) return {from.offset + burst.begin, from.offset + burst.end};
  const std::uint64_t bytes = from.bytes.count();
  return {from.offset, from.offset + (from.spread.count() * burst.end + bytes - 1) / bytes};
}

/// Lets packets in the own scratch be seen at `time`.
Detached keep(Device::State& device, Time time, Operand to, Bursts::Burst burst) {
  co_await Later{device, time};
  device.packets_come(to.buffer, to.offset + burst.begin, to.offset + burst.end);
}

/// Returns how much sooner a burst is handed over than its last iteration is ready, so that its last line leaves when
/// it does line by line (docs/gpu.md, Bursts).
Time lead(BlockRun& block, const Pass& pass, const Bursts::Burst& burst) {
  if (burst.iterations <= 1) return Time::zero();
  Device::State& device = block.device;
  const Operand& to = pass.stored.front();
  const std::uint32_t other = is_of_group(to.access) ? device.program.groups[to.gpu].front() : to.gpu;
  const auto holds = [&](std::uint64_t bytes) {
    return device.around.holds(device.gpu, other, device.data_wire(pass.carrying(bytes)));
  };
  return holds(burst.bytes()) - holds(burst.bytes() - (burst.iterations - 1) * pass.each);
}

/// When the first and the last iteration of a burst have been read.
struct BurstRead {
  Time first, last;
};

/// Returns when a burst has been loaded that was asked for at `issue` and whose first iteration has come now.
BurstRead loaded(BlockRun& block, const Pass& pass, const Bursts::Burst& burst, Time issue) {
  const Device::State& device = block.device;
  const Time first = device.now();
  if (burst.iterations <= 1) return {first, first};
  const Time loop = round_trip(block, pass.loaded, std::min(pass.each, burst.bytes()));
  const auto iterations = static_cast<std::int64_t>(burst.iterations);
  return {first, std::max(first, issue + Time::from_ps(loop.ps() * iterations / device.parameters.unroll))};
}

/// Adds what the own memory takes for a burst that has been read.
BurstRead through_memory(BlockRun& block, const Pass& pass, const Bursts::Burst& burst, BurstRead read) {
  const Device::State& device = block.device;
  const Time last = read.last + pass.local * static_cast<std::int64_t>(burst.iterations);
  return {read.first + pass.local,
          std::max(last, device.around.move_memory(device.gpu, pass.in_memory(burst.bytes())))};
}

/// Returns what a block waits for that reads.
Stall stall_of(const Pass& pass) {
  if (!pass.polled.empty()) return Stall::poll;
  return pass.loaded.empty() ? Stall::memory : Stall::load;
}

/// Moves all data of a pass, burst by burst: reads a burst, and stores it. The next burst is read when the stores of
/// this one have been handed over.
Task move_data(BlockRun& block, Pass pass) {
  Device::State& device = block.device;
  const Parameters& parameters = device.parameters;
  if (pass.bytes == 0) co_return;
  const Bursts bursts(pass.bytes, pass.each, device.granularity.bursts);
  const Time poll = device.packet_poll();
  const Stall why = stall_of(pass);
  const Time touch = first_touch(block, pass.loaded);
  if (touch > Time::zero()) co_await Until{block, device.now() + touch, Stall::load};
  Time clock = device.now();  // when the block has read all bursts so far
  for (std::uint64_t k = 0; k < bursts.count(); ++k) {
    const Bursts::Burst burst = bursts[k];
    BurstRead read{clock, clock};
    if (parameters.noc == Noc::ports) co_await Until{block, clock, Stall::memory};  // ports serve in order of time
    if (!pass.loaded.empty()) {
      co_await Until{block, clock, Stall::load};
      const Time issue = device.now();
      co_await LoadComes{block, ask(block, pass.loaded, burst)};
      read = loaded(block, pass, burst, issue);
    }
    if (!pass.polled.empty()) {
      const Time polls = poll * static_cast<std::int64_t>(burst.iterations);
      co_await Until{block, clock, Stall::poll};
      for (std::size_t i = 0; i < pass.polled.size(); ++i) {
        const Operand& from = pass.polled[i];
        const auto [begin, end] = needed(from, burst);
        co_await PacketsCome{block, from.buffer, begin, end};
        if (i + 1 < pass.polled.size() && !pass.polls_side_by_side)
          co_await Until{block, device.now() + polls, Stall::poll};
      }
      read = {device.now() + poll, device.now() + polls};
    }
    read = through_memory(block, pass, burst, read);
    clock = read.last;
    if (!pass.stored.empty()) co_await Until{block, std::max(read.first, read.last - lead(block, pass, burst)), why};
    for (const Operand& to : pass.stored) {
      const std::uint64_t held = pass.carrying(burst.bytes());
      while (block.not_left > 0 && block.not_left + held > parameters.posted.count())
        co_await Happens{block, block.for_room, Stall::link};
      clock = std::max(read.last, device.now());
      store(block, pass, to, burst);
    }
    for (const Operand& to : pass.kept) keep(device, clock + parameters.l2, to, burst);
    if (pass.stored.empty()) co_await Until{block, clock, why};
  }
  while (block.not_left > parameters.posted.count()) co_await Happens{block, block.for_room, Stall::link};
  co_await Until{block, clock, Stall::memory};
}

/// Returns what a store of one piece to some destinations does in each iteration.
Pass storing(const BlockRun& block, const Operation& operation, std::span<const Operand> to, std::uint64_t bytes) {
  const Parameters& parameters = block.device.parameters;
  Pass pass;
  pass.stored.assign(to.begin(), to.end());
  pass.bytes = bytes;
  pass.format = operation.packets;
  pass.stores_packets = operation.kind == OperationKind::ppkt;
  pass.each = bytes_of_iteration(block, operation, pass.stores_packets);
  pass.local = block.device.memory();
  pass.plain = 1;
  if (!pass.stores_packets)
    pass.local =
        std::max(pass.local, delay(0, Bytes(std::min(pass.each, bytes)), parameters.sm_rate, Rounding::up_to_ps));
  return pass;
}

/// One of several stores at one time.
struct SideBySide {
  std::uint32_t missing = 0;
  Waiters waiters;
};
Detached store_beside(BlockRun& block, Pass pass, SideBySide& all) {
  co_await move_data(block, std::move(pass));
  if (--all.missing == 0) resume_all(all.waiters);
}

}  // namespace

std::uint64_t bytes_of_iteration(const BlockRun& block, const Operation& operation, bool packets) {
  const Parameters& parameters = block.device.parameters;
  const std::uint64_t threads = operation.threads > 0 ? operation.threads : block.block.threads;
  if (packets) {
    static constexpr std::uint64_t payload[] = {4, 8, 15};  // of a thread, by format
    return threads * payload[static_cast<std::size_t>(operation.packets)];
  }
  return std::min(threads * parameters.width, std::uint64_t{parameters.outstanding} * parameters.line);
}

Task store_pairs(BlockRun& block, const Operation& operation) {
  const auto from = block.device.self.sources(operation);
  const auto to = block.device.self.destinations(operation);
  if (operation.order == Order::each_iteration) {
    co_await move_data(block, storing(block, operation, to, from.front().bytes.count()));
    co_return;
  }
  if (operation.order == Order::one_after_other) {
    for (std::size_t i = 0; i < to.size(); ++i)
      co_await move_data(block,
                         storing(block, operation, to.subspan(i, 1), from[std::min(i, from.size() - 1)].bytes.count()));
    co_return;
  }
  SideBySide all{static_cast<std::uint32_t>(to.size()), {}};
  for (std::size_t i = 0; i < to.size(); ++i)
    store_beside(block, storing(block, operation, to.subspan(i, 1), from[std::min(i, from.size() - 1)].bytes.count()),
                 all);
  while (all.missing > 0) co_await Happens{block, all.waiters, Stall::memory};
}

Task stream(BlockRun& block, const Operation& operation) {
  Device::State& device = block.device;
  Pass pass;
  pass.format = operation.packets;
  pass.polls_side_by_side = operation.polls_side_by_side;
  pass.stores_packets = operation.kind == OperationKind::gstorepkt;
  bool reads_memory = false, has_packets = false;
  for (const Operand& from : device.self.sources(operation)) {
    pass.bytes = std::max(pass.bytes, from.bytes.count());
    has_packets |= is_of_packets(from.access);
    pass.packets += from.access == Access::local_packets;
    pass.plain += from.access == Access::local;
    if (from.access == Access::local)
      reads_memory = true;
    else
      (from.access == Access::local_packets ? pass.polled : pass.loaded).push_back(from);
  }
  for (const Operand& to : device.self.destinations(operation)) {
    has_packets |= is_of_packets(to.access);
    pass.stores_packets |= to.access == Access::remote_packets;
    pass.packets += to.access == Access::local_packets;
    pass.plain += to.access == Access::local;
    if (to.access == Access::local_packets)
      pass.kept.push_back(to);
    else if (to.access != Access::local)
      pass.stored.push_back(to);
  }
  pass.each = bytes_of_iteration(block, operation, has_packets);
  // Loads from other GPUs hide those of the own memory.
  if (reads_memory && pass.loaded.empty() && !(operation.operand_first && !pass.polled.empty()))
    pass.local = pass.polled.empty() ? device.memory() : device.parameters.hit;
  if (operation.kind == OperationKind::res || operation.kind == OperationKind::gstore)
    pass.local = std::max(
        pass.local, delay(0, Bytes(std::min(pass.each, pass.bytes)), device.parameters.sm_rate, Rounding::up_to_ps));
  co_await move_data(block, std::move(pass));
}

}  // namespace orrery::gpu
