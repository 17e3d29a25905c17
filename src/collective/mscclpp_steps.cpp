// Makes the custom collective of a plan from its steps.
#include "mscclpp_steps.hpp"

namespace orrery::collective {

void PlanSteps::add_operations(CustomCollectiveBuilder& builder) {
  using OperationKind = CustomCollective::OperationKind;
  std::map<PlanChannel, std::uint64_t> signals;  // their tags
  for (std::uint32_t rank = 0; rank < algorithm_.num_gpus; ++rank)
    for (std::uint32_t index = 0; index < algorithm_.steps[rank].size(); ++index) {
      Step& step = algorithm_.steps[rank][index];
      const auto follow = [&](Msccl::Action action, std::uint32_t operation) {
        if (action == Msccl::calculates && step.operations[Msccl::receives])
          builder.depend(*step.operations[Msccl::receives], operation);
        step.operations[action] = operation;
        of_operation_.emplace_back(rank, index);
      };
      if (step.type == "cpy" || step.type == "re" || step.type == "nop") {
        const auto kind = step.type == "cpy"  ? OperationKind::copy
                          : step.type == "re" ? OperationKind::reduce
                                              : OperationKind::nothing;
        follow(Msccl::calculates, builder.add({.kind = kind, .position = rank}));
        continue;
      }
      const Extra& extra = extras_.at({rank, index});
      const bool sends = step.type == "s";
      std::uint32_t peer = extra.peer;
      std::uint64_t tag = extra.tag.value_or(0);
      if (extra.message) {
        peer = sends ? std::get<1>(*extra.message) : std::get<0>(*extra.message);
        tag = next_tag_ + signals.emplace(*extra.message, signals.size()).first->second;
      }
      follow(sends ? Msccl::sends : Msccl::receives,
             builder.add_message({.kind = sends ? OperationKind::send : OperationKind::receive,
                                  .position = rank,
                                  .in_switch = step.in_switch},
                                 peer, tag));
      if (step.type == "rrc")
        follow(Msccl::calculates, builder.add({.kind = OperationKind::reduce,
                                               .position = rank,
                                               .in_switch = step.in_switch || step.adds_in_switch}));
    }
}

/// Lets waits wait for what their signals carry, and readers of packets for the packets.
void PlanSteps::find_waits() {
  for (const auto& [channel, waits] : waits_of_) {
    const auto found = carried_.find(channel);
    for (std::size_t k = 0; found != carried_.end() && k < std::min(waits.size(), found->second.size()); ++k)
      for (const StepOf put : found->second[k]) waits_.emplace_back(put, waits[k]);
  }
  for (const auto& [reader, from] : readers_)
    for (std::uint32_t c = 0; c < from.count; ++c) {
      const auto found = packets_.find({from.rank, from.at.buffer, from.at.offset + c});
      if (found == packets_.end())
        throw algorithm_.error(reader.rank, made(reader), "it waits for packets that nobody puts there",
                               "a ppkt, or a cpkt of this GPU, to the same chunks");
      waits_.emplace_back(found->second, reader);
    }
  std::ranges::sort(waits_);
  waits_.erase(std::ranges::unique(waits_).begin(), waits_.end());
}

void PlanSteps::match_semaphores() {
  for (const auto& [id, acquired] : at_.semaphores.acquired) {
    const auto& steps = acquired.second;
    for (std::size_t k = at_.semaphores.initial_of(id); k < steps.size(); ++k) {
      const std::size_t release = k - at_.semaphores.initial_of(id);
      if (release >= at_.semaphores.released[id].second.size())
        fail(fmt::format("semaphore {} is acquired {}, and released {}", id, counted(steps.size(), "time"),
                         counted(at_.semaphores.released[id].second.size(), "time")),
             "as many releases as acquisitions beyond its first value");
      waits_.emplace_back(at_.semaphores.released[id].second[release], steps[k]);
    }
  }
}

std::shared_ptr<CustomCollective> PlanSteps::build() {
  find_waits();
  CustomCollectiveBuilder builder(algorithm_.num_gpus);
  add_operations(builder);
  for (const auto& [before, after] : waits_) {
    const auto first = std::ranges::find_if(made(after).operations, [](const auto& o) { return o.has_value(); });
    builder.depend(made(before).last(), **first);
  }
  const CustomCollectiveBuilder::Fault fault = [&](std::uint32_t operation, std::string_view found,
                                                   std::string_view expected) {
    const auto [rank, index] = of_operation_[operation];
    return algorithm_.error(rank, algorithm_.steps[rank][index], found, expected);
  };
  builder.match(fault);
  follow_data(algorithm_, of_operation_, builder.order(false, fault), &builder, builder);
  follow_data(algorithm_, of_operation_, builder.order(true, fault), nullptr, builder);
  return builder.finish(file_, algorithm_.num_chunks, sizes_);
}

}  // namespace orrery::collective
