#include "orrery/serving/record.hpp"

#include <algorithm>

namespace orrery::serving {
namespace {

/// Takes the time that is known, the earlier one if both are.
void take_earlier(Time& own, Time other) {
  if (own < Time::zero() || (other >= Time::zero() && other < own)) own = other;
}

}  // namespace

void RequestRecord::merge(const RequestRecord& other) {
  instance = std::max(instance, other.instance);
  decode_instance = std::max(decode_instance, other.decode_instance);
  preemptions += other.preemptions;
  take_earlier(arrival, other.arrival);
  take_earlier(scheduled, other.scheduled);
  take_earlier(first, other.first);
  last = std::max(last, other.last);
  prefix_hit += other.prefix_hit;
  lost += other.lost;
  transferred += other.transferred;
  transfer_time += other.transfer_time;
}

}  // namespace orrery::serving
