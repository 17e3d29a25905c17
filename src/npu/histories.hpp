#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "event_order.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"

namespace orrery::npu {

/// The places of an NPU's events in ASTRA-sim's order (RunContext::knows_places), where a place is the history of
/// the event: places of the event at hand, and of events to come.
class Histories final : public EventPlaces {
 public:
  Histories() : EventPlaces(true) {}

  /// What a message makes its receiver schedule comes after what it makes its sender schedule, in the same event.
  static constexpr std::uint32_t of_receiver = 1U << 28U;

  /// The events before this one are over.
  void begin(EventPlace history, std::uint32_t first_number = 0) {
    if (std::exchange(is_in_store_, false)) expect_stored_instants();
    at_hand_ = std::move(history);
    next_number_ = first_number;
  }
  /// Says which event has what the NPU has pending for itself at the time at hand; of no event if it has nothing.
  void expect_store(EventPlace history) {
    store_ = std::move(history);
    is_expected_ = store_.is_known();
    is_in_store_ = false;
  }
  /// Begins that event.
  void begin_store() {
    EventPlace store = store_;
    begin(store);
    store_ = std::move(store);
    is_in_store_ = true;
  }
  /// Keeps the history of an event to come, by pdes::Event::order.
  void keep_known(std::uint64_t event, EventPlace history) override {
    if (!one_.second.is_known()) {
      forget_kept(event);
      one_ = {event, std::move(history)};
    } else if (one_.first == event) {
      one_.second = std::move(history);
    } else {
      forget_kept(event);
      kept_.emplace_back(event, std::move(history));
    }
  }
  /// Returns the history of an event that has come; of no event if none was kept.
  EventPlace take(std::uint64_t event) {
    if (one_.second.is_known() && one_.first == event) return std::move(one_.second);
    return forget_kept(event);
  }

  /// Takes note of one more node that ends at the time at hand, in an event of its own or in that of a message, which
  /// its sender shares.
  void add_instant(EventPlace history, bool is_shared) {
    instants_.push_back({std::move(history), false, is_shared ? of_receiver : 0});
  }
  /// Takes note of a node whose end the NPU has pending for itself. It is part of the event that has such things,
  /// and of a new one with this history if there is none. `is_awaited`: whether the node ends now is not known yet.
  /// Returns the history of the event in which it ends.
  EventPlace add_stored_instant(const EventPlace& history, bool is_awaited = false) {
    if (!store_.is_known()) store_ = history;
    instants_.push_back({store_, true, 0, history, is_awaited});
    return store_;
  }
  /// Says that an end that was awaited is in the event that was returned. Returns false if that is not `history`.
  bool confirm_instant(std::size_t index, const EventPlace& history);
  /// Says that an end that was awaited is not in that event. `history`: of the event in which it ends, because the
  /// access has waited for another one; it becomes the last of these ends. Of no event: it does not end now.
  void replace_instant(std::size_t index, const EventPlace& history);
  /// Returns whether the first of these ends is awaited.
  bool is_blocked() const { return !instants_.empty() && next_instant()->is_awaited; }
  /// Returns whether one of these ends comes before an event.
  bool has_instant_before(const EventPlace& event) const {
    return !instants_.empty() && next_instant()->history < event;
  }
  /// Begins the first of these ends. Returns which it was of those that are left.
  std::size_t begin_instant() {
    const auto least = next_instant();
    const auto index = static_cast<std::size_t>(least - instants_.begin());
    if (!least->is_stored) {
      begin(least->history, least->first_number);
    } else if (!is_in_store_ || store_ != least->history) {
      store_ = least->history;
      begin_store();
    }
    instants_.erase(least);
    return index;
  }

  /// Returns until when an event that has come is deferred; zero if it is not.
  Time take_deferred(std::uint64_t event) {
    const auto found = std::ranges::find(deferred_, event, &Deferred::first);
    if (found == deferred_.end()) return Time::zero();
    const Time until = found->second;
    *found = deferred_.back();
    deferred_.pop_back();
    return until;
  }

  void serialize(Archive& archive) override {
    if (one_.second.is_known()) kept_.push_back({one_.first, std::move(one_.second)});
    std::ranges::sort(kept_, {}, &Kept::first);
    archive(kept_, posted_, deferred_, at_hand_, next_number_, instants_, store_, is_in_store_, is_expected_);
  }

 private:
  EventPlace next_known_sending(Time now, Leaving leaving) override {
    // The end of the service at the first link comes directly after what hands the message on.
    return leaving == Leaving::at_once ? next(now, 2) : next(now).next(now, 0);
  }
  void send(Execution& npu, Rank to, const pdes::Event& event, const EventPlace& place) override;
  void wait(Execution& npu, const StepWait& wait, Time now) override;

  void post(NodeId node, Time now) override { posted_[node] = next(now); }
  void forget_posted(NodeId node) override { posted_.erase(node); }
  Meeting meet(NodeId node, const pdes::Event& message, Time now) override;
  EventPlace next_cleared(NodeId send, const pdes::Event& clearance, Time now) override {
    return meet(send, clearance, now).place.next(now, 0);
  }

  EventPlace next_known(Time now, std::uint32_t count) override {
    const std::uint32_t number = next_number_;
    next_number_ += count;
    return at_hand_.next(now, number);
  }

  using Kept = std::pair<std::uint64_t, EventPlace>;
  using Deferred = std::pair<std::uint64_t, Time>;
  struct Instant {
    EventPlace history;
    bool is_stored = false;
    std::uint32_t first_number = 0;  ///< number of what it schedules first
    EventPlace own = {};             ///< history of the event of a stored end, if nothing were stored before it
    bool is_awaited = false;

    void serialize(Archive& archive) { archive(history, is_stored, first_number, own, is_awaited); }
  };

  std::vector<Instant>::const_iterator next_instant() const {
    return std::ranges::min_element(instants_, {}, &Instant::history);
  }

  void expect_stored_instants();

  /// Takes the history of an event out of `kept_`.
  EventPlace forget_kept(std::uint64_t event) {
    const auto found = std::ranges::find(kept_, event, &Kept::first);
    if (found == kept_.end()) return {};
    EventPlace history = std::move(found->second);
    if (found != kept_.end() - 1) *found = std::move(kept_.back());
    kept_.pop_back();
    return history;
  }

  EventPlace at_hand_;
  std::uint32_t next_number_ = 0;
  Kept one_;                        // one of those that are kept; its history is unknown if there is none here
  std::vector<Kept> kept_;          // few others
  std::vector<Deferred> deferred_;  // few
  std::vector<Instant> instants_;
  EventPlace store_;          // of the event that has what the NPU has pending for the time at hand
  bool is_in_store_ = false;  // this event is at hand
  bool is_expected_ = false;  // this event has been scheduled before the time at hand
  std::map<NodeId, EventPlace> posted_;
};

}  // namespace orrery::npu
