#include "orrery/collective/custom_collective_run.hpp"

#include <algorithm>
#include <functional>

#include "orrery/base/error.hpp"

namespace orrery::collective {

using OperationKind = CustomCollective::OperationKind;

CustomCollectiveRun::CustomCollectiveRun(const MessageProgram& script, std::uint32_t service, std::uint32_t member)
    : script_(&script),
      procedure_(script.procedure(service)),
      service_(service),
      member_(member),
      first_(procedure_->first(member)),
      left_(procedure_->first(member + 1) - first_) {
  for (const auto& operation : procedure_->operations().subspan(first_, left_))
    waits_.push_back(operation.dependencies + (operation.kind == OperationKind::receive ? 2 : 1));
}

void CustomCollectiveRun::release(std::uint32_t step) {
  if (--waits(step) > 0) return;
  ready_.push_back(step);
  std::ranges::push_heap(ready_, std::greater<>());
}

void CustomCollectiveRun::begin(Time now, CollectiveTransport& hands) {
  for (std::uint32_t step = first_; step < first_ + waits_.size(); ++step) release(step);
  run(now, hands);
}

void CustomCollectiveRun::receive(std::uint32_t step, Time now, CollectiveTransport& hands) {
  release(step);
  run(now, hands);
}

void CustomCollectiveRun::wake(std::uint32_t step, Time now, CollectiveTransport& hands) {
  end(step);
  run(now, hands);
}

void CustomCollectiveRun::end(std::uint32_t step) {
  ensure(left_ > 0, "more operations of a custom collective end than it has");
  --left_;
  for (const std::uint32_t next : procedure_->successors(step)) release(next);
}

void CustomCollectiveRun::run(Time now, CollectiveTransport& hands) {
  while (!ready_.empty()) {
    std::ranges::pop_heap(ready_, std::greater<>());
    const std::uint32_t step = ready_.back();
    ready_.pop_back();
    const MessageProgram::Move move = script_->move(service_, step, member_);
    if ((*procedure_)[step].kind == OperationKind::send) {
      const std::uint32_t there = (*procedure_)[step].partner;
      hands.send(
          (*procedure_)[there].position, move.message, {service_, there},
          move.sends_one_by_one ? CollectiveTransport::Payload::acknowledged_data : CollectiveTransport::Payload::data,
          step);
      if (!move.sends_one_by_one) end(step);
    } else if (move.cost > Time::zero()) {
      hands.wake({service_, step}, now + move.cost);
    } else {
      end(step);
    }
  }
}

}  // namespace orrery::collective
