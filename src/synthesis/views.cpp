#include "views.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "orrery/fold/equivalence.hpp"

namespace orrery::synthesis {
namespace {

using trace::Graph;
using trace::NodeKind;

/// How often the nodes of a structure use its groups and peers.
struct Uses {
  std::vector<double> groups;  ///< [num_group_slots]
  std::vector<double> peers;   ///< [num_peer_slots]
};

Uses uses_of(const Graph& graph) {
  Uses uses{std::vector<double>(graph.num_group_slots), std::vector<double>(graph.num_peer_slots)};
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const trace::Node& node = graph.nodes[i];
    if (node.is_of_group()) ++uses.groups[node.slot];
    if (node.kind == NodeKind::send || node.kind == NodeKind::receive) ++uses.peers[node.slot];
  }
  return uses;
}

std::vector<Axis> axes_of(const trace::Store& store, std::span<const trace::NpuTrace> traces) {
  std::map<const Graph*, Uses> uses;
  std::vector<double> of_group(store.groups().size());
  std::map<std::uint32_t, double> of_distance;
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu) {
    const trace::NpuTrace& trace = traces[npu];
    const auto [found, added] = uses.try_emplace(trace.graph.get());
    if (added) found->second = uses_of(*trace.graph);
    for (std::size_t g = 0; g < trace.groups.size(); ++g) of_group[trace.groups[g].index()] += found->second.groups[g];
    for (std::size_t p = 0; p < trace.peers.size(); ++p)
      of_distance[static_cast<std::uint32_t>(
          std::abs(static_cast<std::int64_t>(trace.peers[p].value()) - std::int64_t{npu}))] += found->second.peers[p];
  }
  // Groups that are alike but for where they lie count together, as their progressions do.
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<std::size_t>> groups_of_shape;
  for (std::size_t g = 0; g < of_group.size(); ++g) {
    const auto& members = store.groups()[g].members;
    if (members.size() > 1) groups_of_shape[{members.size(), members[1].value() - members[0].value()}].push_back(g);
  }
  std::vector<WeightedMembers> groups;
  for (const auto& [key, numbers] : groups_of_shape) {
    double weight = 0;
    for (const auto g : numbers) weight += of_group[g];
    for (const auto g : numbers) {
      WeightedMembers& group = groups.emplace_back();
      group.weight = weight;
      for (const NpuId member : store.groups()[g].members) group.members.push_back(member.value());
      std::ranges::sort(group.members);
    }
  }
  std::vector<WeightedDistance> distances;
  for (const auto& [distance, weight] : of_distance) distances.push_back({distance, weight});
  return find_axes(static_cast<std::uint32_t>(traces.size()), std::move(groups), std::move(distances));
}

/// Numbers distinct values in the order in which they come first.
template <class Value>
class Numbers {
 public:
  explicit Numbers(std::vector<Value>& values) : values_(values) {}
  std::uint32_t of(Value value) {
    const auto [found, added] = numbers_.try_emplace(value, static_cast<std::uint32_t>(values_.size()));
    if (added) values_.push_back(std::move(value));
    return found->second;
  }

 private:
  std::vector<Value>& values_;
  std::map<Value, std::uint32_t> numbers_;
};

/// Sees the groups and peers of an NPU from there.
NpuView view_of(const trace::NpuTrace& trace, std::uint32_t npu, const std::vector<GroupCoordinates>& coordinates,
                std::span<const Axis> axes, Numbers<GroupShape>& shapes, Numbers<Offsets>& offsets) {
  NpuView view;
  std::map<GroupShape, std::uint32_t> twins;
  for (const GroupId group : trace.groups) {
    GroupShape shape = shape_of(axes, npu, coordinates[group.index()]);
    shape.twin = twins[shape]++;
    view.shapes.push_back(shapes.of(std::move(shape)));
  }
  for (const NpuId peer : trace.peers) view.offsets.push_back(offsets.of(offsets_to(axes, npu, peer.value())));
  return view;
}

/// A stream of messages of a structure: slots of kind, peer and tag.
using StreamSlots = std::tuple<NodeKind, std::uint32_t, std::uint64_t>;

std::vector<StreamSlots> streams_of(const Graph& graph) {
  std::set<StreamSlots> found;
  std::vector<StreamSlots> result;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const trace::Node& node = graph.nodes[i];
    if (node.kind != NodeKind::send && node.kind != NodeKind::receive) continue;
    if (found.insert({node.kind, node.slot, node.detail}).second)
      result.emplace_back(node.kind, node.slot, node.detail);
  }
  return result;
}

/// Adds the streams of all NPUs to the graph.
void add_streams(std::span<const trace::NpuTrace> traces, fold::SignatureGraph& graph) {
  std::map<const Graph*, std::vector<StreamSlots>> streams;
  using Key = std::tuple<NodeKind, std::uint32_t, std::uint64_t>;
  std::vector<std::map<Key, std::uint32_t>> known(traces.size());
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu) {
    const trace::NpuTrace& trace = traces[npu];
    const auto [found, added] = streams.try_emplace(trace.graph.get());
    if (added) found->second = streams_of(*trace.graph);
    std::uint32_t number = 0;
    for (const auto& [kind, peer, tag] : found->second)
      known[npu].try_emplace({kind, trace.peers[peer].value(), trace.tags[tag]}, number++);
  }
  graph.first_stream.push_back(0);
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu) {
    const trace::NpuTrace& trace = traces[npu];
    for (const auto& [kind, peer, tag] : streams.at(trace.graph.get())) {
      const NpuId other = trace.peers[peer];
      const NodeKind opposite = kind == NodeKind::send ? NodeKind::receive : NodeKind::send;
      const auto& of_peer = known[other.index()];
      const auto found = of_peer.find({opposite, npu, trace.tags[tag]});
      graph.streams.push_back({other.value(), found == of_peer.end() ? fold::SignatureGraph::none : found->second});
    }
    graph.first_stream.push_back(graph.streams.size());
  }
}

/// Adds the groups of all NPUs to the graph, each group once for each set of uses by its members.
void add_groups(std::span<const trace::NpuTrace> traces, const Views& views, fold::SignatureGraph& graph) {
  std::map<GroupId, std::vector<fold::SignatureGraph::Member>> members;
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu)
    for (std::uint32_t use = 0; use < traces[npu].groups.size(); ++use)
      members[traces[npu].groups[use]].push_back({npu, use});
  std::vector<std::vector<fold::SignatureGraph::Membership>> memberships(traces.size());
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu) memberships[npu].resize(traces[npu].groups.size());
  graph.first_member.push_back(0);
  for (const auto& [id, list] : members) {
    const auto group = static_cast<std::uint32_t>(graph.layouts.size());
    for (std::uint32_t position = 0; position < list.size(); ++position)
      memberships[list[position].npu][list[position].use] = {group, position};
    graph.members.insert(graph.members.end(), list.begin(), list.end());
    graph.first_member.push_back(graph.members.size());
    graph.layouts.push_back(views.npus[list.front().npu].shapes[list.front().use]);
    graph.completes_together.push_back(1);
  }
  graph.first_membership.push_back(0);
  for (const auto& list : memberships) {
    graph.memberships.insert(graph.memberships.end(), list.begin(), list.end());
    graph.first_membership.push_back(graph.memberships.size());
  }
}

}  // namespace

Views view(const trace::Store& store, std::span<const trace::NpuTrace> traces) {
  Views views;
  views.axes = axes_of(store, traces);
  std::vector<GroupCoordinates> coordinates;
  const auto look = [&] {
    coordinates.clear();
    for (const trace::Group& group : store.groups())
      coordinates.push_back(coordinates_of_group(views.axes, group.members));
  };
  look();
  if (!std::ranges::all_of(coordinates, &GroupCoordinates::is_product)) {
    views.axes = {Axis{.size = static_cast<std::uint32_t>(traces.size())}};
    look();
  }
  Numbers<GroupShape> shapes(views.shapes);
  Numbers<Offsets> offsets(views.offsets);
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu)
    views.npus.push_back(view_of(traces[npu], npu, coordinates, views.axes, shapes, offsets));
  return views;
}

std::vector<std::uint32_t> find_roles(std::span<const trace::NpuTrace> traces, const Views& views) {
  fold::SignatureGraph graph;
  std::map<std::tuple<const Graph*, std::vector<std::uint32_t>, std::vector<std::uint32_t>>, std::uint32_t> signatures;
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu)
    graph.signature_of_npu.push_back(
        signatures
            .try_emplace({traces[npu].graph.get(), views.npus[npu].shapes, views.npus[npu].offsets},
                         static_cast<std::uint32_t>(signatures.size()))
            .first->second);
  add_groups(traces, views, graph);
  add_streams(traces, graph);
  return fold::refine(graph).of_npu;
}

}  // namespace orrery::synthesis
