#include "orrery/npu/npus.hpp"

#include <algorithm>
#include <tuple>

#include "horizon_tree.hpp"
#include "lookahead.hpp"
#include "npu.hpp"
#include "orrery/base/error.hpp"

namespace orrery::npu {
namespace {

constexpr std::uint32_t elsewhere = ~0U;

}  // namespace

struct Npus::State {
  State(const RunContext& the_run, const Services& services)
      : run(the_run),
        context{services, run.memory, run.options, run.hosting, run.first_server(), run.place_of},
        lookaheads(run),
        local_of(run.hosting.num_npus(), elsewhere),
        horizons(run.npus.size()),
        is_touched(run.npus.size(), 0),
        is_done(run.npus.size(), 0) {}

  const RunContext& run;
  Context context;
  Lookaheads lookaheads;
  std::vector<Npu> npus;
  std::vector<std::uint32_t> local_of;  // [num_npus of the run] index into npus
  HorizonTree horizons;
  std::vector<std::uint32_t> touched;  // by the events of this time
  std::vector<char> is_touched, is_done;
  std::size_t num_done = 0;
};

Npus::Npus(const RunContext& run, const Services& services, std::optional<Overrun>& overrun)
    : state_(std::make_unique<State>(run, services)) {
  state_->npus.reserve(run.npus.size());
  for (const NpuSpec& spec : run.npus) {
    std::vector<communicator::Membership> memberships;
    for (std::size_t use = 0; use < spec.groups.size(); ++use)
      memberships.push_back(spec.folded && !spec.folded->participants.empty()
                                ? services.communicators.membership(spec.groups[use], spec.folded->participants[use])
                                : services.communicators.membership(spec.groups[use], spec.id));
    state_->local_of[spec.id.index()] = static_cast<std::uint32_t>(state_->npus.size());
    state_->npus.emplace_back(spec, state_->lookaheads.of(spec), std::move(memberships), overrun);
  }
}

Npus::~Npus() = default;

std::uint32_t Npus::local(NpuId npu) const {
  const auto index = state_->local_of[npu.index()];
  ensure(index != elsewhere, "an NPU of another rank");
  return index;
}

void Npus::touch(std::uint32_t npu) {
  if (state_->is_touched[npu]) return;
  state_->is_touched[npu] = 1;
  state_->touched.push_back(npu);
}

void Npus::start() {
  for (Npu& npu : state_->npus) {
    pdes::Event event = pdes::Event::make(Time::zero(), pdes::Stage::client, npu.lp(), 0, npu.lp());
    event.kind = static_cast<std::uint16_t>(EventKind::start);
    state_->context.services.kernel.schedule(event);
    npu.start(state_->run.options);
    state_->horizons.mark(local(npu.id()));
  }
}

void Npus::stop(Time now) {
  for (auto& npu : state_->npus) npu.stop(now);
}

void Npus::handle(const pdes::Event& event) {
  const auto index = local(NpuId(event.target.value()));
  Npu& npu = state_->npus[index];
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::start:  // `settle` does it
      break;
    case EventKind::complete:
    case EventKind::sent:
      npu.complete(NodeId(event.node), event.time);
      break;
    case EventKind::received:
      npu.receive(NodeId(event.node), Time::from_ps(static_cast<std::int64_t>(event.detail)), event.time);
      break;
    case EventKind::granted:
      npu.transfer(NodeId(event.node), event.time, state_->context);
      break;
    case EventKind::arrived:
      state_->horizons.mark(index);
      if (!npu.arrive(state_->context.services.links->take(event), event, state_->context)) return;
      break;
    case EventKind::wake:
      if (!npu.wake(NodeId(event.node), network::unpacked(event.detail), event.time, state_->context)) return;
      break;
    case EventKind::data:
    case EventKind::grant:
      ensure(false, "an event that no NPU handles");
  }
  touch(index);
}

void Npus::settle(Time now) {
  for (const auto index : state_->touched) {
    state_->is_touched[index] = 0;
    Npu& npu = state_->npus[index];
    npu.settle(now, state_->context);
    state_->horizons.mark(index);
    if (npu.is_done() && !state_->is_done[index]) {
      state_->is_done[index] = 1;
      ++state_->num_done;
    }
  }
  state_->touched.clear();
}

bool Npus::admit(pdes::Event& event) {
  if (state_->context.services.links && event.kind != pdes::completion) return true;  // comes at its time
  const auto index = local(NpuId(event.target.value()));
  state_->horizons.mark(index);
  if (event.kind != pdes::completion) return state_->npus[index].admit(event, state_->context);
  state_->npus[index].announce(NodeId(event.node), event.time, Bytes(0));
  return true;
}

void Npus::announce(NpuId npu, NodeId node, Time time, Bytes sent) {
  const auto index = local(npu);
  state_->npus[index].announce(node, time, sent);
  state_->horizons.mark(index);
}

void Npus::proceed(NpuId npu) { touch(local(npu)); }

pdes::Awaited Npus::awaits(NpuId npu) const { return state_->npus[local(npu)].awaits(); }

pdes::LookaheadBounds Npus::lookahead() {
  return state_->horizons.least([this](std::uint32_t npu) { return state_->npus[npu].lookahead(); });
}

std::size_t Npus::num_done() const { return state_->num_done; }

std::uint64_t Npus::num_completed_nodes() const {
  std::uint64_t count = 0;
  for (const auto& npu : state_->npus) count += npu.completed();
  return count;
}

std::uint64_t Npus::num_unfinished() const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < state_->npus.size(); ++i)
    if (!state_->npus[i].is_done()) count += state_->run.npus[i].count();
  return count;
}

std::vector<NpuRecord> Npus::records() const {
  std::vector<NpuRecord> records;
  for (const auto& npu : state_->npus) records.push_back(npu.record());
  return records;
}

std::vector<TimelineRecord> Npus::timeline() const {
  std::vector<TimelineRecord> all;
  for (std::size_t i = 0; i < state_->npus.size(); ++i) {
    const auto& npu = state_->npus[i];
    const auto first = static_cast<std::ptrdiff_t>(all.size());
    all.insert(all.end(), npu.timeline().begin(), npu.timeline().end());
    for (auto record = all.begin() + first; record != all.end(); ++record)
      if (record->group != TimelineRecord::no_group) record->group = state_->run.npus[i].groups[record->group].value();
    std::sort(all.begin() + first, all.end(), [](const TimelineRecord& a, const TimelineRecord& b) {
      return std::tie(a.start, a.node) < std::tie(b.start, b.node);
    });
  }
  return all;
}

std::vector<memory::UsageRecord> Npus::usage_timeline() const {
  std::vector<memory::UsageRecord> all;
  for (const auto& npu : state_->npus)
    if (const auto* const memory = npu.local_memory())
      all.insert(all.end(), memory->timeline().begin(), memory->timeline().end());
  return all;
}

std::optional<memory::Excess> Npus::excess() const {
  std::optional<memory::Excess> earliest;
  for (const auto& npu : state_->npus)
    if (const auto* const memory = npu.local_memory(); memory && memory->excess())
      if (!earliest || memory->excess()->since < earliest->since) earliest = memory->excess();
  return earliest;
}

std::vector<Wait> Npus::waits() const {
  std::vector<Wait> waits;
  for (const auto& npu : state_->npus)
    if (!npu.is_done()) npu.list_waits(state_->context.services.communicators, waits);
  return waits;
}

}  // namespace orrery::npu
