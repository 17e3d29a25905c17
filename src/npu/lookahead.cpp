#include "lookahead.hpp"

#include <algorithm>
#include <array>

#include "noise.hpp"
#include "orrery/base/error.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

/// A graph read backwards, and the positions of nodes in an order in which dependencies come first.
class Backwards {
 public:
  explicit Backwards(const trace::Graph& graph)
      : first_(graph.num_nodes() + 1), position_(graph.num_nodes()), order_(graph.topological_order()) {
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) first_[i + 1] = first_[i] + graph.nodes[i].num_dependencies;
    predecessors_.resize(first_.back());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t k = 0; k < order_.size(); ++k) {
      position_[order_[k]] = static_cast<std::uint32_t>(k);
      for (const auto successor : graph.successors_of(NodeId(order_[k]))) predecessors_[next[successor]++] = order_[k];
    }
  }

  const std::vector<std::uint32_t>& order() const { return order_; }
  std::uint32_t position(std::uint32_t node) const { return position_[node]; }
  std::span<const std::uint32_t> predecessors(std::uint32_t node) const {
    return std::span(predecessors_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

 private:
  std::vector<std::uint32_t> first_, position_, order_, predecessors_;
};

// A noticed node starts when all paths to it are done. So from the completion of a node to the start of a noticed one
// the *longest* path between them is a bound, and the least of these over the noticed nodes is the node's tail. Each
// noticed node is walked back from, no farther than to other noticed nodes: what lies behind those is noticed earlier.
class TailFinder {
 public:
  TailFinder(const Program& program, const Options& options, const std::vector<char>& noticed, Distances& result)
      : graph_(*program.graph),
        durations_(program.durations),
        noticed_(noticed),
        result_(result),
        backwards_(graph_),
        longest_(graph_.num_nodes()),
        seen_by_(graph_.num_nodes(), none) {
    const double speed = options.replay_only ? 1 : options.highest_speed();
    const double factor = options.replay_only ? 1 : options.least_factor();
    for (std::uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      Time& duration = durations_[i];
      if (graph_.nodes[i].kind == NodeKind::compute) duration = at_speed(duration, speed);
      duration = times_factor(duration, factor);
    }
    repeats_ = options.iterations > 1;
  }

  void run() {
    find();
    if (repeats_) add_next_iteration();
  }

 private:
  static constexpr std::uint32_t none = ~0U;

  void find() {
    // Walks may overlap; past this much work shortest paths, which one pass finds for all nodes, are bound enough.
    const std::size_t most = 64 * (graph_.nodes.size() + graph_.successors.size());
    for (const auto node : backwards_.order()) {
      if (!noticed_[node]) continue;
      if (work_ > most) return run_shortest();
      walk_back(node);
    }
  }

  /// Takes into account that the first nodes start again when all nodes are done.
  void add_next_iteration() {
    Time first = Time::max();
    for (const auto node : backwards_.order())
      if (graph_.nodes[node].num_dependencies == 0) first = std::min(first, result_.leads[node]);
    const auto& order = backwards_.order();
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      Time& to_end = longest_[*node];  // from the completion of a node to that of all that depend on it
      to_end = Time::zero();
      for (const auto s : graph_.successors_of(NodeId(*node))) to_end = std::max(to_end, durations_[s] + longest_[s]);
      result_.tails[*node] = std::min(result_.tails[*node], to_end + first);
      if (!noticed_[*node]) result_.leads[*node] = std::min(result_.leads[*node], durations_[*node] + to_end + first);
    }
  }

  /// Finds the longest paths from the ancestors of `target` to it.
  void walk_back(std::uint32_t target) {
    result_.leads[target] = Time::zero();
    extend(target, target, Time::zero());
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end());
      const auto node = backwards_.order()[open_.back()];
      open_.pop_back();
      Time& tail = result_.tails[node];
      tail = std::min(tail, longest_[node]);
      if (noticed_[node]) continue;
      const Time lead = durations_[node] + longest_[node];
      result_.leads[node] = std::min(result_.leads[node], lead);
      extend(node, target, lead);
    }
  }

  /// Takes note that the predecessors of `node` have a path of this length, from their completion, to the target.
  void extend(std::uint32_t node, std::uint32_t target, Time length) {
    for (const auto before : backwards_.predecessors(node)) {
      ++work_;
      if (seen_by_[before] == target) {
        longest_[before] = std::max(longest_[before], length);
        continue;
      }
      seen_by_[before] = target;
      longest_[before] = length;
      open_.push_back(backwards_.position(before));  // the last in the order first: then all its paths are known
      std::push_heap(open_.begin(), open_.end());
    }
  }

  void run_shortest() {
    const auto& order = backwards_.order();
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      Time tail = Time::max();
      for (const auto s : graph_.successors_of(NodeId(*node))) tail = std::min(tail, result_.leads[s]);
      result_.tails[*node] = tail;
      result_.leads[*node] = noticed_[*node] ? Time::zero() : durations_[*node] + tail;
    }
  }

  const trace::Graph& graph_;
  std::vector<Time> durations_;  // [num_nodes] at least
  bool repeats_ = false;
  const std::vector<char>& noticed_;
  Distances& result_;
  Backwards backwards_;
  std::vector<Time> longest_;           // [num_nodes] to the present target
  std::vector<std::uint32_t> seen_by_;  // [num_nodes] the last target that reached the node
  std::vector<std::uint32_t> open_;     // a heap of positions in the order
  std::size_t work_ = 0;
};

}  // namespace

Lookaheads::Lookaheads(const RunContext& run) : run_(run) {
  const auto is_elsewhere = [&](NpuId member) { return !run.hosting.is_here(member); };
  for (const auto& spec : run.communicators) {
    const auto& members = spec.representatives ? spec.representatives->npus : spec.group->members;
    leads_away_.push_back(spec.host != run.hosting.here ||
                          (members.empty()
                               ? run.npus.size() != run.hosting.num_npus()
                               : std::ranges::any_of(members, is_elsewhere) || passes_other_ranks(members)));
    if (!run.cell_of.empty()) leaves_cell_.push_back(members.empty() || passes_other_cells(members));
  }
}

bool Lookaheads::passes_other_ranks(std::span<const NpuId> members) const {
  return run_.links && run_.npus.size() < run_.hosting.num_npus() &&
         !run_.links->keeps_within(members, [this](NpuId npu) { return run_.hosting.is_here(npu); });
}

bool Lookaheads::passes_other_cells(std::span<const NpuId> members) const {
  const std::uint32_t cell = run_.cell_of[members.front().index()];
  return !run_.links->keeps_within(
      members, [this, cell](NpuId npu) { return run_.hosting.is_here(npu) && run_.cell_of[npu.index()] == cell; });
}

Lookaheads::Pattern Lookaheads::pattern_of(const NpuSpec& npu) const {
  Pattern pattern;
  for (const GroupId group : npu.groups) pattern.push_back(leads_away_[group.index()]);
  for (const NpuId peer : npu.trace->peers)
    pattern.push_back(!run_.hosting.is_here(peer) || passes_other_ranks(std::array{npu.id, peer}));
  pattern.push_back(run_.memory.num_servers() > 0 &&
                    run_.hosting.of_server[run_.memory.server_of(npu.id)] != run_.hosting.here);
  return pattern;
}

Lookaheads::Pattern Lookaheads::pattern_of_cells(const NpuSpec& npu) const {
  Pattern pattern;
  if (run_.cell_of.empty()) return pattern;
  for (const GroupId group : npu.groups) pattern.push_back(leaves_cell_[group.index()]);
  for (const NpuId peer : npu.trace->peers) pattern.push_back(passes_other_cells(std::array{npu.id, peer}));
  return pattern;
}

bool Lookaheads::is_send(const Program& program, const Pattern& pattern, NodeId id) const {
  const auto& node = program.graph->nodes[id.index()];
  if (run_.options.goes_over_links()) return false;
  if (node.kind != NodeKind::send && !(node.kind == NodeKind::receive && run_.options.senders_wait())) return false;
  return pattern[program.uses.size() + node.slot];
}

bool Lookaheads::is_call(const Program& program, const Pattern& pattern, NodeId id) const {
  const auto& node = program.graph->nodes[id.index()];
  if (node.kind == NodeKind::collective) return !run_.options.goes_over_links() && pattern[program.use_of_node(id)];
  if (!node.is_access()) return false;
  return pattern.back() || (node.is_of_group() && pattern[program.use_of_node(id)]);  // it leads to answers for others
}

bool Lookaheads::is_relay(const Program& program, const Pattern& pattern, NodeId id) const {
  const auto& node = program.graph->nodes[id.index()];
  if (node.kind == NodeKind::collective) return pattern[program.use_of_node(id)];
  if (node.kind != NodeKind::send && !(node.kind == NodeKind::receive && run_.options.senders_wait())) return false;
  return pattern[program.uses.size() + node.slot];
}

const Lookahead& Lookaheads::of(const NpuSpec& npu) {
  const Pattern pattern = pattern_of(npu), of_cells = pattern_of_cells(npu);
  auto& made = made_[{npu.program, pattern, of_cells}];
  if (made) return *made;
  const auto& program = *npu.program;
  const auto distances = [&](auto is_noticed) {
    const auto n = program.graph->num_nodes();
    std::vector<char> noticed(n);
    if (!run_.options.replay_only)
      for (std::uint32_t i = 0; i < n; ++i) noticed[i] = is_noticed(NodeId(i));
    Distances result{std::vector<Time>(n, Time::max()), std::vector<Time>(n, Time::max())};
    TailFinder(program, run_.options, noticed, result).run();
    return result;
  };
  Lookahead lookahead{&program,
                      distances([&](NodeId node) { return is_send(program, pattern, node); }),
                      distances([&](NodeId node) { return is_call(program, pattern, node); }),
                      {},
                      {}};
  if (run_.options.goes_over_links())
    lookahead.relays = distances([&](NodeId node) { return is_relay(program, pattern, node); });
  if (!run_.cell_of.empty())
    lookahead.leaves = distances([&](NodeId node) { return is_relay(program, of_cells, node); });
  made = std::make_unique<const Lookahead>(std::move(lookahead));
  return *made;
}

}  // namespace orrery::npu
