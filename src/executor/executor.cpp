#include "orrery/executor/executor.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "communicators.hpp"
#include "horizon_tree.hpp"
#include "member_hands.hpp"
#include "memory_servers.hpp"
#include "npu.hpp"
#include "orrery/base/error.hpp"
#include "overrun.hpp"
#include "traffic.hpp"

namespace orrery::executor {
namespace {

constexpr std::uint32_t elsewhere = ~0U;

}  // namespace

/// What there is once the kernel is known.
struct Executor::Parts {
  Parts(const Setting& setting, network::Analytical& network, const network::Fabric* fabric, pdes::Kernel& the_kernel,
        Rank here, Communicators::Announce announce, std::optional<Overrun>& overrun)
      : kernel(the_kernel),
        communicators(kernel, setting.engine, network, setting.communicators, setting.host_of_npu, here,
                      LpId(static_cast<std::uint32_t>(setting.host_of_npu.size())), std::move(announce),
                      setting.place_of, setting.options.goes_over_links()),
        servers(kernel, setting, here, overrun),
        around{kernel,
               network,
               communicators,
               servers,
               setting.memory,
               setting.options,
               setting.host_of_npu,
               setting.host_of_server,
               LpId(static_cast<std::uint32_t>(setting.host_of_npu.size() + setting.communicators.size())),
               here,
               setting.place_of},
        lookaheads(setting, here),
        horizons(setting.npus.size()),
        is_touched(setting.npus.size(), 0),
        is_done(setting.npus.size(), 0) {
    if (!fabric) return;
    const LpId first_link(around.first_server.value() + setting.memory.num_servers());
    traffic = std::make_unique<Traffic>(kernel, setting, *fabric, here, first_link, overrun);
    around.traffic = traffic.get();
  }

  pdes::Kernel& kernel;
  Communicators communicators;
  MemoryServers servers;
  Surroundings around;
  Lookaheads lookaheads;
  std::vector<Npu> npus;
  std::vector<std::uint32_t> local_of;  // [num_npus of the run] index into npus
  HorizonTree horizons;
  std::vector<std::uint32_t> touched;  // by the events of this time
  std::vector<char> is_touched, is_done;
  std::unique_ptr<Traffic> traffic;  // of the congestion-aware network
};

Executor::Executor(const Setting& setting)
    : setting_(setting),
      network_(setting.topology),
      fabric_(setting.options.goes_over_links() ? std::make_unique<const network::Fabric>(setting.topology) : nullptr) {
}
Executor::~Executor() = default;

std::size_t Executor::num_npus() const { return setting_.npus.size(); }

std::uint32_t Executor::local(NpuId npu) const {
  const auto index = parts_->local_of[npu.index()];
  check(index != elsewhere, "an NPU of another rank");
  return index;
}

void Executor::touch(std::uint32_t npu) {
  if (parts_->is_touched[npu]) return;
  parts_->is_touched[npu] = 1;
  parts_->touched.push_back(npu);
}

void Executor::start(pdes::Kernel& kernel, Rank here) {
  auto announce = [this](NpuId npu, NodeId node, Time time, Bytes sent) {
    parts_->npus[local(npu)].announce(node, time, sent);
    parts_->horizons.mark(local(npu));
  };
  parts_ = std::make_unique<Parts>(setting_, network_, fabric_.get(), kernel, here, announce, overrun_);
  parts_->local_of.assign(setting_.host_of_npu.size(), elsewhere);
  parts_->npus.reserve(setting_.npus.size());
  for (const NpuSpec& spec : setting_.npus) {
    std::vector<Communicators::Seat> seats;
    for (std::size_t use = 0; use < spec.groups.size(); ++use)
      seats.push_back(spec.folded && !spec.folded->seats.empty()
                          ? parts_->communicators.seat(spec.groups[use], spec.folded->seats[use])
                          : parts_->communicators.seat(spec.groups[use], spec.id));
    parts_->local_of[spec.id.index()] = static_cast<std::uint32_t>(parts_->npus.size());
    parts_->npus.emplace_back(spec, parts_->lookaheads.of(spec), std::move(seats), overrun_);
    const LpId lp(spec.id.value());
    pdes::Event event = pdes::Event::make(Time::zero(), pdes::Stage::npu, lp, 0, lp);
    event.kind = static_cast<std::uint16_t>(EventKind::start);
    kernel.schedule(event);
    parts_->npus.back().start(setting_.options);
    parts_->horizons.mark(local(spec.id));
  }
}

void Executor::stop(Time now) {
  for (auto& npu : parts_->npus) npu.stop(now);
}

void Executor::handle(const pdes::Event& event) {
  if (static_cast<EventKind>(event.kind) == EventKind::access) return parts_->servers.serve(event);
  if (static_cast<EventKind>(event.kind) == EventKind::group_access) return parts_->servers.serve_group(event);
  if (static_cast<EventKind>(event.kind) == EventKind::gathered) return parts_->servers.close(event);
  if (static_cast<EventKind>(event.kind) == EventKind::pass) return parts_->traffic->serve(event);
  const auto index = local(NpuId(event.target.value()));
  Npu& npu = parts_->npus[index];
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::start:  // `settle` does it
      break;
    case EventKind::complete:
      npu.complete(NodeId(event.node), event.time);
      break;
    case EventKind::received:
      npu.receive(NodeId(event.node), Time::from_ps(static_cast<std::int64_t>(event.detail)), event.time);
      break;
    case EventKind::granted:
      npu.transfer(NodeId(event.node), event.time, parts_->around);
      break;
    case EventKind::sent:
      npu.complete(NodeId(event.node), event.time);
      break;
    case EventKind::arrived:
      parts_->horizons.mark(index);
      if (!npu.arrive(parts_->traffic->take(event), event, parts_->around)) return;
      break;
    case EventKind::wake:
      if (!npu.wake(NodeId(event.node), unpacked(event.detail), event.time, parts_->around)) return;
      break;
    case EventKind::data:
    case EventKind::grant:
    case EventKind::access:
    case EventKind::group_access:
    case EventKind::gathered:
    case EventKind::pass:
      check(false, "an event that no NPU handles");
  }
  touch(index);
}

void Executor::settle(Time now) {
  for (const auto index : parts_->touched) {
    parts_->is_touched[index] = 0;
    Npu& npu = parts_->npus[index];
    npu.settle(now, parts_->around);
    parts_->horizons.mark(index);
    if (npu.is_done() && !parts_->is_done[index]) {
      parts_->is_done[index] = 1;
      ++num_done_;
    }
  }
  parts_->touched.clear();
  parts_->communicators.settle();
}

void Executor::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  if (static_cast<EventKind>(event.kind) == EventKind::group_access) return parts_->servers.unpack(event, bytes);
  parts_->traffic->unpack(event, bytes);
}

bool Executor::admit(pdes::Event& event) {
  if (fabric_ && static_cast<EventKind>(event.kind) != EventKind::complete) return true;  // comes at its time
  const auto index = local(NpuId(event.target.value()));
  parts_->horizons.mark(index);
  if (static_cast<EventKind>(event.kind) != EventKind::complete)
    return parts_->npus[index].admit(event, parts_->around);
  parts_->npus[index].announce(NodeId(event.node), event.time, Bytes(0));
  return true;
}

void Executor::proceed(LpId npu) { touch(local(NpuId(npu.value()))); }

pdes::Awaited Executor::awaits(LpId npu) const { return parts_->npus[local(NpuId(npu.value()))].awaits(); }

void Executor::receive(Rank from, std::span<const std::byte> message) { parts_->communicators.receive(from, message); }

pdes::Horizon Executor::horizon() {
  return parts_->horizons.least([this](std::uint32_t npu) { return parts_->npus[npu].horizon(); });
}

Time Executor::pending_reply(Rank to) const { return parts_->communicators.pending_reply(to); }

std::string Executor::status() const {
  return fmt::format("{} of {} NPUs of this rank are done", num_done_, num_npus());
}

std::uint64_t Executor::num_completed_nodes() const {
  std::uint64_t count = 0;
  for (const auto& npu : parts_->npus) count += npu.completed();
  return count;
}

std::uint64_t Executor::num_unfinished() const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < setting_.npus.size(); ++i)
    if (!parts_->npus[i].is_done()) count += setting_.npus[i].count();
  return count;
}

std::vector<LinkRecord> Executor::link_records() const {
  return parts_->traffic ? parts_->traffic->records() : std::vector<LinkRecord>{};
}

std::vector<MemoryStageRecord> Executor::memory_stages() const { return parts_->servers.stages(); }

std::vector<NpuRecord> Executor::npu_records() const {
  std::vector<NpuRecord> records;
  for (const auto& npu : parts_->npus) records.push_back(npu.record());
  return records;
}

std::vector<CollectiveRecord> Executor::collective_records() const { return parts_->communicators.records(); }

std::vector<CollectiveSum> Executor::collective_sums() const { return parts_->communicators.sums(); }

std::vector<TimelineRecord> Executor::timeline() const {
  std::vector<TimelineRecord> all;
  for (std::size_t i = 0; i < parts_->npus.size(); ++i) {
    const auto& npu = parts_->npus[i];
    const auto first = static_cast<std::ptrdiff_t>(all.size());
    all.insert(all.end(), npu.timeline().begin(), npu.timeline().end());
    for (auto record = all.begin() + first; record != all.end(); ++record)
      if (record->group != TimelineRecord::no_group) record->group = setting_.npus[i].groups[record->group].value();
    std::sort(all.begin() + first, all.end(), [](const TimelineRecord& a, const TimelineRecord& b) {
      return std::tie(a.start, a.node) < std::tie(b.start, b.node);
    });
  }
  return all;
}

std::vector<UsageRecord> Executor::usage_timeline() const {
  std::vector<UsageRecord> all;
  for (const auto& npu : parts_->npus)
    if (const auto* const memory = npu.local_memory())
      all.insert(all.end(), memory->timeline().begin(), memory->timeline().end());
  return all;
}

std::optional<Excess> Executor::excess() const {
  std::optional<Excess> earliest;
  for (const auto& npu : parts_->npus)
    if (const auto* const memory = npu.local_memory(); memory && memory->excess())
      if (!earliest || memory->excess()->since < earliest->since) earliest = memory->excess();
  return earliest;
}

std::vector<NpuId> Executor::not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const {
  return parts_->communicators.not_joined(group, ordinal, is_access);
}

std::vector<Wait> Executor::waits() const {
  std::vector<Wait> waits;
  for (const auto& npu : parts_->npus)
    if (!npu.is_done()) npu.list_waits(parts_->communicators, waits);
  return waits;
}

}  // namespace orrery::executor
