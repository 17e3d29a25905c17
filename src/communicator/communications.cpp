#include "orrery/communicator/communications.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::communicator {
namespace {

/// A communicator that this rank asks for.
struct Asked {
  const trace::Group* group = nullptr;
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;
  std::uint32_t* number = nullptr;  ///< is set

  Communication communication() const { return {*group, dimensions, custom}; }
  auto order() const { return std::tie(*group, dimensions, custom); }
};

auto order_of(const Communication& c) { return std::tie(c.group, c.dimensions, c.custom); }

/// Returns the communicators that ranks ask for, each once, in order. `mine`: in order. Collective.
std::vector<Communication> gather_sorted(std::span<const Asked> mine, parallel::Communicator& world) {
  const auto is_repeated = [&](std::size_t i) { return i > 0 && mine[i - 1].order() == mine[i].order(); };
  std::vector<Communication> all;
  if (world.size() == 1) {
    all.reserve(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (!is_repeated(i)) all.push_back(mine[i].communication());
    return all;
  }
  parallel::Packer packer;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (is_repeated(i)) continue;
    packer.put_text(mine[i].group->name);
    packer.put(mine[i].dimensions);
    packer.put(mine[i].custom);
    packer.put_all(std::span<const NpuId>(mine[i].group->members));
  }
  std::vector<std::byte> bytes = packer.take();
  bytes = world.all_gather(std::span<const std::byte>(bytes));
  for (parallel::Unpacker unpacker(bytes); !unpacker.empty();) {
    Communication& c = all.emplace_back();
    c.group.name = unpacker.get_text();
    c.dimensions = unpacker.get<std::uint64_t>();
    c.custom = unpacker.get<std::uint32_t>();
    c.group.members = unpacker.get_all<NpuId>();
  }
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  all.shrink_to_fit();
  return all;
}

/// The distinct communicators that this rank asks for. What costs O(members) is done once for each.
class Requested {
 public:
  Requested(const topology::Topology& topology, const std::vector<trace::Group>& groups)
      : topology_(topology), groups_(groups) {}

  void add(NpuId npu, GroupId group, const GroupUse& use) {
    if (is_whole(group, use.dimensions))
      whole_.try_emplace({group, use.custom});
    else
      sub_grids_.try_emplace(sub_grid(npu, use));
  }

  /// Numbers them alike on all ranks and returns those of all ranks. Collective.
  std::vector<Communication> number(const collective::Engine& engine, parallel::Communicator& world) {
    std::deque<trace::Group> of_sub_grids;
    std::vector<Asked> asked;
    asked.reserve(whole_.size() + sub_grids_.size());
    for (auto& [key, number] : whole_)
      asked.push_back({&groups_[key.first.index()], trace::all_dimensions, key.second, &number});
    for (auto& [key, number] : sub_grids_) {
      const auto& [dimensions, first, custom] = key;
      of_sub_grids.push_back({fmt::format("sub-grid of NPU {}", first.value()), engine.split(first, dimensions)});
      asked.push_back({&of_sub_grids.back(), dimensions, custom, &number});
    }
    std::ranges::sort(asked, [](const Asked& a, const Asked& b) { return a.order() < b.order(); });
    auto all = gather_sorted(asked, world);
    auto at = all.begin();
    for (const Asked& own : asked) {
      while (order_of(*at) < own.order()) ++at;
      *own.number = static_cast<std::uint32_t>(at - all.begin());
    }
    return all;
  }

  /// After `number`.
  GroupId operator()(NpuId npu, GroupId group, const GroupUse& use) const {
    return GroupId(is_whole(group, use.dimensions) ? whole_.at({group, use.custom})
                                                   : sub_grids_.at(sub_grid(npu, use)));
  }

 private:
  using Whole = std::pair<GroupId, std::uint32_t>;                  // group, file
  using SubGrid = std::tuple<std::uint64_t, NpuId, std::uint32_t>;  // dimensions, first NPU, file

  bool is_whole(GroupId group, std::uint64_t dimensions) const {
    return dimensions == trace::all_dimensions || ignores_dimensions(groups_[group.index()]);
  }
  SubGrid sub_grid(NpuId npu, const GroupUse& use) const {
    std::uint32_t first = npu.value();
    for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
      if ((use.dimensions >> d & 1U) != 0) first -= topology_.coordinate(npu, d) * topology_.stride(d);
    return {use.dimensions, NpuId(first), use.custom};
  }

  const topology::Topology& topology_;
  const std::vector<trace::Group>& groups_;
  std::map<Whole, std::uint32_t> whole_;        // number, if somebody asks for all of the group
  std::map<SubGrid, std::uint32_t> sub_grids_;  // of the world
};

}  // namespace

DimensionsInUse dimensions_in_use(const topology::Topology& topology, const collective::Engine& engine) {
  DimensionsInUse in_use{0, engine.kinds_of_all()};
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).size > 1) in_use.bits |= std::uint64_t{1} << d;
  return in_use;
}

GroupUse use_of(const trace::Graph& graph, NodeId node, const DimensionsInUse& in_use) {
  const auto& of_group = graph.nodes[node.index()];
  const std::uint64_t named = of_group.detail & in_use.bits;
  bool names_all = named == in_use.bits;
  if (of_group.kind == trace::NodeKind::collective && (of_group.detail & 1) != 0)
    names_all |= (in_use.kinds_of_all >> static_cast<unsigned>(collective::kind_of(of_group.collective)) & 1) != 0;
  return {of_group.slot, names_all ? trace::all_dimensions : named, graph.custom_of(node)};
}

NumberedCommunicators number_communicators(std::span<const CommunicatorRequest> requests,
                                           const std::vector<trace::Group>& groups, const topology::Topology& topology,
                                           const collective::Engine& engine, parallel::Communicator& world) {
  Requested requested(topology, groups);
  for (const auto& request : requests)
    for (const auto& use : request.uses) requested.add(request.npu, request.groups[use.group_slot], use);
  NumberedCommunicators result{requested.number(engine, world), {}};
  result.of_request.reserve(requests.size());
  for (const auto& request : requests) {
    auto& numbers = result.of_request.emplace_back();
    numbers.reserve(request.uses.size());
    for (const auto& use : request.uses) numbers.push_back(requested(request.npu, request.groups[use.group_slot], use));
  }
  return result;
}

NpuId host_npu(const CommunicatorSpec& spec, std::uint32_t num_npus) {
  return spec.member(spec.id.value() % spec.num_members(num_npus));
}

CommunicatorTable::CommunicatorTable(std::vector<Communication> communicators, const collective::Options& options,
                                     std::span<const Rank> host_of_npu) {
  groups_.reserve(communicators.size());
  specs_.reserve(communicators.size());
  for (auto& c : communicators) {
    const auto id = static_cast<std::uint32_t>(groups_.size());
    auto& group = groups_.emplace_back(std::move(c.group));
    if (c.custom > 0)
      group.name = fmt::format("{} by {}", group.name.empty() ? "all NPUs" : group.name,
                               options.custom.of_nodes[c.custom - 1]->file().filename().string());
    CommunicatorSpec& spec = specs_.emplace_back();
    spec = {.id = GroupId(id), .group = &group, .dimensions = c.dimensions, .custom = c.custom, .host = Rank(0)};
    spec.host = host_of_npu[host_npu(spec, static_cast<std::uint32_t>(host_of_npu.size())).index()];
  }
}

}  // namespace orrery::communicator
