#include "scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "orrery/base/error.hpp"
#include "room.hpp"

namespace orrery::cluster {
namespace {

constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();  // an estimate added to a time stays below
constexpr std::size_t most_rooms = 20'000;       // changes of the use for which the largest job is looked for
constexpr std::uint32_t most_stops = 1'000'000;  // of a job

}  // namespace

Scheduler::Scheduler(std::span<const Job> jobs, const Options& options, std::uint64_t seed, Slowdown* slowdown,
                     const Keep& keep)
    : jobs_(jobs),
      options_(options),
      slowdown_(slowdown),
      keep_(keep),
      pool_(make_pool(options.places, seed)),
      states_(jobs.size()) {
  require_possible();
  schedule_.jobs.resize(jobs.size());
  if (keep.places) schedule_.places.resize(jobs.size());
  for (std::uint32_t job = 0; job < jobs.size(); ++job) arrivals_.push_back(job);
  std::ranges::stable_sort(arrivals_, {}, [&](std::uint32_t job) { return jobs_[job].arrival; });
  std::ranges::reverse(arrivals_);
  const std::uint32_t of_host = options.places.npus_per_host;
  if (options.failures.any())
    holds_.hosts = std::make_unique<HostClock>(options.failures, (pool_->num_npus() + of_host - 1) / of_host, seed);
}

/// Throws for a job that has no place in an empty cluster.
void Scheduler::require_possible() const {
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    if (options_.places.policy == Placing::torus && !jobs_[job].has_shape())
      throw Error(ErrorCode::bad_input, {.key = fmt::format("cluster.jobs.{}", job)}, "the job has no shape",
                  "a shape such as [4, 4, 2], which placement: torus needs");
    if (can_ever_start(static_cast<std::uint32_t>(job))) continue;
    if (pool_->fits(jobs_[job]))
      throw Error(ErrorCode::bad_input, {.key = "cluster.site.power-cap"},
                  fmt::format("a job of {} NPUs needs more power than the site has", jobs_[job].npus));
    const auto& s = jobs_[job].shape;
    const auto& t = options_.places.torus;
    const std::string what =
        jobs_[job].has_shape()
            ? fmt::format("shape {}x{}x{} does not fit into {}x{}x{}{}", s[0], s[1], s[2], t[0], t[1], t[2],
                          options_.places.rotate ? " in any order" : "")
            : fmt::format("a job of {} NPUs can never run on {}", jobs_[job].npus, pool_->num_npus());
    throw Error(ErrorCode::bad_input, {.key = fmt::format("cluster.jobs.{}", job)},
                jobs_[job].name.empty() ? what : fmt::format("job '{}': {}", cited(jobs_[job].name), what));
  }
}

Scheduler::Key Scheduler::key(std::uint32_t job) const {
  const Job& j = jobs_[job];
  switch (options_.rules.admission) {
    case Admission::sjf:
      return {j.estimate, j.arrival, job};
    case Admission::priority:
      return {j.priority, j.arrival, job};
    default:
      return {j.arrival, 0, job};
  }
}

Schedule Scheduler::run() {
  if (!jobs_.empty()) at_.now = jobs_[arrivals_.back()].arrival;
  schedule_.begin = at_.now;
  while (true) {
    while (!ends_.empty() && std::get<2>(ends_.top()) != states_[std::get<1>(ends_.top())].version) ends_.pop();
    if (arrivals_.empty() && ends_.empty() && queue_.empty()) break;
    const Nanoseconds next = next_time();
    if (next == never) break;
    pass_time(next);
    end_jobs();
    change_hosts();
    admit_arrivals();
    pass();
    // EASY takes the expected ends of slowed jobs as they are now.
    if (options_.rules.admission == Admission::easy)
      at_.changed.insert(at_.changed.end(), slowed_.begin(), slowed_.end());
    update(std::exchange(at_.changed, {}));
    note_usage();
  }
  ensure(queue_.empty() && at_.busy == 0, "all jobs of a cluster end");
  schedule_.end = at_.now;
  return std::move(schedule_);
}

/// Returns when something changes next: an arrival, an end, a host, or the end of a wait for power.
Nanoseconds Scheduler::next_time() const {
  Nanoseconds next = arrivals_.empty() ? never : jobs_[arrivals_.back()].arrival;
  if (!ends_.empty()) next = std::min(next, std::get<0>(ends_.top()));
  if (holds_.hosts) next = std::min(next, holds_.hosts->next());
  if (queue_.empty()) return next;
  if (holds_.until > at_.now) next = std::min(next, holds_.until);
  return std::min(next, options_.site.next_cap(at_.now));
}

Place Scheduler::place_of_host(std::uint32_t host) const {
  const std::uint32_t first = host * options_.places.npus_per_host;
  const std::uint32_t end = std::min(first + options_.places.npus_per_host, pool_->num_npus());
  Place place{end - first, {}};
  for (std::uint32_t npu = first; npu < end; ++npu) place.npus.push_back(npu);
  return place;
}

/// Ends the jobs of a host as a preemption does, and takes it out of service (S9).
void Scheduler::fail_host(std::uint32_t host) {
  const auto is_there = [&](std::uint32_t npu) { return npu / options_.places.npus_per_host == host; };
  std::vector<std::uint32_t> victims;
  for (const auto& [end, job] : running_)
    if (std::ranges::any_of(states_[job].place.npus, is_there)) victims.push_back(job);
  std::ranges::sort(victims);
  for (const std::uint32_t job : victims) {
    stop(job, false);
    queue_.insert(key(job));
    if (schedule_.jobs[job].stops > most_stops)
      throw Error(ErrorCode::bad_input, {.key = "cluster.hosts.mtbf"},
                  fmt::format("job {} was stopped {} times", job, most_stops),
                  "a shorter cluster.checkpoint-interval, or hosts that fail less often");
  }
  pool_->take(place_of_host(host));
  ++schedule_.host_failures;
}

void Scheduler::change_hosts() {
  while (holds_.hosts && holds_.hosts->next() <= at_.now) {
    const auto [host, fails] = holds_.hosts->take();
    if (fails)
      fail_host(host);
    else
      pool_->release(place_of_host(host));
    ++at_.version;
  }
}

void Scheduler::pass_time(Nanoseconds until) {
  const Nanoseconds time = until - at_.now;
  Integrals& sums = schedule_.integrals;
  sums.inside += static_cast<__int128>(at_.inside) * time;
  sums.busy += static_cast<__int128>(at_.busy) * time;
  sums.energy += power_with(at_.raised) * campaign::seconds(time);
  if (!queue_.empty()) {
    const __int128 free = static_cast<__int128>(pool_->num_free()) * time;
    const bool has_enough = pool_->num_free() >= jobs_[std::get<2>(*queue_.begin())].npus;
    (has_enough ? sums.fragmentation : sums.blocked) += free;
    if (has_enough) sums.unplaced += time;
  }
  at_.now = until;
}

void Scheduler::end_jobs() {
  std::vector<std::uint32_t> over;
  while (!ends_.empty() && std::get<0>(ends_.top()) <= at_.now) {
    const auto [time, job, version] = ends_.top();
    ends_.pop();
    if (states_[job].version == version && states_[job].is_running) over.push_back(job);
  }
  std::ranges::sort(over);
  for (const std::uint32_t job : over) {
    stop(job, true);
    schedule_.jobs[job].end = at_.now;
    --at_.inside;
  }
}

void Scheduler::admit_arrivals() {
  const auto& limit = options_.rules.queue_limit;
  while (!arrivals_.empty() && jobs_[arrivals_.back()].arrival <= at_.now) {
    const std::uint32_t job = arrivals_.back();
    arrivals_.pop_back();
    if (limit && queue_.size() >= *limit && !can_start(job)) continue;
    ++at_.inside;
    queue_.insert(key(job));
    at_.arrived.push_back(job);
    if (limit) pass();
  }
}

bool Scheduler::can_start(std::uint32_t job) const { return has_power(job) && pool_->fits(jobs_[job]); }

void Scheduler::pass() {
  while (!queue_.empty()) {
    const std::uint32_t head = std::get<2>(*queue_.begin());
    if (can_start(head))
      start(head);
    else if (!options_.rules.preemption || options_.rules.admission != Admission::priority || !preempt(head))
      break;
  }
  if (options_.rules.admission == Admission::easy && queue_.size() > 1) backfill();
  at_.arrived.clear();
}

std::vector<std::uint32_t> Scheduler::lower_jobs(std::uint32_t head) const {
  std::vector<std::uint32_t> lower;
  for (const auto& [end, job] : running_)
    if (jobs_[job].priority > jobs_[head].priority && at_.now - states_[job].started >= options_.rules.protect)
      lower.push_back(job);
  std::ranges::sort(lower, std::greater<>(),
                    [&](std::uint32_t job) { return std::tuple(jobs_[job].priority, states_[job].started, job); });
  return lower;
}

/// Stops jobs of lower classes so that the first of the queue fits, and starts it; stops none if it never fits (S6).
bool Scheduler::preempt(std::uint32_t head) {
  if (holds_.until > at_.now) return false;
  const auto trial = pool_->copy();
  std::vector<std::uint32_t> victims;
  for (const std::uint32_t job : lower_jobs(head)) {
    if (trial->fits(jobs_[head])) break;
    victims.push_back(job);
    trial->release(states_[job].place);
  }
  if (victims.empty() || !trial->fits(jobs_[head])) return false;
  for (const std::uint32_t job : victims) {
    stop(job, false);
    queue_.insert(key(job));
  }
  start(head);
  return true;
}

void Scheduler::find_shadow(std::uint32_t head) {
  if (knows_shadow(head)) return;
  shadow_.head = head;
  shadow_.version = at_.version;
  shadow_.time = never;
  shadow_.later = pool_->copy();
  shadow_.is_tried = false;
  const Placing policy = options_.places.policy;
  if (policy == Placing::contiguous || policy == Placing::torus) return bisect_shadow(head);
  for (const auto& [end, job] : running_) {
    shadow_.later->release(states_[job].place);
    shadow_.time = std::max(at_.now, end);
    if (shadow_.later->fits(jobs_[head])) return;
  }
  shadow_.time = running_.empty() ? at_.now : never;  // without running jobs it waits for power
}

/// Finds the shadow time where it takes long to say whether a job fits: more free NPUs never make a place worse, so
/// that bisection finds the first end after which it does.
void Scheduler::bisect_shadow(std::uint32_t head) {
  const std::vector<Expected> order(running_.begin(), running_.end());
  if (order.empty()) {
    shadow_.time = at_.now;
    return;
  }
  const auto released = [&](const Pool& from, std::size_t first, std::size_t end) {
    auto pool = from.copy();
    for (std::size_t i = first; i < end; ++i) pool->release(states_[order[i].second].place);
    return pool;
  };
  std::size_t low = 0, high = order.size();
  auto without = pool_->copy();
  shadow_.later = released(*without, 0, high);
  if (!shadow_.later->fits(jobs_[head])) return;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    auto pool = released(*without, low, middle);
    if (pool->fits(jobs_[head])) {
      high = middle;
      shadow_.later = std::move(pool);
    } else {
      low = middle;
      without = std::move(pool);
    }
  }
  shadow_.time = std::max(at_.now, order[high - 1].first);
}

/// Returns whether a job may start although the first of the queue waits. Takes its NPUs out of those that are free at
/// the shadow time if it then still has them.
bool Scheduler::may_backfill(std::uint32_t job) {
  const Job& j = jobs_[job];
  if (j.npus > pool_->num_free()) return false;
  const bool decides_size = pool_->places_by_size(j);
  if ((decides_size && shadow_.unplaced.contains(j)) || !has_power(job)) return false;
  if (!pool_->fits(j)) {
    if (decides_size) shadow_.unplaced.add(j);
    return false;
  }
  if (at_.now + j.estimate <= shadow_.time) return true;
  if (decides_size && shadow_.delaying.contains(j)) return false;
  const Place place = shadow_.later->counts_only() ? Place{pool_->occupied(j), {}} : pool_->find(j, job);
  shadow_.later->take(place);
  if (shadow_.later->fits(jobs_[shadow_.head])) return true;
  shadow_.later->release(place);
  if (decides_size) shadow_.delaying.add(j);
  return false;
}

/// Starts jobs that do not delay the first of the queue (S5).
void Scheduler::backfill() {
  const std::uint32_t head = std::get<2>(*queue_.begin());
  // If nothing has changed since all jobs of the queue were refused, only new ones need be looked at.
  const bool is_known = knows_shadow(head) && shadow_.is_tried;
  find_shadow(head);
  std::vector<std::uint32_t> candidates;
  if (is_known) {
    candidates = at_.arrived;
    std::ranges::sort(candidates, {}, [&](std::uint32_t job) { return key(job); });
  } else {
    auto at = std::next(queue_.begin());
    for (std::uint32_t i = 0; at != queue_.end() && i < options_.rules.backfill_depth; ++at, ++i)
      candidates.push_back(std::get<2>(*at));
  }
  const std::uint64_t before = at_.version;
  const auto forget_refusals = [&] {
    shadow_.unplaced.clear();
    shadow_.delaying.clear();
  };
  forget_refusals();
  for (const std::uint32_t job : candidates) {
    if (pool_->num_free() == 0) break;
    if (!may_backfill(job)) continue;
    start(job);
    forget_refusals();
  }
  shadow_.is_tried = at_.version == before;
}

void Scheduler::start(std::uint32_t job) {
  State& state = states_[job];
  JobResult& result = schedule_.jobs[job];
  state.place = pool_->find(jobs_[job], job);
  pool_->take(state.place);
  queue_.erase(key(job));
  if (result.start < 0) result.start = at_.now;
  result.npus = state.place.count;
  state.started = at_.now;
  state.since = at_.now;
  Nanoseconds delay = result.stops > 0 ? options_.rules.restart : 0;
  if (const auto& places = options_.places; options_.rules.switching > 0 && pool_->leaves(state.place).size() > 1)
    delay += places.circuits ? options_.rules.switching : 0;  // its NPUs are idle: nothing is drained (O3)
  state.since += delay;
  result.useless += campaign::seconds(delay) * state.place.count;
  state.factor = 1;
  state.is_running = true;
  at_.busy += state.place.count;
  raise_power(raise_of(job, state.place.count));
  ++at_.version;
  running_.emplace(state.expected_end(jobs_[job]), job);
  if (slowdown_ == nullptr) {
    result.leaves = static_cast<std::uint32_t>(keep_.leaves ? pool_->leaves(state.place).size() : 0);
    plan_end(job);
    return;
  }
  const auto leaves = pool_->leaves(state.place);
  result.leaves = static_cast<std::uint32_t>(leaves.size());
  const auto others = slowdown_->begin(job, state.place, leaves);
  at_.changed.push_back(job);
  at_.changed.insert(at_.changed.end(), others.begin(), others.end());
}

void Scheduler::stop(std::uint32_t job, bool is_over) {
  State& state = states_[job];
  JobResult& result = schedule_.jobs[job];
  running_.erase({state.expected_end(jobs_[job]), job});
  pool_->release(state.place);
  at_.busy -= state.place.count;
  ++at_.version;
  ++state.version;
  state.is_running = false;
  slowed_.erase(job);
  result.occupied += at_.now - state.started;
  const double raise = raise_of(job, state.place.count);
  at_.raised -= raise;
  result.energy += (raise + state.place.count * options_.site.idle) * campaign::seconds(at_.now - state.started);
  if (slowdown_ != nullptr) {
    const auto others = slowdown_->end(job);
    at_.changed.insert(at_.changed.end(), others.begin(), others.end());
  }
  if (is_over) {
    if (keep_.places) schedule_.places[job] = std::move(state.place);
    state.place = {};
    return;
  }
  state.done += std::max<Nanoseconds>(0, at_.now - state.since) / static_cast<long double>(state.factor);
  if (const Nanoseconds interval = options_.rules.checkpoint_interval; interval > 0) {
    const long double kept =
        std::floor(state.done / static_cast<long double>(interval)) * static_cast<long double>(interval);
    const auto lost = static_cast<double>(state.done - kept) * 1e-9 * state.place.count;
    result.lost += lost;
    result.useless += lost;
    state.done = kept;
  }
  state.place = {};
  ++result.stops;
}

/// Brings the progress of running jobs to the present, and finds their factors and ends anew (S7).
void Scheduler::update(std::vector<std::uint32_t> changed) {
  if (slowdown_ == nullptr) return;
  const auto settled = slowdown_->settle();
  changed.insert(changed.end(), settled.begin(), settled.end());
  if (changed.empty()) return;
  std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  std::erase_if(changed, [&](std::uint32_t job) { return !states_[job].is_running; });
  for (const std::uint32_t job : changed) {
    State& state = states_[job];
    const double factor = slowdown_->factor(job);
    ensure(factor > 0, "a job makes progress");
    running_.erase({state.expected_end(jobs_[job]), job});
    if (at_.now > state.since) {
      state.done += (at_.now - state.since) / static_cast<long double>(state.factor);
      state.since = at_.now;
    }
    state.factor = factor;
    if (factor != 1)
      slowed_.insert(job);
    else
      slowed_.erase(job);
    running_.emplace(state.expected_end(jobs_[job]), job);
    plan_end(job);
  }
  ++at_.version;
}

void Scheduler::plan_end(std::uint32_t job) {
  State& state = states_[job];
  const long double left = static_cast<long double>(jobs_[job].length) - state.done;
  const long double time = std::max(0.0L, left * static_cast<long double>(state.factor));
  const auto nearest = static_cast<Nanoseconds>(std::round(time));
  const bool is_whole = std::abs(time - static_cast<long double>(nearest)) < 1e-6L;
  ends_.emplace(state.since + (is_whole ? nearest : static_cast<Nanoseconds>(std::ceil(time))), job, ++state.version);
}

void Scheduler::note_usage() {
  if (!keep_.usage) return;
  Usage usage{at_.now, at_.busy, pool_->num_free(), static_cast<std::uint32_t>(queue_.size())};
  if (schedule_.usage.size() < most_rooms)
    usage.largest = static_cast<std::int32_t>(largest_job(*pool_, options_.places));
  schedule_.usage.push_back(usage);
}

Schedule schedule(std::span<const Job> jobs, const Options& options, std::uint64_t seed, Slowdown* slowdown,
                  const Keep& keep) {
  return Scheduler(jobs, options, seed, slowdown, keep).run();
}

}  // namespace orrery::cluster
