#pragma once

#include <cstdint>
#include <span>

#include "orrery/base/error.hpp"
#include "orrery/pdes/event_heap.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::network {

/// Runs a model on one rank. Events of one time are handled in the order in which they were scheduled, as in ns-3 and
/// htsim, and may be scheduled for the present. This is for comparison only: that order is no property of a system.
class SchedulingOrder final : public pdes::Scheduler {
 public:
  explicit SchedulingOrder(pdes::Model& model) : model_(model) {}

  /// Runs until no event is left. Returns how many there were.
  std::uint64_t run() {
    std::uint64_t handled = 0;
    for (; !heap_.empty(); ++handled) {
      const pdes::Event event = heap_.pop();
      now_ = event.time;
      model_.handle(event);
    }
    return handled;
  }

  void schedule(const pdes::Event& event) override {
    pdes::Event ordered = event;
    ordered.order = num_scheduled_++;
    heap_.push(ordered);
  }
  void send(Rank, pdes::Event event, std::span<const std::byte>) override { schedule(event); }
  void resume(const pdes::Event& event) override { schedule(event); }
  bool is_certain(Time, pdes::Awaited) const override { return true; }
  bool advance(LpId, Time) override { return false; }
  void wait_until_certain(LpId) override { refuse(); }
  void post(Rank, std::span<const std::byte>) override { refuse(); }
  Time now() const override { return now_; }
  std::uint32_t depth(LpId) const override { return 0; }
  void raise_depth(LpId, std::uint32_t) override {}

 private:
  [[noreturn]] static void refuse() {
    ensure_failed("a model without clients and posts runs in the order of scheduling", std::source_location::current());
  }

  pdes::Model& model_;
  pdes::EventHeap heap_;
  std::uint64_t num_scheduled_ = 0;
  Time now_;
};

}  // namespace orrery::network
