#include "contention.hpp"

#include <algorithm>

#include "gpu_system.hpp"
#include "held_units.hpp"
#include "orrery/collective/kind.hpp"
#include "shared_sms.hpp"
#include "shared_units.hpp"
#include "yielding.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

/// What the options let contend.
struct Contenders {
  explicit Contenders(const Execution& npu) {
    const Context& context = npu.context();
    yield = context.streams.num_sets > 0 && !npu.npu().program->graph->priorities.empty() &&
            context.services.links == nullptr;
    share_units = context.options.compute.collectives_share.any();
    hold_units = context.options.compute.experts_share > 0;
    share_sms = context.gpus != nullptr && context.gpus->options.compute_share;
  }
  bool any() const { return yield || share_units || hold_units || share_sms; }

  bool yield;        ///< collectives to others, for bandwidth
  bool share_units;  ///< collectives and compute nodes
  bool hold_units;   ///< exchanges of experts, from their begins to their ends
  bool share_sms;    ///< thread blocks and compute nodes
};

/// Nodes that contend.
class NodeContention final : public Contention {
 public:
  NodeContention(Execution& npu, const std::vector<communicator::Membership>& memberships, const Contenders& those)
      : npu_(npu),
        memberships_(memberships),
        those_(those),
        yielding_(those.yield ? npu.context().streams.num_sets : 0),
        held_(npu.context().options.compute.experts_share),
        sms_([&npu](NodeId id, std::uint32_t held) { return npu.context().gpus->stretch(npu.node(id), held); }) {
    if (those.yield) find_sets_that_yield();
    contending_.compute = contending_.collectives = those.share_units || those.hold_units || those.share_sms;
  }

  bool depends_on_events() const override { return those_.share_units || those_.hold_units; }

  std::optional<Time> begin_compute(NodeId id, Time takes, Time now) override {
    const bool is_compute = npu_.node(id).kind == NodeKind::compute;
    if (those_.hold_units && is_compute) held_.begin_compute(id, now);
    if (!those_.share_sms || !is_compute || takes == Time::zero()) return now + takes;
    const Time finish = sms_.begin(id, takes, now);
    return finish == Time::max() ? std::optional<Time>() : finish;
  }

  void begin_transfer(NodeId id, Time now) override {
    if (holds_units(id))
      held_.begin_exchange(now);
    else if (those_.share_units)
      shared_.begin_transfer();
  }

  void begin_yielding(NodeId id, Time now) override {
    if (yields(id)) yielding_.begin(set_of(id), tier_of(*npu_.npu().program->graph, id), id, now);
  }

  bool defer(NodeId id, Time now) override {
    const NodeKind kind = npu_.node(id).kind;
    // A node whose end has changed has several events, of which one counts.
    if (those_.share_sms && kind == NodeKind::compute && !sms_.end(id, now)) return true;
    Time owed = Time::zero();
    if (kind == NodeKind::compute)
      owed = owed_to_compute(id, now);
    else if (kind == NodeKind::collective && membership(id).members > 1)
      owed = owed_to_collective(id, now);
    if (owed > Time::zero()) {
      npu_.end_at(id, now, now + owed);
      return true;
    }
    if (holds_units(id)) held_.end_exchange(now);
    return false;
  }

  void end_transfer(NodeId id, Time now) override {
    if (!those_.share_units || holds_units(id)) return;
    const Time since = npu_.running(id).last.time;
    Time beside = Time::zero();
    for (const RunningNode& running : npu_.all_running())
      if (npu_.node(running.node).kind == NodeKind::compute && running.start < now)
        beside += now - std::max(running.start, std::min(since, now));
    shared_.end_transfer(since, beside, share_of(id));
  }

  void hold_sms(std::uint32_t sms, Time now) override {
    if (!those_.share_sms) return;
    for (const auto& [id, finish] : sms_.hold(sms, now)) {
      npu_.running(id).finish = finish;
      if (finish < Time::max()) npu_.end_at(id, now, finish);
    }
  }

  void serialize(Archive& archive) override {
    if (those_.yield) archive(yielding_);
    if (those_.share_units) archive(shared_);
    if (those_.hold_units) archive(held_);
  }
  void serialize_sms(Archive& archive) override {
    if (those_.share_sms) archive(sms_);
  }

 private:
  /// Finds the sets of dimensions in which some collectives of this NPU are in a tier that yields. In the others
  /// nothing is ever owed.
  void find_sets_that_yield() {
    const DimensionStreams& streams = npu_.context().streams;
    const std::vector<std::uint8_t>& tiers = streams.tiers.at(npu_.npu().program);
    const auto set_of_use = [&](std::size_t use) { return streams.of_group[npu_.npu().groups[use].index()]; };
    for (std::size_t use = 0; use < tiers.size(); ++use) {
      bool any = false;
      for (std::size_t other = 0; other < tiers.size(); ++other)
        any = any || (set_of_use(other) == set_of_use(use) && tiers[other] > 1);
      contending_.uses.push_back(any);
    }
  }

  /// Returns whether a collective is of a set in which some yield.
  bool yields(NodeId id) const { return those_.yield && contending_.uses[npu_.npu().program->use_of_node(id)]; }

  /// Returns how much later a collective ends because it yields. One that ends counts for those that do, and for
  /// compute nodes.
  Time owed_to_collective(NodeId id, Time now) {
    if (yields(id)) {
      const Time since = npu_.running(id).last.time;
      const std::size_t tier = tier_of(*npu_.npu().program->graph, id);
      if (const Time owed = yielding_.take_owed(set_of(id), tier, id, since, now); owed > Time::zero()) return owed;
    }
    end_transfer(id, now);
    return Time::zero();
  }

  /// Returns how much later a compute node ends because collectives took compute units.
  Time owed_to_compute(NodeId id, Time now) {
    if (those_.hold_units)
      if (const Time owed = held_.take_owed(id, now); owed > Time::zero()) return owed;
    if (!those_.share_units) return Time::zero();
    const Time owed = shared_.take_owed();
    if (owed == Time::zero())
      shared_.count_compute(npu_.running(id).start, now);
    else if (those_.hold_units)
      held_.begin_compute(id, now);  // it goes on
    return owed;
  }

  /// Returns the share of the compute units that a collective takes.
  double share_of(NodeId id) const {
    const compute::CollectivesShare& share = npu_.context().options.compute.collectives_share;
    if (!share.of_channels) return share.fixed;
    const trace::Node& node = npu_.node(id);
    return share.of(npu_.context().services.communicators.num_channels(
        membership(id), collective::kind_of(node.collective), Bytes(node.size)));
  }

  /// Says whether a node is an exchange of experts that holds compute units.
  bool holds_units(NodeId id) const {
    if (!those_.hold_units) return false;
    const trace::Node& node = npu_.node(id);
    return node.kind == NodeKind::collective && collective::is_of_experts(collective::kind_of(node.collective)) &&
           membership(id).members > 1;
  }

  const communicator::Membership& membership(NodeId id) const {
    return memberships_[npu_.npu().program->use_of_node(id)];
  }
  /// Returns the set of dimensions in which a collective takes its turns.
  std::size_t set_of(NodeId id) const {
    const GroupId group = npu_.npu().groups[npu_.npu().program->use_of_node(id)];
    return npu_.context().streams.of_group[group.index()] - std::size_t{1};
  }

  Execution& npu_;
  const std::vector<communicator::Membership>& memberships_;
  Contenders those_;
  Yielding yielding_;
  SharedUnits shared_;
  HeldUnits held_;
  SharedSms sms_;
};

}  // namespace

std::unique_ptr<Contention> make_contention(Execution& npu, const std::vector<communicator::Membership>& memberships) {
  const Contenders contenders(npu);
  if (!contenders.any()) return std::make_unique<Contention>();
  return std::make_unique<NodeContention>(npu, memberships, contenders);
}

}  // namespace orrery::npu
