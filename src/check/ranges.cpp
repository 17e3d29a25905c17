#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "limits.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/network/analytical.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

using trace::NodeKind;

/// Throws Error (bad_input) for the first node that does not fit the range of time or of bytes by itself. O(nodes of
/// distinct programs + peers), and a plan of each distinct collective, which the engine keeps.
class RangeSearch {
 public:
  explicit RangeSearch(const Subject& subject) : subject_(subject), context_(subject.run) {}

  void run() {
    std::set<const npu::Program*> programs;
    for (const npu::NpuSpec& npu : context_.npus) {
      if (programs.insert(npu.program).second) check_program(npu);
      check_sends(npu);
      check_collectives(npu);
    }
  }

 private:
  [[noreturn]] void refuse(const npu::NpuSpec& npu, NodeId node, std::string_view what, std::string_view hint) const {
    throw Error(ErrorCode::bad_input, place_of(subject_, npu, node), what, {}, hint);
  }

  /// Nodes that take the same time on every NPU of the program.
  void check_program(const npu::NpuSpec& npu) const {
    const auto& graph = *npu.program->graph;
    const bool accesses = context_.memory.kind()->has_memory && !context_.options.replay_only;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if (npu.program->durations[i] == Time::max())
        refuse(npu, NodeId(i),
               fmt::format("{} operations on {} bytes take more than {}", node.detail, node.size, longest),
               "Correct num_ops or tensor_size, or the performance in the configuration.");
      if (accesses && node.is_access() && context_.memory.access_time(Bytes(node.size)) == Time::max())
        refuse(npu, NodeId(i), fmt::format("a remote access of {} bytes takes more than {}", node.size, longest),
               "Correct tensor_size, or the latency and bandwidth of the remote memory.");
    }
  }

  /// The largest message to each peer.
  void check_sends(const npu::NpuSpec& npu) {
    if (context_.options.replay_only || npu.trace->peers.empty()) return;
    for (const auto& [slot, node] : largest_sends(*npu.program)) {
      const Bytes size(npu.program->graph->nodes[node.index()].size);
      const NpuId peer = npu.trace->peers[slot];
      if (context_.send_delay(npu.id, peer, size) == Time::max())
        refuse(npu, node,
               fmt::format("a message of {} bytes to NPU {} takes more than {}", size.count(), peer.value(), longest),
               "Correct comm_size, or the bandwidth and latency of the network.");
    }
  }

  /// Checks the messages to each peer, by peer slot.
  const std::map<std::uint32_t, NodeId>& largest_sends(const npu::Program& program) {
    const auto [found, added] = largest_sends_.try_emplace(&program);
    if (!added) return found->second;
    const auto& nodes = program.graph->nodes;
    for (std::uint32_t i = 0; i < program.graph->num_nodes(); ++i) {
      if (nodes[i].kind != NodeKind::send) continue;
      const auto [largest, first] = found->second.try_emplace(nodes[i].slot, NodeId(i));
      if (nodes[i].size > nodes[largest->second.index()].size) largest->second = NodeId(i);
    }
    return found->second;
  }

  void check_collectives(const npu::NpuSpec& npu) {
    const auto& graph = *npu.program->graph;
    if (context_.options.replay_only || graph.num_group_slots == 0) return;
    std::vector<bool> is_new;
    for (const GroupId group : npu.groups) is_new.push_back(seen_.emplace(npu.program, group).second);
    if (std::ranges::none_of(is_new, std::identity{})) return;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      if (graph.nodes[i].kind != NodeKind::collective) continue;
      const auto use = npu.program->use_of_node(NodeId(i));
      if (is_new[use]) check_collective(npu, NodeId(i), context_.communicators[npu.groups[use].index()]);
    }
  }

  /// Checks that a file that spells out a collective is for its size.
  void check_size(const npu::NpuSpec& npu, NodeId id, const collective::CustomCollective& custom, collective::Kind kind,
                  Bytes size) {
    const bool is_gathered = kind == collective::Kind::all_gather || kind == collective::Kind::gather;
    const Bytes whole = is_gathered ? size * custom.num_positions() : size;
    if (whole >= custom.least() && whole <= custom.most()) return;
    refuse(npu, id,
           fmt::format("the collective has {} bytes in all, but {} is for {} to {} bytes", whole.count(),
                       custom.file().string(), custom.least().count(), custom.most().count()),
           "Give a plan for this size (min_message_size, max_message_size), or leave out collectives.custom.");
  }

  void check_collective(const npu::NpuSpec& npu, NodeId id, const communicator::CommunicatorSpec& spec) {
    const auto& node = npu.program->graph->nodes[id.index()];
    const auto kind = collective::kind_of(node.collective);
    const Bytes size(node.size);
    auto& layout = layouts_[spec.id];
    if (!layout) layout = collective::layout_of(context_.engine, *spec.group, spec.dimensions, spec.custom);
    if (!fitting_.emplace(layout.get(), kind, size).second) return;
    const auto members = static_cast<std::uint32_t>(spec.group->members.empty() ? context_.topology().num_npus()
                                                                                : spec.group->members.size());
    const auto what = fmt::format("{} of {} bytes among {} NPUs", trace::name(node.collective), node.size, members);
    const auto* const custom = context_.engine.custom_collective(*layout, kind);
    if (custom) check_size(npu, id, *custom, kind, Bytes(node.size));
    const std::string hint = fmt::format(
        "Correct comm_size{}, or the bandwidth and latency of the network.",
        custom && custom->has_fixed_sizes() ? fmt::format(" in {}", custom->file().string()) : std::string());
    if (!context_.engine.fits(*layout, kind, size))
      refuse(npu, id, fmt::format("{} takes more than {}, or moves more than {}", what, longest, most_bytes), hint);
    network::Analytical network(context_.delays);
    network.count_collective(context_.engine.traffic(*layout, kind, size), members);
    if (!network.in_range())
      refuse(npu, id, fmt::format("{} moves more than {} in all, the most that results hold", what, most_bytes), hint);
  }

  const Subject& subject_;
  const npu::RunContext& context_;
  std::map<const npu::Program*, std::map<std::uint32_t, NodeId>> largest_sends_;
  std::set<std::pair<const npu::Program*, GroupId>> seen_;
  std::map<GroupId, std::shared_ptr<const collective::GroupLayout>> layouts_;
  std::set<std::tuple<const collective::GroupLayout*, collective::Kind, Bytes>> fitting_;
};

/// Checks ranges if no rank has another fault, because other faults may be the cause. Reports the fault of the lowest
/// NPU only.
void check_ranges(const Subject& subject, parallel::Communicator& world, Findings findings) {
  auto num_faults = static_cast<std::int64_t>(findings.faults.count());
  world.sum(std::span(&num_faults, 1));
  if (num_faults > 0) return;
  Faults mine;
  world.agree([&] { mine.attempt([&] { RangeSearch(subject).run(); }); });
  std::int64_t own = std::numeric_limits<std::int64_t>::max();
  mine.for_each([&](const Error& fault) { own = fault.place().npu.value_or(0); });
  std::int64_t lowest = own;
  world.minimum(std::span(&lowest, 1));
  if (own == lowest) mine.for_each([&](const Error& fault) { findings.faults.add(fault); });
}

}  // namespace

Check ranges() {
  return {"ranges", "a node takes longer, or moves more bytes, than the program can count",
          Check::Collective(check_ranges)};
}

}  // namespace orrery::check
