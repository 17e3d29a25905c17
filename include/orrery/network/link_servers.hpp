#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/hosting.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/network/link_server.hpp"
#include "orrery/network/options.hpp"
#include "orrery/network/record.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {

/// A step of a service, to tell one from another in messages.
struct StepId {
  std::uint32_t service = 0;
  std::uint32_t step = 0;
};

/// As one number, for events.
constexpr std::uint64_t packed(StepId id) { return std::uint64_t{id.service} << 32U | id.step; }
constexpr StepId unpacked(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number >> 32U), static_cast<std::uint32_t>(number)};
}

/// What the links tell NPUs, as kinds of events. Messages are kept in LinkServers.
enum class Delivery : std::uint16_t {
  arrived = 32,  ///< message `node` is there
  sent,          ///< the message of its send `node` is at its destination
  wake,          ///< service `detail` of its collective `node` goes on
};

/// What goes from an NPU to another one over the links of the congestion-aware network.
struct Message {
  enum class Kind : std::uint8_t {
    data,   ///< of a send
    grant,  ///< to the sender: a receive has been posted (rendezvous)
    step,   ///< of a collective
    word,   ///< to the sender of `step` (rendezvous)
  };

  NpuId source, destination;
  NodeId node;            ///< of the source
  std::uint32_t tag = 0;  ///< of a send; of a collective: its GroupId
  Bytes size;
  std::uint32_t ordinal = 0;  ///< of the collective in its group
  std::uint32_t service = 0;  ///< of collective::MessageProgram
  std::uint32_t step = 0;     ///< the receiver's; of a word the one of the data that it asks for
  std::uint32_t member = 0;   ///< position of the source in the group
  Kind kind = Kind::data;
  bool wants_receipt = false;  ///< of `step`: its source is woken when it is at its destination, for
  std::uint32_t own_step = 0;  ///< this step of its
  // Of a collective that a switch carries out:
  std::uint32_t parts = 0;  ///< messages to a destination that the switch makes one of; 0: it only forwards
  Bytes result = {};        ///< size of that one
  // Of cut-through, for the packet that this is.
  bool is_feeding = true;    ///< it is at the first link of its dimension, where the packet behind it follows
  std::uint64_t offset = 0;  ///< its first byte
  Time tail = {};            ///< when its last byte is there
};

/// The links of this rank, each a logical process: a server that takes messages from NPUs of its rank and from other
/// links and hands them to the next link or NPU. A link lives with the NPU that it belongs to (topology::Fabric).
class LinkServers {
 public:
  /// `npus`: of this rank, ascending. `first_lp`: of link 0. An overrun goes to `overrun` if there is no earlier one.
  LinkServers(pdes::Scheduler& kernel, const LinkDelays& delays, const Options& options, std::span<const NpuId> npus,
              const Hosting& hosting, LpId first_lp, std::optional<Overrun>& overrun);

  /// A message leaves its source, which lives here. `call` is an event of the source for stage server; this sets its
  /// target, kind and node, which it returns.
  std::uint32_t send(const Message& message, pdes::Event call);
  /// The same of one with `parts`, for all destinations that get the result, in the line of the source: its own
  /// `destination` is another NPU there.
  void multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call);
  /// A message is at a link of this rank.
  void serve(const pdes::Event& event);
  /// The message of an event is at its destination.
  Message take(const pdes::Event& event);
  /// A message has come with an event of another rank: see pdes::Model::unpack.
  void unpack(pdes::Event& event, std::span<const std::byte> bytes);

  /// Of the links of this rank that carried anything, ascending.
  std::vector<LinkRecord> records() const;

 private:
  struct Server {
    topology::Fabric::Link link;
    LinkServer server;
    std::uint64_t sequence = 0;
    // The delays of the last size: mostly those of the next message too.
    Bytes size;
    Time holds, passes;
    bool is_known = false;
  };

  Server& server_of(topology::LinkId link);
  void learn_delays(Server& server, Bytes size);
  void store_and_forward(Server& server, const pdes::Event& event);
  void cut_through(Server& server, const pdes::Event& event);
  void follow(Server& server, const Message& packet, Bytes size, Time time);
  std::optional<topology::Fabric::Link> next_of(const Server& server, const Message& message) const;
  void pass_on(Server& server, const pdes::Event& event, const std::optional<topology::Fabric::Link>& next, Time there);
  void forward(Server& server, const pdes::Event& event, const std::optional<topology::Fabric::Link>& next, Time there);
  bool combine(const pdes::Event& event);
  void lose(const pdes::Event& event);
  pdes::Event event(Server& server, Time time, pdes::Stage stage, LpId target) const;
  std::uint32_t put(const Message& message);

  pdes::Scheduler& kernel_;
  const LinkDelays& delays_;
  const topology::Fabric& fabric_;
  Options options_;
  Hosting hosting_;
  LpId first_lp_;
  std::optional<Overrun>& overrun_;
  std::vector<std::uint32_t> local_of_;                 // [num_npus] index of those that live here
  std::vector<Server> servers_;                         // [local NPUs][links of an NPU]
  std::vector<Message> messages_;                       // on their way, by the event's `node`
  std::vector<std::uint32_t> free_;                     // places in messages_
  std::map<std::uint32_t, std::vector<NpuId>> copies_;  // where messages go from a switch, by place
  /// What has come to a link from the switch for one message.
  struct Gathered {
    std::uint32_t parts = 0;
    Time tail;
  };
  /// The link, the collective's group, ordinal, service and step.
  using Gathering = std::array<std::uint32_t, 5>;
  std::map<Gathering, Gathered> gathered_;
};

}  // namespace orrery::network
