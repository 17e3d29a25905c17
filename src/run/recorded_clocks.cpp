#include "recorded_clocks.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "orrery/base/mix.hpp"

namespace orrery::run {
namespace {

using trace::CollectiveKind;
using trace::NodeKind;

/// The end of a communication by the clock of an NPU.
struct Mark {
  std::uint64_t link = 0;  ///< common property of NPUs: a group, or the two ends of messages
  std::int64_t end_ns = 0;
  std::uint32_t npu = 0;
  std::uint32_t count = 0;   ///< number of communications of the link
  std::uint32_t number = 0;  ///< number of this one among them
  std::uint32_t unused = 0;
};

constexpr std::uint64_t of_messages = std::uint64_t{1} << 63U;  ///< bit of messages, which follow groups
constexpr std::size_t most_marks = 65;                          ///< largest number of marks of an NPU in a link

/// Says whether all members of a collective end it together.
bool ends_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all ||
         kind == CollectiveKind::barrier || kind == CollectiveKind::expert_dispatch ||
         kind == CollectiveKind::expert_combine;
}

std::uint64_t link_of(const trace::Group& group) {
  std::uint64_t hash = group.members.size();
  for (const char c : group.name) hash = mix(hash, static_cast<unsigned char>(c));
  for (const NpuId member : group.members) hash = mix(hash, member.value());
  return hash & ~of_messages;
}

/// Returns what a communication node ties the NPU to; nothing for a collective whose members end at different times.
std::optional<std::uint64_t> link_of(NpuId npu, const trace::NpuTrace& trace, const trace::Node& node,
                                     const trace::Store& store) {
  if (node.kind == NodeKind::collective && ends_together(node.collective))
    return link_of(store.groups()[trace.groups[node.slot].index()]);
  if (node.kind != NodeKind::send && node.kind != NodeKind::receive) return std::nullopt;
  std::uint64_t ends[] = {npu.value(), trace.peers[node.slot].value()};
  if (node.kind == NodeKind::receive) std::swap(ends[0], ends[1]);
  return mix(ends[0], ends[1]) | of_messages;
}

/// Adds some of the marks of a recording, evenly spread over each link.
void add_marks(NpuId npu, const trace::NpuTrace& trace, const trace::Store& store, std::vector<Mark>& marks) {
  std::map<std::uint64_t, std::vector<std::int64_t>> ends;
  for (const auto& [node, ns] : trace.recorded->ends)
    if (const auto link = link_of(npu, trace, trace.graph->nodes[node.index()], store))
      ends[*link].push_back(trace.recorded->start_ns + ns);
  for (const auto& [link, all] : ends) {
    const std::size_t kept = std::min(all.size(), most_marks);
    for (std::size_t k = 0; k < kept; ++k) {
      const std::size_t number = k * all.size() / kept;
      marks.push_back(
          {link, all[number], npu.value(), static_cast<std::uint32_t>(all.size()), static_cast<std::uint32_t>(number)});
    }
  }
}

/// Clocks that are tied to each other, as a union-find structure whose edges are the offsets.
class Clocks {
 public:
  /// Returns the lowest NPU that an NPU is tied to, and by how much the NPU's clock is ahead of that one's.
  std::pair<std::uint32_t, std::int64_t> find(std::uint32_t npu) {
    const auto [at, added] = parents_.try_emplace(npu, npu, 0);
    if (added || at->second.first == npu) return {npu, 0};
    const auto [parent, offset] = at->second;
    const auto [root, rest] = find(parent);
    return parents_[npu] = {root, offset + rest};
  }

  /// Says that the clock of `b` is ahead of that of `a`, unless the two are tied already.
  void tie(std::uint32_t a, std::uint32_t b, std::int64_t ahead) {
    auto [root_a, offset_a] = find(a);
    auto [root_b, offset_b] = find(b);
    if (root_a == root_b) return;
    const std::int64_t between = offset_a + ahead - offset_b;  // of b's root over that of a
    if (root_a < root_b)
      parents_[root_b] = {root_a, between};
    else
      parents_[root_a] = {root_b, -between};
  }

 private:
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::int64_t>> parents_;
};

/// Ties the NPUs of a link to the first of them. `marks` are those of the link, by NPU and number.
void tie_link(std::span<const Mark> marks, Clocks& clocks) {
  const auto of_npu = [](std::span<const Mark> rest) {
    const auto end = std::ranges::find_if(rest, [&](const Mark& mark) { return mark.npu != rest.front().npu; });
    return rest.first(static_cast<std::size_t>(end - rest.begin()));
  };
  const auto first = of_npu(marks);
  std::vector<std::int64_t> late;
  for (auto rest = marks.subspan(first.size()); !rest.empty();) {
    const auto other = of_npu(rest);
    rest = rest.subspan(other.size());
    if (other.front().count != first.front().count) continue;  // which ones belong together is not known
    late.clear();
    for (std::size_t k = 0; k < other.size(); ++k) late.push_back(other[k].end_ns - first[k].end_ns);
    const auto middle = late.begin() + static_cast<std::ptrdiff_t>(late.size() / 2);
    std::ranges::nth_element(late, middle);
    clocks.tie(first.front().npu, other.front().npu, *middle);
  }
}

}  // namespace

std::vector<std::int64_t> clock_offsets(std::span<const NpuId> npus, std::span<const trace::NpuTrace> traces,
                                        const trace::Store& store, parallel::Communicator& world) {
  std::vector<Mark> mine;
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (traces[i].recorded) add_marks(npus[i], traces[i], store, mine);
  auto marks = world.all_gather<Mark>(mine);
  std::ranges::sort(marks, {}, [](const Mark& mark) { return std::tuple(mark.link, mark.npu, mark.number); });
  Clocks clocks;
  for (std::span<const Mark> rest = marks; !rest.empty();) {
    const auto end = std::ranges::find_if(rest, [&](const Mark& mark) { return mark.link != rest.front().link; });
    const auto size = static_cast<std::size_t>(end - rest.begin());
    tie_link(rest.first(size), clocks);
    rest = rest.subspan(size);
  }
  std::vector<std::int64_t> offsets;
  for (const NpuId npu : npus) offsets.push_back(clocks.find(npu.value()).second);
  return offsets;
}

}  // namespace orrery::run
