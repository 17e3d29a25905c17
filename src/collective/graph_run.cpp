#include "orrery/collective/graph_run.hpp"

#include <algorithm>
#include <functional>

#include "orrery/base/error.hpp"

namespace orrery::collective {

using Act = Procedure::Act;

GraphRun::GraphRun(const Script& script, std::uint32_t service, std::uint32_t member)
    : script_(&script),
      procedure_(script.procedure(service)),
      service_(service),
      member_(member),
      first_(procedure_->first(member)),
      left_(procedure_->first(member + 1) - first_) {
  for (const auto& operation : procedure_->operations().subspan(first_, left_))
    waits_.push_back(operation.dependencies + (operation.act == Act::receive ? 2 : 1));
}

void GraphRun::release(std::uint32_t step) {
  if (--waits(step) > 0) return;
  ready_.push_back(step);
  std::ranges::push_heap(ready_, std::greater<>());
}

void GraphRun::begin(Time now, MemberHands& hands) {
  for (std::uint32_t step = first_; step < first_ + waits_.size(); ++step) release(step);
  run(now, hands);
}

void GraphRun::receive(std::uint32_t step, Time now, MemberHands& hands) {
  release(step);
  run(now, hands);
}

void GraphRun::wake(std::uint32_t step, Time now, MemberHands& hands) {
  end(step);
  run(now, hands);
}

void GraphRun::end(std::uint32_t step) {
  ensure(left_ > 0, "more operations of a custom collective end than it has");
  --left_;
  for (const std::uint32_t next : procedure_->successors(step)) release(next);
}

void GraphRun::run(Time now, MemberHands& hands) {
  while (!ready_.empty()) {
    std::ranges::pop_heap(ready_, std::greater<>());
    const std::uint32_t step = ready_.back();
    ready_.pop_back();
    const Script::Move move = script_->move(service_, step, member_);
    if ((*procedure_)[step].act == Act::send) {
      const std::uint32_t there = (*procedure_)[step].partner;
      hands.send((*procedure_)[there].position, move.message, {service_, there},
                 move.sends_one_by_one ? MemberHands::Sent::data_with_receipt : MemberHands::Sent::data, step);
      if (!move.sends_one_by_one) end(step);
    } else if (move.cost > Time::zero()) {
      hands.wake({service_, step}, now + move.cost);
    } else {
      end(step);
    }
  }
}

}  // namespace orrery::collective
