#include "orrery/npu/queue_turns.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "orrery/base/mix.hpp"
#include "orrery/collective/end_order.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {
namespace {

constexpr std::uint64_t most_messages = 1U << 16U;  ///< messages of a collective that is sent before the run
constexpr int most_sent = 256;                      ///< collectives that are sent before the run
constexpr std::int64_t most_taken = 1 << 20;        ///< turns of all members and collectives that are compared

/// The turn that a member has in a collective where it decides which way its chunks go.
struct TakenTurn {
  std::uint64_t group = 0, ordinal = 0, npu = 0;
  std::uint64_t kind = 0, size = 0;
  collective::Turn turn;

  bool is_of_same(const TakenTurn& other) const { return group == other.group && ordinal == other.ordinal; }
};

/// Returns the collectives of a graph in the order that its dependencies give them; none if they leave it open.
std::optional<std::vector<NodeId>> collectives_in_order(const trace::Graph& graph) {
  std::vector<std::uint32_t> longest(graph.num_nodes());  // most collectives on a way to the node
  std::vector<NodeId> collectives;
  for (const std::uint32_t node : graph.topological_order()) {
    if (graph.nodes[node].kind == trace::NodeKind::collective) {
      ++longest[node];
      collectives.push_back(NodeId(node));
    }
    for (const std::uint32_t successor : graph.successors_of(NodeId(node)))
      longest[successor] = std::max(longest[successor], longest[node]);
  }
  std::ranges::sort(collectives, {}, [&](NodeId node) { return longest[node.index()]; });
  for (std::size_t i = 0; i < collectives.size(); ++i)
    if (longest[collectives[i].index()] != i + 1) return {};
  return collectives;
}

/// Compares the turns that members have.
class Comparison {
 public:
  explicit Comparison(const RunContext& run) : run_(run), layouts_(run.communicators.size()) {}

  /// Adds the turns of an NPU, whose collectives come in this order.
  void add(const NpuSpec& npu, const std::vector<NodeId>& collectives) {
    std::map<GroupId, std::uint64_t> digests;
    std::map<GroupId, std::uint64_t> ordinals;
    collective::Turn turn;
    for (const NodeId id : collectives) {
      const trace::Node& node = npu.program->graph->nodes[id.index()];
      const GroupId group = npu.groups[npu.program->use_of_node(id)];
      if (members_of(group) == 1) continue;
      const auto kind = collective::kind_of(node.collective);
      std::uint64_t& digest = digests.try_emplace(group, group.value()).first->second;
      const std::uint64_t ordinal = ordinals[group]++;
      if (turn_decides_way(run_.engine, layout_of(group), kind)) {
        digest = mix(digest, turn.digits);
        if (std::ssize(taken_) <= most_taken)
          taken_.push_back({group.value(), ordinal, npu.id.value(), static_cast<std::uint64_t>(kind), node.size, turn});
      }
      turn = run_.engine.next_turn(turn, layout_of(group), kind, Bytes(node.size));
    }
    for (const auto& [group, digest] : digests) {
      // The digests of a communicator add up to 0 if all are equal to that of the first member.
      const std::uint64_t next = run_.options.iterations > 1 ? turn.digits : 0;  // of the next iteration
      const auto bits = static_cast<std::int64_t>(mix(digest, next) & 0xffffffffU);
      const bool is_first = run_.communicators[group.index()].member(0) == npu.id;
      difference_ += is_first ? bits * (members_of(group) - std::int64_t{1}) : -bits;
    }
  }

  std::int64_t difference() const { return difference_; }
  std::span<const TakenTurn> taken() const { return taken_; }

  /// Returns whether in one of the collectives members wait for each other in a circle. `taken`: the turns of all
  /// members.
  bool may_get_stuck(std::vector<TakenTurn> taken) {
    int num_sent = 0;
    std::ranges::sort(taken, {}, [](const TakenTurn& one) { return std::tuple(one.group, one.ordinal, one.npu); });
    for (auto first = taken.begin(); first != taken.end();) {
      const auto last = std::find_if_not(first, taken.end(), [&](const auto& one) { return one.is_of_same(*first); });
      const std::span<const TakenTurn> members(first, last);
      const bool agree = std::ranges::all_of(members, [&](const auto& one) { return one.turn == first->turn; });
      if (!agree && (++num_sent > most_sent || gets_stuck(members))) return true;
      first = last;
    }
    return false;
  }

 private:
  /// Returns whether members wait for each other in one collective, of which `taken` has the members by their numbers.
  /// What members wait for does not depend on times, so any will do.
  bool gets_stuck(std::span<const TakenTurn> taken) {
    const auto& spec = run_.communicators[taken[0].group];
    const auto kind = static_cast<collective::Kind>(taken[0].kind);
    collective::MessageTimes times{.arrivals = std::vector<Time>(taken.size()),
                                   .histories = {},
                                   .delay = [](std::uint32_t, std::uint32_t, Bytes) { return Time::from_ns(1); },
                                   .endpoint_delay = run_.engine.endpoint_delay(layout_of(spec.id)),
                                   .rendezvous = run_.options.rendezvous};
    std::vector<std::shared_ptr<const collective::MessageProgram>> programs;
    for (std::uint32_t position = 0; position < taken.size(); ++position) {
      const NpuId npu = spec.member(position);
      const auto its = std::ranges::lower_bound(taken, npu.value(), {}, &TakenTurn::npu);
      times.histories.push_back(EventPlace::first_of(npu).next(Time::zero(), 0));
      programs.push_back(run_.engine.message_program(layout_of(spec.id), kind, Bytes(its->size), its->turn));
    }
    return !collective::member_ends(programs, times, most_messages);
  }

  std::uint32_t members_of(GroupId group) const {
    return run_.communicators[group.index()].num_members(run_.hosting.num_npus());
  }
  const collective::GroupLayout& layout_of(GroupId group) {
    auto& layout = layouts_[group.index()];
    const auto& spec = run_.communicators[group.index()];
    if (!layout) layout = collective::layout_of(run_.engine, *spec.group, spec.dimensions, spec.custom);
    return *layout;
  }

  const RunContext& run_;
  std::vector<std::shared_ptr<const collective::GroupLayout>> layouts_;  // [communicators]
  std::int64_t difference_ = 0;
  std::vector<TakenTurn> taken_;
};

}  // namespace

bool turns_go_on_over_all(const RunContext& run, parallel::Communicator& world) {
  if (!run.options.goes_over_links() || !run.engine.turns_go_on()) return false;
  std::map<const trace::Graph*, std::optional<std::vector<NodeId>>> orders;
  Comparison comparison(run);
  std::int64_t open = 0;
  for (const NpuSpec& npu : run.npus) {
    const trace::Graph* const graph = npu.program->graph.get();
    auto known = orders.find(graph);
    if (known == orders.end()) known = orders.emplace(graph, collectives_in_order(*graph)).first;
    if (known->second)
      comparison.add(npu, *known->second);
    else
      ++open;
  }
  std::int64_t sums[] = {open, comparison.difference(), std::ssize(comparison.taken())};
  world.sum(sums);
  if (sums[0] > 0) return false;
  if (sums[1] == 0) return true;
  if (run.options.iterations > 1 || sums[2] > most_taken) return false;
  return !comparison.may_get_stuck(world.all_gather(comparison.taken()));
}

}  // namespace orrery::npu
