#include "orrery/check/ranges.hpp"
#include "orrery/base/text.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/network/analytical.hpp"

namespace orrery::check {
namespace {

using npu::NpuSpec;
using trace::NodeKind;

constexpr std::string_view longest = "106 days of simulated time, the most that a run can last";
constexpr std::string_view most_bytes = "2^63 - 1 bytes";

class RangeCheck {
 public:
  RangeCheck(const npu::RunContext& run, const trace::Store& store) : run_(run), store_(store) {}

  void run() {
    std::set<const npu::Program*> programs;
    for (const npu::NpuSpec& npu : run_.npus) {
      if (programs.insert(npu.program).second) check_alone(npu);
      check_sends(npu);
      check_collectives(npu);
    }
  }

 private:
  [[noreturn]] void refuse(const npu::NpuSpec& npu, NodeId node, std::string_view what, std::string_view hint) const {
    throw Error(ErrorCode::bad_input, store_.place(*npu.trace, npu.id, node), what, {}, hint);
  }

  /// What takes the same time on every NPU of the program.
  void check_alone(const npu::NpuSpec& npu) const {
    const auto& graph = *npu.program->graph;
    const bool accesses = run_.memory.kind() != memory::RemoteMemoryKind::none && !run_.options.replay_only;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if (npu.program->durations[i] == Time::max())
        refuse(npu, NodeId(i),
               fmt::format("{} operations on {} bytes take more than {}", node.detail, node.size, longest),
               "Correct num_ops or tensor_size, or the performance in the configuration.");
      if (accesses && node.is_access() && run_.memory.access_time(Bytes(node.size)) == Time::max())
        refuse(npu, NodeId(i), fmt::format("a remote access of {} bytes takes more than {}", node.size, longest),
               "Correct tensor_size, or the latency and bandwidth of the remote memory.");
    }
  }

  /// The largest message to each peer.
  void check_sends(const npu::NpuSpec& npu) {
    if (run_.options.replay_only || npu.trace->peers.empty()) return;
    for (const auto& [slot, node] : largest_sends(*npu.program)) {
      const Bytes size(npu.program->graph->nodes[node.index()].size);
      const NpuId peer = npu.trace->peers[slot];
      if (run_.delays.delay(npu.id, peer, size) == Time::max())
        refuse(npu, node,
               fmt::format("a message of {} bytes to NPU {} takes more than {}", size.count(), peer.value(), longest),
               "Correct comm_size, or the bandwidth and latency of the network.");
    }
  }

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
    if (run_.options.replay_only || graph.num_group_slots == 0) return;
    std::vector<bool> is_new;
    for (const GroupId group : npu.groups) is_new.push_back(seen_.emplace(npu.program, group).second);
    if (std::ranges::none_of(is_new, std::identity{})) return;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      if (graph.nodes[i].kind != NodeKind::collective) continue;
      const auto use = npu.program->use_of_node(NodeId(i));
      if (is_new[use]) check_collective(npu, NodeId(i), run_.communicators[npu.groups[use].index()]);
    }
  }

  void check_collective(const npu::NpuSpec& npu, NodeId id, const communicator::CommunicatorSpec& spec) {
    const auto& node = npu.program->graph->nodes[id.index()];
    const auto kind = collective::kind_of(node.collective);
    const Bytes size(node.size);
    auto& layout = layouts_[spec.id];
    if (!layout) layout = run_.engine.layout(spec.group->members, spec.dimensions, spec.custom);
    if (!fitting_.emplace(layout.get(), kind, size).second) return;
    const auto members = static_cast<std::uint32_t>(spec.group->members.empty() ? run_.topology().num_npus()
                                                                                : spec.group->members.size());
    const auto what = fmt::format("{} of {} bytes among {} NPUs", trace::name(node.collective), node.size, members);
    const auto* const custom = run_.engine.custom_collective(*layout, kind);
    const std::string hint = fmt::format(
        "Correct comm_size{}, or the bandwidth and latency of the network.",
        custom && custom->has_fixed_sizes() ? fmt::format(" in {}", custom->file().string()) : std::string());
    if (!run_.engine.fits(*layout, kind, size))
      refuse(npu, id, fmt::format("{} takes more than {}, or moves more than {}", what, longest, most_bytes), hint);
    network::Analytical network(run_.delays);
    network.count_collective(run_.engine.traffic(*layout, kind, size), members);
    if (!network.in_range())
      refuse(npu, id, fmt::format("{} moves more than {} in all, the most that results hold", what, most_bytes), hint);
  }

  const npu::RunContext& run_;
  const trace::Store& store_;
  std::map<const npu::Program*, std::map<std::uint32_t, NodeId>> largest_sends_;  // by peer slot
  std::set<std::pair<const npu::Program*, GroupId>> seen_;
  std::map<GroupId, std::shared_ptr<const collective::GroupLayout>> layouts_;
  std::set<std::tuple<const collective::GroupLayout*, collective::Kind, Bytes>> fitting_;
};

std::string describe(const Overrun& overrun) {
  const auto since = readable(overrun.since);
  switch (overrun.quantity) {
    case Overrun::Quantity::time:
      return fmt::format("the node starts at {} and would end after more than {}", since, longest);
    case Overrun::Quantity::bytes_sent:
      return fmt::format(
          "with this node, which starts at {}, the NPU sends more than {} in all, the most that results "
          "hold",
          since, most_bytes);
    case Overrun::Quantity::peak_memory:
      return fmt::format(
          "with this node, which starts at {}, the operands in service exceed {}, the most that results "
          "hold",
          since, most_bytes);
  }
  ensure_failed("a quantity has a description", std::source_location::current());
}

}  // namespace

void check_ranges(const npu::RunContext& run, const trace::Store& store) { RangeCheck(run, store).run(); }

void require_no_overrun(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world) {
  std::vector<Overrun> mine;
  if (model.overrun()) mine.push_back(*model.overrun());
  const auto all = world.all_gather(std::span<const Overrun>(mine));
  if (all.empty()) return;
  const Overrun first = *std::ranges::min_element(all);
  world.agree([&] {
    const auto npu = std::ranges::find(model.run().npus, first.npu, &npu::NpuSpec::id);
    if (npu == model.run().npus.end()) return;
    throw Error(ErrorCode::bad_input, store.place(*npu->trace, npu->id, first.node), describe(first), {},
                "Correct the durations and sizes of the traces, or simulate fewer iterations.");
  });
}

}  // namespace orrery::check
