#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/network/delay_model.hpp"
#include "serving_model.hpp"

namespace orrery::serving {
namespace {

using pdes::Event;
using pdes::Stage;

/// Returns the bytes of the parts from `first` up to `end` of `count` equal ones.
Bytes range_of(Bytes all, std::size_t first, std::size_t end, std::size_t count) {
  const auto until = [&](std::size_t k) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(all.count()) * k / count);
  };
  return Bytes(until(end) - until(first));
}

}  // namespace

/// Returns the messages of a transfer, or of one layer of it: each NPU of the home sends to each NPU of the other side
/// what both of them hold.
std::vector<ServingModel::TransferPart> ServingModel::parts_of_transfer(std::uint32_t home, std::uint32_t to, Bytes all,
                                                                        std::optional<std::uint32_t> layer) const {
  const auto from_npus = npus_of_member(home), to_npus = npus_of_member(to);
  const Pipeline &of_home = scenario_.instances[lp_of_member(home)].pipeline,
                 &of_other = scenario_.instances[lp_of_member(to)].pipeline;
  const std::uint32_t layers = scenario_.layers > 0 ? scenario_.layers : of_home.stages * of_other.stages;
  const std::size_t senders = from_npus.size() / of_home.stages, receivers = to_npus.size() / of_other.stages;
  const std::size_t count = senders * receivers;
  std::vector<TransferPart> parts;
  for (std::uint32_t s = 0; s < of_home.stages; ++s)
    for (std::uint32_t r = 0; r < of_other.stages; ++r) {
      const std::uint32_t first = std::max(
          {first_layer_of(layers, of_home.stages, s), first_layer_of(layers, of_other.stages, r), layer.value_or(0)});
      const std::uint32_t end = std::min({first_layer_of(layers, of_home.stages, s + 1),
                                          first_layer_of(layers, of_other.stages, r + 1), layer ? *layer + 1 : layers});
      if (first >= end) continue;
      const Bytes shared = layer ? all : range_of(all, first, end, layers);
      for (std::size_t i = 0; i < count; ++i) {
        // Each sender begins with another receiver, so that their first messages do not meet.
        const std::size_t sender = i / receivers, receiver = (i + sender) % receivers;
        parts.push_back(
            {from_npus[s * senders + sender], to_npus[r * receivers + receiver], range_of(shared, i, i + 1, count)});
      }
    }
  return parts;
}

std::uint32_t ServingModel::messages_of_transfer(std::uint32_t home, std::uint32_t to) const {
  std::size_t count = 0;
  if (!scenario_.options.transfer.by_layer)
    return static_cast<std::uint32_t>(parts_of_transfer(home, to, {}, {}).size());
  for (std::uint32_t l = 0; l < scenario_.layers; ++l) count += parts_of_transfer(home, to, {}, l).size();
  return static_cast<std::uint32_t>(count);
}

void ServingModel::send_messages(std::uint32_t local, Time now, const Asked& asked) {
  const std::uint32_t home = instances_[local]->first() + asked.member;
  leaving_[asked.request] = {.messages = messages_of_transfer(home, asked.to), .member = asked.member};
  send_parts(now, asked.request,
             parts_of_transfer(home, asked.to, Bytes(scenario_.kv_bytes_per_token) * asked.tokens, {}));
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
    leaving_[asked.request] = {.messages = messages_of_transfer(instances_[local]->first() + asked.member, asked.to),
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
      send_parts(now, request,
                 parts_of_transfer(prefill.number, of.asked.to, range_of(all, of.next, of.next + 1, scenario_.layers),
                                   of.next));
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

/// Returns how long the longest message of a transfer takes.
Time ServingModel::longest_delay(const std::vector<TransferPart>& parts) const {
  Time longest;
  for (const TransferPart& part : parts) longest = std::max(longest, delays_->delay(part.from, part.to, part.size));
  return longest;
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
    end = delays_ != nullptr ? end + longest_delay(parts_of_transfer(of.home, of.to, all, {}))
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
    end = std::max(end, event.time + longest_delay(parts_of_transfer(of.home, of.to, size, of.next)));
  else if (of.tokens > 0)
    end = ports_->send(event.time, of.home, of.to, size);
  of.arrival = std::max(of.arrival, end);
  if (++of.next < scenario_.layers) return;
  end_transfer(of.arrival, of.arrival - event.time, event.node, of);
  at_ports_.erase(event.node);
}

}  // namespace orrery::serving
