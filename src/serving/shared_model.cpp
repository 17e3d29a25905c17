#include "shared_model.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::serving {
namespace {

pdes::LookaheadBound earlier(const pdes::LookaheadBound& a, const pdes::LookaheadBound& b) {
  return {std::min(a.output, b.output), std::min(a.reaction, b.reaction)};
}

/// Adds to a channel what a second part of the model may send over it.
void join(pdes::Neighbour& channel, const pdes::Neighbour& other) {
  channel.outgoing = channel.outgoing || other.outgoing;
  channel.incoming = channel.incoming || other.incoming;
  channel.requests = channel.requests || other.requests;
  channel.event_delay = std::min(channel.event_delay, other.event_delay);
  channel.service_delay = std::min(channel.service_delay, other.service_delay);
  channel.reply_delay = std::min(channel.reply_delay, other.reply_delay);
  channel.relay_delay = std::min(channel.relay_delay, other.relay_delay);
}

}  // namespace

pdes::Options SharedModel::joined(pdes::Options of_rank, const pdes::Options& of_serving) {
  pdes::Options options = std::move(of_rank);
  options.num_lps = of_serving.num_lps;
  options.service_delay = std::min(options.service_delay, of_serving.service_delay);
  options.least_service_delay = std::min(options.least_service_delay, of_serving.least_service_delay);
  options.lps_run_ahead = false;
  options.cell_of.clear();
  for (const pdes::Neighbour& other : of_serving.neighbours) {
    const auto at = std::ranges::lower_bound(options.neighbours, other.rank, {}, &pdes::Neighbour::rank);
    if (at != options.neighbours.end() && at->rank == other.rank)
      join(*at, other);
    else
      options.neighbours.insert(at, other);
  }
  return options;
}

/// Says whether links tell an NPU of an instance of a message.
bool SharedModel::is_delivery(const pdes::Event& event) const {
  const bool has_kind = event.kind == static_cast<std::uint16_t>(network::Delivery::arrived) ||
                        event.kind == static_cast<std::uint16_t>(network::Delivery::sent) ||
                        event.kind == static_cast<std::uint16_t>(network::Delivery::wake);
  return has_kind && event.stage() == pdes::Stage::client && serving_.has_npu(event.target);
}

void SharedModel::handle(const pdes::Event& event) {
  if (is_of_serving(event.target)) return serving_.handle(event);
  if (is_delivery(event)) return serving_.take_delivery(event);
  rank_.handle(event);
}

void SharedModel::prefetch(const pdes::Event& event) const {
  if (!is_of_serving(event.target)) of_rank().prefetch(event);
}

pdes::Scope SharedModel::scope(const pdes::Event& event) const {
  if (is_of_serving(event.target)) return pdes::Scope::anywhere;
  // There is one cell.
  return of_rank().scope(event) == pdes::Scope::anywhere ? pdes::Scope::anywhere : pdes::Scope::rank;
}

void SharedModel::settle(Time now, pdes::Stage stage) {
  rank_.settle(now, stage);
  serving_.settle(now, stage);
}

bool SharedModel::admit(pdes::Event& event) {
  return is_of_serving(event.target) || is_delivery(event) ? true : rank_.admit(event);
}

void SharedModel::unpack(pdes::Event& event, std::span<const std::byte> bytes) { rank_.unpack(event, bytes); }

pdes::Awaited SharedModel::awaits(LpId client) const {
  return is_of_serving(client) || serving_.has_npu(client) ? serving_.awaits(client) : rank_.awaits(client);
}

void SharedModel::proceed(LpId client) {
  if (!is_of_serving(client)) rank_.proceed(client);
}

void SharedModel::receive(Rank from, std::span<const std::byte> message) { rank_.receive(from, message); }

pdes::LookaheadBounds SharedModel::lookahead() {
  const pdes::LookaheadBounds a = rank_.lookahead(), b = serving_.lookahead();
  return {earlier(a.sends, b.sends), earlier(a.calls, b.calls), earlier(a.relays, b.relays)};
}

Time SharedModel::pending_reply(Rank to) const { return rank_.pending_reply(to); }

std::string SharedModel::status() const { return fmt::format("{}; {}", rank_.status(), serving_.status()); }

}  // namespace orrery::serving
