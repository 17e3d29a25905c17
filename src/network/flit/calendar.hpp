#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"

namespace orrery::network::flit {

/// What happens in the next cycles, in a ring of buckets that keep their memory. Every operation takes amortised
/// constant time.
class Calendar {
 public:
  /// A flit that comes into a virtual channel of an input port.
  struct Arrival {
    std::uint32_t channel;
    std::uint32_t flit;
  };
  /// What happens in one cycle.
  struct Bucket {
    std::vector<Arrival> arrivals;
    std::vector<std::uint32_t> credits;         ///< output channels that get one back
    std::vector<std::uint32_t> source_credits;  ///< channels of NPUs' ports whose NPU gets one back
    std::vector<std::uint32_t> ejections;       ///< flits that come to their NPU
    std::vector<std::uint32_t> routes;          ///< channels whose route is computed

    std::size_t size() const {
      return arrivals.size() + credits.size() + source_credits.size() + ejections.size() + routes.size();
    }
    void serialize(Archive& archive) { archive(arrivals, credits, source_credits, ejections, routes); }
  };

  /// `longest`: most cycles from the present one to one in which something happens.
  explicit Calendar(std::uint32_t longest) {
    std::size_t size = 2;
    while (size <= longest) size *= 2;
    buckets_.resize(size);
  }

  std::uint64_t now() const { return now_; }
  Bucket& today() { return in(0); }
  /// Returns what happens so many cycles from now. Whoever adds to it calls `add_one`.
  Bucket& in(std::uint32_t cycles) { return buckets_[(now_ + cycles) & (buckets_.size() - 1)]; }
  void add_one() { ++pending_; }
  bool is_empty() const { return pending_ == 0; }
  /// Empties the bucket of this cycle, and goes on to the next cycle.
  void next() {
    Bucket& past = today();
    pending_ -= past.size();
    past.arrivals.clear();
    past.credits.clear();
    past.source_credits.clear();
    past.ejections.clear();
    past.routes.clear();
    ++now_;
  }
  /// Goes on at a cycle. The calendar must be empty.
  void skip_to(std::uint64_t cycle) { now_ = cycle; }

  void serialize(Archive& archive) { archive(now_, pending_, buckets_); }

 private:
  std::uint64_t now_ = 0, pending_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace orrery::network::flit
