#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/communicator/window.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::communicator {

/// The communicators of a rank. Members of this rank join here; when the last of them has, their arrival times go to
/// the communicator's host as one message; when the host has all of them it computes the completion times, and one
/// message goes back to each rank. That a collective is a pure function of its arrivals makes the order of these
/// messages irrelevant: they are posts of the kernel, not events.
///
/// Who joins takes a seat: each member has one, in the order of the group, unless the run is folded (Seating).
class Communicators {
 public:
  /// A member's place: which of this rank's memberships, and which of its local members.
  struct Seat {
    std::uint32_t membership = 0;
    std::uint32_t local = 0;
    std::uint32_t members = 0;  ///< of the whole group
    std::uint32_t local_members = 0;
    std::uint32_t position = 0;  ///< in the group, where collectives go over links
    bool is_remote = false;      ///< it has members on other ranks, or its host is another one
  };
  struct Join {
    NpuId npu;
    NodeId node;
    std::uint64_t node_id = 0;  ///< the trace's own, for messages
    collective::Kind kind = collective::Kind::barrier;
    Bytes size;
    Time now;
    bool is_recorded = true;
  };
  using PlaceOf = std::function<Place(NpuId, std::uint64_t node)>;  ///< of Setting, which outlives this
  /// A member's node is done at `time`, having sent `sent` bytes; its event has been scheduled.
  using Announce = std::function<void(NpuId, NodeId, Time time, Bytes sent)>;

  /// `over_links`: members run their collectives themselves, message by message; what they do is agreed on and noted.
  Communicators(pdes::Scheduler& kernel, collective::Engine& engine, network::Analytical& network,
                std::span<const CommunicatorSpec> specs, const Hosting& hosting, LpId first_lp, Announce announce,
                const PlaceOf& place_of, bool over_links);

  /// Throws Error (internal) if the NPU is no member of the group or is on another rank.
  Seat seat(GroupId group, NpuId npu) const;
  /// In a folded run, by the index into Seating::seats.
  Seat seat(GroupId group, std::uint32_t number) const;

  /// Returns which of the group's collectives it is. Throws Error (bad_input) if members do not agree on what they do.
  std::uint32_t join(const Seat& seat, const Join& join);

  /// An access to memory that the members of the group do together. Returns which of the group's accesses it is.
  std::uint32_t join_access(const Seat& seat) { return memberships_[seat.membership].accesses[seat.local]++; }

  // Of collectives over links.
  /// The member of the seat's group at this position.
  NpuId member(const Seat& seat, std::uint32_t position) const;
  std::shared_ptr<const collective::MessageProgram> script(const Seat& seat, collective::Kind kind, Bytes size);
  /// The member is through with the collective that it joined.
  void leave(const Seat& seat, std::uint32_t ordinal, Time now);

  /// All joins of this time have been made. Tells hosts of collectives that have begun here, or earlier than they were
  /// told, but are not complete: what they promise rests on the first arrival.
  void settle();
  /// A post of another rank's Communicators.
  void receive(Rank from, std::span<const std::byte> message);

  /// Least completion, for members on rank `to`, of the collectives hosted here that some members on other ranks have
  /// yet to join, if these do not come before the first who has. See pdes::Model::pending_reply. O(such collectives).
  Time pending_reply(Rank to) const;

  /// Of the collectives hosted here that their members wanted to be recorded.
  const std::vector<CollectiveRecord>& records() const { return records_; }
  /// Of all collectives hosted here that are over, each as often as it stands for others. By kind, then members.
  std::vector<CollectiveSum> sums() const;

  /// For the report of a stuck run: what a member waits in, and which members have not joined it, of those whose seats
  /// are on this rank.
  struct Waiting {
    GroupId group;
    std::uint32_t ordinal = 0;
    std::uint32_t members = 0;
  };
  Waiting waiting(const Seat& seat, bool is_access) const;
  std::vector<NpuId> not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const;

 private:
  enum class CallKind : std::uint8_t {
    begin,         ///< to the host: the first member of a rank is there, others of that rank are not
    contribution,  ///< to the host: all members of a rank are there
    completion,    ///< from the host
    over,          ///< to the host, over links: all members of a rank are through
  };
  /// One collective of a group: what the first who came says of it.
  struct Call {
    std::uint32_t group = 0;
    std::uint32_t ordinal = 0;
    std::uint32_t npu = 0;
    std::uint32_t depth = 0;
    std::uint64_t node_id = 0;
    std::uint64_t size = 0;       ///< bytes; on the way back, what each member sent
    std::uint32_t num_times = 0;  ///< 1 = the same for all
    std::uint8_t kind = 0;
    CallKind what = CallKind::contribution;
    bool is_recorded = true;  ///< by all members that have joined
  };
  /// Seats of one group whose NPUs live here.
  struct Membership {
    CommunicatorSpec spec;
    std::vector<NpuId> npus;              ///< who sits there, in the order of the seats
    std::vector<std::uint32_t> seats;     ///< [npus] of a folded run, and over links: their numbers, ascending
    std::vector<std::uint32_t> joined;    ///< [npus] collectives joined so far
    std::vector<std::uint32_t> accesses;  ///< [npus] likewise
    struct Pending {
      Call call;
      bool done = false;
      std::uint32_t count = 0;
      std::uint32_t left = 0;      ///< over links: members that are through
      Time first = Time::max();    ///< arrival, of a group that is spread over ranks
      std::vector<Time> arrivals;  ///< [npus]
      std::vector<NodeId> nodes;   ///< [npus]

      void clear();
    };
    Window<Pending> pending;
    std::shared_ptr<const collective::GroupLayout> layout;  ///< over links
    bool is_spread = false;                                 ///< some members live on other ranks
  };
  /// A group hosted here.
  struct Hosted {
    CommunicatorSpec spec;
    std::shared_ptr<const collective::GroupLayout> layout;
    std::uint32_t members = 0;
    struct Part {
      Rank rank;
      std::vector<std::uint32_t> seats;  ///< on that rank, ascending
    };
    std::vector<Part> parts;  ///< ascending in rank
    struct Pending {
      Call call;
      bool done = false;
      Time reply = Time::max();  ///< when members complete at the earliest, if nobody comes before the first
      std::vector<char> has;     ///< [parts]
      std::uint32_t missing = 0;
      std::uint32_t parts_over = 0;  ///< over links
      Time finish;                   ///< likewise, of these parts
      std::vector<Time> arrivals;    ///< [seats]

      void clear();
    };
    Window<Pending> pending;
    bool is_open = false;
  };

  void add_membership(const CommunicatorSpec& spec);
  void add_hosted(const CommunicatorSpec& spec);
  NpuId member(const CommunicatorSpec& spec, std::uint32_t position) const;
  std::uint32_t num_members(const CommunicatorSpec& spec) const;
  std::uint32_t num_seats(const CommunicatorSpec& spec) const;
  NpuId who_sits(const CommunicatorSpec& spec, std::uint32_t seat) const;
  Seat seat(const Membership& membership, std::size_t local) const;
  void require_same(const Call& first, const Call& other, const CommunicatorSpec& spec) const;
  Hosted::Pending& hosted_call(Hosted& hosted, const Call& call, Time first);
  void begin(const Call& call, Time first);
  void contribute(Rank from, const Call& call, std::span<const Time> arrivals);
  void finish(Hosted& hosted, Hosted::Pending& pending);
  void end_part(const Call& call, Time finish);
  void note(const Hosted& hosted, const Hosted::Pending& pending, Time end);
  std::span<const Time> completions_of_seats(const Hosted& hosted, const Hosted::Pending& pending);
  void add_up(const CollectiveRecord& record, std::uint64_t count);
  void track(Hosted& hosted);
  void complete(const Call& call, std::span<const Time> completions);
  void post(Rank to, Call call, std::span<const Time> times);

  pdes::Scheduler& kernel_;
  collective::Engine& engine_;
  network::Analytical& network_;
  Hosting hosting_;
  LpId first_lp_;
  Announce announce_;
  const PlaceOf& place_of_;
  bool over_links_;
  std::vector<std::uint32_t> membership_of_, hosted_of_;  // [groups], ~0 = none
  std::vector<Membership> memberships_;
  std::vector<Hosted> hosted_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> begun_;  // (membership, ordinal) of this time
  std::vector<std::uint32_t> open_;                             // hosted groups with collectives that have begun
  std::vector<CollectiveRecord> records_;
  std::map<std::pair<std::uint8_t, std::uint32_t>, CollectiveSum> sums_;         // by kind and members
  std::vector<Time> arrivals_, completions_, of_seats_, part_times_, received_;  // scratch
  std::vector<std::byte> message_;                                               // scratch
};

}  // namespace orrery::communicator
