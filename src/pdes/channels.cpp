#include "channels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace orrery::pdes {

std::string in_ps(Time time) { return time == Time::max() ? "never" : fmt::format("{} ps", time.ps()); }

Channels::Channels(std::unique_ptr<parallel::Transport> transport, int num_ranks,
                   const std::vector<Neighbour>& neighbours, Handlers handlers, Statistics& statistics)
    : handlers_(std::move(handlers)),
      statistics_(statistics),
      transport_(std::move(transport)),
      index_(static_cast<std::size_t>(num_ranks), -1) {
  for (const auto& neighbour : neighbours) {
    index_[neighbour.rank.index()] = static_cast<int>(channels_.size());
    channels_.emplace_back().neighbour = neighbour;
  }
  update_promised();
}

Channels::Channel& Channels::channel(Rank rank) {
  const int i = index_.at(rank.index());
  ensure(i >= 0, "a message to a rank that is no neighbour");
  return channels_[static_cast<std::size_t>(i)];
}

void Channels::append(Channel& channel, bool is_post, std::span<const std::byte> bytes,
                      std::span<const std::byte> more) {
  const Record record{static_cast<std::uint32_t>(bytes.size() + more.size()), is_post ? 1U : 0U};
  if (channel.batch.empty()) channel.batch.resize(sizeof(Header));  // filled in by transmit
  const auto head = std::as_bytes(std::span(&record, 1));
  channel.batch.insert(channel.batch.end(), head.begin(), head.end());
  channel.batch.insert(channel.batch.end(), bytes.begin(), bytes.end());
  channel.batch.insert(channel.batch.end(), more.begin(), more.end());
}

void Channels::send(Rank to, const Event& event, bool by_server, std::span<const std::byte> more) {
  Channel& c = channel(to);
  ensure(c.neighbour.outgoing, "an event to a rank that this one may not send to");
  const Time told = event.stage() == Stage::server ? c.told.requests : by_server ? c.told.replies : c.told.sends;
  if (event.time < told) [[unlikely]]
    fail_causality(event, "is sent", "its channel's promise is", told);
  append(c, false, std::as_bytes(std::span(&event, 1)), more);
  ++statistics_.events_sent;
}

void Channels::post(Rank to, std::span<const std::byte> message) {
  append(channel(to), true, message);
  ++statistics_.posts_sent;
}

void Channels::promise(Channel& channel, const EarliestOutput& output) {
  const auto& n = channel.neighbour;
  const Time reply = output.replies[static_cast<std::size_t>(&channel - channels_.data())];
  channel.told.raise({output.sends + n.event_delay, std::min(output.service + n.service_delay, reply),
                      std::min(n.requests ? output.calls : Time::max(), output.service + n.relay_delay)});
}

/// Sends the records of the batch together with the promises of the channel. A message without records is a null
/// message.
void Channels::transmit(Channel& channel, std::optional<Need> request) {
  const bool data = !channel.batch.empty();
  if (!data) channel.batch.resize(sizeof(Header));
  Header header{
      channel.told, request.value_or(Need{}), static_cast<std::uint32_t>(channel.batch.size() - sizeof(Header)),
      round_,       request ? 1U : 0U,        0};
  std::memcpy(channel.batch.data(), &header, sizeof header);
  transport_->send(channel.neighbour.rank, channel.batch);
  ++sent_;
  statistics_.message_bytes += channel.batch.size();
  ++(data ? statistics_.data_messages : statistics_.null_messages);
  if (request) ++statistics_.promise_requests;
  channel.batch.clear();
  if (channel.wanted && channel.told.exceed(*channel.wanted)) channel.wanted.reset();
}

bool Channels::has_reason_to_flush() const {
  return std::ranges::any_of(channels_, [](const Channel& c) { return !c.batch.empty() || c.wanted; });
}

bool Channels::flush(const EarliestOutput& output, Need need) {
  need = with_what_others_want(need);
  bool any = false;
  for (Channel& c : channels_) {
    if (c.batch.empty() && !c.wanted) continue;
    promise(c, output);
    const bool suffices = c.wanted && c.told.exceed(*c.wanted);
    if (c.batch.empty() && !suffices) continue;
    const bool asks = must_ask(c, need);
    if (asks) c.asked = need;
    any = any || asks;
    transmit(c, asks ? std::optional(need) : std::nullopt);
  }
  return any;
}

/// Adds what other ranks ask of us: we can promise it only if we are promised as much, less the delay of what we would
/// do.
Need Channels::with_what_others_want(Need need) const {
  for (const Channel& c : channels_) {
    if (!c.wanted) continue;
    const auto& n = c.neighbour;
    const auto less = [](Time time, Time delay) { return delay == Time::max() ? Time::from_ps(-1) : time - delay; };
    const Time least = std::max({less(c.wanted->requests, n.requests ? Time::zero() : n.relay_delay),
                                 less(c.wanted->sends, n.event_delay),
                                 less(c.wanted->replies, std::min(n.service_delay, n.reply_delay))});
    need.sends = std::max(need.sends, least);
    need.replies = std::max(need.replies, least);
    need.requests = std::max(need.requests, least);
  }
  return need;
}

bool Channels::must_ask(const Channel& c, const Need& need) const {
  if (!c.neighbour.incoming) return false;
  const bool is_new = c.asked.sends < need.sends || c.asked.replies < need.replies || c.asked.requests < need.requests;
  return is_new && !c.promised.exceed(need);
}

bool Channels::ask(Need need, const EarliestOutput& output) {
  need = with_what_others_want(need);
  bool any = false;
  for (Channel& c : channels_) {
    if (!must_ask(c, need)) continue;
    c.asked = need;
    promise(c, output);
    transmit(c, need);
    any = true;
  }
  return any;
}

int Channels::poll() {
  const int messages = transport_->poll([this](Rank from, std::span<const std::byte> message) { take(from, message); });
  if (messages > 0) update_promised();
  return messages;
}

void Channels::take(Rank from, std::span<const std::byte> message) {
  Channel& c = channel(from);
  Header header;
  ensure(message.size() >= sizeof header, "a message without its header");
  std::memcpy(&header, message.data(), sizeof header);
  ++(header.round > round_ ? received_ahead_ : received_);
  if (header.num_bytes == 0) ++statistics_.null_messages_received;
  // The records first: the promise speaks of what comes after them.
  std::size_t at = sizeof header;
  while (at < message.size()) {
    Record record;
    std::memcpy(&record, message.data() + at, sizeof record);
    at += sizeof record;
    ensure(at + record.bytes <= message.size(), "a record that is longer than its message");
    const auto body = message.subspan(at, record.bytes);
    at += record.bytes;
    if (record.is_post) {
      handlers_.post(from, body);
    } else {
      Event event;
      std::memcpy(&event, body.data(), sizeof event);
      handlers_.event(event, body.subspan(sizeof event));
    }
  }
  c.promised.raise(header.promises);
  if (header.asks) c.wanted = header.need;
}

void Channels::update_promised() {
  least_ = {Time::max(), Time::max(), Time::max()};
  for (const Channel& c : channels_) {
    if (!c.neighbour.incoming) continue;
    least_.sends = std::min(least_.sends, c.promised.sends);
    least_.replies = std::min(least_.replies, c.promised.replies);
    least_.requests = std::min(least_.requests, c.promised.requests);
  }
}

// The reduction shows a state that the whole system was in at one moment, if no message was under way then. Each rank
// contributes when it is blocked, with the number of messages it has sent and received, and goes on as before. Messages
// sent after a contribution carry the next round's number and are not counted as received in this one. Suppose the sums
// of sent and received agree. Then every message sent before its sender's contribution was received before its
// receiver's. A blocked rank changes its state only when it receives something; the first that did so between its
// contribution and the last one would have received a message sent before a contribution, and that one would be missing
// in the sum of received ones. So all contributions describe one state, in which all ranks are blocked and nothing is
// under way.
void Channels::join_reduction(const LbtsContribution& mine) {
  if (reducing_) return;
  const auto mode = static_cast<std::int64_t>(mine.mode);
  const std::array<std::int64_t, 9> minima{mine.sends.ps(),
                                           mine.calls.ps(),
                                           mine.reply.ps(),
                                           mine.request.ps(),
                                           mine.event.ps(),
                                           -mine.latest.ps(),
                                           -mine.broken_off.ps(),
                                           mode,
                                           -mode};
  const std::array<std::int64_t, 2> sums{sent_, received_};
  transport_->start_reduction(minima, sums);
  reducing_ = true;
  ++statistics_.reductions;
  ++round_;
  received_ += received_ahead_;
  received_ahead_ = 0;
}

std::optional<LbtsContribution> Channels::try_reduction(const Options& options) {
  if (!reducing_) return std::nullopt;
  const auto reduced = transport_->finish_reduction();
  if (!reduced) return std::nullopt;
  reducing_ = false;
  if (reduced->sums[0] != reduced->sums[1]) return std::nullopt;
  const auto least = [&](std::size_t i) { return Time::from_ps(reduced->minima[i]); };
  const auto greatest = [&](std::size_t i) { return Time::from_ps(-reduced->minima[i]); };
  const LbtsContribution all{.sends = least(0),
                             .calls = least(1),
                             .reply = least(2),
                             .request = least(3),
                             .event = least(4),
                             .latest = greatest(5),
                             .broken_off = greatest(6),
                             .mode = static_cast<StopMode>(-reduced->minima[8]),
                             .all_stop = reduced->minima[7] != static_cast<std::int64_t>(StopMode::none)};
  // From the state that it shows on, the first event that reaches a rank comes from a send, one event delay later at
  // least; from a server, called at `request` or `calls`; or from posts, of which `reply` speaks for those that have
  // come. What it then brings about comes later still.
  const Time reply =
      std::max(std::min(all.reply, all.calls + options.least_reply_delay), all.calls + options.final_delay);
  const Time events = std::min(
      {all.sends + options.least_event_delay, std::min(all.request, all.calls) + options.least_service_delay, reply});
  for (Channel& c : channels_) c.promised.raise({events, events, std::min(all.calls, events)});
  update_promised();
  return all;
}

std::string Channels::describe() const {
  std::string text;
  for (const Channel& c : channels_)
    text += fmt::format(
        "  channel with rank {}: promised to us {} sends, {} replies, {} requests; we promised {}, {} and {}; {}\n",
        c.neighbour.rank.value(), in_ps(c.promised.sends), in_ps(c.promised.replies), in_ps(c.promised.requests),
        in_ps(c.told.sends), in_ps(c.told.replies), in_ps(c.told.requests),
        c.wanted ? "it waits for us" : "it does not wait for us");
  return text;
}

}  // namespace orrery::pdes
