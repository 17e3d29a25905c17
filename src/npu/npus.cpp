#include "orrery/npu/npus.hpp"

#include <algorithm>
#include <tuple>

#include "context.hpp"
#include "event_kind.hpp"
#include "gpu_system.hpp"
#include "lookahead.hpp"
#include "lookahead_tree.hpp"
#include "npu.hpp"
#include "orrery/base/error.hpp"
#include "orrery/topology/circuits.hpp"

namespace orrery::npu {
namespace {

constexpr std::uint32_t elsewhere = ~0U;

/// Returns the memberships of an NPU in the communicators of its collectives. O(uses * log members).
std::vector<communicator::Membership> memberships_of(const NpuSpec& npu,
                                                     const communicator::MemberSide& communicators) {
  std::vector<communicator::Membership> memberships;
  const bool is_represented = npu.folded && !npu.folded->participants.empty();
  for (std::size_t use = 0; use < npu.groups.size(); ++use)
    memberships.push_back(is_represented ? communicators.membership(npu.groups[use], npu.folded->participants[use])
                                         : communicators.membership(npu.groups[use], npu.id));
  return memberships;
}

/// Returns Context::groups.
std::vector<GroupUse> uses_of_groups(const RunContext& run) {
  const topology::Circuits* const circuits = run.options.network.circuits.get();
  std::vector<GroupUse> uses;
  for (const auto& spec : run.communicators)
    uses.push_back({cause_of_group(spec.group->name), circuits != nullptr ? circuits->of_group(spec.group->name) : 0});
  return uses;
}

/// Returns Context::queues.
std::uint32_t queues_in_turn(const RunContext& run) {
  const bool go_on = run.engine.turns_go_on() && (run.of_all.turns_go_on || !run.options.goes_over_links());
  return go_on ? num_queues(run.engine) : 0;
}

/// Returns an event at the whole ns of its time.
pdes::Event in_whole_ns(pdes::Event event) {
  event.time = memory::whole_ns(event.time);
  return event;
}

/// Returns whether an event is of the links, or says that an access goes on, so that it comes at its time.
bool comes_at_its_time(const pdes::Event& event) {
  const auto kind = static_cast<EventKind>(event.kind);
  return kind == EventKind::goes_on || kind == EventKind::arrived || kind == EventKind::sent ||
         kind == EventKind::wake || kind == EventKind::left;
}

}  // namespace

struct Npus::State {
  State(const RunContext& the_run, const Services& services)
      : run(the_run),
        context{services,
                run.memory,
                run.options,
                run.hosting,
                run.first_server(),
                run.place_of,
                kept_ends,
                uses_of_groups(run),
                dimension_streams_of(run),
                run.of_all,
                {run.engine.endpoint_delay(false), run.engine.endpoint_delay(true)},
                queues_in_turn(run)},
        gpus(run.options.gpu && run.options.goes_over_links() ? std::make_unique<GpuSystem>(run) : nullptr),
        lookaheads(run),
        index(run.hosting.num_npus(), elsewhere),
        bounds(run.npus.size()),
        is_touched(run.npus.size(), 0),
        is_done(run.npus.size(), 0) {
    if (!run.cell_of.empty()) {
      of_cell.resize(std::size_t{std::ranges::max(run.cell_of)} + 1);
      for (std::uint32_t i = 0; i < run.npus.size(); ++i) of_cell[run.cell_of[run.npus[i].id.index()]].push_back(i);
    }
    context.gpus = gpus.get();
    has_fractions = run.memory.may_take_no_time();
  }

  const RunContext& run;
  KeptEnds kept_ends;
  Context context;
  std::unique_ptr<GpuSystem> gpus;  // null: no thread blocks carry out collectives
  Lookaheads lookaheads;
  std::vector<Npu> npus;
  std::vector<std::uint32_t> index;  // [num_npus of the run] into npus
  LookaheadTree bounds;
  std::vector<std::vector<std::uint32_t>> of_cell;  // [cells] into npus; empty if there is one cell
  std::vector<std::uint32_t> touched;               // NPUs that settle at the end of this time
  std::vector<char> is_touched, is_done;
  bool has_fractions = false;  // events may come within a ns (RemoteMemory::may_take_no_time)
  std::size_t num_done = 0;
};

Npus::Npus(const RunContext& run, const Services& services, std::optional<Overrun>& overrun)
    : state_(std::make_unique<State>(run, services)) {
  state_->npus.reserve(run.npus.size());
  for (const NpuSpec& spec : run.npus) {
    state_->index[spec.id.index()] = static_cast<std::uint32_t>(state_->npus.size());
    state_->npus.emplace_back(spec, state_->lookaheads.of(spec), memberships_of(spec, services.communicators),
                              state_->context, overrun);
  }
}

Npus::~Npus() = default;

std::uint32_t Npus::local(NpuId npu) const {
  const auto index = state_->index[npu.index()];
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
    pdes::Event event = pdes::Event::make(npu.start(), pdes::Stage::client, npu.lp(), 0, npu.lp());
    event.kind = static_cast<std::uint16_t>(EventKind::start);
    state_->context.services.kernel.schedule(event);
    state_->bounds.mark(local(npu.id()));
  }
}

void Npus::stop(Time now) {
  for (auto& npu : state_->npus) npu.stop(now);
}

void serialize(Npus& npus, NpuId id, Archive& archive, std::span<const pdes::Event> pending,
               const ResumedFrom* resumed_from) {
  const auto index = npus.local(id);
  Npus::State& state = *npus.state_;
  Npu& npu = state.npus[index];
  npu.serialize(archive, pending, resumed_from);
  if (!archive.reads()) return;
  state.bounds.mark(index);
  state.is_done[index] = npu.is_done() ? 1 : 0;
  state.num_done += npu.is_done() ? 1 : 0;
}

void keep_history(Npus& npus) {
  if (npus.state_->gpus) npus.state_->gpus->keeps_history = true;
}

void serialize_sums(Npus& npus, Archive& archive) {
  if (!npus.state_->gpus) return;
  auto& all = npus.state_->gpus->kernels;
  auto kernels = archive.reads() ? std::vector<gpu::KernelRecord>() : all;
  archive(kernels);
  if (archive.reads()) all.insert(all.end(), kernels.begin(), kernels.end());
}

void Npus::handle(const pdes::Event& event) {
  const auto index = local(NpuId(event.target.value()));
  std::optional<pdes::Event> whole;
  if (state_->has_fractions) [[unlikely]]
    whole = in_whole_ns(event);
  if (state_->npus[index].handle(whole ? *whole : event))
    touch(index);
  else
    state_->bounds.mark(index);
}

void Npus::settle(Time exact) {
  const Time now = state_->has_fractions ? memory::whole_ns(exact) : exact;
  state_->context.fraction = exact - now;
  for (const auto index : state_->touched) {
    state_->is_touched[index] = 0;
    Npu& npu = state_->npus[index];
    npu.settle(now, index == state_->touched.back());
    state_->bounds.mark(index);
    if (npu.is_done() && !state_->is_done[index]) {
      state_->is_done[index] = 1;
      ++state_->num_done;
    }
  }
  state_->touched.clear();
}

bool Npus::admit(pdes::Event& event) {
  if (comes_at_its_time(event)) return true;
  const auto index = local(NpuId(event.target.value()));
  state_->bounds.mark(index);
  state_->npus[index].keep_place_of(event);
  if (event.kind != pdes::completion) return state_->npus[index].admit(event);
  const Time time = state_->has_fractions ? memory::whole_ns(event.time) : event.time;
  state_->npus[index].announce({NpuId(event.target.value()), NodeId(event.node), time, Bytes(0), {}, event.order, {}});
  return true;
}

void Npus::announce(const communicator::Completion& completion) {
  const auto index = local(completion.npu);
  state_->npus[index].announce(completion);
  state_->bounds.mark(index);
}

void Npus::proceed(NpuId npu) { touch(local(npu)); }

pdes::Awaited Npus::awaits(NpuId npu) const { return state_->npus[local(npu)].awaits(); }

pdes::LookaheadBounds Npus::lookahead() {
  return state_->bounds.least([this](std::uint32_t npu) { return state_->npus[npu].lookahead(); });
}

pdes::LookaheadBound lookahead_of_cell(const Npus& npus, std::uint32_t cell) {
  pdes::LookaheadBound least;
  for (const std::uint32_t npu : npus.state_->of_cell[cell]) {
    const pdes::LookaheadBound its = npus.state_->npus[npu].lookahead_of_cell();
    least = {std::min(least.output, its.output), std::min(least.reaction, its.reaction)};
  }
  return least;
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
  records.reserve(state_->npus.size());
  for (const auto& npu : state_->npus) records.push_back(npu.record());
  return records;
}

std::vector<gpu::KernelRecord> Npus::gpu_kernels() const {
  return state_->gpus ? state_->gpus->kernels : std::vector<gpu::KernelRecord>();
}

std::vector<gpu::RequestRecord> Npus::gpu_requests() const {
  std::vector<gpu::RequestRecord> requests;
  for (const auto& npu : state_->npus) npu.list_requests(requests);
  return requests;
}

std::vector<Time> Npus::milestones() const {
  std::vector<Time> latest;
  for (const auto& npu : state_->npus) {
    const auto& own = npu.accounting().milestones();
    latest.resize(std::max(latest.size(), own.size()));
    for (std::size_t i = 0; i < own.size(); ++i) latest[i] = std::max(latest[i], own[i]);
  }
  return latest;
}

std::vector<TimelineRecord> Npus::timeline() const {
  std::vector<TimelineRecord> all;
  for (std::size_t i = 0; i < state_->npus.size(); ++i) {
    const auto& timeline = state_->npus[i].accounting().timeline();
    const auto first = static_cast<std::ptrdiff_t>(all.size());
    all.insert(all.end(), timeline.begin(), timeline.end());
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
    if (const auto* const memory = npu.accounting().local_memory())
      all.insert(all.end(), memory->timeline().begin(), memory->timeline().end());
  return all;
}

std::optional<memory::Excess> Npus::excess() const {
  std::optional<memory::Excess> earliest;
  for (const auto& npu : state_->npus)
    if (const auto* const memory = npu.accounting().local_memory(); memory && memory->excess())
      if (!earliest || memory->excess()->since < earliest->since) earliest = *memory->excess();
  return earliest;
}

std::vector<Wait> Npus::waits() const {
  std::vector<Wait> waits;
  for (const auto& npu : state_->npus)
    if (!npu.is_done()) npu.list_waits(waits);
  return waits;
}

}  // namespace orrery::npu
