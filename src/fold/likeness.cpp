#include <algorithm>
#include <bit>
#include <set>
#include <tuple>

#include "interner.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/fold/folding.hpp"

namespace orrery::fold {
namespace {

using npu::NpuSpec;
using trace::NodeKind;

constexpr auto nobody = Likeness::nobody;

/// The streams of all NPUs, found by their other end and tag.
class Conversations {
 public:
  /// Streams of one NPU come in the order of this.
  using Key = std::tuple<NodeKind, NpuId, std::uint64_t>;

  Conversations(std::span<const npu::NpuSpec> npus, const StreamsOf& streams) : npus_(npus) {
    first_.push_back(0);
    const npu::Program* last = nullptr;
    const npu::Streams* its = nullptr;
    for (const npu::NpuSpec& npu : npus) {
      if (npu.program != last) its = &streams.at(last = npu.program);
      of_npu_.push_back(its);
      const auto begin = sorted_.size();
      for (std::uint32_t s = 0; s < its->all.size(); ++s) sorted_.push_back(s);
      std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(begin), sorted_.end(), [&](auto a, auto b) {
        return std::pair(key_of(npu.id.value(), a), a) < std::pair(key_of(npu.id.value(), b), b);
      });
      first_.push_back(sorted_.size());
    }
  }

  const std::vector<std::size_t>& first() const { return first_; }
  std::uint32_t count(std::uint32_t npu) const { return static_cast<std::uint32_t>(of_npu_[npu]->all.size()); }
  const npu::Streams::Stream& stream(std::uint32_t npu, std::uint32_t s) const { return of_npu_[npu]->all[s]; }
  NpuId peer(std::uint32_t npu, std::uint32_t s) const { return npus_[npu].trace->peers[stream(npu, s).peer_slot]; }
  Key key_of(std::uint32_t npu, std::uint32_t s) const {
    return {stream(npu, s).kind, peer(npu, s), npus_[npu].trace->tags[stream(npu, s).tag_slot]};
  }
  /// The first stream of an NPU with this key; nobody if there is none.
  std::uint32_t find(std::uint32_t npu, const Key& key) const {
    const auto own = std::span(sorted_).subspan(first_[npu], first_[npu + 1] - first_[npu]);
    const auto at = std::ranges::lower_bound(own, key, {}, [&](std::uint32_t s) { return key_of(npu, s); });
    return at != own.end() && key_of(npu, *at) == key ? *at : nobody;
  }
  Likeness::Stream other_end(std::uint32_t npu, std::uint32_t s) const {
    const auto& [kind, peer, tag] = key_of(npu, s);
    const auto other = kind == NodeKind::send ? NodeKind::receive : NodeKind::send;
    return {peer.value(), find(peer.value(), {other, NpuId(npu), tag})};
  }

 private:
  std::span<const npu::NpuSpec> npus_;
  std::vector<const npu::Streams*> of_npu_;
  std::vector<std::size_t> first_;     // [npus + 1] index into sorted_
  std::vector<std::uint32_t> sorted_;  // streams of each NPU by key
};

/// What each NPU is by itself.
class Portraits {
 public:
  explicit Portraits(const npu::RunContext& setting) : setting_(setting) {}

  Characters run(const Conversations* conversations) {
    Characters result;
    Interner without_speeds, without_routes, whole;
    std::vector<std::uint32_t> text;
    for (const npu::NpuSpec& npu : setting_.npus) {
      const Structure& structure = structure_of(*npu.program);
      const bool is_noisy = setting_.options.compute_noise > 0 && structure.takes_time;
      const bool is_sharing = setting_.memory.num_servers() > 0 && structure.accesses_memory;
      result.num_noisy += is_noisy;
      result.num_sharing += is_sharing;
      text = {structure.number, is_noisy || is_sharing ? npu.id.value() + 1 : 0};
      (void)without_speeds.of(text);
      append(text, structure.takes_time ? setting_.options.speed_of(npu.id) : 1);
      (void)without_routes.of(text);
      if (conversations != nullptr) describe_tables(npu, *conversations, text);
      result.colours.push_back(whole.of(text));
    }
    result.num_structures = structures_.size();
    result.by_speeds = without_routes.size() - without_speeds.size();
    result.by_routes = whole.size() - without_routes.size();
    return result;
  }

 private:
  static void append(std::vector<std::uint32_t>& text, double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    text.push_back(static_cast<std::uint32_t>(bits));
    text.push_back(static_cast<std::uint32_t>(bits >> 32U));
  }

  struct Structure {
    std::uint32_t number = 0;
    bool takes_time = false, accesses_memory = false;
  };

  const Structure& structure_of(const npu::Program& program) {
    const auto [found, added] = structures_.try_emplace(&program);
    if (!added) return found->second;
    auto& structure = found->second;
    structure.number = static_cast<std::uint32_t>(structures_.size() - 1);
    if (setting_.options.replay_only) return structure;
    structure.takes_time = std::ranges::any_of(program.durations, [](Time time) { return time > Time::zero(); });
    for (const auto& node : program.graph->nodes) structure.accesses_memory |= node.is_access();
    return structure;
  }

  /// Which of its uses are one communicator, which of its streams have one peer and tag, and the way of each.
  void describe_tables(const npu::NpuSpec& npu, const Conversations& conversations, std::vector<std::uint32_t>& text) {
    for (const GroupId group : npu.groups)
      text.push_back(static_cast<std::uint32_t>(std::ranges::find(npu.groups, group) - npu.groups.begin()));
    for (std::uint32_t s = 0; s < conversations.count(npu.id.value()); ++s) {
      text.push_back(conversations.find(npu.id.value(), conversations.key_of(npu.id.value(), s)));
      text.push_back(route(npu.id, conversations.peer(npu.id.value(), s)));
    }
  }

  /// All that the delay of a message, and what it counts for in the network, depend on besides its size.
  std::uint32_t route(NpuId from, NpuId to) {
    route_.clear();
    setting_.delays.for_each_leg(from, to, [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
      route_.insert(route_.end(), {d, hops});
      append(route_, port.bandwidth);
      append(route_, port.latency);
    });
    return routes_.of(route_);
  }

  const npu::RunContext& setting_;
  std::map<const npu::Program*, Structure> structures_;
  Interner routes_;
  std::vector<std::uint32_t> route_;
};

/// Whether the members of a group that arrive together complete together, in all its collectives.
class Togetherness {
 public:
  explicit Togetherness(const npu::RunContext& setting) : setting_(setting) {}

  std::uint32_t shape_of(const collective::GroupLayout& layout) {
    return shapes_.try_emplace(&layout, static_cast<std::uint32_t>(shapes_.size())).first->second;
  }
  /// Of the collectives that a member does in a use (the first of its communicator).
  std::vector<collective::Kind> kinds(const npu::NpuSpec& member, std::uint32_t use) {
    std::set<collective::Kind> kinds;
    for (std::uint32_t u = use; u < member.groups.size(); ++u)
      if (member.groups[u] == member.groups[use])
        for (const auto& [kind, size] : calls_of(*member.program)[u]) kinds.insert(kind);
    return {kinds.begin(), kinds.end()};
  }
  /// For these collectives.
  bool of(const collective::GroupLayout& layout, std::uint32_t members, const npu::NpuSpec& member, std::uint32_t use) {
    if (members == 1) return true;
    bool together = true;
    for (std::uint32_t u = use; u < member.groups.size(); ++u)
      if (member.groups[u] == member.groups[use])
        for (const auto& [kind, size] : calls_of(*member.program)[u])
          together &= complete_together(layout, members, kind, size);
    return together;
  }

 private:
  using Call = std::pair<collective::Kind, Bytes>;

  /// [uses] the distinct collectives.
  const std::vector<std::set<Call>>& calls_of(const npu::Program& program) {
    const auto [found, added] = calls_.try_emplace(&program, program.uses.size());
    if (!added) return found->second;
    for (std::uint32_t i = 0; i < program.graph->num_nodes(); ++i)
      if (const auto& node = program.graph->nodes[i]; node.kind == NodeKind::collective)
        found->second[program.use_of_node(NodeId(i))].emplace(collective::kind_of(node.collective), Bytes(node.size));
    return found->second;
  }

  bool complete_together(const collective::GroupLayout& layout, std::uint32_t members, collective::Kind kind,
                         Bytes size) {
    const auto [found, added] = known_.try_emplace({&layout, kind, size});
    if (!added) return found->second;
    if (!setting_.engine.fits(layout, kind, size)) return found->second = false;  // it will be refused
    const std::vector<Time> arrivals(members);
    std::vector<Time> completions(members);
    setting_.engine.finish(layout, kind, size, arrivals, completions);
    found->second = std::ranges::all_of(completions, [&](Time time) { return time == completions.front(); });
    return found->second;
  }

  const npu::RunContext& setting_;
  std::map<const collective::GroupLayout*, std::uint32_t> shapes_;
  std::map<const npu::Program*, std::vector<std::set<Call>>> calls_;
  std::map<std::tuple<const collective::GroupLayout*, collective::Kind, Bytes>, bool> known_;
};

std::uint32_t first_use(const npu::NpuSpec& npu, GroupId group) {
  const auto found = std::ranges::find(npu.groups, group);
  return found == npu.groups.end() ? nobody : static_cast<std::uint32_t>(found - npu.groups.begin());
}

void describe_groups(const npu::RunContext& setting, Likeness& likeness) {
  const auto shared = std::make_shared<Togetherness>(setting);
  Togetherness& togetherness = *shared;
  likeness.first_place.push_back(0);
  for (const npu::NpuSpec& npu : setting.npus) {
    for (const GroupId group : npu.groups) likeness.places.push_back({group.value(), 0});
    likeness.first_place.push_back(likeness.places.size());
  }
  likeness.first_member.push_back(0);
  for (const auto& spec : setting.communicators) {
    const auto& members = spec.group->members;
    const auto size = static_cast<std::uint32_t>(members.empty() ? setting.npus.size() : members.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto npu = members.empty() ? i : members[i].value();
      const auto& groups = setting.npus[npu].groups;
      likeness.members.push_back({npu, first_use(setting.npus[npu], spec.id)});
      for (std::size_t use = 0; use < groups.size(); ++use)
        if (groups[use] == spec.id) likeness.places[likeness.first_place[npu] + use].position = i;
    }
    const auto& first = likeness.members[likeness.first_member.back()];
    likeness.first_member.push_back(likeness.members.size());
    const auto layout = setting.engine.layout(members, spec.dimensions, spec.custom);
    likeness.shapes.push_back(togetherness.shape_of(*layout));
    likeness.together.push_back(first.use == nobody ||
                                togetherness.of(*layout, size, setting.npus[first.npu], first.use));
  }
  likeness.places_among = [&setting, shared](std::uint32_t group, Likeness::Member first,
                                             std::span<const std::uint32_t> marks) {
    const auto& spec = setting.communicators[group];
    const auto layout = setting.engine.layout(spec.group->members, spec.dimensions, spec.custom);
    if (first.use == nobody) return std::vector<std::uint32_t>(marks.begin(), marks.end());  // it will be refused
    return setting.engine.equivalence_classes(*layout, shared->kinds(setting.npus[first.npu], first.use), marks);
  };
}

}  // namespace

StreamsOf streams_of_programs(std::span<const npu::NpuSpec> npus) {
  StreamsOf streams;
  const npu::Program* last = nullptr;
  for (const npu::NpuSpec& npu : npus) {
    if (npu.program == last) continue;
    last = npu.program;
    if (const auto [found, added] = streams.try_emplace(last); added) found->second = npu::streams_of(*last->graph);
  }
  return streams;
}

Likeness likeness_of(const npu::RunContext& setting, const StreamsOf& streams, Characters& characters) {
  Likeness likeness;
  const auto num_npus = setting.npus.size();
  if (setting.options.replay_only) {
    characters = Portraits(setting).run(nullptr);
    likeness.colours = characters.colours;
    likeness.first_member = {0};
    likeness.first_place.assign(num_npus + 1, 0);
    likeness.first_stream.assign(num_npus + 1, 0);
    return likeness;
  }
  const Conversations conversations(setting.npus, streams);
  characters = Portraits(setting).run(&conversations);
  likeness.colours = characters.colours;
  likeness.first_stream = conversations.first();
  for (std::uint32_t npu = 0; npu < num_npus; ++npu)
    for (std::uint32_t s = 0; s < conversations.count(npu); ++s)
      likeness.streams.push_back(conversations.other_end(npu, s));
  describe_groups(setting, likeness);
  return likeness;
}

}  // namespace orrery::fold
