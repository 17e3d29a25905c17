#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/network/model.hpp"
#include "shape_graph.hpp"

namespace orrery::network {

/// The packet network of a topology, as all ranks know it. NPU i is host i, which is node i.
class PacketPlan {
 public:
  /// The topology must outlive it. Throws Error (bad_input) for what packets cannot pass, and for two NPUs without a
  /// way between them.
  PacketPlan(const topology::Topology& topology, const Options& options);

  PacketSystem system() const { return {*graph_, rules_, *router_, failures_, trees_ ? &*trees_ : nullptr}; }
  /// Returns the tree in which the NPUs of a group reduce a chunk. O(members log members) beside the look-up.
  std::uint32_t tree_of(const Message& message, std::vector<NpuId> members) const;
  const PacketGraph& graph() const { return *graph_; }
  const PacketRules& rules() const { return rules_; }
  FlowWindows::Window window_of(const PacketRouter::FlowKey& key) const { return windows_->find(key); }
  Time least_relay() const { return least_relay_; }
  /// Returns the least of the times from a node to a node of another rank, where `of_node` has the ranks of all nodes.
  Time least_relay_between(std::span<const Rank> of_node) const;
  const PacketRecording& recording() const { return recording_; }
  /// Returns what the results say of a port, as far as its place in the network goes.
  LinkRecord describe(std::uint32_t node, std::uint32_t port) const;

 private:
  void use_shapes(const topology::Topology& topology, const Options& options);
  void use_graph(const GivenGraph& given, std::uint32_t num_npus);
  void add_trees(std::span<const ReductionGroup> groups);

  PacketRules rules_;
  PacketRecording recording_;
  std::optional<topology::Fabric> fabric_;  // fabric of shapes
  std::optional<ShapeGraph> shape_;
  PacketGraph given_;                      // graph of the user
  std::vector<std::uint32_t> first_port_;  // [nodes] of that graph, counting the ports of all nodes
  std::vector<LinkFailure> failures_;
  const PacketGraph* graph_ = &given_;
  std::optional<PacketRouter> router_;
  std::optional<FlowWindows> windows_;
  std::optional<ReductionTrees> trees_;  // none: no switch reduces
  std::map<std::pair<GroupId, std::vector<NpuId>>, std::uint32_t> first_tree_of_;
  Time least_relay_;
};

/// The messages of NPUs of one rank as flows over the hosts and switches of the rank. A message is announced to the
/// rank of its destination when it begins, because packets do not carry it.
class PacketMessages final : public MessageNetwork, private PacketUser {
 public:
  /// The plan must outlive it.
  PacketMessages(const PacketPlan& plan, const RankPart& part);

  void start() override { devices_->start(); }
  void send(const Message& message, pdes::Event call) override;
  void multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) override;
  void serve(const pdes::Event& event) override { devices_->serve(event); }
  void prefetch(const pdes::Event& event) const override { devices_->prefetch(event); }
  void settle() override { devices_->settle(); }
  Message take(const pdes::Event& event) override { return messages_.take(event.node); }
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  Rank host_of(LpId process) const override;
  std::vector<LpId> used() override;
  std::vector<std::byte> pack(const pdes::Event& event) const override;
  void serialize(LpId process, Archive& archive) override;
  std::vector<LinkRecord> records() const override;
  PacketRecords packet_records() const override;
  std::vector<CreditWait> credit_waits() const override;
  std::string find_leak() const override;

 private:
  enum Kind : std::uint16_t { begin = NodeEvents::first_kind_of_user, announcement, begin_reduction };

  // PacketUser.
  void received(const FlowId& flow) override;
  void acknowledged(const FlowId& flow) override;
  void told_acknowledged(const FlowId& flow) override;
  void reduced(std::uint32_t tree, std::uint32_t host, std::uint64_t number, const LastArrival& last) override;
  void wake(const pdes::Event& event) override;

  bool has_message(const pdes::Event& event) const;
  void begin_flow(const Message& message);
  void reduce(std::uint32_t slot, std::uint32_t tree);
  void record(const FlowId& id, const Message& message, const PacketRouter::FlowKey& key);
  void deliver(const FlowId& flow);
  void tell_npu(std::uint32_t npu, std::uint16_t kind, std::uint32_t node, std::uint64_t detail);

  /// The event by which the source of a message learns that all of it is acknowledged.
  struct Receipt {
    bool is_wanted = false;
    std::uint16_t kind = 0;
    std::uint32_t node = 0;
    std::uint64_t detail = 0;
  };

  /// A host's part in an operation of a tree.
  struct ReductionKey {
    std::uint32_t host = 0, tree = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const ReductionKey&, const ReductionKey&) = default;
  };

  const PacketPlan& plan_;
  RankPart part_;
  std::vector<Rank> of_node_;
  Time announced_after_;  // the begin of a message, on another rank
  std::unique_ptr<PacketDevices> devices_;
  std::vector<std::uint32_t> num_sent_;                        // [NPUs]
  Slots<Message> messages_;                                    // messages that begin, or have come
  std::unordered_map<std::uint64_t, std::uint32_t> incoming_;  // slots, by source and number
  std::unordered_map<std::uint64_t, Receipt> outgoing_;        // by source and number
  std::map<ReductionKey, std::uint32_t> reducing_;             // slots
  std::vector<FlowRecords> recorded_;                          // [NPUs] of messages from and to each; empty: none are

  /// Entries of the maps by the hosts to which they belong in a checkpoint, ascending.
  template <class Value>
  using ByHost = std::vector<std::pair<std::uint32_t, std::pair<std::uint64_t, Value>>>;
  ByHost<std::uint32_t> saved_incoming_;
  ByHost<Receipt> saved_outgoing_;
};

}  // namespace orrery::network
