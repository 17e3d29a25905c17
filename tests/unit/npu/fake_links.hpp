#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/network/model.hpp"

namespace orrery::npu::test {

/// What is known of the links of a system before it runs.
class FakeNetwork final : public network::SimulatedNetwork {
 public:
  std::uint32_t num_processes() const override { return 0; }
  Time least_relay_delay() const override { return Time::max(); }
  Time relay_delay_between_ranks(const Hosting&) const override { return Time::max(); }
  bool keeps_within(std::span<const NpuId> npus, const std::function<bool(NpuId)>& is_in) const override {
    const auto is_kept = [&](NpuId npu) { return std::ranges::find(kept, npu) != kept.end(); };
    return std::ranges::all_of(npus, is_kept) && std::ranges::all_of(npus, is_in);
  }
  std::unique_ptr<network::MessageNetwork> on_rank(const network::RankPart&) const override { return nullptr; }

  std::vector<NpuId> kept;  ///< messages among these pass no links of other NPUs
};

/// A network of links that keeps what NPUs send and delivers nothing by itself. A test makes the events of deliveries,
/// and the NPUs take the messages of these events here.
class FakeLinks final : public network::MessageNetwork {
 public:
  struct Sent {
    network::Message message;
    pdes::Event call;
    std::vector<NpuId> destinations;  ///< of a multicast; of a send none
  };

  void send(const network::Message& message, pdes::Event call) override { sent.push_back({message, call, {}}); }
  void multicast(const network::Message& message, std::vector<NpuId> destinations, pdes::Event call) override {
    sent.push_back({message, call, std::move(destinations)});
  }
  network::Message take(const pdes::Event& event) override { return arriving_.at(event.node); }
  void serve(const pdes::Event&) override { ensure_failed("the test has no link", std::source_location::current()); }
  void unpack(pdes::Event&, std::span<const std::byte>) override {
    ensure_failed("the test has no message of another rank", std::source_location::current());
  }
  std::vector<network::LinkRecord> records() const override { return {}; }

  // A test saves nothing.
  Rank host_of(LpId) const override { return Rank(0); }
  std::vector<LpId> used() override { return {}; }
  std::vector<std::byte> pack(const pdes::Event&) const override { return {}; }
  void serialize(LpId, Archive&) override {}

  /// Returns the event by which a message arrives at its destination.
  pdes::Event arrival(const network::Message& message, Time time) {
    arriving_.push_back(message);
    return event(network::Delivery::arrived, message.destination, static_cast<std::uint32_t>(arriving_.size() - 1),
                 time);
  }
  /// Returns the event by which the source of a message, which it has sent, is told that the message is delivered.
  pdes::Event receipt(const network::Message& message, Time time) {
    auto receipt = event(message.step.wants_receipt ? network::Delivery::wake : network::Delivery::sent, message.source,
                         message.node.value(), time);
    receipt.detail = network::packed({message.step.id.service, message.step.receipt_step});
    return receipt;
  }

  std::vector<Sent> sent;  ///< in the order of sending

 private:
  pdes::Event event(network::Delivery kind, NpuId target, std::uint32_t node, Time time) {
    auto event = pdes::Event::make(time, pdes::Stage::client, first_link, sequence_++, LpId(target.value()));
    event.kind = static_cast<std::uint16_t>(kind);
    event.node = node;
    return event;
  }

  static constexpr LpId first_link{100};

  std::vector<network::Message> arriving_;
  std::uint64_t sequence_ = 0;
};

}  // namespace orrery::npu::test
