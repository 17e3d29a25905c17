#include "traffic.hpp"

#include <algorithm>
#include <cstring>

#include "orrery/base/error.hpp"
#include "orrery/executor/kinds.hpp"
#include "overrun.hpp"

namespace orrery::executor {

using network::Fabric;
using network::LinkId;

Traffic::Traffic(pdes::Kernel& kernel, const Setting& setting, const Fabric& fabric, Rank here, LpId first_lp,
                 std::optional<Overrun>& overrun)
    : kernel_(kernel),
      fabric_(fabric),
      host_of_npu_(setting.host_of_npu),
      here_(here),
      first_lp_(first_lp),
      overrun_(overrun),
      local_of_(setting.host_of_npu.size()) {
  const std::uint32_t per_npu = fabric.links_per_npu();
  servers_.reserve(setting.npus.size() * per_npu);
  for (const NpuSpec& npu : setting.npus) {
    local_of_[npu.id.index()] = static_cast<std::uint32_t>(servers_.size());
    for (std::uint32_t k = 0; k < per_npu; ++k) {
      servers_.emplace_back();
      servers_.back().link = fabric.find(fabric.link_of(npu.id, k));
    }
  }
}

Traffic::Server& Traffic::server_of(LinkId link) {
  const Fabric::Link where = fabric_.find(link);
  return servers_[local_of_[where.owner.index()] + fabric_.number_at_owner(where)];
}

std::uint32_t Traffic::put(const Message& message) {
  if (free_.empty()) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  messages_[place] = message;
  return place;
}

Message Traffic::take(const pdes::Event& event) {
  free_.push_back(event.node);
  return messages_[event.node];
}

void Traffic::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  Message message;
  check(bytes.size() == sizeof message, "a message of the network of wrong size");
  std::memcpy(&message, bytes.data(), sizeof message);
  event.node = put(message);
}

void Traffic::send(const Message& message, pdes::Event call) {
  call.target = LpId(first_lp_.value() + fabric_.first(message.source, message.destination).value());
  call.kind = static_cast<std::uint16_t>(EventKind::pass);
  call.node = put(message);
  kernel_.send(here_, call);
}

pdes::Event Traffic::event(Server& server, Time time, pdes::Stage stage, LpId target) const {
  const LpId lp(first_lp_.value() + server.link.id.value());
  return pdes::Event::make(time, stage, lp, server.sequence++, target);
}

void Traffic::serve(const pdes::Event& event) {
  Server& server = server_of(LinkId(event.target.value() - first_lp_.value()));
  const Message& message = messages_[event.node];
  if (!server.is_known || server.size != message.size) {
    server.size = message.size;
    server.holds = fabric_.holds(server.link, message.size);
    server.passes = fabric_.passes(server.link, message.size);
    server.is_known = true;
  }
  const Time there = server.server.serve(event.time, server.holds, message.size) + server.passes;
  if (there == Time::max()) {
    keep_earliest(overrun_, {event.time, message.source, message.node});
    free_.push_back(event.node);
    return;
  }
  forward(server, event, there);
}

/// The message is at the next link, or at its destination, at this time.
void Traffic::forward(Server& server, const pdes::Event& event, Time there) {
  const Message message = messages_[event.node];
  const auto next = fabric_.next(server.link, message.destination);
  const LpId target(next ? first_lp_.value() + next->value() : message.destination.value());
  const Rank to = host_of_npu_[next ? fabric_.find(*next).owner.index() : message.destination.index()];
  pdes::Event onward = this->event(server, there, next ? pdes::Stage::server : pdes::Stage::npu, target);
  onward.kind = static_cast<std::uint16_t>(next ? EventKind::pass : EventKind::arrived);
  onward.node = event.node;
  if (to == here_) {
    kernel_.send(to, onward);
  } else {
    kernel_.send(to, onward, std::as_bytes(std::span(&message, 1)));
    free_.push_back(event.node);
  }
  if (next || message.kind != Message::Kind::data) return;
  pdes::Event sent = this->event(server, there, pdes::Stage::npu, LpId(message.source.value()));
  sent.kind = static_cast<std::uint16_t>(EventKind::sent);
  sent.node = message.node.value();
  kernel_.send(host_of_npu_[message.source.index()], sent);
}

std::vector<LinkRecord> Traffic::records() const {
  std::vector<LinkRecord> records;
  for (const Server& server : servers_) {
    const network::LinkStatistics& done = server.server.statistics();
    if (done.messages == 0) continue;
    const Fabric::Ends ends = fabric_.ends(server.link);
    records.push_back({server.link.id.value(), server.link.dimension,
                       ends.from ? static_cast<std::int64_t>(ends.from->value()) : LinkRecord::a_switch,
                       ends.to ? static_cast<std::int64_t>(ends.to->value()) : LinkRecord::a_switch, done});
  }
  std::ranges::sort(records, {}, &LinkRecord::link);
  return records;
}

}  // namespace orrery::executor
