#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "activity.hpp"
#include "event_kind.hpp"
#include "lookahead.hpp"
#include "matcher.hpp"
#include "orrery/base/countdowns.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/collective/member_run.hpp"
#include "orrery/communicator/communicators.hpp"
#include "orrery/memory/local_memory.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/network/message.hpp"
#include "orrery/npu/npus.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "ready_nodes.hpp"

namespace orrery::npu {

/// What the NPUs of a rank share and call.
struct Context {
  Services services;
  const memory::RemoteMemory& memory;
  const Options& options;
  Hosting hosting;
  LpId first_server;  ///< LP of server 0
  const std::function<Place(NpuId, std::uint64_t node)>& place_of;
};

/// One NPU's execution of its trace: a small state machine. Completions and messages come as events; `settle` then lets
/// every free resource take the ready node with the lowest id.
class Npu {
 public:
  /// A node that is under way on a resource.
  struct Running {
    NodeId node;
    Time start;
    Time finish = Time::max();  ///< max() = not known yet
    std::uint16_t resource = 0;
  };
  /// A receive that has been posted and waits for its message.
  struct Posted {
    NodeId node;
    Time since;
  };

  /// `overrun` becomes this NPU's if it has an earlier one.
  Npu(const NpuSpec& spec, const Lookahead& lookahead, std::vector<communicator::Communicators::Seat> seats,
      std::optional<Overrun>& overrun);

  /// At time 0, before the first settle: what depends on nothing is ready.
  void start(const Options& options);
  void complete(NodeId node, Time now);
  /// The message of a posted receive is there.
  void receive(NodeId node, Time posted, Time now);
  /// The data of a send leave now.
  void transfer(NodeId node, Time now, const Context& context);
  void settle(Time now, const Context& context);

  // Over the links of the congestion-aware network.
  /// A message is there. Whether it changes what the NPU does next.
  bool arrive(const network::Message& message, const pdes::Event& event, const Context& context);
  /// A service of the collective `node` goes on: likewise.
  bool wake(NodeId node, network::StepId step, Time now, const Context& context);

  /// A running node's finish has become known; max() if it is out of range.
  void announce(NodeId node, Time finish, Bytes sent);
  /// A message or a grant comes to be known, before its time or after it. See pdes::Model::admit.
  bool admit(pdes::Event& event, const Context& context);
  /// Nodes are under way whose end is not known; or `settle` broke off, and does not know yet what it has to.
  pdes::Awaited awaits() const;

  NpuId id() const { return id_; }
  LpId lp() const { return LpId(id_.value()); }
  bool is_done() const { return completed_ == iterations_ * program_.graph->num_nodes(); }
  std::uint64_t completed() const { return completed_; }
  pdes::Horizon horizon() const;

  /// The run ends before this NPU does: its times count up to `now`.
  void stop(Time now);
  NpuRecord record() const;
  /// Appends what this NPU waits for.
  void list_waits(const communicator::Communicators& communicators, std::vector<Wait>& waits) const;
  /// In the order of completion. The group is an index into NpuSpec::groups.
  const std::vector<TimelineRecord>& timeline() const { return timeline_; }
  /// None if no node lists a tensor.
  const memory::LocalMemory* local_memory() const { return local_memory_.get(); }

 private:
  enum Resource : std::uint16_t { cpu = 0, compute = 1, communication = 2, unlimited = 3 };
  static constexpr std::size_t num_resources = 4;  ///< then come the streams of the trace

  const trace::Node& node(NodeId id) const { return program_.graph->nodes[id.index()]; }
  std::uint16_t resource_of(NodeId id) const;
  void make_ready(NodeId id, Time now);
  bool has_ready(std::size_t resource) const;
  NodeId take_ready(std::size_t resource);

  bool is_recorded() const { return iteration_ < record_iterations_; }
  void begin_iteration(Time now);
  Time compute_time(NodeId id, const Options& options) const;
  void release_successors(NodeId id, Time now);
  void finish_node(NodeId id, Time start, Time now);
  void issue(NodeId id, Time now, const Context& context);
  void take_until(NodeId id, Time now, Time finish, const Context& context);
  void issue_send(NodeId id, Time now, const Context& context);
  void issue_receive(NodeId id, Time now, const Context& context);
  void issue_access(NodeId id, Time now, const Context& context);
  bool resolve(NodeId receive);
  bool admit_data(pdes::Event& event, const Context& context);
  bool admit_grant(pdes::Event& event, const Context& context);
  void match(pdes::Event& message, NodeId receive, Time posted, const Context& context);
  void receive_instantly(const pdes::Event& message, NodeId id, Time now, const Context& context);
  void require_size(NodeId id, Bytes size, const Context& context) const;
  /// A collective that this NPU has joined and that goes over the links.
  struct Joined {
    GroupId group;
    std::uint32_t ordinal = 0;
    NodeId node;
    communicator::Communicators::Seat seat;
    collective::MemberRun run;
    bool is_over = false;  ///< for this NPU; others will still ask for data
  };
  class LinkHands;
  void send_over_links(NodeId id, Time now, const Context& context);
  void receive_over_links(NodeId id, Time now, const Context& context);
  void join_over_links(NodeId id, Time now, const Context& context);
  void put_on_links(const network::Message& message, Time now, const Context& context);
  void tell_over_links(NodeId id, network::Message::Kind kind, Bytes size, Time now, const Context& context);
  bool is_over_links(NodeId id) const;
  pdes::Event link_call(Time now);
  void part_from(Joined& joined, Time now, const Context& context);
  bool leave_if_done(Joined& joined, Time now, const Context& context);
  Running& running_node(NodeId id);
  pdes::Event event(Time time, pdes::Stage stage, LpId target, EventKind kind, std::uint32_t node,
                    std::uint64_t detail = 0);
  void send(NodeId id, EventKind kind, Time time, std::uint64_t detail, const Context& context);
  /// Whose message, or grant, and of which tag, it is to this NPU.
  Conversation conversation_of(const pdes::Event& event) const {
    if (!folded_) return {NpuId(event.source().value()), event.node};
    const auto& stream = folded_->streams->all[event.node];
    return {trace_.peers[stream.peer_slot], static_cast<std::uint32_t>(trace_.tags[stream.tag_slot])};
  }
  pdes::Awaited awaited_from(NpuId peer, const Context& context) const;
  pdes::Awaited awaited_by(NodeId id) const;
  NpuId peer_of(NodeId id) const { return trace_.peers[node(id).slot]; }
  std::uint32_t tag_of(NodeId id) const { return static_cast<std::uint32_t>(trace_.tags[node(id).detail]); }
  Time least_lead(std::size_t resource, const Distances& distances) const;
  pdes::Reach reach(const Distances& distances, Time posted, Time arriving) const;
  void begin_operands(NodeId id, Time now);
  void count_sent(NodeId id, Time now, Bytes sent);
  void note_overrun(NodeId id, Time since, Overrun::Quantity quantity);

  NpuId id_;
  const trace::NpuTrace& trace_;
  const Program& program_;
  const Lookahead& lookahead_;
  const FoldedNpu* folded_;                               // none: it stands for itself
  std::vector<communicator::Communicators::Seat> seats_;  // [uses]
  std::optional<Overrun>& overrun_;                       // of the rank
  Countdowns missing_;                                    // [num_nodes] dependencies
  std::vector<ReadyNodes<std::uint32_t>> ready_;          // [resources]
  // Communication, unless its order is that of ids: by rank.
  ReadyNodes<std::pair<std::int64_t, std::uint32_t>> ranked_;
  CommOrder comm_order_ = CommOrder::lowest_id;
  std::vector<std::uint32_t> free_;  // [resources] places
  std::vector<Running> running_;
  std::vector<std::uint32_t> released_;    // work list of finish_node
  std::vector<NodeId> instantly_;          // done in the same settle
  std::vector<NodeId> over_;               // scratch
  Matcher<Posted, pdes::Event> receives_;  // posted, or messages that nobody waits for yet
  Matcher<NodeId, pdes::Event> grants_;    // sends that wait, or grants that none waits for yet (rendezvous)
  double speed_ = 1;
  std::uint64_t completed_ = 0;
  std::uint64_t iterations_ = 1, record_iterations_ = 1, iteration_ = 0;
  std::uint64_t sequence_ = 0;
  Time finish_;
  memory::MemoryServer own_memory_;  // if none is shared
  Activity activity_;
  Bytes sent_, operands_, peak_operands_;
  std::unique_ptr<memory::LocalMemory> local_memory_;
  /// Nodes under way whose end is not known, by what it hangs on.
  struct Unknown {
    std::uint32_t here = 0, sends = 0, replies = 0;

    void add(const pdes::Awaited& awaited) {
      here += awaited.here;
      sends += awaited.sends;
      replies += awaited.replies;
    }
    void remove(const pdes::Awaited& awaited) {
      ensure(here >= awaited.here && sends >= awaited.sends && replies >= awaited.replies,
             "what was not awaited becomes known");
      here -= awaited.here;
      sends -= awaited.sends;
      replies -= awaited.replies;
    }
    pdes::Awaited awaited() const { return {here > 0, sends > 0, replies > 0}; }
  };
  Unknown unknown_;
  // This NPU is ahead of what is certain and has posted receives whose messages, for all it knows, are there already:
  // then they end at once, and `settle` cannot go on before it is known.
  struct Doubt {
    NodeId receive;
    pdes::Awaited awaited;
  };
  bool broke_off_ = false;
  std::vector<Doubt> doubts_;
  /// For the horizon, of receives: bounds that are exact whenever there are none.
  struct Receives {
    std::uint32_t count = 0;
    Time sends = Time::max(), calls = Time::max(), relays = Time::max();  ///< least time to what others may notice

    void add(Time to_send, Time to_call, Time to_relay = Time::max()) {
      ++count;
      sends = std::min(sends, to_send);
      calls = std::min(calls, to_call);
      relays = std::min(relays, to_relay);
    }
    void remove() {
      if (--count == 0) *this = {};
    }
  };
  std::span<const GroupId> groups_;              // [uses]
  std::vector<std::unique_ptr<Joined>> joined_;  // under way over the links
  std::vector<network::Message> early_;          // of collectives that it has not joined
  Receives posted_;                              // from the message on
  Receives arriving_;                            // absolute times: the message is known and on its way
  bool settled_ = false;                         ///< has issued its first nodes
  bool keep_timeline_ = false;
  std::vector<TimelineRecord> timeline_;
};

}  // namespace orrery::npu
