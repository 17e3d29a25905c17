#include "hierarchical_pool.hpp"

#include <algorithm>
#include <tuple>

#include "orrery/base/error.hpp"

namespace orrery::memory {
namespace {

Time transfer(Bytes bytes, Bandwidth bandwidth) {
  return bytes > Bytes::most() ? Time::max() : delay(0, bytes, bandwidth, Rounding::up_to_ps);
}

Time latency(double ns) { return duration_from_ns(ns, Rounding::up_to_ps); }

Bandwidth times(Bandwidth bandwidth, std::uint32_t count) {
  return Bandwidth::from_bytes_per_ns(bandwidth.bytes_per_ns() * count);
}

/// Returns how often the data of a collective pass the links and the fabrics.
std::uint64_t passages(PathCollective collective) { return collective == PathCollective::all_reduce ? 2 : 1; }

bool reduces(PathCollective collective) {
  return collective == PathCollective::reduce_scatter || collective == PathCollective::all_reduce;
}

/// Calls visit(part) for each run of neighbours with equal keys.
template <class T, class Key, class Visit>
void for_each_part(std::span<const T> all, Key key, Visit visit) {
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && key(all[end]) == key(all[begin])) ++end;
    visit(all.subspan(begin, end - begin));
  }
}

}  // namespace

HierarchicalPool::HierarchicalPool(const RemoteMemoryOptions& options, std::uint32_t num_npus, Rounding rounding)
    : groups_{times(options.bandwidth, options.hierarchy.groups), latency(options.latency_ns)},
      links_{times(options.hierarchy.link, options.hierarchy.switches), latency(options.hierarchy.link_latency_ns)},
      fabric_{options.hierarchy.fabric, latency(options.hierarchy.fabric_latency_ns)},
      npus_per_node_(options.npus_per_node),
      piece_((options.hierarchy.chunk * options.hierarchy.groups + Bytes(num_npus - 1)) / num_npus),
      rounding_(rounding),
      links_free_(num_npus / options.npus_per_node),
      fabric_free_(num_npus) {}

// Let round l come at in_l, and let each round take `takes`. Round k is through at
//
//   max(free + k takes, max over l <= k of in_l + (k - l + 1) takes)
//
// Within a run the in_l are convex in l: they are evenly spaced, or the maximum of such. So the first and the last l
// decide, and the times at which rounds come out are convex again.
HierarchicalPool::Passage HierarchicalPool::Stage::pass(const Passage& in, Time free, Bytes per_round,
                                                        std::uint64_t rounds) const {
  const Time takes = transfer(per_round, bandwidth), begin = std::max(in.first, free);
  return {begin + takes, std::max(begin + transfer(per_round * rounds, bandwidth), in.last + takes)};
}

HierarchicalPool::Cut HierarchicalPool::cut(Bytes size) const {
  const std::uint64_t whole = (size.count() - 1) / piece_.count();
  return {whole + 1, size - piece_ * whole};
}

/// Returns what an access sends in each round of a run.
Bytes HierarchicalPool::piece_in(const Cut& cut, const Run& run) const {
  if (run.last_round < cut.rounds) return piece_;
  return run.last_round == cut.rounds ? cut.last : Bytes(0);
}

/// Finds the runs. The last round of an access is a run by itself, because its piece may be smaller.
void HierarchicalPool::make_runs() {
  batch_.lengths.clear();
  for (const Cut& cut : batch_.cuts) batch_.lengths.push_back(cut.rounds);
  std::ranges::sort(batch_.lengths);
  batch_.lengths.erase(std::unique(batch_.lengths.begin(), batch_.lengths.end()), batch_.lengths.end());
  batch_.runs.clear();
  std::uint64_t before = 0;
  for (const std::uint64_t length : batch_.lengths) {
    if (length - before > 1) batch_.runs.push_back({length - 1, length - 1 - before});
    batch_.runs.push_back({length, 1});
    before = length;
  }
  batch_.per_round.resize(batch_.runs.size());
  batch_.through_groups.resize(batch_.runs.size());
  batch_.through_links.resize(batch_.runs.size());
}

void HierarchicalPool::sort_visits(std::span<const Access> accesses) {
  batch_.visits.clear();
  batch_.counted_at.assign(accesses.size(), ~0U);
  for (std::uint32_t a = 0; a < accesses.size(); ++a)
    for (std::uint32_t i = 0; i < accesses[a].npus.size(); ++i) batch_.visits.push_back({accesses[a].npus[i], a, i});
  const auto by_npu = [](const Visit& v) { return std::tie(v.npu, v.access); };
  if (!std::ranges::is_sorted(batch_.visits, {}, by_npu)) std::ranges::sort(batch_.visits, {}, by_npu);
}

void HierarchicalPool::serve(Time now, std::span<const Access> accesses) {
  batch_.cuts.clear();
  for (const Access& access : accesses) batch_.cuts.push_back(cut(access.size));
  make_runs();
  sort_visits(accesses);
  pass_groups(now, accesses);
  for_each_part(
      std::span<const Visit>(batch_.visits), [this](const Visit& v) { return v.npu.value() / npus_per_node_; },
      [&](std::span<const Visit> of_node) {
        pass_links(accesses, of_node);
        for_each_part(
            of_node, [](const Visit& v) { return v.npu; },
            [&](std::span<const Visit> of_npu) { pass_fabric(now, accesses, of_npu); });
      });
  for (const Access& access : accesses)  // a sum is there when the last NPU has given its part
    if (reduces(access.collective)) std::ranges::fill(access.done, std::ranges::max(access.done));
}

/// Passes all rounds through the groups, which read or write everything once, whatever the switches do.
void HierarchicalPool::pass_groups(Time now, std::span<const Access> accesses) {
  for (const Access& access : accesses) groups_.volume += access.size;
  for (std::size_t r = 0; r < batch_.runs.size(); ++r) {
    Bytes per_round;
    for (const Cut& cut : batch_.cuts) per_round += piece_in(cut, batch_.runs[r]);
    const Passage through = groups_.pass({now, now}, groups_free_, per_round, batch_.runs[r].rounds);
    groups_free_ = through.last;
    batch_.through_groups[r] = through.after(groups_.latency);
  }
}

/// Passes the rounds of a node through its links, which carry once what is for several of its NPUs.
void HierarchicalPool::pass_links(std::span<const Access> accesses, std::span<const Visit> of_node) {
  std::ranges::fill(batch_.per_round, Bytes(0));
  const std::uint32_t node = of_node.front().npu.value() / npus_per_node_;
  for (const Visit& visit : of_node) {
    const Access& access = accesses[visit.access];
    if (access.collective != PathCollective::none && batch_.counted_at[visit.access] == node) continue;
    batch_.counted_at[visit.access] = node;
    const std::uint64_t times = passages(access.collective);
    links_.volume += access.size * times;
    for (std::size_t r = 0; r < batch_.runs.size(); ++r)
      batch_.per_round[r] += piece_in(batch_.cuts[visit.access], batch_.runs[r]) * times;
  }
  Time& free = links_free_[node];
  for (std::size_t r = 0; r < batch_.runs.size() && batch_.per_round[r] > Bytes(0); ++r) {
    const Passage through = links_.pass(batch_.through_groups[r], free, batch_.per_round[r], batch_.runs[r].rounds);
    free = through.last;
    batch_.through_links[r] = through.after(links_.latency);
  }
}

/// Passes the rounds of an NPU through its fabric, and notes when its accesses are done.
void HierarchicalPool::pass_fabric(Time now, std::span<const Access> accesses, std::span<const Visit> of_npu) {
  Time& free = fabric_free_[of_npu.front().npu.index()];
  for (const Visit& visit : of_npu)
    fabric_.volume += accesses[visit.access].size * passages(accesses[visit.access].collective);
  for (std::size_t r = 0; r < batch_.runs.size(); ++r) {
    Bytes per_round;
    for (const Visit& visit : of_npu)
      per_round += piece_in(batch_.cuts[visit.access], batch_.runs[r]) * passages(accesses[visit.access].collective);
    if (per_round == Bytes(0)) return;
    free = fabric_.pass(batch_.through_links[r], free, per_round, batch_.runs[r].rounds).last;
    for (const Visit& visit : of_npu) {
      if (batch_.cuts[visit.access].rounds != batch_.runs[r].last_round) continue;
      const Access& access = accesses[visit.access];
      Time through = free + fabric_.latency;
      if (access.collective == PathCollective::all_reduce) through += links_.latency + fabric_.latency;
      access.done[visit.position] = through == Time::max() ? through : now + rounded(through - now);
    }
  }
}

/// Rounds the time of a whole access as the rules say. Stages count in ps under any rules, because pieces are small.
Time HierarchicalPool::rounded(Time duration) const {
  if (rounding_ == Rounding::up_to_ps) return duration;
  return std::max(Time::from_ns(duration.ps() / 1000), tick(rounding_));
}

std::array<HierarchicalPool::StageUse, 3> HierarchicalPool::stages() const {
  const auto use = [](const Stage& stage, std::size_t servers) {
    return StageUse{static_cast<std::uint32_t>(servers), stage.volume, transfer(stage.volume, stage.bandwidth)};
  };
  return {use(groups_, 1), use(links_, links_free_.size()), use(fabric_, fabric_free_.size())};
}

Time HierarchicalPool::alone(Bytes size) const {
  const Cut cut = this->cut(size);
  Time groups_free, link_free, fabric_free;
  const auto run = [&](Bytes piece, std::uint64_t rounds) {
    const Passage groups = groups_.pass({}, groups_free, piece, rounds);
    const Passage links = links_.pass(groups.after(groups_.latency), link_free, piece, rounds);
    groups_free = groups.last;
    link_free = links.last;
    fabric_free = fabric_.pass(links.after(links_.latency), fabric_free, piece, rounds).last;
  };
  if (cut.rounds > 1) run(piece_, cut.rounds - 1);
  run(cut.last, 1);
  const Time through = fabric_free + fabric_.latency;
  return through == Time::max() ? through : rounded(through);
}

}  // namespace orrery::memory
