#include <utility>

#include "orrery/network/model.hpp"
#include "serving_model.hpp"

namespace orrery::serving {

using pdes::Event;
using pdes::Stage;

/// Makes what carries out the steps of an instance over links, if they are messages there.
void ServingModel::make_traffic(std::uint32_t local, const InstanceSpec& spec) {
  traffic_.emplace_back();
  if (!spec.programs) return;
  const auto call_of = [this](const network::Message& message, Time now) {
    const NpuId source = message.source;
    return Event::make(now, Stage::server, LpId(source.value()), ++messages_of_[source.value()], {});
  };
  StepTraffic::Services services;
  services.send = [this, call_of](const network::Message& message, Time now) {
    links_->send(message, call_of(message, now));
  };
  services.multicast = [this, call_of](const network::Message& message, std::vector<NpuId> to, Time now) {
    links_->multicast(message, std::move(to), call_of(message, now));
  };
  services.wake = [this, local](std::uint32_t number, Time time) {
    const LpId lp = lp_of(first_lp_ + local);
    kernel_->schedule(event_of(time, Stage::client, lp, lp, traffic_wake, number, 0));
  };
  traffic_.back() = std::make_unique<StepTraffic>(spec, std::move(services));
}

/// Takes in which step has ended.
void ServingModel::end_traffic(std::uint32_t local, Time now) {
  StepTraffic* const traffic = traffic_[local].get();
  if (traffic == nullptr) return;
  for (const std::uint64_t number : traffic->started()) instances_[local]->start_step(number, now);
  if (!traffic->ended().empty()) instances_[local]->end_oldest(now);
  traffic->clear_news();
}

/// Hands over the steps that have been scheduled.
void ServingModel::begin_traffic(std::uint32_t local, Time now) {
  StepTraffic* const traffic = traffic_[local].get();
  if (traffic == nullptr) return;
  Instance& instance = *instances_[local];
  const InstanceSpec& spec = scenario_.instances[first_lp_ + local];
  for (const std::uint64_t number : effects_.begun) {
    const auto shapes = instance.shapes_of(number);
    traffic->add(number, instance.needs(number), spec.cost->plan(shapes, number, spec.pipeline.stages),
                 instance.activations(), now);
  }
  for (const std::uint64_t number : traffic->started()) instance.start_step(number, now);
  traffic->clear_news();
}

/// Takes in a message of a step, or a note that one was delivered. Returns false if it belongs to a transfer.
bool ServingModel::take_step_message(std::uint32_t local, const Event& event, const network::Message& message) {
  StepTraffic* const traffic = traffic_[local].get();
  if (event.kind == static_cast<std::uint16_t>(network::Delivery::wake))
    traffic->take_receipt(event.node, NpuId(event.target.value()), network::unpacked(event.detail), event.time);
  else if (message.kind == network::Message::Kind::step_data)
    traffic->take_message(message, event.time);
  else
    return false;
  if (traffic->has_news()) touched_inbox(local);
  return true;
}

}  // namespace orrery::serving
