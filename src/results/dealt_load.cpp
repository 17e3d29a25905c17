#include "dealt_load.hpp"

#include <algorithm>
#include <utility>

namespace orrery::results {
namespace {

constexpr std::uint64_t events_of_a_batch = 256;  ///< after which the kernel sends what it has for others

template <class T>
void sort_and_keep_each_once(std::vector<T>& values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
}

}  // namespace

DealtLoad::DealtLoad(const Load& load, Assignment assignment)
    : assignment_(std::move(assignment)),
      runs_ahead_(load.runs_ahead),
      bins_per_delay_(load.record.least_delay == Time::max() ? 0
                                                             : static_cast<double>(load.record.least_delay.ps()) /
                                                                   static_cast<double>(load.record.bin_width())) {
  for (const auto& row : load.record.events) num_bins_ = std::max(num_bins_, row.bin + 1);
  for (const auto& row : load.record.flows) num_bins_ = std::max(num_bins_, row.arrives + 1);
  for (const auto& row : load.record.replies) num_bins_ = std::max(num_bins_, row.completion + 1);
  ++num_bins_;  // what is due in the bin in which it was sent counts for the next one
  deal_events(load);
  deal_flows(load);
  deal_communicators(load);
  deal_replies(load);
  add_messages();
}

void DealtLoad::deal_events(const Load& load) {
  events_.resize(std::size_t{num_bins_} * num_workers());
  for (const auto& row : load.record.events) events_[at(row.bin, assignment_.worker_of[row.block])] += row.events;
}

void DealtLoad::deal_flows(const Load& load) {
  for (const auto& row : load.record.flows) {
    const std::uint32_t from = assignment_.worker_of[row.from], to = assignment_.worker_of[row.to];
    if (from == to) continue;
    dependencies_.push_back({std::max(row.arrives, row.sent + 1), row.sent, from, to});
    if (!are_apart(from, to)) continue;
    events_sent_ += row.events;
    sent_.push_back({row.sent, from, to, row.events});
  }
  sort_and_keep_each_once(dependencies_);
}

void DealtLoad::deal_communicators(const Load& load) {
  for (const LoadCommunicator& communicator : load.communicators) {
    Members& members = communicators_.emplace_back();
    members.host = assignment_.worker_of[communicator.host];
    for (const std::uint32_t block : communicator.blocks) members.workers.push_back(assignment_.worker_of[block]);
    sort_and_keep_each_once(members.workers);
  }
}

/// Each rank with members tells the host once that all of them have joined, and is told once when they complete.
void DealtLoad::deal_replies(const Load& load) {
  for (const auto& row : load.record.replies) {
    const auto found = std::ranges::lower_bound(load.communicators, row.communicator, {}, &LoadCommunicator::id);
    const auto index = static_cast<std::uint32_t>(found - load.communicators.begin());
    const Members& members = communicators_[index];
    if (members.workers.size() < 2) continue;
    replies_.push_back({std::max(row.completion, row.last_arrival + 1), row.last_arrival, index});
    for (const std::uint32_t worker : members.workers) {
      if (!are_apart(worker, members.host)) continue;
      posts_sent_ += 2 * row.count;
      sent_.push_back({row.last_arrival, worker, members.host, row.count});
      sent_.push_back({row.last_arrival, members.host, worker, row.count});
    }
  }
  std::ranges::sort(replies_, {}, &JointReply::due);
}

/// What a worker sends to another one in a bin travels together, but a batch leaves after a number of events.
void DealtLoad::add_messages() {
  std::ranges::sort(sent_);
  handled_messages_.resize(events_.size());
  for (std::size_t i = 0; i < sent_.size();) {
    const auto [bin, from, to, first] = sent_[i];
    std::uint64_t records = 0;
    for (; i < sent_.size() && sent_[i].bin == bin && sent_[i].from == from && sent_[i].to == to; ++i)
      records += sent_[i].records;
    const std::uint64_t messages = std::min(records, events_[at(bin, from)] / events_of_a_batch + 1);
    handled_messages_[at(bin, from)] += messages;
    handled_messages_[at(bin + 1, to)] += messages;
    num_messages_ += messages;
  }
}

std::uint64_t DealtLoad::all_events() const {
  std::uint64_t all = 0;
  for (const std::uint64_t events : events_) all += events;
  return all;
}

std::uint64_t DealtLoad::most_events() const {
  std::vector<std::uint64_t> of_worker(num_workers());
  for (std::size_t i = 0; i < events_.size(); ++i) of_worker[i % num_workers()] += events_[i];
  return *std::ranges::max_element(of_worker);
}

/// Delays the starts of a bin for what others must have handled.
void DealtLoad::wait_for_data(std::uint32_t bin, double latency, Progress& progress) const {
  auto& start = progress.start;
  const auto& finished = progress.finished;
  for (std::size_t& i = progress.next_dependency; i < dependencies_.size() && dependencies_[i].due == bin; ++i) {
    const auto& [due, sent, from, to] = dependencies_[i];
    start[to] = std::max(start[to], finished[at(sent, from)] + latency_between(from, to, latency));
  }
  for (std::size_t& i = progress.next_reply; i < replies_.size() && replies_[i].due == bin; ++i) {
    const Members& members = communicators_[replies_[i].communicator];
    double complete = 0;
    for (const std::uint32_t worker : members.workers)
      complete =
          std::max(complete, finished[at(replies_[i].sent, worker)] + latency_between(worker, members.host, latency));
    for (const std::uint32_t worker : members.workers)
      start[worker] = std::max(start[worker], complete + latency_between(members.host, worker, latency));
  }
}

/// Ranks that handle events in the order of time go on when all others have handled what comes a delay before. If a bin
/// is longer than that, they wait several times in the bin, but not more often than there are events. Returns how many
/// waits these are.
std::uint64_t DealtLoad::wait_for_promises(std::uint32_t bin, double latency, Progress& progress) const {
  const auto first = events_.begin() + static_cast<std::ptrdiff_t>(at(bin, 0));
  const std::uint64_t most = *std::max_element(first, first + num_workers());
  if (most == 0 || bins_per_delay_ <= 0) return 0;
  const auto back =
      static_cast<std::uint32_t>(std::max(1.0, std::min(bins_per_delay_, static_cast<double>(num_bins_))));
  double latest = 0;
  if (bin >= back)
    for (std::uint32_t worker = 0; worker < num_workers(); ++worker)
      latest = std::max(latest, progress.finished[at(bin - back, worker)] + latency);
  const double more = std::min(static_cast<double>(most), std::max(1.0, 1 / bins_per_delay_)) - 1;
  for (double& start : progress.start) start = std::max(start, latest) + more * latency;
  return static_cast<std::uint64_t>(more) * num_workers();
}

DealtLoad::Outcome DealtLoad::run(const RankSpeed& speed) const {
  Outcome outcome;
  Progress progress;
  progress.finished.resize(events_.size());
  std::vector<double> before(num_workers());
  for (std::uint32_t bin = 0; bin < num_bins_; ++bin) {
    progress.start = before;
    wait_for_data(bin, speed.latency, progress);
    if (!runs_ahead_ && num_workers() > 1) outcome.waits += wait_for_promises(bin, speed.latency, progress);
    for (std::uint32_t worker = 0; worker < num_workers(); ++worker) {
      const std::size_t here = at(bin, worker);
      if (progress.start[worker] > before[worker]) ++outcome.waits;
      before[worker] = progress.finished[here] = progress.start[worker] +
                                                 static_cast<double>(events_[here]) * speed.event_time +
                                                 static_cast<double>(handled_messages_[here]) * speed.message_time;
    }
  }
  outcome.time = *std::ranges::max_element(before);
  return outcome;
}

}  // namespace orrery::results
