#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "activity.hpp"
#include "communicators.hpp"
#include "lookahead.hpp"
#include "matcher.hpp"
#include "orrery/device/remote_memory.hpp"
#include "orrery/executor/kinds.hpp"
#include "orrery/executor/options.hpp"
#include "orrery/executor/program.hpp"
#include "orrery/executor/record.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::executor {

/// What the NPUs of a rank share and call.
struct Surroundings {
  pdes::Kernel& kernel;
  pdes::Model& model;  ///< hears of events for NPUs of this rank as of delivered ones
  network::Analytical& network;
  Communicators& communicators;
  const device::RemoteMemory& memory;
  const Options& options;
  std::span<const Rank> host_of_npu;     ///< [num_npus]
  std::span<const Rank> host_of_server;  ///< [num_servers]
  LpId first_server;                     ///< LP of server 0
  Rank here;
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
    std::uint8_t resource = 0;
  };
  /// A receive that has been posted and waits for its message.
  struct Posted {
    NodeId node;
    Time since;
  };

  /// `overrun` becomes this NPU's if it has an earlier one.
  Npu(NpuId id, const trace::NpuTrace& trace, const Lookahead& lookahead, std::vector<Communicators::Seat> seats,
      std::optional<Overrun>& overrun);

  /// At time 0, before the first settle: what depends on nothing is ready.
  void start(const Options& options);
  void complete(NodeId node, Time now);
  void receive_data(const pdes::Event& event);
  void receive_grant(const pdes::Event& event, const Surroundings& around);
  void settle(Time now, const Surroundings& around);

  /// A running node's finish has become known (its event is scheduled or delivered); max() if it is out of range.
  void announce(NodeId node, Time finish, Bytes sent);
  /// A message or a grant for this NPU is in the pending set.
  void expect_message(Time time) {
    ++messages_expected_;
    if (time < first_message_) first_message_ = time;
  }

  NpuId id() const { return id_; }
  LpId lp() const { return LpId(id_.value()); }
  bool is_done() const { return completed_ == iterations_ * program_.graph->num_nodes(); }
  std::uint64_t completed() const { return completed_; }
  pdes::Horizon horizon(const Options& options) const;

  /// The run ends before this NPU does: its times count up to `now`.
  void stop(Time now);
  NpuRecord record() const;
  /// Appends what this NPU waits for.
  void list_waits(const Communicators& communicators, std::vector<Wait>& waits) const;
  const std::vector<TimelineRecord>& timeline() const { return timeline_; }

 private:
  enum Resource : std::uint8_t { cpu = 0, compute = 1, communication = 2, unlimited = 3 };
  static constexpr std::size_t num_resources = 4;

  const trace::Node& node(NodeId id) const { return program_.graph->nodes[id.index()]; }
  static Resource resource_of(trace::NodeKind kind);
  static Work work_of(trace::NodeKind kind);

  bool is_recorded() const { return iteration_ < record_iterations_; }
  void begin_iteration(Time now);
  Time compute_time(NodeId id, const Options& options) const;
  void release_successors(NodeId id);
  void finish_node(NodeId id, Time start, Time now);
  void issue(NodeId id, Time now, const Surroundings& around);
  void take_until(NodeId id, Time now, Time finish, const Surroundings& around);
  void issue_send(NodeId id, Time now, const Surroundings& around);
  void issue_receive(NodeId id, Time now, const Surroundings& around);
  void issue_access(NodeId id, Time now, const Surroundings& around);
  void transfer(NodeId id, Time now, const Surroundings& around);
  void require_size(NodeId id, Bytes size) const;
  Running& running_node(NodeId id);
  void to_npu(NpuId target, EventKind kind, Time time, std::uint32_t tag, std::uint64_t detail,
              const Surroundings& around);
  NpuId peer_of(NodeId id) const { return trace_.peers[node(id).slot]; }
  std::uint32_t tag_of(NodeId id) const { return static_cast<std::uint32_t>(trace_.tags[node(id).detail]); }
  Time least_lead(Resource resource, const Distances& distances) const;
  pdes::Reach reach(const Distances& distances, Time receive_tail, bool rendezvous) const;
  void begin_operands(NodeId id, Time now);
  void count_sent(NodeId id, Time now, Bytes sent);
  void note_overrun(NodeId id, Time since, Overrun::Quantity quantity);

  NpuId id_;
  const trace::NpuTrace& trace_;
  const Program& program_;
  const Lookahead& lookahead_;
  std::vector<Communicators::Seat> seats_;  // [uses]
  std::optional<Overrun>& overrun_;         // of the rank
  std::vector<std::uint16_t> missing_;      // [num_nodes] dependencies; wide_ holds what does not fit
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wide_;
  std::array<std::vector<std::uint32_t>, num_resources> ready_;  // heaps, lowest id on top
  std::array<std::uint32_t, num_resources> free_{};
  std::vector<Running> running_;
  std::vector<std::uint32_t> released_;  // work list of finish_node
  std::vector<NodeId> instantly_;        // done in the same settle
  Matcher<Posted, Bytes> receives_;      // posted, or arrived (size)
  Matcher<Running, Time> grants_;        // sends that wait, or granted (rendezvous)
  std::uint64_t completed_ = 0;
  std::uint64_t iterations_ = 1, record_iterations_ = 1, iteration_ = 0;
  std::uint64_t sequence_ = 0;
  Time finish_;
  Activity activity_;
  Bytes sent_, operands_, peak_operands_;
  // For the horizon: bounds that are exact whenever nothing of their kind is outstanding.
  std::uint32_t posted_receives_ = 0, messages_expected_ = 0;
  Time receive_send_tail_ = Time::max(), receive_call_tail_ = Time::max(), first_message_ = Time::max();
  bool settled_ = false;  ///< has issued its first nodes
  bool keep_timeline_ = false;
  std::vector<TimelineRecord> timeline_;
};

}  // namespace orrery::executor
