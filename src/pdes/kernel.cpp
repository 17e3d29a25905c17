#include "orrery/pdes/kernel.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "channels.hpp"
#include "orrery/base/host.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/pdes/load_recorder.hpp"
#include "rank_loop.hpp"

namespace orrery::pdes {
namespace {

constexpr std::size_t client = static_cast<std::size_t>(Stage::client);
constexpr std::size_t server = static_cast<std::size_t>(Stage::server);

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
      ahead_(options_.lps_run_ahead ? std::make_unique<Ahead>(std::move(options_.cell_of), options_.num_lps) : nullptr),
      ordered_(options_.lps_run_ahead ? std::vector<std::uint32_t>() : std::move(options_.cell_of),
               options_.service_delay, num_ranks == 1),
      lps_(options_.num_lps) {
  if (num_ranks == 1) return;
  earliest_output_ = std::make_unique<EarliestOutput>();
  channels_ = std::make_unique<Channels>(
      std::move(transport), num_ranks, options_.neighbours,
      Channels::Handlers{[this](Event event, std::span<const std::byte> more) {
                           if (!more.empty()) model_.unpack(event, more);
                           ordered_.note_input(event.time);
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
  if (load_) [[unlikely]]
    load_->pass(event.source(), lps_[event.source().index()].clock, event.target, event.time);
  event.depth = depth(event.source());
  if (to == here_) return accept(event);
  ensure(channels_ != nullptr, "an event for another rank in a job of one");
  channels_->send(to, event, at_hand_.stage == Stage::server, more);
}

void Model::unpack(Event&, std::span<const std::byte>) { ensure(false, "bytes that the model does not expect"); }

void Kernel::resume(const Event& event) { insert(event, "is resumed"); }

// Nothing can come for a client that awaits nothing. Else it is an event from another rank; the answer of a server of
// this rank to a request that waits here or comes from another rank; the reply to posts of which some are still to come
// from another rank; or what another client of this rank does, which it does when it handles an event: one that is
// pending, or one of these.
bool Kernel::is_certain(Time time, Awaited awaited) const {
  return (!awaited.here || time <= next_client_event()) &&
         (!awaited.may_send() || !channels_ || time < channels_->sends_promised()) &&
         (!awaited.may_reply() || time < reply_input_);
}

bool Kernel::advance(LpId lp, Time time) {
  Lp& its = lps_[lp.index()];
  if (!ahead_ || its.num_pending > 0 || !may_handle(time)) return false;
  if (time < its.clock) [[unlikely]]
    fail_causality(Event::make(time, Stage::client, lp, 0, lp), "is handled at once", "it is", its.clock);
  if (load_) [[unlikely]]
    load_->count(lp, time);
  its.clock = time;
  latest_[client] = std::max(latest_[client], time);
  count(its);
  return true;
}

void Kernel::wait_until_certain(LpId lp) {
  Event event = Event::make(lps_[lp.index()].clock, Stage::client, lp, 0, lp);
  event.kind = Event::waiting;
  push(event);
}

void Kernel::post(Rank to, std::span<const std::byte> message) {
  ensure(channels_ != nullptr, "a post to another rank in a job of one");
  channels_->post(to, message);
}

void Kernel::visit_server_events(const std::function<void(const Event&)>& visit) const {
  ordered_.for_each(Stage::server, visit);
}

std::vector<Event> Kernel::withdraw(const std::function<bool(const Event&)>& is_wanted,
                                    std::function<void(Time)> give_back) {
  if (load_) return {};
  stop_.give_back = std::move(give_back);
  std::vector<Event> events = ordered_.take(is_wanted);
  for (const Event& event : events) --lps_[event.target.index()].num_pending;
  return events;
}

void Kernel::raise_depth(LpId lp, std::uint32_t depth) {
  auto& mine = lps_[lp.index()].depth;
  mine = std::max(mine, depth);
}

void Kernel::accept(Event event) {
  if (event.stage() == Stage::server || model_.admit(event))
    insert(event, "arrives");
  else
    put_on_wake_list(event.target);
}

/// A deferred client that has been given an event may have learned what it awaits.
void Kernel::put_on_wake_list(LpId lp) {
  if (ahead_ && ahead_->cells.has_deferred() && ahead_->cells.holds(lp)) ahead_->wake_list.push_back(lp);
}

void Kernel::push(const Event& event) {
  if (ahead_ && event.stage() == Stage::client) return ahead_->cells.push(event);
  ordered_.push(event, model_);
}

void Kernel::insert(const Event& event, const char* what) {
  ensure(event.time < Time::max(), "an event that never happens");
  const Lp& lp = lps_[event.target.index()];
  if (event.time <= lp.clock && event.stage() == Stage::client) [[unlikely]]
    fail_causality(event, what, "it is", lp.clock);
  if (event.stage() == Stage::server && event.time <= ordered_.served(event.target)) [[unlikely]]
    fail_causality(event, what, "the servers of its cell are", ordered_.served(event.target));
  ++lps_[event.target.index()].num_pending;
  push(event);
  if (event.stage() == Stage::client) put_on_wake_list(event.target);
}

void Kernel::handle(const Event& event) {
  if (load_ && event.kind != Event::waiting) [[unlikely]]
    load_->count(event.target, event.time);
  at_hand_ = {event.stage(), event.time};
  if (event.kind == Event::waiting) return model_.proceed(event.target);
  Lp& lp = lps_[event.target.index()];
  lp.clock = event.time;
  --lp.num_pending;
  lp.depth = std::max(lp.depth, event.depth);
  count(lp);
  model_.handle(event);
}

/// Counts an event of an LP, whose depth is that of the event's causes.
void Kernel::count(Lp& lp) {
  ++lp.depth;
  statistics_.critical_path = std::max<std::uint64_t>(statistics_.critical_path, lp.depth);
  ++statistics_.events;
}

Time Kernel::next_client_event() const { return ahead_ ? ahead_->cells.time() : ordered_.client_time(); }

Time Kernel::next_event() const { return std::min(next_client_event(), ordered_.server_time()); }

// Posts that belong together bring about their reply one reply delay after the first, and one final delay after the
// last of them, at least. Those that are to come are not earlier than `posts`; those that have come the model knows.
Time Kernel::earliest_reply(Rank to, Time reply_delay, Time posts) const {
  if (reply_delay == Time::max()) return Time::max();
  return std::max(std::min(model_.pending_reply(to), posts + reply_delay), posts + options_.final_delay);
}

Time Kernel::earliest_reply_input(Time request) const {
  const Time answer = request + options_.service_delay;
  if (!channels_) return answer;
  const Time requests = channels_->requests_promised();
  return std::min({answer, channels_->replies_promised(), requests + options_.service_delay,
                   earliest_reply(here_, options_.reply_delay, requests)});
}

Time Kernel::earliest_input() const {
  return std::min(channels_->sends_promised(), earliest_reply_input(ordered_.server_time()));
}

// A request is safe when no client, here or elsewhere, can make an earlier one: the clients of this rank, or of the
// active cell, are past its time, and stay so whatever arrives.
bool Kernel::server_is_safe() const {
  const Time time = ordered_.pending(Stage::server).time();
  if (time == Time::max()) return false;
  const Time of_clients = ahead_ ? ahead_->cells.time() : ordered_.pending(Stage::client).time();
  return time < std::min({of_clients, ordered_.horizon(), server_limit()});
}

Time Kernel::server_limit() const {
  if (stop_.mode != StopMode::none) return Time::from_ps(-1);
  const Time end = stop_.limit + Time::from_ps(1);
  if (!channels_) return end;
  return std::min({end, channels_->sends_promised(), channels_->replies_promised(), channels_->requests_promised()});
}

Time Kernel::client_limit(Time request) const {
  if (stop_.mode != StopMode::none) return Time::from_ps(-1);
  const Time end = stop_.limit + Time::from_ps(1);
  return channels_ ? std::min({end, channels_->sends_promised(), earliest_reply_input(request)}) : end;
}

std::uint64_t Kernel::process_clients() {
  if (!ahead_) return process_in_order();
  reply_input_ = earliest_reply_input(ordered_.pending(Stage::server).time());
  return process_cell();
}

/// Handles the events of the earliest time of the active cell, if they are certain whatever their clients await.
std::uint64_t Kernel::process_in_order() {
  const auto& pending = ordered_.pending(Stage::client);
  const Time time = pending.time();
  if (time >= std::min(ordered_.horizon(), client_limit(ordered_.pending(Stage::server).time()))) return 0;
  std::uint64_t handled = 0;
  for (; pending.time() == time; ++handled) handle(ordered_.pop_client());
  latest_[client] = std::max(latest_[client], time);
  model_.settle(time, Stage::client);
  return handled;
}

/// Handles events of a cell: of the active one as long as it has certain events, then of another one. Events of one
/// time, or of several if what is certain cannot have changed in between.
std::uint64_t Kernel::process_cell() {
  Cells& cells = ahead_->cells;
  std::uint64_t handled = 0;
  const auto may_go_on = [&] {
    return handled < burst && !channels_ && ordered_.pending(Stage::server).empty() && ahead_->wake_list.empty();
  };
  while (cells.is_active() || cells.activate_ready() || activate_earliest()) {
    while (cells.has_pending() && may_handle(cells.top().time)) {
      const std::uint64_t of_time = handle_time_of_cell();
      if (of_time == 0) continue;
      handled += of_time;
      if (cells.has_had_its_turn(of_time)) cells.rest(true);
      if (!cells.is_active() || !may_go_on()) return handled;
    }
    if (handled > 0) return handled;
    cells.rest(false);
  }
  return 0;
}

/// Handles the events of the earliest time of the active cell that are certain, and defers the others.
std::uint64_t Kernel::handle_time_of_cell() {
  Cells& cells = ahead_->cells;
  const Time time = cells.top().time;
  std::uint64_t handled = 0;
  while (cells.has_pending() && cells.top().time == time) {
    const LpId lp = cells.top().target;
    if (!cells.holds(lp) && is_certain(time, model_.awaits(lp))) {
      handle(cells.pop());
      ++handled;
    } else {
      cells.defer(cells.pop());
    }
  }
  if (handled == 0) return 0;
  latest_[client] = std::max(latest_[client], time);
  model_.settle(time, Stage::client);
  return handled;
}

/// Makes the cell with the earliest event of all active if this event may be handled. Returns whether it is.
bool Kernel::activate_earliest() {
  Cells& cells = ahead_->cells;
  const Time time = cells.time();
  if (time == Time::max() || !may_handle(time)) return false;
  const LpId lp = cells.first_lp();
  if (cells.holds(lp) && !is_certain(time, model_.awaits(lp))) return false;
  cells.activate_earliest();
  if (cells.holds(lp)) cells.release(lp);
  return true;
}

/// Takes deferred clients back for which promises may have become good enough. Returns whether there are any.
bool Kernel::release_promised() {
  if (!ahead_ || !channels_ || !ahead_->cells.has_deferred()) return false;
  const Time sends = channels_->sends_promised();
  const Time promised = std::max(sends > ahead_->tried_sends ? sends : Time::zero(),
                                 reply_input_ > ahead_->tried_replies ? reply_input_ : Time::zero());
  ahead_->tried_sends = sends;
  ahead_->tried_replies = reply_input_;
  return ahead_->cells.release_before(promised);
}

/// Takes those clients of the wake list back that have learned what they awaited.
void Kernel::release_informed() {
  for (const LpId lp : ahead_->wake_list)
    if (ahead_->cells.holds(lp) && !model_.awaits(lp).anything()) ahead_->cells.release(lp);
  ahead_->wake_list.clear();
}

/// Handles the events of the earliest time for servers of the active cell. All of them are there if the first is safe.
std::uint64_t Kernel::process_servers() {
  const auto& pending = ordered_.pending(Stage::server);
  const Time time = pending.time();
  latest_[server] = std::max(latest_[server], time);
  ordered_.note_served(time);
  std::uint64_t handled = 0;
  for (; pending.time() == time; ++handled) {
    handle(ordered_.pop_server([this](const Event& event) { model_.prefetch(event); }));
  }
  model_.settle(time, Stage::server);
  return handled;
}

/// Lets another cell take its turn, or the same one again. Returns whether there is one with an event that is safe.
bool Kernel::begin_turn() {
  if (!ordered_.are_several()) return false;
  return ordered_.begin_turn({.servers = server_limit(), .clients = client_limit(Time::max())}, model_);
}

std::uint64_t Kernel::process() {
  std::uint64_t handled = 0;
  while (handled < burst) {
    if (ahead_ && !ahead_->wake_list.empty()) release_informed();
    const std::uint64_t of_time = server_is_safe() ? process_servers() : process_clients();
    handled += of_time;
    if (of_time > 0) {
      if (ordered_.has_had_its_turn(of_time)) begin_turn();
    } else if (!(ahead_ ? release_promised() : begin_turn())) {
      break;
    }
  }
  statistics_.peak_pending_events =
      std::max<std::uint64_t>(statistics_.peak_pending_events, (ahead_ ? ahead_->cells.size() : 0) + ordered_.size());
  return handled;
}

// What waits here waits for something that an event of this rank brings about, or a server here; and before the
// earliest of these no client does anything.
Time Kernel::own_output(const LookaheadBound& bound) const {
  const Time earliest = std::min(next_client_event(), ordered_.server_time() + options_.service_delay);
  return std::max(earliest, std::min(bound.output, earliest + bound.reaction));
}

const EarliestOutput& Kernel::earliest_output() {
  const LookaheadBounds bounds = model_.lookahead();
  const Time input = earliest_input();
  EarliestOutput& output = *earliest_output_;
  output.replies.clear();
  output.sends = std::min(own_output(bounds.sends), input + bounds.sends.reaction);
  output.calls = std::min(own_output(bounds.calls), input + bounds.calls.reaction);
  const Time posts = std::min(channels_->requests_promised(), output.calls);
  const Time relays = std::min(own_output(bounds.relays), input + bounds.relays.reaction);
  output.service = std::min({ordered_.leading_time(), posts, relays});
  for (std::size_t i = 0; i < channels_->num_neighbours(); ++i) {
    const Neighbour& n = channels_->neighbour(i);
    output.replies.push_back(earliest_reply(n.rank, n.reply_delay, posts));
  }
  return output;
}

Need Kernel::need() const {
  const Time request = ordered_.server_time();
  const Time time = next_client_event();
  if (request < time) return {request, request, request};
  if (time == Time::max()) return {};
  const Awaited awaited =
      ahead_ ? model_.awaits(ahead_->cells.first_lp()) : Awaited{.here = true, .sends = true, .replies = true};
  Need need;
  if (awaited.may_send()) need.sends = time;
  if (!awaited.may_reply()) return need;
  need.replies = time;
  if (options_.service_delay != Time::max()) need.requests = std::max(need.requests, time - options_.service_delay);
  if (options_.reply_delay == Time::max() ||
      earliest_reply(here_, options_.reply_delay, channels_->requests_promised()) > time)
    return need;
  // Posts block it: those that are to come must be known to be late enough, in one way or the other.
  const bool by_reply = model_.pending_reply(here_) > time;
  need.requests = std::max(need.requests, time - (by_reply ? options_.reply_delay : options_.final_delay));
  return need;
}

void Kernel::run() {
  const double start = cpu_time();
  if (stop_.stopped_at) stop_ = {};
  if (channels_)
    RankLoop(*this).run();
  else
    run_alone();
  statistics_.peak_pending_events = std::max<std::uint64_t>(
      statistics_.peak_pending_events, std::max(ahead_ ? ahead_->cells.peak() : 0, ordered_.peak()));
  if (stop_.limit != Time::max()) {
    stop_.stopped_at = std::max(stop_.limit, Time::zero());
    if (stop_.give_back) stop_.give_back(std::max(*stop_.stopped_at, latest_[server]));
  }
  statistics_.busy_time += cpu_time() - start;  // the loop has taken off what it spent while it was blocked
}

KernelState Kernel::state() const {
  KernelState state;
  state.now = stop_.limit;
  const auto keep = [&](const Event& event) { state.events.push_back(event); };
  if (ahead_) ahead_->cells.for_each(keep);
  for (const Stage stage : {Stage::client, Stage::server}) ordered_.for_each(stage, keep);
  std::ranges::sort(state.events, before);
  for (std::uint32_t i = 0; i < lps_.size(); ++i)
    if (lps_[i].depth > 0 || lps_[i].clock >= Time::zero())
      state.lps.push_back({LpId(i), lps_[i].clock, lps_[i].depth});
  state.num_handled = statistics_.events;
  state.critical_path = statistics_.critical_path;
  return state;
}

void Kernel::restore(const KernelState& state) {
  at_hand_.now = latest_[client] = latest_[server] = state.now;
  ordered_.begin_after(state.now);
  for (const KernelState::Lp& lp : state.lps) lps_[lp.id.index()] = {.clock = lp.clock, .depth = lp.depth};
  for (const Event& event : state.events) {
    ensure(event.time > state.now && event.kind != Event::waiting, "a saved event that should have been handled");
    ++lps_[event.target.index()].num_pending;
    push(event);
  }
  statistics_.events = state.num_handled;
  statistics_.critical_path = state.critical_path;
}

void Kernel::run_alone() {
  while (process() > 0) {
    beat();
    if (options_.progress) options_.progress(statistics_.events, now());
    honour_stop_request();
    if (stop_.mode != StopMode::none) stop(lbts_contribution());
  }
}

void Kernel::honour_stop_request() {
  if (stop_.limit == Time::max() && stop_.mode == StopMode::none && options_.stop_mode)
    stop_.mode = options_.stop_mode();
}

// Clients that are in the middle of a time cannot be saved. They come to its end when all others have come there.
void Kernel::stop(const LbtsContribution& all) {
  stop_.mode = StopMode::none;
  if (all.event == Time::max()) return;  // the run is over
  stop_.has_caught_up = all.mode == StopMode::caught_up;
  stop_.limit = stop_.has_caught_up ? all.latest : std::max(all.event - Time::from_ps(1), all.broken_off);
}

bool Kernel::is_at_end() const {
  const Time next = next_event();
  return next == Time::max() || !may_handle(next);
}

LbtsContribution Kernel::lbts_contribution() {
  LbtsContribution mine{.event = next_event(),
                        .latest = std::max(latest_[client], latest_[server]),
                        .broken_off = Time::from_ps(-1),
                        .mode = stop_.mode};
  if (stop_.mode != StopMode::none && ahead_)
    ahead_->cells.for_each([&](const Event& event) {
      if (event.kind == Event::waiting) mine.broken_off = std::max(mine.broken_off, event.time);
    });
  if (!channels_) return mine;
  mine.reply = model_.pending_reply(here_);
  for (std::size_t i = 0; i < channels_->num_neighbours(); ++i)
    mine.reply = std::min(mine.reply, model_.pending_reply(channels_->neighbour(i).rank));
  const LookaheadBounds bounds = model_.lookahead();
  mine.sends = own_output(bounds.sends);
  mine.calls = own_output(bounds.calls);
  mine.request = std::min(ordered_.leading_time(), own_output(bounds.relays));
  return mine;
}

void Kernel::report_no_progress() const {
  throw Error(
      ErrorCode::internal,
      fmt::format("no progress for {:g} s: client events handled to {}, next at {}; requests to servers to {}, "
                  "next at {}; {}\n{}This is a fault of Orrery or of the machine's network, please report it.",
                  options_.watchdog_seconds, in_ps(latest_[client]), in_ps(next_client_event()), in_ps(latest_[server]),
                  in_ps(ordered_.server_time()), model_.status(), channels_->describe()));
}

}  // namespace orrery::pdes
