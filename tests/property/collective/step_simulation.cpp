#include "step_simulation.hpp"

#include <algorithm>
#include <stdexcept>

namespace orrery::collective::test {

StepTable::StepTable(const SteppedAlgorithm& algorithm) {
  for (std::uint32_t i = 0; i < algorithm.task().size; ++i)
    for (std::uint64_t k = 0; k < algorithm.num_steps(i); ++k) {
      Step& step = steps[{i, k}];
      algorithm.step(i, k, step);
      for (const Receiver& to : step.sends) senders[{to.member, to.step}].emplace_back(i, k);
    }
}

StepSimulation::StepSimulation(const SteppedAlgorithm& algorithm, StepCosts costs)
    : algorithm_(algorithm), costs_(std::move(costs)), table_(algorithm) {}

std::vector<Ps> StepSimulation::run(const std::vector<Ps>& starts) {
  starts_ = starts;
  ends_.clear();
  std::vector<Ps> finishes;
  for (std::uint32_t i = 0; i < starts.size(); ++i) finishes.push_back(begin({i, algorithm_.num_steps(i)}));
  const Kind kind = algorithm_.task().kind;
  if (kind == Kind::broadcast || kind == Kind::reduce)
    for (Ps& finish : finishes) finish = std::max(finish, std::ranges::max(starts) + 2 * costs_.endpoint_delay);
  return finishes;
}

Ps StepSimulation::begin(StepKey key) {
  const auto& [position, k] = key;
  if (k > 0) return end({position, k - 1});
  return starts_[position] + (algorithm_.begins_with_endpoint_delay() ? costs_.endpoint_delay : 0);
}

Ps StepSimulation::end(StepKey key) {
  if (const auto known = ends_.find(key); known != ends_.end()) return known->second;
  const Step& step = table_.steps.at(key);
  Ps time = begin(key);
  if (step.through_switch) time = std::max(time, delivered_by_switch(key));
  for (const StepKey& sender : table_.senders[key]) time = std::max(time, delivered(sender, key));
  for (const Receiver& to : step.sends)
    if (step.awaits_delivery) time = std::max(time, delivered(key, {to.member, to.step}));
  if (step.pays_endpoint_delay) time += costs_.endpoint_delay;
  if (step.num_reductions > 0) time += static_cast<Ps>(step.num_reductions) * costs_.reduction(step.reduced);
  return ends_[key] = time;
}

Ps StepSimulation::delivered(StepKey sender, StepKey receiver) {
  Ps sent = begin(sender);
  if (costs_.rendezvous)
    sent = std::max(sent, begin(receiver) + costs_.clear_to_send(sender.first, receiver.first, sender.second));
  return sent + costs_.link(sender.first, receiver.first, table_.steps.at(sender).bytes, sender.second);
}

Ps StepSimulation::delivered_by_switch(StepKey receiver) {
  const std::uint32_t n = algorithm_.task().size;
  const std::uint64_t k = receiver.second;
  const SwitchLoad clear{clear_to_send_bytes, clear_to_send_bytes};
  Ps last = 0;
  for (std::uint32_t from = 0; from < n; ++from) {
    Ps sent = begin({from, k});
    for (std::uint32_t other = 0; costs_.rendezvous && other < n; ++other)
      sent = std::max(sent, begin({other, k}) + costs_.through_switch(other, from, clear));
    const SwitchLoad load = *table_.steps.at({from, k}).through_switch;
    last = std::max(last, sent + costs_.through_switch(from, receiver.first, load));
  }
  return last;
}

namespace {

/// The data of one message.
struct Carried {
  BlocksOfMessage what;
  std::vector<Contributions> contributions;
};

class DataSimulation {
 public:
  DataSimulation(const SteppedAlgorithm& algorithm, Data data)
      : algorithm_(algorithm), table_(algorithm), data_(std::move(data)), step_of_(data_.size(), 0) {
    for (std::uint32_t i = 0; i < data_.size(); ++i) send(i);
  }

  Data run(int& added_twice) {
    for (bool any = true; any;) {
      any = false;
      for (std::uint32_t i = 0; i < data_.size(); ++i)
        while (step_of_[i] < algorithm_.num_steps(i) && has_all(i)) {
          receive(i, added_twice);
          ++step_of_[i];
          send(i);
          any = true;
        }
    }
    for (std::uint32_t i = 0; i < data_.size(); ++i)
      if (step_of_[i] < algorithm_.num_steps(i))
        throw std::logic_error("a position waits for a message that nobody sends");
    return data_;
  }

 private:
  Carried carried(std::uint32_t position, std::uint32_t message) const {
    Carried made{algorithm_.blocks(position, step_of_[position], message), {}};
    for (const std::uint32_t block : made.what.blocks) made.contributions.push_back(data_[position][block]);
    return made;
  }

  /// Sends the messages of the position's step.
  void send(std::uint32_t position) {
    if (step_of_[position] == algorithm_.num_steps(position)) return;
    const Step& step = table_.steps.at({position, step_of_[position]});
    if (step.through_switch) at_switch_[step_of_[position]].push_back(carried(position, 0));
    for (std::uint32_t m = 0; m < step.sends.size(); ++m)
      messages_[{position, {step.sends[m].member, step.sends[m].step}}] = carried(position, m);
  }

  bool has_all(std::uint32_t position) {
    const StepKey key{position, step_of_[position]};
    const Step& step = table_.steps.at(key);
    if (step.through_switch) return at_switch_[key.second].size() == data_.size();
    return std::ranges::all_of(step.receives, [&](std::uint32_t from) { return messages_.contains({from, key}); });
  }

  void receive(std::uint32_t position, int& added_twice) {
    const StepKey key{position, step_of_[position]};
    const Step& step = table_.steps.at(key);
    for (const std::uint32_t from : step.receives) take(messages_.at({from, key}), data_[position], added_twice);
    if (!step.through_switch) return;
    std::vector<Contributions> sum(data_[position].size(), 0);
    for (const Carried& message : at_switch_[key.second]) take(message, sum, added_twice);
    for (const std::uint32_t block : algorithm_.blocks(position, key.second, 1).blocks)
      data_[position][block] = sum[block];
  }

  static void take(const Carried& message, std::vector<Contributions>& held, int& added_twice) {
    for (std::size_t b = 0; b < message.contributions.size(); ++b) {
      Contributions& block = held[message.what.blocks[b]];
      if (message.what.adds && (block & message.contributions[b]) != 0) ++added_twice;
      block = message.what.adds ? block | message.contributions[b] : message.contributions[b];
    }
  }

  const SteppedAlgorithm& algorithm_;
  StepTable table_;
  Data data_;
  std::vector<std::uint64_t> step_of_;                             ///< [positions]
  std::map<std::pair<std::uint32_t, StepKey>, Carried> messages_;  ///< by sender and receiver
  std::map<std::uint64_t, std::vector<Carried>> at_switch_;        ///< by step
};

}  // namespace

Data carry(const SteppedAlgorithm& algorithm, Data data, int& added_twice) {
  return DataSimulation(algorithm, std::move(data)).run(added_twice);
}

}  // namespace orrery::collective::test
