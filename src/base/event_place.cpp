#include "orrery/base/event_place.hpp"

#include <boost/pool/singleton_pool.hpp>
#include <memory>
#include <new>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery {

/// The memory of all steps. One thread uses histories.
struct EventPlace::Steps {
  using Pool = boost::singleton_pool<Steps, sizeof(Step), boost::default_user_allocator_new_delete,
                                     boost::details::pool::null_mutex, 1024>;

  static Step* make(const Step& step) {
    void* const place = Pool::malloc();
    if (place == nullptr) throw std::bad_alloc();
    return std::construct_at(static_cast<Step*>(place), step);
  }
  static void free(Step* step) { Pool::free(step); }
};

EventPlace EventPlace::first_of(NpuId npu) { return EventPlace(Steps::make({before_all(), nullptr, 0, npu, 1, 1})); }

/// Frees a step that is no longer used, and what only it has used.
void EventPlace::release(Step* step) {
  while (step != nullptr && --step->uses == 0) {
    Step* const cause = step->cause;
    Steps::free(step);
    step = cause;
  }
}

EventPlace EventPlace::next(Time now, std::uint32_t number) const {
  if (step_ == nullptr) return EventPlace(Steps::make({now, nullptr, number, NpuId(0), 1, 1}));
  // Every most_steps steps what lies farther back is dropped, so that memory does not grow with the run.
  if (step_->length >= 2 * most_steps) return shortened().next(now, number);
  hold();
  return EventPlace(Steps::make({now, step_, number, step_->root, step_->length + 1, 1}));
}

EventPlace EventPlace::beside() const {
  ensure(step_ != nullptr, "what comes beside no event");
  if (step_->cause) ++step_->cause->uses;
  return EventPlace(Steps::make({step_->since, step_->cause, step_->number + 1, step_->root, step_->length, 1}));
}

EventPlace EventPlace::cause() const {
  if (step_ == nullptr || step_->cause == nullptr) return {};
  ++step_->cause->uses;
  return EventPlace(step_->cause);
}

/// Returns a copy of the last steps that shares nothing with this history.
EventPlace EventPlace::shortened() const {
  Step* first = nullptr;
  Step** place = &first;
  std::uint32_t left = most_steps;
  for (const Step* step = step_; step != nullptr && left > 0; step = step->cause, --left) {
    *place = Steps::make({step->since, nullptr, step->number, step->root, left, 1});
    place = &(*place)->cause;
  }
  return EventPlace(first);
}

std::strong_ordering operator<=>(const EventPlace& one, const EventPlace& other) {
  const EventPlace::Step *a = one.step_, *b = other.step_;
  if (a == nullptr || b == nullptr) return (a != nullptr) <=> (b != nullptr);
  auto by_number = std::strong_ordering::equal;  // of the step farthest back in which the numbers differ
  for (std::uint32_t step = 0; a != b && a != nullptr && b != nullptr && step < EventPlace::most_steps; ++step) {
    if (a->since != b->since) return a->since <=> b->since;
    if (a->number != b->number) by_number = a->number <=> b->number;
    a = a->cause;
    b = b->cause;
  }
  if (one.step_->root != other.step_->root) return one.step_->root <=> other.step_->root;
  return by_number;
}

void EventPlace::serialize(Archive& archive) {
  struct Entry {
    Time since;
    std::uint64_t number;
  };
  std::vector<Entry> steps;
  NpuId root;
  if (!archive.reads() && step_ != nullptr) {
    root = step_->root;
    for (const Step* step = step_; step != nullptr && steps.size() < most_steps; step = step->cause)
      steps.push_back({step->since, step->number});
  }
  archive(root, steps);
  if (!archive.reads()) return;
  *this = {};
  for (; !steps.empty(); steps.pop_back()) {
    const auto number = static_cast<std::uint32_t>(steps.back().number);
    const std::uint32_t length = step_ == nullptr ? 1 : step_->length + 1;
    step_ = Steps::make({steps.back().since, step_, number, root, length, 1});
  }
}

}  // namespace orrery
