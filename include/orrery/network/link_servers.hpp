#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/slots.hpp"
#include "orrery/network/known_delays.hpp"
#include "orrery/network/link_order.hpp"
#include "orrery/network/link_server.hpp"
#include "orrery/network/model.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {

/// Makes one message of the parts that a switch combines. The parts wait at the link from the switch to their
/// destination, until the last one is there.
class SwitchCombiner {
 public:
  /// Takes a part that is at a link. Returns the message that goes on, if this is the last part. O(log messages).
  std::optional<Message> add(LpId link, const Message& part);
  /// Returns whether parts wait for others.
  bool empty() const { return waiting_.empty(); }
  /// Writes the parts that wait at a link, or reads some and adds them.
  void serialize(LpId link, Archive& archive);

 private:
  /// The parts of one message that are there.
  struct Parts {
    std::uint32_t count = 0;
    LastArrival last;
    Time tail;  ///< the latest Message::Packet::tail of these parts
  };
  /// The link, and the collective's group, ordinal, service and step.
  using Key = std::array<std::uint32_t, 5>;

  std::map<Key, Parts> waiting_;
};

/// The links of one rank in the congestion-aware network, each a logical process: a server that takes messages from
/// NPUs of its rank and from other links, and hands them to the next link or NPU (docs/network.md). A link lives with
/// the NPU that it belongs to. `Links` are the links of shapes (ShapeLinks) or of a graph (GraphLinks).
template <class Links>
class LinkServers final : public MessageNetwork {
 public:
  /// The links must outlive it.
  LinkServers(const Links& links, const Options& options, const RankPart& part);

  void send(const Message& message, pdes::Event call) override;
  void send_in_order(const Message& message, pdes::Event call, const EventPlace& place) override;
  void multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) override;
  Time drained(NpuId npu, std::uint32_t before, std::uint32_t after, Time now) const override;
  void serve(const pdes::Event& event) override;
  pdes::Scope scope(const pdes::Event& event) const override { return messages_[event.node].scope; }
  void settle() override;
  Message take(const pdes::Event& event) override { return messages_.take(event.node); }
  EventPlace take_place(const pdes::Event& event) override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  Rank host_of(LpId process) const override;
  std::vector<LpId> used() override;
  std::vector<std::byte> pack(const pdes::Event& event) const override;
  void serialize(LpId process, Archive& archive) override;
  std::vector<LinkRecord> records() const override;

 private:
  using Link = topology::Fabric::Link;
  static constexpr std::uint32_t no_kind = ~0U;
  struct Server {
    Link link;
    LinkServer server;
    std::uint64_t sequence = 0;
    std::uint32_t kind = no_kind;  ///< index into delays_, once a message has come
    // With Rules::orders_messages.
    std::uint32_t num_here = 0;  ///< messages that have come at the present time
    EventPlace last = {};        ///< place of what handed on the message of its last service
  };

  /// A message that has come to a link at the present time.
  struct Arrival {
    Server* server;
    pdes::Event event;
    EventPlace place = {};  ///< place of what it would hand over
  };

  Server& server_of(LpId link);
  std::uint32_t put(const Message& message);
  std::uint32_t put_into(const Message& message, pdes::Event call);
  bool wait_for_parts(const pdes::Event& event);
  bool is_ordered(const Message& message) const;
  void unpack_in_order(pdes::Event& event, std::span<const std::byte> bytes);
  std::vector<std::byte> packed_in_order(std::uint32_t slot) const;
  KnownDelays::Delays delays(Server& server, Bytes size, std::uint32_t circuits);
  Server& least_waiting(Server& regular, const pdes::Event& event);
  bool fails_before(Server& server, const pdes::Event& event);
  void store_and_forward(Server& server, const pdes::Event& event);
  void cut_through(Server& server, const pdes::Event& event);
  void pass_request(Server& server, const pdes::Event& event);
  Bytes packet_size(const Message& packet) const;
  void send_next_packet(Server& server, std::uint32_t slot, Bytes size, Time time);
  std::optional<Link> next_link(const Server& server, const Message& message, Time there) const;
  void pass_on(Server& server, const pdes::Event& event, const std::optional<Link>& next, Time there);
  void pass_copies_on(Server& server, const pdes::Event& event, std::span<const NpuId> destinations, Time there);
  void hand_over(Server& server, std::uint32_t slot, const std::optional<Link>& next, Time there);
  void give_receipt(Server& server, std::uint32_t slot, Time there);
  void note_overrun(const pdes::Event& event);
  LpId lp(topology::LinkId link) const { return LpId(part_.first_process.value() + links_.process_of(link)); }
  LpId lp(const Link& link) const { return lp(link.id); }
  pdes::Event event(Server& server, Time time, pdes::Stage stage, LpId target) const;

  const Links& links_;
  Options options_;
  RankPart part_;
  std::vector<std::uint32_t> first_server_;  // [num_npus] index of an NPU's first server; only of those that live here
  std::vector<Server> servers_;              // by local NPU, then by number among its links
  std::map<typename Links::Kind, std::uint32_t> kinds_;  // of links that messages have come to
  KnownDelays delays_;                                   // by these
  Slots<Message> messages_;                              // that are under way; events carry their slots
  LinkOrder order_;
  std::map<std::uint32_t, std::vector<NpuId>> copies_;  // by slot: where a switch hands copies of the message
  SwitchCombiner combiner_;
  std::vector<Arrival> arrivals_;  // of messages that are put in order
};

}  // namespace orrery::network
