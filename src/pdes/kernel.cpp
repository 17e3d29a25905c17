#include "orrery/pdes/kernel.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "channels.hpp"

namespace orrery::pdes {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::size_t npu = static_cast<std::size_t>(Stage::npu);
constexpr std::size_t server = static_cast<std::size_t>(Stage::server);
constexpr std::uint64_t burst = 256;
// Of waiting in vain; as times, because on a machine with more ranks than cores a single poll takes much longer.
constexpr double seconds_before_asking = 1e-6, seconds_before_reduction = 10e-6;

}  // namespace

void fail_causality(const Event& event, std::string_view what, std::string_view who, Time clock) {
  throw Error(ErrorCode::internal,
              fmt::format("causality: an event of LP {} for LP {} at {} ps {} when {} at {} ps already. "
                          "This is a fault of Orrery, please report it.",
                          event.source().value(), event.target.value(), event.time.ps(), what, who, clock.ps()));
}

Kernel::Kernel(parallel::Communicator& world, Model& model, Options options)
    : Kernel(model, std::move(options), world.size() > 1 ? parallel::make_transport(world) : nullptr, world.rank(),
             world.size()) {}

Kernel::Kernel(Model& model, Options options, std::unique_ptr<parallel::Transport> transport, Rank here, int num_ranks)
    : here_(here), model_(model), options_(std::move(options)), depth_(options_.num_lps) {
  if (num_ranks == 1) return;
  channels_ = std::make_unique<Channels>(
      std::move(transport), num_ranks, options_.neighbours,
      Channels::Handlers{[this](const Event& event) { accept(event); },
                         [this](Rank from, std::span<const std::byte> message) { model_.receive(from, message); }},
      statistics_);
}

Kernel::~Kernel() = default;

void Kernel::schedule(Event event) {
  const auto stage = static_cast<std::size_t>(event.stage());
  if (event.time <= clock_[stage]) [[unlikely]]
    fail_causality(event, "is scheduled", "this rank is", clock_[stage]);
  event.depth = depth_[event.source().index()];
  pending_[stage].push(event);
}

void Kernel::send(Rank to, Event event) {
  check(channels_ != nullptr, "an event for another rank in a job of one");
  event.depth = depth_[event.source().index()];
  channels_->send(to, event);
}

void Kernel::post(Rank to, std::span<const std::byte> message) {
  check(channels_ != nullptr, "a post to another rank in a job of one");
  channels_->post(to, message);
}

void Kernel::raise_depth(LpId lp, std::uint32_t depth) { depth_[lp.index()] = std::max(depth_[lp.index()], depth); }

/// An event from another rank.
void Kernel::accept(const Event& event) {
  const auto stage = static_cast<std::size_t>(event.stage());
  if (event.time <= clock_[stage]) [[unlikely]]
    fail_causality(event, "arrives", "this rank is", clock_[stage]);
  pending_[stage].push(event);
  model_.delivered(event);
}

void Kernel::handle(const Event& event) {
  now_ = event.time;
  auto& depth = depth_[event.target.index()];
  depth = std::max(depth, event.depth) + 1;
  statistics_.critical_path = std::max<std::uint64_t>(statistics_.critical_path, depth);
  ++statistics_.events;
  model_.handle(event);
}

// Posts that belong together bring about their reply one reply delay after the first, and one final delay after the
// last of them, at least. Those that are to come are not earlier than `posts`; those that have come the model knows.
Time Kernel::earliest_reply(Rank to, Time reply_delay, Time posts) const {
  if (reply_delay == Time::max()) return Time::max();
  return std::max(std::min(model_.pending_reply(to), posts + reply_delay), posts + options_.final_delay);
}

Time Kernel::incoming() const {
  const Time answer = pending_[server].time() + options_.service_delay;
  if (!channels_) return answer;
  const Time requests = channels_->requests_promised();
  return std::min({answer, channels_->events_promised(), requests + options_.service_delay,
                   earliest_reply(here_, options_.reply_delay, requests)});
}

// Events of NPUs are safe before all that can still come: an event from another rank; the answer of a server of this
// rank to a request that waits here or comes from another rank; the reply to posts of which some are still to come from
// another rank. What an event of this rank brings about comes later than that event.
bool Kernel::npus_are_safe() const { return pending_[npu].time() < incoming(); }

// A request is safe when no NPU, here or elsewhere, can make an earlier one: those of this rank are past its time, and
// stay so whatever arrives.
bool Kernel::server_is_safe() const {
  const Time time = pending_[server].time();
  if (time >= pending_[npu].time()) return false;
  return !channels_ || (time < channels_->events_promised() && time < channels_->requests_promised());
}

std::uint64_t Kernel::process_npus() {
  auto& pending = pending_[npu];
  const Time time = pending.time();
  const auto before = statistics_.events;
  clock_[npu] = time;
  while (!pending.empty() && pending.time() == time) handle(pending.pop());
  model_.settle(time);
  return statistics_.events - before;
}

void Kernel::process_server() {
  const Event event = pending_[server].pop();
  clock_[server] = event.time;
  handle(event);
}

std::uint64_t Kernel::process() {
  std::uint64_t handled = 0;
  while (handled < burst) {
    if (!pending_[server].empty() && may_handle(pending_[server].time()) && server_is_safe()) {
      process_server();
      ++handled;
    } else if (!pending_[npu].empty() && may_handle(pending_[npu].time()) && npus_are_safe()) {
      handled += process_npus();
    } else {
      break;
    }
  }
  statistics_.peak_pending_events =
      std::max<std::uint64_t>(statistics_.peak_pending_events, pending_[npu].size() + pending_[server].size());
  return handled;
}

/// When something that other ranks notice can happen here if nothing arrives any more. What waits, waits for something
/// that an event of this rank brings about, or a server here; and before the earliest of these no NPU does anything.
Time Kernel::own_output(const Reach& reach) const {
  const Time earliest = std::min(pending_[npu].time(), pending_[server].time() + options_.service_delay);
  return std::max(earliest, std::min(reach.output, earliest + reach.reaction));
}

Outlook Kernel::outlook() {
  const Horizon horizon = model_.horizon();
  const Time incoming = this->incoming();
  Outlook outlook;
  outlook.sends = std::min(own_output(horizon.sends), incoming + horizon.sends.reaction);
  outlook.calls = std::min(own_output(horizon.calls), incoming + horizon.calls.reaction);
  const Time posts = std::min(channels_->requests_promised(), outlook.calls);
  outlook.service = std::min(pending_[server].time(), posts);
  for (std::size_t i = 0; i < channels_->num_neighbours(); ++i) {
    const Neighbour& n = channels_->neighbour(i);
    outlook.replies.push_back(earliest_reply(n.rank, n.reply_delay, posts));
  }
  return outlook;
}

Need Kernel::need() const {
  const Time request = pending_[server].time();
  const Time time = pending_[npu].time();
  if (request < time) return {request, request};
  if (time == Time::max()) return {};
  Need need{.events = time};
  if (options_.service_delay != Time::max()) need.requests = std::max(need.requests, time - options_.service_delay);
  if (options_.reply_delay == Time::max() ||
      earliest_reply(here_, options_.reply_delay, channels_->requests_promised()) > time)
    return need;
  // Posts hold it up: those that are to come must be known to be late enough, in one way or the other.
  const bool by_reply = model_.pending_reply(here_) > time;
  need.requests = std::max(need.requests, time - (by_reply ? options_.reply_delay : options_.final_delay));
  return need;
}

void Kernel::run() {
  const auto start = Clock::now();
  if (channels_) {
    run_with_others();
  } else {
    while (process() > 0) {
      if (options_.progress) options_.progress(statistics_.events, now_);
      heed_stop_request();
      if (stopping_) limit_ = std::max(clock_[npu], clock_[server]);
      stopping_ = false;
    }
  }
  statistics_.peak_pending_events =
      std::max<std::uint64_t>(statistics_.peak_pending_events, std::max(pending_[npu].peak(), pending_[server].peak()));
  if (limit_ != Time::max()) stopped_at_ = std::max(limit_, Time::zero());
  statistics_.busy_seconds = seconds_since(start) - statistics_.blocked_seconds;
}

void Kernel::heed_stop_request() {
  if (limit_ == Time::max() && !stopping_ && options_.stop_requested) stopping_ = options_.stop_requested();
}

/// This rank's contribution to a reduction.
Stand Kernel::stand() const {
  Time reply = model_.pending_reply(here_);
  for (std::size_t i = 0; i < channels_->num_neighbours(); ++i)
    reply = std::min(reply, model_.pending_reply(channels_->neighbour(i).rank));
  const Horizon horizon = model_.horizon();
  return {own_output(horizon.sends),
          own_output(horizon.calls),
          reply,
          pending_[server].time(),
          std::min(pending_[npu].time(), pending_[server].time()),
          std::max(clock_[npu], clock_[server]),
          stopping_};
}

// A rank handles what is safe in bursts. Between bursts it takes in messages, sends what has gathered, and answers who
// waits. When nothing is safe it asks those neighbours whose promises hold it up, with the data that leaves for them if
// there is any; a chain of waiting ranks passes the question on; a circle of them, or the end, shows in the reduction
// that all blocked ranks join, some time later because most waits are over before.
void Kernel::run_with_others() {
  Clock::time_point blocked_since = Clock::now(), last_sign = blocked_since, last_told = blocked_since,
                    freed = blocked_since;
  bool blocked = false;
  for (;;) {
    heed_stop_request();
    const auto handled = process();
    if (handled > 0) {
      if (blocked) statistics_.blocked_seconds += std::chrono::duration<double>(freed - blocked_since).count();
      blocked = false;
      const bool tell_all = seconds_since(last_told) > 1;  // who waits shall know that this rank lives
      if (tell_all) last_told = Clock::now();
      channels_->flush(outlook(), tell_all, handled < burst ? need() : Need{});
      channels_->poll();
      if (options_.progress) options_.progress(statistics_.events, now_);
      continue;
    }
    if (!blocked) {
      freed = blocked_since = last_sign = Clock::now();
      blocked = true;
    }
    if (channels_->poll() > 0) {
      freed = last_sign = Clock::now();
      continue;
    }
    const double waited = seconds_since(last_sign);
    if (waited >= seconds_before_asking) {  // before, what it waits for is most likely on its way
      const Outlook here = outlook();
      channels_->flush(here, false, {});
      channels_->ask(need(), here);
    }
    if (waited >= seconds_before_reduction) channels_->join_reduction(stand());
    if (const auto all = channels_->try_reduction(options_)) {
      freed = Clock::now();
      if (all->stops) {
        limit_ = all->stop;
        stopping_ = false;
      }
      if (all->event == Time::max() || all->event > limit_) break;
    }
    if (options_.watchdog_seconds > 0 && waited > options_.watchdog_seconds) watch();
  }
  statistics_.blocked_seconds += seconds_since(blocked_since);
}

void Kernel::watch() {
  throw Error(
      ErrorCode::internal,
      fmt::format("no progress for {:.0f} s: NPU events handled to {} ps, next at {} ps; requests to servers to {} "
                  "ps, next at {} ps; {}\n{}This is a fault of Orrery or of the machine's network, please report it.",
                  options_.watchdog_seconds, clock_[npu].ps(), pending_[npu].time().ps(), clock_[server].ps(),
                  pending_[server].time().ps(), model_.status(), channels_->describe()));
}

}  // namespace orrery::pdes
