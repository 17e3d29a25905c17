#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/last_arrival.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/communicator/event_places.hpp"
#include "orrery/communicator/report.hpp"
#include "orrery/communicator/setup.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/communicator/window.hpp"

namespace orrery::communicator {

/// What a participant joins a communicator with: which of this rank's communicators, and which of its participants
/// there.
struct Membership {
  std::uint32_t communicator = 0;        ///< index into the communicators with participants on this rank
  std::uint32_t participant = 0;         ///< index into the participants of this rank
  std::uint32_t members = 0;             ///< number in the whole group
  std::uint32_t local_participants = 0;  ///< number on this rank
  std::uint32_t position = 0;            ///< place in the group, with Execution::by_members
  bool is_remote = false;                ///< participants, or the host, are on other ranks
  bool is_subgroup = false;              ///< see collective::Options::endpoint_delay_of
};

/// How a participant joins the next collective of a communicator.
struct Join {
  NpuId npu;
  NodeId node;
  std::uint64_t node_id = 0;  ///< the trace's own, for messages
  collective::Kind kind = collective::Kind::barrier;
  Bytes size;
  Time now;
  bool is_recorded = true;
  Time recorded = Time::zero();  ///< duration that the participant recorded; zero: none
  collective::Turn turn = {};    ///< turn of the participant, over all its communicators
  JoinPlace place = {};          ///< known with Setup::knows_places
};

/// What a participant waits in, for the report of a stuck run.
struct JoinedCollective {
  GroupId group;
  std::uint32_t ordinal = 0;
  std::uint32_t members = 0;
};

/// The end of a participant's part in a collective, once it is known.
struct Completion {
  NpuId npu;
  NodeId node;
  Time time;                ///< max() if it is out of range
  Bytes sent;               ///< data that the participant sent in all
  LastArrival last;         ///< last arrival of the participants
  std::uint64_t event = 0;  ///< pdes::Event::order of the end
  EndPlace place = {};      ///< known with Setup::knows_places
};

/// The member side of the communicators of a rank. Participants of this rank join here. When the last of them has
/// joined, their arrival times go to the communicator's host as one report. The host's answer becomes one event for
/// each participant.
class MemberSide {
 public:
  /// Tells of a completion, whose event has been scheduled.
  using Announce = std::function<void(const Completion&)>;

  MemberSide(const Setup& setup, SendReport send, Announce announce);

  /// Returns what an NPU of this rank joins the group with. Throws Error (internal) if the NPU is no member of it.
  Membership membership(GroupId group, NpuId npu) const;
  /// Returns what a participant of a folded run joins the group with, by its index into Representatives::npus.
  Membership membership(GroupId group, std::uint32_t representative) const;

  /// Joins the next collective. Returns which of the communicator's collectives it is. Throws Error (bad_input) if
  /// members do not agree on what they do.
  std::uint32_t join(const Membership& membership, const Join& join);
  /// Returns what Join::turn is after such a collective.
  collective::Turn turn_after(const Membership& membership, const Join& join) const;
  /// Joins the next access to memory that the members of the group do together. Returns which of the communicator's
  /// accesses it is.
  std::uint32_t join_access(const Membership& membership) {
    return communicators_[membership.communicator].accesses[membership.participant]++;
  }

  /// Returns collective::LibraryEffect::num_channels of a collective of a communicator that the participant is in.
  std::uint32_t num_channels(const Membership& membership, collective::Kind kind, Bytes size);

  // With Execution::by_members.
  /// Returns the member of the group at this position.
  NpuId member(const Membership& membership, std::uint32_t position) const {
    return communicators_[membership.communicator].spec.member(position);
  }
  /// Returns the messages of a collective of a communicator that the participant is in.
  std::shared_ptr<const collective::MessageProgram> script(const Membership& membership, collective::Kind kind,
                                                           Bytes size, collective::Turn turn) const;
  /// Returns the turn of a collective that the participant has joined.
  collective::Turn turn(const Membership& membership, std::uint32_t ordinal) const {
    return communicators_[membership.communicator].pending.at(ordinal).turn;
  }
  /// Tells that the participant is through with the collective that it joined.
  void leave(const Membership& membership, std::uint32_t ordinal, Time now);

  /// Ends a time: all joins of it have been made. Tells hosts of collectives that have begun here, or earlier than they
  /// were told, but are not complete, because what hosts promise rests on the first arrival.
  void settle();
  /// Takes in a report of kind `completions`.
  void complete(const Report& report, std::span<const Time> times);

  /// Writes what is known of a participant, or reads it. `resume` must follow when all participants of this rank have
  /// been read. What is written does not depend on which rank hosts whom.
  void serialize(const Membership& membership, Archive& archive);
  /// Lets the participants that have been read join again what they had joined, and tells the hosts.
  void resume();

  /// Returns what the participant waits in: the last collective, or access, that it joined.
  JoinedCollective joined(const Membership& membership, bool is_access) const;
  /// Returns the members that have not joined a collective, or access, of those whose participants are on this rank.
  std::vector<NpuId> not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const;

 private:
  /// A collective that some participants of this rank have joined and that is not over.
  struct Pending {
    Report report;
    collective::Turn turn;  ///< with Execution::by_members
    bool done = false;
    std::uint32_t count = 0;        ///< participants that have joined
    std::uint32_t left = 0;         ///< participants that are through, with Execution::by_members
    Time finish;                    ///< time at which the last of these was through
    Time first = Time::max();       ///< first arrival, of a communicator that is spread over ranks
    std::vector<Time> arrivals;     ///< [participants here] max(): not yet, or the host knows since before a restart
    std::vector<NodeId> nodes;      ///< [participants here]
    std::vector<JoinPlace> places;  ///< [participants here] with Setup::knows_places
    std::vector<char> is_through;   ///< [participants here] with Execution::by_members

    void clear();
  };
  /// A communicator with participants on this rank.
  struct LocalCommunicator {
    CommunicatorSpec spec;
    std::vector<NpuId> npus;              ///< participants of this rank, ascending in number
    std::vector<std::uint32_t> numbers;   ///< [npus] of a folded run, and with Execution::by_members; else empty
    std::vector<std::uint32_t> joined;    ///< [npus] collectives joined so far
    std::vector<std::uint32_t> accesses;  ///< [npus] accesses joined so far
    Window<Pending> pending;
    /// With Execution::by_members, and where turns go on.
    std::shared_ptr<const collective::GroupLayout> layout;
    std::shared_ptr<const collective::GroupLayout> layout_of_channels;  ///< once num_channels was asked for
    collective::Turn turn;   ///< turn of the next collective, with Execution::by_members
    bool is_spread = false;  ///< it has participants on other ranks
  };

  struct Arrival {
    NodeId node;
    Time time;
    const JoinPlace& place;
  };
  /// What a participant has joined that is not over.
  struct Joined {
    Report report;          ///< report of all that had joined on its rank
    collective::Turn turn;  ///< with Execution::by_members
    Time arrival;
    JoinPlace place;
    NodeId node;
    Time finish;  ///< when the last one of its rank so far was through, with Execution::by_members
    bool is_through = false;

    void serialize(Archive& archive) { archive(report, turn, arrival, place, node, finish, is_through); }
  };
  /// What has been read of a participant.
  struct Restored {
    Membership membership;
    collective::Turn turn;  ///< turn of the next collective that it joins, with Execution::by_members
    std::vector<Joined> joined;

    void serialize(Archive& archive) { archive(turn, joined); }
  };

  void add(const CommunicatorSpec& spec);
  void join(const Membership& membership, const Report& report, const Arrival& arrival);
  void tell_host(const LocalCommunicator& communicator, const Pending& pending);
  Restored saved(const LocalCommunicator& communicator, std::uint32_t participant) const;
  void resume(std::span<const Restored> participants);
  void note_through(LocalCommunicator& communicator, std::uint32_t ordinal, std::uint32_t participant, Time finish);
  void end_if_all_are_through(LocalCommunicator& communicator, std::uint32_t ordinal);
  const LocalCommunicator& local(GroupId group) const;
  Membership membership(const LocalCommunicator& communicator, std::size_t participant) const;
  bool computes_at_host() const { return setup_.execution == Execution::at_host; }
  bool may_be_uneven() const { return computes_at_host() && setup_.engine.rules().uneven_all_to_all; }

  static constexpr std::uint32_t none = ~0U;

  Setup setup_;
  SendReport send_;
  Announce announce_;
  std::vector<std::uint32_t> index_;  // [groups] into communicators_; or none
  std::vector<LocalCommunicator> communicators_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> begun_;  // (communicator, ordinal) of this time
  std::vector<Restored> restored_;                              // until `resume`
};

}  // namespace orrery::communicator
