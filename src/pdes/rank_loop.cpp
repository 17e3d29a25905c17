#include "rank_loop.hpp"

#include <algorithm>

#include "orrery/base/host.hpp"
#include "orrery/base/job_context.hpp"

namespace orrery::pdes {
namespace {

// Seconds, not polls, because on a machine with more ranks than cores a single poll takes much longer.
constexpr double least_patience = 1e-6, most_patience = 1e-3, seconds_before_reduction = 10e-6;
constexpr double seconds_between_beats = 0.25;

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return seconds_between(start, std::chrono::steady_clock::now());
}

}  // namespace

Kernel::RankLoop::RankLoop(Kernel& kernel) : kernel_(kernel), channels_(*kernel.channels_), patience_(least_patience) {}

void Kernel::RankLoop::run() {
  for (;;) {
    kernel_.honour_stop_request();
    watch_others();
    if (kernel_.options_.progress) kernel_.options_.progress(kernel_.statistics_.events, kernel_.now());
    if (const auto handled = kernel_.process(); handled > 0) {
      work(handled);
      wait_for_receivers();
      continue;
    }
    if (state_ == State::working) block();
    if (take_messages()) continue;
    const double waited = seconds_since(last_sign_);
    tell_others(waited);
    if (waited >= seconds_before_reduction) channels_.join_reduction(kernel_.lbts_contribution());
    if (reduce()) break;
    if (kernel_.options_.watchdog_seconds > 0 && waited > kernel_.options_.watchdog_seconds)
      kernel_.report_no_progress();
  }
  channels_.end_beats();
  kernel_.statistics_.blocked_time += seconds_since(blocked_since_);
  kernel_.statistics_.busy_time -= cpu_time() - cpu_when_blocked_;
}

/// Looks now and then whether any rank has handled events. A rank that waits hears of those that work in no other way.
void Kernel::RankLoop::watch_others() {
  const auto now = Clock::now();
  if (seconds_between(last_beat_, now) < seconds_between_beats) return;
  last_beat_ = now;
  const auto sum = channels_.beat();
  if (!sum || *sum == handled_by_all_) return;
  handled_by_all_ = *sum;
  last_sign_ = now;
}

/// Ends a wait, if there was one, and exchanges messages after a burst of events.
void Kernel::RankLoop::work(std::uint64_t handled) {
  if (state_ != State::working) {
    kernel_.statistics_.blocked_time += seconds_between(blocked_since_, freed_);
    kernel_.statistics_.busy_time -= cpu_when_freed_ - cpu_when_blocked_;
    adapt_patience();
  }
  state_ = State::working;
  has_asked_ = false;
  beat();
  const bool ask_at_once = handled < burst && patience_ == least_patience;
  if (channels_.has_reason_to_flush())
    has_asked_ = channels_.flush(kernel_.earliest_output(), ask_at_once ? kernel_.need() : Need{});
  channels_.poll();
}

/// Takes in messages until no more than the limit is under way.
void Kernel::RankLoop::wait_for_receivers() {
  const std::uint64_t most = kernel_.options_.most_bytes_under_way;
  std::uint64_t under_way = channels_.bytes_under_way(most);
  if (under_way == 0) return;
  const auto began = Clock::now();
  const double cpu_before = cpu_time();
  for (auto last_taken = began; under_way > 0;) {
    channels_.poll();
    watch_others();
    if (kernel_.options_.progress) kernel_.options_.progress(kernel_.statistics_.events, kernel_.now());
    const std::uint64_t left = channels_.bytes_under_way(most);
    if (left < under_way) {
      last_taken = Clock::now();
      beat();
    }
    under_way = left;
    if (kernel_.options_.watchdog_seconds > 0 && seconds_since(last_taken) > kernel_.options_.watchdog_seconds)
      kernel_.report_no_progress();
  }
  kernel_.statistics_.blocked_time += seconds_since(began);
  kernel_.statistics_.busy_time -= cpu_time() - cpu_before;
}

/// Halves the patience if a promise ended a wait in which this rank asked; doubles it if the question was in vain.
void Kernel::RankLoop::adapt_patience() {
  if (!has_asked_) return;
  const double next = wait_end_ == WaitEnd::promise ? patience_ / 2 : patience_ * 2;
  patience_ = std::clamp(next, least_patience, most_patience);
}

void Kernel::RankLoop::block() {
  ++kernel_.statistics_.waits;
  freed_ = blocked_since_ = last_sign_ = Clock::now();
  cpu_when_freed_ = cpu_when_blocked_ = cpu_time();
  state_ = State::informed;
}

/// Returns whether any message has come. If the next event is still the same one, promises have ended the wait.
bool Kernel::RankLoop::take_messages() {
  const Time next = kernel_.next_event();
  if (channels_.poll() == 0) return false;
  beat();
  const bool only_promises = (!kernel_.ahead_ || kernel_.ahead_->wake_list.empty()) && kernel_.next_event() == next;
  wait_end_ = only_promises ? WaitEnd::promise : WaitEnd::other;
  freed_ = last_sign_ = Clock::now();
  cpu_when_freed_ = cpu_time();
  state_ = State::informed;
  return true;
}

/// Sends posts and better promises to which a message has led, and asks neighbours after `waited` seconds in vain. A
/// rank that is at its end passes questions on at once: it sends nothing of its own accord once it has joined the
/// reduction, which may be the last.
void Kernel::RankLoop::tell_others(double waited) {
  const bool is_informed = state_ == State::informed;
  const bool asks = kernel_.is_at_end() ? is_informed : waited >= patience_;
  state_ = State::waiting;
  if (!is_informed && !asks) return;
  const EarliestOutput& output = kernel_.earliest_output();
  channels_.flush(output, {});
  if (asks) has_asked_ = channels_.ask(kernel_.need(), output) || has_asked_;
}

/// Takes in the result of a reduction that has ended. Returns whether it shows that the run is over.
bool Kernel::RankLoop::reduce() {
  const auto all = channels_.try_reduction(kernel_.options_);
  if (!all) return false;
  freed_ = Clock::now();
  state_ = State::informed;
  wait_end_ = WaitEnd::other;
  // A rank that does not know of the request yet may handle what another rank sends it that has seen the result. So the
  // limit comes from a reduction that all ranks have joined while they handled nothing.
  if (all->all_stop)
    kernel_.stop(*all);
  else if (all->mode != StopMode::none)
    kernel_.stop_.mode = all->mode;
  return all->event == Time::max() || all->event > kernel_.stop_.limit;
}

}  // namespace orrery::pdes
