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
constexpr double least_patience = 1e-6, most_patience = 1e-3, seconds_before_reduction = 10e-6;

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
    : here_(here),
      model_(model),
      options_(std::move(options)),
      parking_(num_ranks > 1 ? options_.num_lps : 0),
      lps_(options_.num_lps) {
  if (num_ranks == 1) return;
  outlook_ = std::make_unique<Outlook>();
  channels_ = std::make_unique<Channels>(
      std::move(transport), num_ranks, options_.neighbours,
      Channels::Handlers{[this](Event event, std::span<const std::byte> more) {
                           if (!more.empty()) model_.unpack(event, more);
                           accept(event);
                         },
                         [this](Rank from, std::span<const std::byte> message) { model_.receive(from, message); }},
      statistics_);
}

Kernel::~Kernel() = default;

void Kernel::schedule(const Event& event) {
  Event scheduled = event;
  scheduled.depth = depth(event.source());
  insert(scheduled, "is scheduled");
}

void Kernel::send(Rank to, Event event, std::span<const std::byte> more) {
  event.depth = depth(event.source());
  if (to == here_) return accept(event);
  ensure(channels_ != nullptr, "an event for another rank in a job of one");
  channels_->send(to, event, handling_ == Stage::server, more);
}

void Model::unpack(Event&, std::span<const std::byte>) { ensure(false, "bytes that the model does not expect"); }

void Kernel::resume(const Event& event) { insert(event, "is resumed"); }

// Nothing can come for an NPU that awaits nothing. Else it is an event from another rank; the answer of a server of
// this rank to a request that waits here or comes from another rank; the reply to posts of which some are still to come
// from another rank; or what another NPU of this rank does, which it does when it handles an event: one that is
// pending, or one of these.
bool Kernel::is_certain(Time time, Awaited awaited) const {
  return !channels_ ||
         ((!awaited.here || time <= next_npu_event()) && (!awaited.may_send() || time < channels_->sends_promised()) &&
          (!awaited.may_reply() || time < replies_));
}

void Kernel::linger(LpId npu_lp) {
  Event event = Event::make(lps_[npu_lp.index()].clock, Stage::npu, npu_lp, 0, npu_lp);
  event.kind = Event::lingering;
  pending_[npu].push(event);
}

void Kernel::post(Rank to, std::span<const std::byte> message) {
  ensure(channels_ != nullptr, "a post to another rank in a job of one");
  channels_->post(to, message);
}

void Kernel::raise_depth(LpId lp, std::uint32_t depth) {
  auto& mine = lps_[lp.index()].depth;
  mine = std::max(mine, depth);
}

void Kernel::accept(Event event) {
  if (event.stage() == Stage::server || model_.admit(event))
    insert(event, "arrives");
  else
    has_news(event.target);
}

/// A parked NPU may have learned what it awaits.
void Kernel::has_news(LpId npu_lp) {
  if (!parking_.empty() && parking_.holds(npu_lp)) hopeful_.push_back(npu_lp);
}

void Kernel::insert(const Event& event, const char* what) {
  ensure(event.time < Time::max(), "an event that never happens");
  const Lp& lp = lps_[event.target.index()];
  if (event.time <= lp.clock && event.stage() == Stage::npu) [[unlikely]]
    fail_causality(event, what, "it is", lp.clock);
  if (event.stage() == Stage::server && event.time <= latest_[server]) [[unlikely]]
    fail_causality(event, what, "the servers of this rank are", latest_[server]);
  pending_[static_cast<std::size_t>(event.stage())].push(event);
  if (event.stage() == Stage::npu) has_news(event.target);
}

void Kernel::handle(const Event& event) {
  now_ = event.time;
  handling_ = event.stage();
  if (event.kind == Event::lingering) return model_.proceed(event.target);
  Lp& lp = lps_[event.target.index()];
  lp.clock = event.time;
  lp.depth = std::max(lp.depth, event.depth) + 1;
  statistics_.critical_path = std::max<std::uint64_t>(statistics_.critical_path, lp.depth);
  ++statistics_.events;
  model_.handle(event);
}

Time Kernel::next_npu_event() const { return std::min(pending_[npu].time(), parking_.time()); }

// Posts that belong together bring about their reply one reply delay after the first, and one final delay after the
// last of them, at least. Those that are to come are not earlier than `posts`; those that have come the model knows.
Time Kernel::earliest_reply(Rank to, Time reply_delay, Time posts) const {
  if (reply_delay == Time::max()) return Time::max();
  return std::max(std::min(model_.pending_reply(to), posts + reply_delay), posts + options_.final_delay);
}

Time Kernel::next_event() const { return std::min(next_npu_event(), pending_[server].time()); }

Time Kernel::incoming_replies() const {
  const Time requests = channels_->requests_promised();
  return std::min({pending_[server].time() + options_.service_delay, channels_->replies_promised(),
                   requests + options_.service_delay, earliest_reply(here_, options_.reply_delay, requests)});
}

Time Kernel::incoming() const { return std::min(channels_->sends_promised(), incoming_replies()); }

// A request is safe when no NPU, here or elsewhere, can make an earlier one: those of this rank are past its time, and
// stay so whatever arrives.
bool Kernel::server_is_safe() const {
  const Time time = pending_[server].time();
  if (time >= next_npu_event()) return false;
  return !channels_ || (time < channels_->sends_promised() && time < channels_->replies_promised() &&
                        time < channels_->requests_promised());
}

Awaited Kernel::awaited(LpId lp) const {
  return options_.lps_run_ahead ? model_.awaits(lp) : Awaited{.here = true, .sends = true, .replies = true};
}

/// The events of one time: the earliest of which some NPUs' are certain. Those of the others, up to then, are parked.
std::uint64_t Kernel::process_npus() {
  auto& pending = pending_[npu];
  if (channels_) replies_ = incoming_replies();
  const auto unpark = [&](const Event& event) { pending.push(event); };
  while (!parking_.empty() && parking_.time() <= pending.time() &&
         is_certain(parking_.time(), awaited(parking_.first())))
    parking_.unpark(parking_.first(), unpark);
  while (!pending.empty() && may_handle(pending.time())) {
    const Time time = pending.time();
    std::uint64_t handled = 0;
    while (!pending.empty() && pending.time() == time) {
      const LpId lp = pending.top().target;
      if (!channels_ || (!parking_.holds(lp) && is_certain(time, awaited(lp)))) {
        handle(pending.pop());
        ++handled;
      } else if (options_.lps_run_ahead) {
        parking_.park(pending.pop());
      } else {
        return 0;
      }
    }
    if (handled == 0) continue;
    latest_[npu] = std::max(latest_[npu], time);
    model_.settle(time);
    return handled;
  }
  return 0;
}

/// Parked NPUs for which promises may have become good enough.
bool Kernel::unpark_promised() {
  if (parking_.empty()) return false;
  const Time sends = channels_->sends_promised();
  const Time promised =
      std::max(sends > tried_sends_ ? sends : Time::zero(), replies_ > tried_replies_ ? replies_ : Time::zero());
  tried_sends_ = sends;
  tried_replies_ = replies_;
  bool any = false;
  while (!parking_.empty() && parking_.time() < promised) {
    parking_.unpark(parking_.first(), [this](const Event& event) { pending_[npu].push(event); });
    any = true;
  }
  return any;
}

/// NPUs that have learned what they awaited.
void Kernel::unpark_known() {
  for (const LpId lp : hopeful_)
    if (parking_.holds(lp) && !model_.awaits(lp).anything())
      parking_.unpark(lp, [this](const Event& event) { pending_[npu].push(event); });
  hopeful_.clear();
}

void Kernel::process_server() {
  const Event event = pending_[server].pop();
  latest_[server] = event.time;
  handle(event);
}

std::uint64_t Kernel::process() {
  std::uint64_t handled = 0;
  while (handled < burst) {
    if (!hopeful_.empty()) unpark_known();
    if (!pending_[server].empty() && may_handle(pending_[server].time()) && server_is_safe()) {
      process_server();
      ++handled;
    } else if (const auto npus = process_npus(); npus > 0) {
      handled += npus;
    } else if (!unpark_promised()) {
      break;
    }
  }
  statistics_.peak_pending_events = std::max<std::uint64_t>(
      statistics_.peak_pending_events, pending_[npu].size() + parking_.size() + pending_[server].size());
  return handled;
}

/// When something that other ranks notice can happen here if nothing arrives any more. What waits, waits for something
/// that an event of this rank brings about, or a server here; and before the earliest of these no NPU does anything.
Time Kernel::own_output(const Reach& reach) const {
  const Time earliest = std::min(next_npu_event(), pending_[server].time() + options_.service_delay);
  return std::max(earliest, std::min(reach.output, earliest + reach.reaction));
}

const Outlook& Kernel::outlook() {
  const Horizon horizon = model_.horizon();
  const Time incoming = this->incoming();
  Outlook& outlook = *outlook_;
  outlook.replies.clear();
  outlook.sends = std::min(own_output(horizon.sends), incoming + horizon.sends.reaction);
  outlook.calls = std::min(own_output(horizon.calls), incoming + horizon.calls.reaction);
  const Time posts = std::min(channels_->requests_promised(), outlook.calls);
  const Time relays = std::min(own_output(horizon.relays), incoming + horizon.relays.reaction);
  outlook.service = std::min({pending_[server].time(), posts, relays});
  for (std::size_t i = 0; i < channels_->num_neighbours(); ++i) {
    const Neighbour& n = channels_->neighbour(i);
    outlook.replies.push_back(earliest_reply(n.rank, n.reply_delay, posts));
  }
  return outlook;
}

Need Kernel::need() const {
  const Time request = pending_[server].time();
  const Time time = next_npu_event();
  if (request < time) return {request, request, request};
  if (time == Time::max()) return {};
  const Awaited awaited = this->awaited(parking_.time() == time ? parking_.first() : pending_[npu].top().target);
  Need need;
  if (awaited.may_send()) need.sends = time;
  if (!awaited.may_reply()) return need;
  need.replies = time;
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
      if (stopping_) limit_ = std::max(latest_[npu], latest_[server]);
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

/// Nothing is pending that this rank would handle if it could.
bool Kernel::is_at_end() const {
  const Time next = next_event();
  return next == Time::max() || next > limit_;
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
          std::min(pending_[server].time(), own_output(horizon.relays)),
          next_event(),
          std::max(latest_[npu], latest_[server]),
          stopping_};
}

// A rank handles what is safe in bursts. Between bursts it takes in messages, sends what has gathered, and answers who
// waits. When nothing is safe for longer than its patience it asks those neighbours whose promises hold it up; a
// question travels with data that leaves while patience is least. A chain of waiting ranks passes the question on; a
// circle of them, or the end, shows in the reduction that all blocked ranks join, some time later because most waits
// are over before.
void Kernel::run_with_others() {
  Clock::time_point blocked_since = Clock::now(), last_sign = blocked_since, last_told = blocked_since,
                    freed = blocked_since;
  bool blocked = false, fresh = false, asked = false, promised = false;
  double patience = least_patience;  // before a neighbour is asked: what it waits for may be on its way
  for (;;) {
    heed_stop_request();
    const auto handled = process();
    if (handled > 0) {
      if (blocked) statistics_.blocked_seconds += std::chrono::duration<double>(freed - blocked_since).count();
      // Asked in vain, if something else than a promise ended the wait.
      if (blocked && asked)
        patience = std::clamp(promised ? patience / 2 : patience * 2, least_patience, most_patience);
      blocked = asked = false;
      const bool tell_all = seconds_since(last_told) > 1;  // who waits shall know that this rank lives
      if (tell_all) last_told = Clock::now();
      const bool ask_at_once = handled < burst && patience == least_patience;
      if (channels_->has_reason_to_flush())
        asked = channels_->flush(outlook(), tell_all, ask_at_once ? need() : Need{});
      channels_->poll();
      if (options_.progress) options_.progress(statistics_.events, now_);
      continue;
    }
    if (!blocked) {
      freed = blocked_since = last_sign = Clock::now();
      blocked = fresh = true;
    }
    const Time held_up = next_event();
    if (channels_->poll() > 0) {
      promised = hopeful_.empty() && next_event() == held_up;
      freed = last_sign = Clock::now();
      fresh = true;
      continue;
    }
    // What came may have led to posts and to better promises. A rank that is at its end passes questions on at once:
    // it sends nothing of its own accord once it has joined the reduction, which may be the last.
    const double waited = seconds_since(last_sign);
    const bool asks = is_at_end() ? fresh : waited >= patience;
    if (fresh || asks) {
      const Outlook& here = outlook();
      channels_->flush(here, false, {});
      if (asks) asked = channels_->ask(need(), here) || asked;
    }
    fresh = false;
    if (waited >= seconds_before_reduction) channels_->join_reduction(stand());
    if (const auto all = channels_->try_reduction(options_)) {
      freed = Clock::now();
      fresh = true;
      promised = false;
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
      fmt::format("no progress for {:g} s: NPU events handled to {}, next at {}; requests to servers to {}, "
                  "next at {}; {}\n{}This is a fault of Orrery or of the machine's network, please report it.",
                  options_.watchdog_seconds, in_ps(latest_[npu]), in_ps(next_npu_event()), in_ps(latest_[server]),
                  in_ps(pending_[server].time()), model_.status(), channels_->describe()));
}

}  // namespace orrery::pdes
