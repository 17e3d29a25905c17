#include "orrery/collective/custom_collective_run.hpp"

#include <algorithm>
#include <functional>

#include "orrery/base/error.hpp"

namespace orrery::collective {

CustomCollectiveRun::CustomCollectiveRun(const MessageProgram& program, std::uint32_t service, std::uint32_t member)
    : program_(&program),
      custom_(program.custom_collective(service)),
      service_(service),
      member_(member),
      first_(custom_->first(member)),
      left_(custom_->first(member + 1) - first_) {
  for (const auto& operation : custom_->operations().subspan(first_, left_))
    waits_.push_back(operation.dependencies + (operation.kind == CustomCollective::OperationKind::receive ? 2 : 1));
}

void CustomCollectiveRun::release(std::uint32_t operation) {
  if (--waits(operation) > 0) return;
  ready_.push_back(operation);
  std::ranges::push_heap(ready_, std::greater<>());
}

void CustomCollectiveRun::begin(Time now, CollectiveTransport& transport) {
  for (std::uint32_t operation = first_; operation < first_ + waits_.size(); ++operation) release(operation);
  run(now, transport);
}

void CustomCollectiveRun::receive(std::uint32_t operation, Time now, CollectiveTransport& transport) {
  release(operation);
  run(now, transport);
}

void CustomCollectiveRun::wake(std::uint32_t operation, Time now, CollectiveTransport& transport) {
  end(operation);
  run(now, transport);
}

void CustomCollectiveRun::end(std::uint32_t operation) {
  ensure(left_ > 0, "more operations of a custom collective end than it has");
  --left_;
  for (const std::uint32_t next : custom_->successors(operation)) release(next);
}

void CustomCollectiveRun::run(Time now, CollectiveTransport& transport) {
  while (!ready_.empty()) {
    std::ranges::pop_heap(ready_, std::greater<>());
    const std::uint32_t operation = ready_.back();
    ready_.pop_back();
    const MemberStep& step = program_->step(service_, operation, member_);
    if (!step.step.sends.empty()) {
      const Receiver to = step.step.sends[0];
      const bool awaits_delivery = step.step.awaits_delivery;
      transport.send(
          to.member, step.step.bytes, {service_, to.step},
          awaits_delivery ? CollectiveTransport::Payload::acknowledged_data : CollectiveTransport::Payload::data,
          operation);
      if (!awaits_delivery) end(operation);
    } else if (step.cost > Time::zero()) {
      transport.wake({service_, operation}, now + step.cost, false);
    } else {
      end(operation);
    }
  }
}

}  // namespace orrery::collective
