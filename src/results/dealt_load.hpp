#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/results/load.hpp"
#include "orrery/results/scaling.hpp"

namespace orrery::results {

/// Which worker has a block, and which rank has a worker. Workers are ranks; or they are blocks, as if each had a
/// processor of its own, though messages take time between ranks only.
struct Assignment {
  std::vector<std::uint32_t> worker_of;  ///< [blocks]
  std::vector<std::uint32_t> rank_of;    ///< [workers]
};

/// A load that is dealt to workers, and the recurrence over bins that gives its time (docs/scaling.md, *The model*).
class DealtLoad {
 public:
  DealtLoad(const Load& load, Assignment assignment);

  struct Outcome {
    double time = 0;          ///< when the last worker has handled its last event
    std::uint64_t waits = 0;  ///< waits of workers for another one
  };
  /// Goes through the bins. O(bins * workers + dependencies + members of replies).
  Outcome run(const RankSpeed& speed) const;
  std::uint64_t most_events() const;
  std::uint64_t all_events() const;
  // Between ranks:
  std::uint64_t events_sent() const { return events_sent_; }
  std::uint64_t posts_sent() const { return posts_sent_; }
  std::uint64_t num_messages() const { return num_messages_; }

 private:
  /// What one worker must have handled before another one goes on.
  struct Dependency {
    std::uint32_t due = 0, sent = 0;  ///< bins
    std::uint32_t from = 0, to = 0;   ///< workers
    friend auto operator<=>(const Dependency&, const Dependency&) = default;
  };
  /// Collectives of several workers: all must have handled the bin `sent` before any goes on with the bin `due`.
  struct JointReply {
    std::uint32_t due = 0, sent = 0;
    std::uint32_t communicator = 0;  ///< index
  };
  /// Events and posts of one worker for another one.
  struct Sent {
    std::uint32_t bin = 0, from = 0, to = 0;
    std::uint64_t records = 0;
    friend auto operator<=>(const Sent&, const Sent&) = default;
  };
  struct Members {
    std::uint32_t host = 0;
    std::vector<std::uint32_t> workers;  ///< ascending
  };
  /// The recurrence between two bins.
  struct Progress {
    std::vector<double> finished;  ///< [bins][workers]
    std::vector<double> start;     ///< [workers]
    std::size_t next_dependency = 0, next_reply = 0;
  };

  std::size_t at(std::uint32_t bin, std::uint32_t worker) const { return std::size_t{bin} * num_workers() + worker; }
  std::uint32_t num_workers() const { return static_cast<std::uint32_t>(assignment_.rank_of.size()); }
  bool are_apart(std::uint32_t a, std::uint32_t b) const { return assignment_.rank_of[a] != assignment_.rank_of[b]; }
  double latency_between(std::uint32_t a, std::uint32_t b, double latency) const {
    return are_apart(a, b) ? latency : 0;
  }
  void deal_events(const Load& load);
  void deal_flows(const Load& load);
  void deal_communicators(const Load& load);
  void deal_replies(const Load& load);
  void add_messages();
  void wait_for_data(std::uint32_t bin, double latency, Progress& progress) const;
  std::uint64_t wait_for_promises(std::uint32_t bin, double latency, Progress& progress) const;

  Assignment assignment_;
  std::uint32_t num_bins_ = 0;
  std::vector<std::uint64_t> events_;            // [bins][workers]
  std::vector<std::uint64_t> handled_messages_;  // [bins][workers] sent in the bin, or received in it
  std::vector<Dependency> dependencies_;         // ascending
  std::vector<JointReply> replies_;              // by due
  std::vector<Members> communicators_;
  std::vector<Sent> sent_;  // between ranks
  std::uint64_t events_sent_ = 0, posts_sent_ = 0, num_messages_ = 0;
  bool runs_ahead_;
  double bins_per_delay_;  // least delay over the width of a bin; 0: nothing passes between blocks
};

}  // namespace orrery::results
