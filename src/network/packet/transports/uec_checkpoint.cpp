// The state of hosts with UEC in a checkpoint.
#include <algorithm>

#include "uec.hpp"

namespace orrery::network {
namespace {

template <class T>
void serialize_all(std::deque<T>& values, Archive& archive) {
  std::vector<T> all(values.begin(), values.end());
  archive(all);
  values.assign(all.begin(), all.end());
}

}  // namespace

void UecTransport::begin_saving() {
  saved_senders_.clear();
  saved_sinks_.clear();
  for (const auto& [key, sender] : senders_) saved_senders_.push_back(key);
  for (const auto& [key, sink] : sinks_) saved_sinks_.emplace_back(sink.flow().destination, key);
  std::ranges::sort(saved_senders_);
  std::ranges::sort(saved_sinks_);
}

void UecTransport::serialize(std::uint32_t host, Archive& archive) {
  for (std::uint32_t p = 0; p < services_.system.graph.ports(host).size(); ++p) {
    Nic& there = nic(services_.ports.at(host, p));
    archive(there.passes_next, there.turn, there.is_pulling);
    services_.packets.serialize(there.control, archive);
    serialize_all(there.active, archive);
    serialize_all(there.pulled, archive);
    serialize_all(there.idle, archive);
    serialize_all(there.over, archive);
  }
  std::vector<std::uint64_t> senders, sinks;
  if (!archive.reads()) {
    for (const std::uint64_t key : saved_senders_)
      if (key >> 32U == host) senders.push_back(key);
    for (const auto& [destination, key] : saved_sinks_)
      if (destination == host) sinks.push_back(key);
  }
  archive(senders, sinks);
  for (const std::uint64_t key : senders) {
    auto& sender = senders_[key];
    if (archive.reads())
      sender = std::make_unique<UecSender>(run_, FlowId{}, PortOfFlow{0, run_.figures.rate}, 0, Time::zero());
    sender->serialize(archive);
  }
  for (const std::uint64_t key : sinks) sinks_.try_emplace(key, FlowId{}, 0).first->second.serialize(archive);
}

}  // namespace orrery::network
