#include "event_order.hpp"

#include "execution.hpp"

namespace orrery::npu {

void EventPlaces::send(Execution& npu, Rank to, const pdes::Event& event, const EventPlace&) {
  npu.context().services.kernel.send(to, event);
}

void EventPlaces::wait(Execution& npu, const StepWait& wait, Time) {
  npu.context().services.kernel.schedule(
      npu.make_event(wait.until, pdes::Stage::client, npu.npu().lp(), EventKind::wake, wait.node.value(), wait.step));
}

void EventOrder::join(Execution& npu, const communicator::Membership& membership, communicator::Join& join, Time) {
  npu.context().services.communicators.join(membership, join);
}

}  // namespace orrery::npu
