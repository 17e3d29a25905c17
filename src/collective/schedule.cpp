#include "schedule.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <source_location>
#include <tuple>
#include <utility>

namespace orrery::collective {
namespace {

using ServiceIdx = std::uint32_t;

/// Serves the chunks in simulated time. Every queue has slots; a service that leaves its slot hands it to the next one.
class ScheduleSimulation {
 public:
  ScheduleSimulation(const ChunkWork& work, const QueuePolicy& policy)
      : work_(work), queues_(policy.queues), order_of_(policy.order) {
    std::uint32_t num_axes = 0;
    for (const ChunkStage& stage : work.stages) num_axes = std::max(num_axes, stage.axis + 1);
    all_queues_.resize(std::size_t{num_axes} * queues_);
    std::uint64_t num_services = 0;
    for (std::uint64_t chunk = 0; chunk < work.num_chunks; ++chunk) {
      first_.push_back(static_cast<ServiceIdx>(num_services));
      num_services += work.route(chunk).count;
      ensure(num_services < ScheduledService::none, "a collective of too many chunks");
    }
    num_services_ = num_services;
    for (const ChunkStage& stage : work.stages)
      for (std::uint32_t q = 0; q < stage.num_queues; ++q)
        queue_at(stage.axis, stage.first_queue + q)
            .slots.assign(std::min(stage.in_service, num_services), ScheduledService::none);
    assign_queues();
  }

  /// Returns the end of the last chunk.
  Ps run() {
    for (std::uint32_t chunk = 0; chunk < work_.num_chunks; ++chunk)
      if (work_.route(chunk).count > 0) arrive(chunk, 0, 0);
    Ps now = 0;
    while (!ends_.empty()) {
      const End end = ends_.top();
      now = end.time;
      ends_.pop();
      const auto [chunk, phase] = order_[end.service];
      Queue& queue = queue_of(chunk, phase);
      if (end.leaves) queue.slots.push_back(end.service);
      if (end.finishes && phase + 1 < work_.route(chunk).count) arrive(chunk, phase + 1, now);
      if (end.leaves) serve(queue, now);
    }
    ensure(order_.size() == num_services_, "a chunk was never served");
    return now;
  }

  /// Returns (chunk, phase) in the order of service.
  const std::vector<std::pair<std::uint32_t, std::uint32_t>>& order() const { return order_; }
  /// Returns the service that held the slot of each before: [services].
  const std::vector<ServiceIdx>& before() const { return before_; }
  std::uint32_t stage_of(std::uint32_t chunk, std::uint32_t phase) const { return work_.route(chunk).first + phase; }
  /// Returns the number of the queue, of all queues of all axes.
  std::uint32_t queue_number(std::uint32_t chunk, std::uint32_t phase) const {
    return work_.stages[stage_of(chunk, phase)].axis * queues_ + queue_numbers_[first_[chunk] + phase];
  }

 private:
  using Waiting = std::deque<std::pair<std::uint32_t, std::uint32_t>>;
  struct Queue {
    Waiting waiting;
    std::deque<ServiceIdx> slots;  ///< free ones: the service that held each last
  };
  /// A service leaves its slot to the next, finishes, or both at once.
  struct End {
    Ps time = 0;
    ServiceIdx service = 0;
    bool leaves = true, finishes = true;

    /// A tie goes to the one that began first.
    bool operator>(const End& other) const { return std::tie(time, service) > std::tie(other.time, other.service); }
  };

  void assign_queues() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> turns;
    queue_numbers_.reserve(num_services_);
    for (std::uint32_t chunk = 0; chunk < work_.num_chunks; ++chunk)
      for (std::uint32_t phase = 0; phase < work_.route(chunk).count; ++phase) {
        const ChunkStage& stage = work_.stages[stage_of(chunk, phase)];
        queue_numbers_.push_back(stage.first_queue + turns[{stage.axis, stage.turn}]++ % stage.num_queues);
      }
  }

  Queue& queue_at(std::uint32_t axis, std::uint32_t queue) { return all_queues_[std::size_t{axis} * queues_ + queue]; }
  Queue& queue_of(std::uint32_t chunk, std::uint32_t phase) { return all_queues_[queue_number(chunk, phase)]; }

  void arrive(std::uint32_t chunk, std::uint32_t phase, Ps now) {
    Queue& queue = queue_of(chunk, phase);
    queue.waiting.emplace_back(chunk, phase);
    serve(queue, now);
  }

  Waiting::iterator first_of(Waiting& waiting) const {
    const auto stage = [&](const auto& who) -> const ChunkStage& {
      return work_.stages[stage_of(who.first, who.second)];
    };
    switch (order_of_) {
      case ChunkOrder::fifo:
        return waiting.begin();
      case ChunkOrder::smallest_first:
        return std::ranges::min_element(waiting, {}, [&](const auto& who) { return stage(who).size; });
      case ChunkOrder::fewest_phases_first:
        return std::ranges::min_element(waiting, {}, [&](const auto& who) { return stage(who).phases_left; });
    }
    ensure_failed("an order of chunks that does not exist", std::source_location::current());
  }

  void serve(Queue& queue, Ps now) {
    while (!queue.waiting.empty() && !queue.slots.empty()) {
      const auto first = first_of(queue.waiting);
      const auto [chunk, phase] = *first;
      queue.waiting.erase(first);
      before_.push_back(queue.slots.front());
      queue.slots.pop_front();
      const ChunkStage& stage = work_.stages[stage_of(chunk, phase)];
      const auto service = static_cast<ServiceIdx>(order_.size());
      const Ps finish = plus(now, stage.duration[chunk % 2]), latency = stage.latency[chunk % 2];
      ends_.push({finish - latency, service, true, latency == 0});
      if (latency > 0) ends_.push({finish, service, false, true});
      order_.emplace_back(chunk, phase);
    }
  }

  const ChunkWork& work_;
  std::uint32_t queues_;
  ChunkOrder order_of_;
  std::uint64_t num_services_ = 0;
  std::vector<ServiceIdx> first_;             ///< [chunks] in queue_numbers_
  std::vector<Queue> all_queues_;             ///< [axes][queues]
  std::vector<std::uint32_t> queue_numbers_;  ///< queue of each chunk in each of its phases
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order_;
  std::vector<ServiceIdx> before_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;  ///< earliest first
};

/// Hands out the arrays in which services keep their times. An array is free again when the last service that reads it
/// has begun.
class Arrays {
 public:
  /// Returns an array for times that so many services will read.
  std::uint32_t take(std::uint32_t readers) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(readers_.size()));
      readers_.push_back(0);
    }
    const std::uint32_t array = free_.back();
    free_.pop_back();
    readers_[array] = readers;
    if (readers == 0) free_.push_back(array);
    return array;
  }
  std::uint32_t read(std::uint32_t array) {
    if (array != ScheduledService::none && --readers_[array] == 0) free_.push_back(array);
    return array;
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(readers_.size()); }

 private:
  std::vector<std::uint32_t> readers_;  ///< [arrays] services that are still to come
  std::vector<std::uint32_t> free_;
};

void assign_arrays(const ScheduleSimulation& simulation, const ChunkWork& work, Schedule& schedule) {
  const auto& order = simulation.order();
  std::vector<char> is_followed(order.size(), 0);  // by another in the same slot
  for (const ServiceIdx before : simulation.before())
    if (before != ScheduledService::none) is_followed[before] = 1;
  Arrays arrays;
  std::vector<std::uint32_t> finishes(work.num_chunks, ScheduledService::none),
      left(order.size(), ScheduledService::none);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto [chunk, phase] = order[k];
    const ServiceIdx before = simulation.before()[k];
    ScheduledService service;
    service.chunk = chunk;
    service.stage = simulation.stage_of(chunk, phase);
    service.queue = simulation.queue_number(chunk, phase);
    service.is_last = phase + 1 == work.route(chunk).count;
    service.previous = arrays.read(finishes[chunk]);
    if (before != ScheduledService::none) service.predecessor = arrays.read(left[before]);
    const bool leaves_early = is_followed[k] != 0 && work.stages[service.stage].latency[chunk % 2] > 0;
    if (leaves_early) service.left = left[k] = arrays.take(1);
    service.result = finishes[chunk] =
        arrays.take((service.is_last ? 0U : 1U) + (is_followed[k] != 0 && !leaves_early ? 1U : 0U));
    if (!leaves_early) left[k] = service.result;
    schedule.services.push_back(service);
  }
  schedule.num_arrays = arrays.count();
}

}  // namespace

Schedule make_schedule(const ChunkWork& work, const QueuePolicy& policy) {
  ScheduleSimulation simulation(work, policy);
  Schedule schedule;
  schedule.end = simulation.run();
  assign_arrays(simulation, work, schedule);
  return schedule;
}

}  // namespace orrery::collective
