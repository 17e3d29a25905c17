#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/network/delay_model.hpp"
#include "serving_model.hpp"

namespace orrery::serving {
namespace {

using pdes::Event;
using pdes::Stage;

}  // namespace

void ServingModel::send_messages(std::uint32_t local, Time now, const Asked& asked) {
  const std::uint32_t home = instances_[local]->first() + asked.member;
  leaving_[asked.request] = {.messages = parts_.count(home, asked.to), .member = asked.member};
  send_parts(now, asked.request, parts_.of(home, asked.to, Bytes(scenario_.kv_bytes_per_token) * asked.tokens, {}));
}

void ServingModel::send_parts(Time now, std::uint32_t request, const std::vector<TransferPart>& parts) {
  for (const TransferPart& part : parts) {
    const network::Message message{.source = part.from,
                                   .destination = part.to,
                                   .node = NodeId(request),
                                   .size = part.size,
                                   .last = {now, part.from}};
    // The number 0 belongs to the start of the NPU.
    links_->send(message,
                 Event::make(now, Stage::server, LpId(part.from.value()), ++messages_of_[part.from.value()], {}));
  }
}

/// Lets the layers of a request leave that are complete, and the others when they are.
void ServingModel::begin_layers(std::uint32_t local, Time now, const Asked& asked) {
  layers_[asked.request] = {asked};
  if (sends_over_links() && asked.tokens > 0)
    leaving_[asked.request] = {.messages = parts_.count(instances_[local]->first() + asked.member, asked.to),
                               .member = asked.member};
  send_layers(local, now, asked.request);
}

void ServingModel::send_layers(std::uint32_t local, Time now, std::uint32_t request) {
  Layers& of = layers_.at(request);
  const Instance::Prefill& prefill = prefills_.at(request);
  const Bytes all = Bytes(scenario_.kv_bytes_per_token) * of.asked.tokens;
  const auto complete_at = [&](std::uint32_t l) {
    const auto span = static_cast<__int128>((prefill.end - prefill.start).ps());
    return prefill.start + Time::from_ps(static_cast<std::int64_t>(span * (l + 1) / scenario_.layers));
  };
  for (; of.next < scenario_.layers && complete_at(of.next) <= now; ++of.next) {
    if (sends_over_links() && of.asked.tokens > 0)
      send_parts(
          now, request,
          parts_.of(prefill.number, of.asked.to, range_of(all, of.next, of.next + 1, scenario_.layers), of.next));
    else
      call(local, ports_lp(), now, layer_due, request, 0);
  }
  if (of.next < scenario_.layers) {
    const Time next = complete_at(of.next);
    const LpId lp = lp_of(first_lp_ + local);
    kernel_->schedule(event_of(next, Stage::client, lp, lp, layer_due, request, 0));
    next_sends_.insert(next);
    return;
  }
  layers_.erase(request);
  prefills_.erase(request);
}

void ServingModel::take_delivery(const Event& event) {
  const std::uint32_t local = local_of_npu_.at(event.target.value());
  const bool has_come = event.kind == static_cast<std::uint16_t>(network::Delivery::arrived);
  links_->take_place(event);
  network::Message message;
  if (has_come) message = links_->take(event);
  if (take_step_message(local, event, message)) return;
  const std::uint32_t request = has_come ? message.node.value() : event.node;
  auto& open = has_come ? coming_ : leaving_;
  const auto found = open.find(request);
  Open& of = found->second;
  of.last_sent = std::max(of.last_sent, message.last.time);
  if (--of.messages > 0) return;
  if (has_come) transfer_times_.emplace_back(request, event.time - found->second.asked);
  touched_inbox(local).arrived.push_back({request, has_come, of.member, of.last_sent});
  open.erase(found);
}

/// Asks the home of a request for its KV, which the call of a decode instance wants.
void ServingModel::ask_home(Time time, std::uint32_t request, const PortTransfer& of) {
  const std::uint32_t home_number = lp_of_member(of.home);
  kernel_->send(rank_of_lp_[home_number], event_of(time, Stage::client, ports_lp(), lp_of(home_number), ask, request,
                                                   std::uint64_t{of.home - first_member_[home_number]} << 52U |
                                                       std::uint64_t{of.to} << 32U | of.tokens));
}

/// Tells both sides of the end of a transfer, which began `taken` before it.
void ServingModel::end_transfer(Time end, Time taken, std::uint32_t request, const PortTransfer& of) {
  const std::uint32_t number = lp_of_member(of.to), home_number = lp_of_member(of.home);
  const bool is_awaited = of.tokens > 0 || scenario_.options.transfer.by_layer;
  if (is_awaited)
    kernel_->send(rank_of_lp_[number], event_of(end, Stage::client, ports_lp(), lp_of(number), arrive, request,
                                                std::uint64_t{of.to - first_member_[number]} << shift_of_member |
                                                    (static_cast<std::uint64_t>(taken.ps()) & mask_of_time)));
  kernel_->send(rank_of_lp_[home_number],
                event_of(end, Stage::client, ports_lp(), lp_of(home_number), release, request,
                         std::uint64_t{of.home - first_member_[home_number]} << shift_of_member));
}

void ServingModel::handle_ports(const Event& event) {
  if (event.kind == layer_due) return handle_layer_at_ports(event);
  const auto member = static_cast<std::uint32_t>(event.detail >> 32U & 0xfffU);
  const PortTransfer of{.home = static_cast<std::uint32_t>(event.detail >> 44U),
                        .to = first_member_[number_of(event.source())] + member,
                        .tokens = static_cast<std::uint32_t>(event.detail)};
  const Time asked = event.time - lead_;
  Time end = asked + ports_->latency();
  if (scenario_.options.transfer.by_layer) at_ports_[event.node] = of;
  if (scenario_.options.transfer.by_layer || (of.tokens > 0 && sends_over_links()))
    return ask_home(end - lead_, event.node, of);
  const Bytes all = Bytes(scenario_.kv_bytes_per_token) * of.tokens;
  if (of.tokens > 0)
    end = delays_ != nullptr ? end + longest_delay(*delays_, parts_.of(of.home, of.to, all, {}))
                             : ports_->send(asked, of.home, of.to, all);
  end_transfer(end, end - asked, event.node, of);
}

/// Sends a layer, which is complete at the home of the request. The first token is made when the last one is.
void ServingModel::handle_layer_at_ports(const Event& event) {
  PortTransfer& of = at_ports_.at(event.node);
  const Bytes size = range_of(Bytes(scenario_.kv_bytes_per_token) * of.tokens, of.next, of.next + 1, scenario_.layers);
  Time end = event.time + ports_->latency();
  // The router's rank answers no earlier than after this latency.
  if (of.tokens > 0 && delays_ != nullptr)
    end = std::max(end, event.time + longest_delay(*delays_, parts_.of(of.home, of.to, size, of.next)));
  else if (of.tokens > 0)
    end = ports_->send(event.time, of.home, of.to, size);
  of.arrival = std::max(of.arrival, end);
  if (++of.next < scenario_.layers) return;
  end_transfer(of.arrival, of.arrival - event.time, event.node, of);
  at_ports_.erase(event.node);
}

}  // namespace orrery::serving
