#include "schedule.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace orrery::collective {
namespace {

using ServiceIdx = std::uint32_t;

/// Plays the schedule: every queue has places; who leaves a place hands it to the one that takes it next.
class Player {
 public:
  Player(const std::vector<Stage>& stages, std::uint64_t num_chunks, std::uint64_t in_service, std::uint32_t queues)
      : stages_(stages), num_chunks_(num_chunks), queues_(queues) {
    const std::uint64_t num_places = std::min<std::uint64_t>(in_service, num_chunks * stages.size());
    std::uint32_t num_axes = 0;
    for (const Stage& stage : stages) num_axes = std::max(num_axes, stage.axis + 1);
    lines_.resize(std::size_t{num_axes} * queues);
    for (const Stage& stage : stages)
      for (std::uint32_t q = 0; q < stage.num_queues; ++q)
        line_of(stage.axis, stage.first_queue + q).places.assign(num_places, Service::none);
    assign_queues();
  }

  Ps play() {
    for (std::uint32_t chunk = 0; chunk < num_chunks_; ++chunk) arrive(chunk, 0, 0);
    Ps now = 0;
    while (!ends_.empty()) {
      const ServiceIdx done = std::get<1>(ends_.top());
      now = std::get<0>(ends_.top());
      ends_.pop();
      const auto [chunk, stage] = order_[done];
      queue_of(chunk, stage).places.push_back(done);
      if (stage + 1 < stages_.size()) arrive(chunk, stage + 1, now);
      serve(queue_of(chunk, stage), now);
    }
    check(order_.size() == num_chunks_ * stages_.size(), "a chunk was never served");
    return now;
  }

  /// (chunk, stage) in the order of service, and who held the place of each before.
  const std::vector<std::pair<std::uint32_t, std::uint32_t>>& order() const { return order_; }
  const std::vector<ServiceIdx>& before() const { return before_; }

 private:
  struct Queue {
    std::deque<std::pair<std::uint32_t, std::uint32_t>> waiting;
    std::deque<ServiceIdx> places;  ///< free ones: who held each last
  };

  void assign_queues() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> turns;
    queue_numbers_.reserve(num_chunks_ * stages_.size());
    for (std::uint64_t chunk = 0; chunk < num_chunks_; ++chunk)
      for (const Stage& stage : stages_)
        queue_numbers_.push_back(stage.first_queue + turns[{stage.axis, stage.turn}]++ % stage.num_queues);
  }

  Queue& line_of(std::uint32_t axis, std::uint32_t queue) { return lines_[std::size_t{axis} * queues_ + queue]; }
  Queue& queue_of(std::uint32_t chunk, std::uint32_t stage) {
    return line_of(stages_[stage].axis, queue_numbers_[std::size_t{chunk} * stages_.size() + stage]);
  }

  void arrive(std::uint32_t chunk, std::uint32_t stage, Ps now) {
    Queue& queue = queue_of(chunk, stage);
    queue.waiting.emplace_back(chunk, stage);
    serve(queue, now);
  }

  void serve(Queue& queue, Ps now) {
    while (!queue.waiting.empty() && !queue.places.empty()) {
      const auto [chunk, stage] = queue.waiting.front();
      queue.waiting.pop_front();
      before_.push_back(queue.places.front());
      queue.places.pop_front();
      ends_.emplace(plus(now, stages_[stage].duration[chunk % 2]), static_cast<ServiceIdx>(order_.size()));
      order_.emplace_back(chunk, stage);
    }
  }

  const std::vector<Stage>& stages_;
  std::uint64_t num_chunks_;
  std::uint32_t queues_;
  std::vector<Queue> lines_;                  ///< [axes][queues]
  std::vector<std::uint32_t> queue_numbers_;  ///< [chunks][stages]
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order_;
  std::vector<ServiceIdx> before_;
  /// (end, service), earliest first; a tie goes to the one that began first.
  std::priority_queue<std::pair<Ps, ServiceIdx>, std::vector<std::pair<Ps, ServiceIdx>>, std::greater<>> ends_;
};

/// Gives every service an array for its finishes, which is free again when the last that reads it has begun.
void assign_arrays(const Player& player, std::size_t num_stages, std::uint64_t num_chunks, Schedule& schedule) {
  const auto& order = player.order();
  std::vector<std::uint32_t> readers(order.size(), 0);
  std::vector<std::uint32_t> array_of(order.size(), 0);
  std::vector<ServiceIdx> latest(num_chunks, Service::none);
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (order[k].second + 1 < num_stages) ++readers[k];
    if (player.before()[k] != Service::none) ++readers[player.before()[k]];
  }
  std::vector<std::uint32_t> free;
  const auto read = [&](ServiceIdx service) {
    if (service == Service::none) return Service::none;
    if (--readers[service] == 0) free.push_back(array_of[service]);
    return array_of[service];
  };
  for (std::size_t k = 0; k < order.size(); ++k) {
    Service service{order[k].first, order[k].second, read(latest[order[k].first]), read(player.before()[k]), 0};
    if (free.empty()) free.push_back(schedule.num_arrays++);
    service.result = array_of[k] = free.back();
    free.pop_back();
    if (readers[k] == 0) free.push_back(service.result);
    latest[service.chunk] = static_cast<ServiceIdx>(k);
    schedule.services.push_back(service);
  }
}

}  // namespace

Schedule make_schedule(const std::vector<Stage>& stages, std::uint64_t num_chunks, std::uint64_t in_service,
                       std::uint32_t queues) {
  check(num_chunks * stages.size() < Service::none, "a collective of too many chunks");
  Player player(stages, num_chunks, in_service, queues);
  Schedule schedule;
  schedule.end = player.play();
  assign_arrays(player, stages.size(), num_chunks, schedule);
  return schedule;
}

}  // namespace orrery::collective
