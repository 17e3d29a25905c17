// Makes custom collectives of execution plans of MSCCL++. Each operation becomes steps of MSCCL: what a GPU writes to
// another one or reads from it is a message, and signals are messages without data.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "mscclpp_steps.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/mscclpp_plan.hpp"

namespace orrery::collective {
namespace {

using ExecutionPlan = mscclpp::Plan;
using PlanOperation = mscclpp::OperationKind;

constexpr std::uint32_t most_cut_chunks = std::uint32_t{1} << 28U;  // of all parts of a buffer
constexpr std::uint32_t most_parts = 4096;                          // of a chunk
constexpr std::uint32_t most_of_group = 64;                         // thread blocks that share an operation
constexpr std::uint64_t most_iterations = 64;  // of a pipeline; of more, as many equal ones stand for all

Msccl::Buffer msccl_buffer(mscclpp::Buffer buffer) {
  switch (buffer) {
    case mscclpp::Buffer::input:
      return Msccl::Buffer::input;
    case mscclpp::Buffer::output:
      return Msccl::Buffer::output;
    case mscclpp::Buffer::scratch:
      break;
  }
  return Msccl::Buffer::scratch;
}

bool has_pipelines(const ExecutionPlan& plan) {
  for (const ExecutionPlan::Gpu& gpu : plan.gpus)
    for (const ExecutionPlan::Block& block : gpu.blocks)
      if (std::ranges::any_of(block.steps, [](const ExecutionPlan::Step& step) { return step.pipeline != 0; }))
        return true;
  return false;
}

class MscclppSteps : PlanSteps {
 public:
  /// Follows a plan for data of `whole` bytes; 0: of any size, with one iteration of each pipeline.
  MscclppSteps(const ExecutionPlan& plan, Bytes whole) : PlanSteps(plan.file), plan_(plan), whole_(whole) {
    algorithm_.kind = plan.kind;
    algorithm_.in_place = plan.in_place;
    algorithm_.num_gpus = static_cast<std::uint32_t>(plan.gpus.size());
    sizes_ = {plan.least, plan.most};
  }

  std::shared_ptr<CustomCollective> make() {
    find_parts();
    algorithm_.num_chunks = parts_ * plan_.whole_chunks();
    for (const ExecutionPlan::Gpu& gpu : plan_.gpus) algorithm_.num_scratch.push_back(parts_ * gpu.scratch_chunks);
    algorithm_.steps.resize(plan_.gpus.size());
    for (at_.gpu = 0; at_.gpu < algorithm_.num_gpus; ++at_.gpu) follow_gpu();
    return build();
  }

 private:
  using Step = ExecutionPlan::Step;

  const ExecutionPlan::Gpu& gpu() const { return plan_.gpus[at_.gpu]; }

  /// Finds into how many parts chunks have to be cut, so that groups of thread blocks and iterations of pipelines have
  /// whole ones.
  void find_parts() {
    std::uint64_t of_groups = 1, of_pipelines = 1;
    for (const ExecutionPlan::Gpu& gpu : plan_.gpus)
      for (const ExecutionPlan::Block& block : gpu.blocks)
        for (const Step& step : block.steps) {
          of_groups = std::lcm(of_groups, std::uint64_t{std::min(step.share.size, most_of_group + 1)});
          if (step.pipeline != 0) of_pipelines = std::lcm(of_pipelines, std::uint64_t{iterations_of(step)});
          if (step.share.size > most_of_group || of_groups * of_pipelines > most_parts)
            fail(
                "groups of thread blocks or pipelines have too many sizes",
                fmt::format("groups of {} thread blocks at the most, and sizes that divide each other", most_of_group));
        }
    parts_ = static_cast<std::uint32_t>(of_groups * of_pipelines);
  }
  /// Returns the iterations of a pipeline: as many as units are in its chunks.
  std::uint32_t iterations_of(const Step& step) const {
    const std::uint64_t bytes = whole_.count() / plan_.whole_chunks() * step.pipeline_chunks;
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((bytes + step.unit - 1) / step.unit, 1, most_iterations));
  }

  void follow_gpu() {
    barriers_.clear();
    at_.semaphores = {};
    at_.semaphores.initial = gpu().semaphores;
    for (const ExecutionPlan::Block& block : gpu().blocks) {
      at_.block = block.id;
      at_.before.reset();
      at_.unsignalled.clear();
      barriers_of_block_.clear();
      follow_block(block);
      at_.operation.clear();
    }
    at_.block = -1;
    match_semaphores();
    for (const auto& [key, found] : barriers_)
      if (found.second.size() != found.first)
        fail(fmt::format("{} of {} come to barrier {}", counted(found.second.size(), "thread block"), found.first,
                         key.first),
             "as many as num_threadblocks says, equally often");
    for (const auto& [key, found] : barriers_)
      for (const auto& [arrives, leaves] : found.second)
        for (const auto& other : found.second) waits_.emplace_back(other.first, leaves);
  }

  void follow_block(const ExecutionPlan::Block& block) {
    for (auto step = block.steps.begin(); step != block.steps.end();) {
      const auto end = step->pipeline == 0 ? step + 1 : std::find_if(step, block.steps.end(), [&](const Step& s) {
        return s.pipeline != step->pipeline;
      });
      at_.iterations = step->pipeline == 0 ? 1 : iterations_of(*step);
      for (at_.iteration = 0; at_.iteration < at_.iterations; ++at_.iteration)
        for (auto inner = step; inner != end; ++inner) {
          at_.operation = mscclpp::name(inner->kind);
          at_.number = inner->number;
          follow(*inner);
        }
      at_.iteration = 0;
      at_.iterations = 1;
      step = end;
    }
  }

  void follow(const Step& step) {
    switch (step.kind) {
      case PlanOperation::nop:
      case PlanOperation::flush:
        add("nop");
        return;
      case PlanOperation::barrier:
        pass_barrier(step);
        return;
      case PlanOperation::sem_acquire:
      case PlanOperation::sem_release:
        pass_semaphores(step);
        return;
      case PlanOperation::glres:
      case PlanOperation::gstore:
      case PlanOperation::gstorepkt:
        use_switch(step);
        return;
      case PlanOperation::signal:
      case PlanOperation::rlxsignal:
        signal(step);
        return;
      case PlanOperation::wait:
      case PlanOperation::rlxwait:
        wait(step);
        return;
      default:
        move(step);
    }
  }
  /// Follows an operation that moves data from GPU to GPU or in a GPU, or adds them up.
  void move(const Step& step) {
    switch (step.kind) {
      case PlanOperation::put:
      case PlanOperation::pws:
      case PlanOperation::pwsf:
      case PlanOperation::ppkt:
        for (std::size_t k = 0; k < step.destinations.size(); ++k)
          write(source(step, k), destination(step, k), step.kind == PlanOperation::ppkt);
        if (mscclpp::sends_words(step.kind)) signal(step);
        return;
      case PlanOperation::get:
        for (std::size_t k = 0; k < step.sources.size(); ++k) fetch(source(step, k), destination(step, k), false);
        return;
      case PlanOperation::copy:
      case PlanOperation::cpkt:
      case PlanOperation::upkt:
        calculate("cpy", source(step, 0), destination(step, 0), step.kind == PlanOperation::upkt,
                  step.kind == PlanOperation::cpkt);
        return;
      case PlanOperation::rppkt:
        for (std::size_t k = 0; k < step.destinations.size(); ++k)
          write(source(step, 0), destination(step, k), true, k == 0);
        return;
      default:
        reduce(step);
    }
  }

  void reduce(const Step& step) {
    const PlanBuffer sum = destination(step, 0), own = source(step, 0);
    const bool is_own = own.at.buffer == sum.at.buffer && own.at.offset == sum.at.offset;
    if (!is_own) calculate("cpy", own, sum, false, false);
    for (std::size_t k = 1; k < step.sources.size(); ++k) {
      if (step.sources[k].access == mscclpp::Access::remote)
        fetch(source(step, k), sum, true);
      else
        calculate("re", source(step, k), sum, step.sources[k].access == mscclpp::Access::local_packets, false);
    }
    for (std::size_t k = 1; k < step.destinations.size(); ++k) {
      const mscclpp::Access access = step.destinations[k].access;
      if (access == mscclpp::Access::local_packets)
        calculate("cpy", sum, destination(step, k), false, true);
      else
        write(sum, destination(step, k), access == mscclpp::Access::remote_packets);
    }
  }

  /// Semaphores join thread blocks of a GPU: the k-th acquisition waits for the release that gives the k-th unit.
  void pass_semaphores(const Step& step) {
    for (const std::uint32_t id : step.ids) {
      auto& of_kind = step.kind == PlanOperation::sem_acquire ? at_.semaphores.acquired : at_.semaphores.released;
      auto& [block, steps] = of_kind[id];
      if (!steps.empty() && block != at_.block)
        fail(fmt::format("thread block {} does so with semaphore {} too", block, id),
             "one thread block that acquires a semaphore, and one that releases it");
      block = at_.block;
      steps.push_back(add("nop"));
    }
  }
  void use_switch(const Step& step) {
    const bool packets = step.kind == PlanOperation::gstorepkt;
    const PlanBuffer own_target = cut(step, step.destinations[0], at_.gpu);
    bool awaits = false;
    if (step.kind == PlanOperation::glres) {
      const PlanBuffer own = cut(step, step.sources[0], at_.gpu);
      const bool moves = own.at.buffer != own_target.at.buffer || own.at.offset != own_target.at.offset;
      reduce_in_switch(others_of_group(step, step.sources[0]), own);
      if (moves) calculate("cpy", own, own_target, false, false);
    } else {
      const PlanBuffer own = source(step, 0);
      awaits = packets && own.at.buffer == own_target.at.buffer && own.at.offset == own_target.at.offset;
      if (!awaits) calculate("cpy", own, own_target, packets, packets);
    }
    multicast(own_target, others_of_group(step, step.destinations[0]), packets, awaits);
  }
  void signal(const Step& step) {
    for (const std::uint32_t id : step.ids) {
      const PlanChannel channel{at_.gpu, gpu().channels[id].peer, id};
      const StepOf sends = add("s");
      extra(sends).message = channel;
      claim(signallers_, channel);
      auto& carried = carried_[channel].emplace_back();
      for (const StepOf put : at_.unsignalled)
        if (put.rank == std::get<1>(channel)) carried.push_back(put);
    }
  }
  void wait(const Step& step) {
    for (const std::uint32_t id : step.ids) {
      const mscclpp::Channel& own = gpu().channels[id];
      const PlanChannel channel{own.peer, at_.gpu, own.paired};
      const StepOf receives = add("r");
      extra(receives).message = channel;
      waits_of_[channel].push_back(receives);
      claim(waiters_, channel);
    }
  }
  void pass_barrier(const Step& step) {
    auto& barrier = barriers_[{step.barrier, barriers_of_block_[step.barrier]++}];
    if (!barrier.second.empty() && barrier.first != step.num_blocks)
      fail(fmt::format("its num_threadblocks is {}", step.num_blocks),
           fmt::format("{}, as others have it", barrier.first));
    barrier.first = step.num_blocks;
    const StepOf arrives = add("nop"), leaves = add("nop");
    barrier.second.emplace_back(arrives, leaves);
  }

  // --- operands ---

  PlanBuffer source(const Step& step, std::size_t k) const { return cut(step, step.sources[k], step.sources[k].gpu); }
  PlanBuffer destination(const Step& step, std::size_t k) const {
    return cut(step, step.destinations[k], step.destinations[k].gpu);
  }
  /// Returns what a switch channel names at the other GPUs of its group.
  std::vector<PlanBuffer> others_of_group(const Step& step, const ExecutionPlan::Chunks& chunks) const {
    std::vector<PlanBuffer> others;
    for (const std::uint32_t rank : plan_.groups[chunks.gpu])
      if (rank != at_.gpu) others.push_back(cut(step, chunks, rank));
    return others;
  }
  /// Returns the part of chunks that belongs to this thread block of a group and this iteration of a pipeline.
  PlanBuffer cut(const Step& step, const ExecutionPlan::Chunks& chunks, std::uint32_t rank) const {
    const std::uint64_t whole = std::uint64_t{chunks.count} * parts_;
    const std::uint64_t start = whole * step.share.part / step.share.size;
    const std::uint64_t width = whole * (step.share.part + 1) / step.share.size - start;
    const std::uint64_t last = start + width * (at_.iteration + 1) / at_.iterations;
    const std::uint64_t first = start + width * at_.iteration / at_.iterations;
    const std::uint64_t at = std::uint64_t{chunks.index} * parts_ + first;
    if (at + (last - first) > most_cut_chunks) fail("a buffer ends too far away", "fewer chunks");
    return {
        rank, {msccl_buffer(chunks.buffer), static_cast<std::uint32_t>(at)}, static_cast<std::uint32_t>(last - first)};
  }

  const ExecutionPlan& plan_;
  Bytes whole_;  ///< 0: any
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::vector<std::pair<StepOf, StepOf>>>>
      barriers_;  ///< steps of each barrier, keyed by id and turn
  std::map<std::uint32_t, std::uint32_t> barriers_of_block_;
};

}  // namespace

std::shared_ptr<const CustomCollective> read_mscclpp(const std::filesystem::path& file, Kind kind,
                                                     const Place& named_by) {
  const auto plan = std::make_shared<const ExecutionPlan>(mscclpp::read_plan(file, named_by));
  if (plan->kind != kind)
    throw Error(ErrorCode::bad_input, named_by,
                fmt::format("found {}, whose collective is that of {}", plan->file, name(plan->kind)),
                fmt::format("a plan of {}", name(kind)));
  const auto made = MscclppSteps(*plan, Bytes(0)).make();
  if (!has_pipelines(*plan)) return made;
  // The number of iterations depends on the size, so each size is followed anew. Sizes with equal numbers of operations
  // are equal, but few sizes occur in a run.
  const auto known = std::make_shared<std::map<Bytes, std::shared_ptr<const CustomCollective>>>();
  CustomCollectiveBuilder::depend_on_size(*made, [=](Bytes whole) -> const CustomCollective& {
    auto& of_size = (*known)[whole];
    if (!of_size) of_size = MscclppSteps(*plan, whole).make();
    return *of_size;
  });
  return made;
}

}  // namespace orrery::collective
