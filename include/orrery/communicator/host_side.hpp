#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/event_places.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/communicator/report.hpp"
#include "orrery/communicator/setup.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/communicator/window.hpp"

namespace orrery::communicator {

struct OrderedEnds;

/// The host side of the communicators that a rank hosts. It collects the arrivals that the ranks report. When it has
/// all of them, it computes when each participant completes and sends each rank one report. It also keeps the records,
/// and knows what this rank may promise about completions.
class HostSide {
 public:
  HostSide(const Setup& setup, SendReport send);

  /// Takes in a report of rank `from`. Throws Error (bad_input) if members do not agree on what they do.
  void receive(Rank from, const Report& report, std::span<const Time> times);

  /// Returns the least completion, for participants on rank `to`, of the collectives that some participants on other
  /// ranks have yet to join, if these do not arrive before the first who has. See pdes::Model::pending_reply. max() if
  /// there are none. Amortised O(log such collectives).
  Time pending_reply(Rank to) const;

  /// Returns the records of the collectives that their members wanted to be recorded.
  const std::vector<CollectiveRecord>& records() const { return records_; }
  /// Returns sums over all collectives that are over, each as often as it stands for others. By kind, then members.
  std::vector<CollectiveSum> sums() const;
  /// Returns the first divergence of each communicator that has any.
  const std::vector<Divergence>& divergences() const { return divergences_; }

  /// Returns the communicators hosted here of which some participant has joined a collective.
  std::vector<GroupId> used() const;
  /// Writes what is known of a communicator that is hosted here, or reads it. The members tell again what they have
  /// joined that is not over.
  void serialize(GroupId group, Archive& archive);
  /// Writes the records, sums and divergences, or reads some and adds them.
  void serialize_sums(Archive& archive);
  /// Replaces each record by one for each communicator into which its communicator has been split:
  /// `communicators_of[before]`. O(records returned).
  void rename_records(std::span<const std::vector<GroupId>> communicators_of);

 private:
  /// A collective that some rank has reported and that is not over.
  struct Pending {
    Report report;
    bool done = false;
    Time reply = Time::max();       ///< earliest completion, if nobody arrives before the first participant
    std::uint32_t missing = 0;      ///< ranks whose arrivals are not there
    std::uint32_t ranks_over = 0;   ///< ranks whose participants are through, with Execution::by_members
    Time finish;                    ///< time at which the last of these was through
    std::vector<Time> arrivals;     ///< [participants]
    std::vector<JoinPlace> places;  ///< [participants] with Setup::knows_places
    std::vector<char> is_through;   ///< [participants] with Execution::by_members

    void clear();
  };
  struct Participants {
    Rank rank;
    std::vector<std::uint32_t> numbers;  ///< numbers of its participants, ascending
  };
  /// A communicator that this rank hosts.
  struct Hosted {
    CommunicatorSpec spec;
    std::shared_ptr<const collective::GroupLayout> layout;
    std::uint32_t members = 0;
    std::uint64_t draws_as = 0;       ///< key of its draws, equal in every run of the workload
    std::vector<Participants> ranks;  ///< ascending in rank
    Window<Pending> pending;
    bool diverges = false;  ///< a collective of a folded run did
  };
  /// When the participants of a collective complete at the earliest.
  struct Reply {
    Time time;
    std::uint32_t hosted = 0;
    std::uint32_t ordinal = 0;

    friend auto operator<=>(const Reply&, const Reply&) = default;
  };
  /// Kept so that nothing is allocated for each collective.
  struct Scratch {
    std::vector<Time> arrivals;      // [members]
    std::vector<Time> completions;   // [members]
    std::vector<Time> participants;  // [participants] their completions
    std::vector<Time> of_rank;       // [participants of a rank] their completions
  };

  void add(const CommunicatorSpec& spec);
  Pending& pending(Hosted& hosted, const Report& report, Time first);
  void contribute(Hosted& hosted, Rank from, const Report& report, std::span<const Time> times);
  void end_rank(Hosted& hosted, Rank from, const Report& report, Time finish);
  static const Participants& participants_of(const Hosted& hosted, Rank rank);
  void serialize_pending(Hosted& hosted, std::uint32_t ordinal, Archive& archive);
  static LastArrival last_arrival(const Hosted& hosted, const Pending& pending);
  void finish(Hosted& hosted, Pending& pending);
  void reply(Hosted& hosted, Pending& pending, Bytes sent, std::span<const Time> completions,
             std::span<const EndPlace> places);
  std::optional<OrderedEnds> ordered(const Hosted& hosted, const Pending& pending) const;
  std::span<const Time> completions(Hosted& hosted, const Pending& pending, const std::optional<OrderedEnds>& ordered);
  std::span<const Time> recorded_completions(const Pending& pending);
  std::span<const Time> completions_of_representatives(Hosted& hosted, const Pending& pending);
  void note_divergence(Hosted& hosted, const Pending& pending, std::span<const Time> completions);
  void finish_members(const Hosted& hosted, const Pending& pending, std::span<const Time> arrivals);
  void record(const Hosted& hosted, const Pending& pending, Time end);
  void expect(const Hosted& hosted, const Pending& pending);
  bool is_current(const Reply& reply) const;
  bool draws_factors() const;
  bool computes_at_host() const { return setup_.execution == Execution::at_host; }
  bool may_be_uneven() const { return computes_at_host() && setup_.engine.rules().uneven_all_to_all; }

  static constexpr std::uint32_t none = ~0U;

  Setup setup_;
  SendReport send_;
  std::vector<std::uint32_t> index_;  // [groups] into hosted_; or none
  std::vector<Hosted> hosted_;
  /// By rank. Replies leave when they are asked for and are no longer current.
  mutable std::map<Rank, std::priority_queue<Reply, std::vector<Reply>, std::greater<>>> replies_;
  std::vector<CollectiveRecord> records_;
  std::vector<Divergence> divergences_;
  std::map<std::pair<std::uint8_t, std::uint32_t>, CollectiveSum> sums_;  // by kind and members
  Scratch scratch_;
};

}  // namespace orrery::communicator
