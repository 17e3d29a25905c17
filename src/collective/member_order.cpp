#include "member_order.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace orrery::collective {

using ServiceIdx = std::uint32_t;

/// The chunks of one collective on their way through the queues of all members.
class MemberOrder::Simulation {
 public:
  Simulation(const MemberOrder& order, const Schedule& schedule, std::span<const Ps> arrivals,
             std::span<Ps> completions)
      : order_(order),
        services_(schedule.services),
        num_members_(arrivals.size()),
        completions_(completions),
        begun_(services_.size()) {
    queues_.resize(order.slots_.size() * num_members_);
    for (std::size_t q = 0; q < order.slots_.size(); ++q)
      for (std::size_t member = 0; member < num_members_; ++member)
        queues_[q * num_members_ + member].free = order.slots_[q];
    for (std::uint32_t member = 0; member < num_members_; ++member)
      events_.push({arrivals[member], 0, member, ScheduledService::none});
  }

  bool run() {
    std::size_t num_open = services_.size() * num_members_;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.service == ScheduledService::none) {
        for (const ServiceIdx service : order_.first_) come(event.member, service, event.time);
      } else {
        end(event);
        --num_open;
      }
    }
    return num_open == 0;
  }

 private:
  struct Queue {
    std::vector<ServiceIdx> waiting;  ///< all that came, also those before `next`
    std::size_t next = 0;             ///< position of the one that is served next
    std::uint64_t free = 0;           ///< slots
  };
  /// A member arrives, or ends a service.
  struct Event {
    Ps time = 0;
    std::uint64_t ordinal = 0;  ///< order in which services begin, by which ties are broken; 0: an arrival
    std::uint32_t member = 0;
    ServiceIdx service = ScheduledService::none;

    bool operator>(const Event& other) const {
      return std::tie(time, ordinal, member) > std::tie(other.time, other.ordinal, other.member);
    }
  };
  /// A service that some members have begun.
  struct Begun {
    std::vector<Ps> starts;               ///< [groups][positions]
    std::vector<std::uint64_t> ordinals;  ///< [groups][positions] Event::ordinal
    std::vector<std::uint32_t> missing;   ///< [groups] members that have not begun
    std::uint32_t open = 0;               ///< groups with missing members
  };

  Queue& queue(std::uint32_t member, ServiceIdx service) {
    return queues_[std::size_t{services_[service].queue} * num_members_ + member];
  }

  void come(std::uint32_t member, ServiceIdx service, Ps now) {
    queue(member, service).waiting.push_back(service);
    serve(queue(member, service), member, now);
  }

  void serve(Queue& queue, std::uint32_t member, Ps now) {
    while (queue.next < queue.waiting.size() && queue.free > 0) {
      --queue.free;
      begin(member, queue.waiting[queue.next++], now);
    }
  }

  void begin(std::uint32_t member, ServiceIdx service, Ps now) {
    const std::uint32_t stage_idx = services_[service].stage;
    const MemberStage& stage = order_.stages_[stage_idx];
    Begun& begun = begun_[service];
    if (begun.missing.empty()) {
      begun.starts.resize(num_members_);
      begun.ordinals.resize(num_members_);
      begun.open = static_cast<std::uint32_t>(num_members_ / stage.group_size);
      begun.missing.assign(begun.open, stage.group_size);
    }
    const std::size_t place = order_.places_[stage_idx * num_members_ + member];
    begun.starts[place] = now;
    begun.ordinals[place] = ++num_begun_;
    const std::size_t group = place / stage.group_size;
    if (--begun.missing[group] > 0) return;
    const std::size_t first = group * stage.group_size;
    const std::span<Ps> times = std::span(begun.starts).subspan(first, stage.group_size);
    stage.evaluators[services_[service].chunk % 2]->run(times, scratch_);
    for (std::uint32_t i = 0; i < stage.group_size; ++i)
      events_.push({times[i], begun.ordinals[first + i], stage.members[first + i], service});
    if (--begun.open == 0) begun = {};
  }

  void end(const Event& event) {
    Queue& left = queue(event.member, event.service);
    ++left.free;
    const ServiceIdx next = order_.next_[event.service];
    if (next == ScheduledService::none)
      completions_[event.member] = std::max(completions_[event.member], event.time);
    else
      come(event.member, next, event.time);
    serve(left, event.member, event.time);
  }

  const MemberOrder& order_;
  const std::vector<ScheduledService>& services_;
  std::size_t num_members_;
  std::span<Ps> completions_;
  std::vector<Queue> queues_;  ///< [queues][members]
  std::vector<Begun> begun_;   ///< [services]
  std::uint64_t num_begun_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;  ///< earliest first
  Scratch scratch_;
};

MemberOrder::MemberOrder(const Schedule& schedule, std::vector<MemberStage> stages,
                         std::span<const std::uint64_t> slots)
    : stages_(std::move(stages)), slots_(slots.begin(), slots.end()) {
  const auto num_services = static_cast<ServiceIdx>(schedule.services.size());
  next_.assign(num_services, ScheduledService::none);
  std::map<std::uint32_t, std::pair<ServiceIdx, ServiceIdx>> ends;  // the first and the latest service of each chunk
  for (ServiceIdx service = 0; service < num_services; ++service) {
    const auto [found, is_first] = ends.try_emplace(schedule.services[service].chunk, service, service);
    if (!is_first) next_[std::exchange(found->second.second, service)] = service;
  }
  for (const auto& [chunk, services] : ends) first_.push_back(services.first);
  for (const MemberStage& stage : stages_) {
    const std::size_t first = places_.size();
    places_.resize(first + stage.members.size());
    for (std::uint32_t place = 0; place < stage.members.size(); ++place) places_[first + stage.members[place]] = place;
  }
}

bool MemberOrder::run(const Schedule& schedule, std::span<const Ps> arrivals, std::span<Ps> completions) const {
  std::ranges::copy(arrivals, completions.begin());
  return Simulation(*this, schedule, arrivals, completions).run();
}

std::size_t MemberOrder::memory() const {
  return sizeof(*this) + stages_.size() * sizeof(MemberStage) + slots_.size() * sizeof(std::uint64_t) +
         (first_.size() + next_.size() + places_.size()) * sizeof(std::uint32_t);
}

}  // namespace orrery::collective
