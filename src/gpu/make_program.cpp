// Turns a plan, which counts in chunks, into the program for a message of some size.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "orrery/base/text.hpp"
#include "orrery/gpu/plan.hpp"

namespace orrery::gpu {
namespace {

using collective::Kind;

constexpr std::uint64_t reused_scratch = std::uint64_t{64} << 20;  // bytes that the executor sets aside
constexpr Bytes most_bytes(std::uint64_t{1} << 42);                // so that offsets of all chunks fit
constexpr std::uint64_t most_operations = std::uint64_t{1} << 22;

std::uint64_t whole_chunks(const Plan& plan) {
  const Plan::Gpu& gpu = plan.gpus.front();
  return std::max({gpu.input_chunks, gpu.output_chunks, 1U});
}

/// Bytes as the executor of MSCCL++ cuts them: whole units of alignment, and the first parts get what remains.
struct Cut {
  std::uint64_t units, parts, alignment;

  std::uint64_t offset(std::uint64_t part) const {
    return (part * (units / parts) + std::min(part, units % parts)) * alignment;
  }
  std::uint64_t size(std::uint64_t first, std::uint64_t count) const { return offset(first + count) - offset(first); }
};

class ProgramMaker {
 public:
  ProgramMaker(const Plan& plan, Bytes message) : plan_(plan) {
    const Place place{.file = plan.file};
    if (message > most_bytes)
      throw Error(ErrorCode::bad_input, place, fmt::format("the plan is asked for {} bytes", message.count()),
                  fmt::format("{} at the most", most_bytes.count()));
    if (message < plan.least || message > plan.most)
      throw Error(
          ErrorCode::bad_input, place, fmt::format("the plan is asked for {} bytes", message.count()),
          fmt::format("{} to {}, its min_message_size and max_message_size", plan.least.count(), plan.most.count()));
    if (message != next_size(plan, message) || message == Bytes(0))
      throw Error(ErrorCode::bad_input, place, fmt::format("the plan is asked for {} bytes", message.count()),
                  fmt::format("a multiple of {}: {} of whole units of {} bytes", next_size(plan, Bytes(1)).count(),
                              counted(whole_chunks(plan), "chunk"), plan.alignment));
    chunk_ = message.count() / whole_chunks(plan);
    cut_ = {message.count() / plan.alignment, whole_chunks(plan), plan.alignment};
  }

  Program make() {
    Program program;
    program.name = plan_.name;
    program.file = plan_.file;
    program.in_place = plan_.in_place;
    program.groups = plan_.groups;
    program.gpus.reserve(plan_.gpus.size());
    for (std::uint32_t gpu = 0; gpu < plan_.gpus.size(); ++gpu) add_gpu(gpu, program.gpus.emplace_back());
    return program;
  }

 private:
  using Step = Plan::Step;

  void add_gpu(std::uint32_t index, Gpu& gpu) {
    const Plan::Gpu& from = plan_.gpus[index];
    gpu.channels = from.channels;
    gpu.semaphores = from.semaphores;
    gpu.input = Bytes(cut_.offset(from.input_chunks));
    gpu.output = Bytes(cut_.offset(from.output_chunks));
    scratch_chunk_ = chunk_;
    if (plan_.reuses_scratch && from.scratch_chunks > 0) {
      const std::uint64_t room = reused_scratch / (plan_.has_double_scratch ? 2 : 1);
      const std::uint64_t chunk = (room + from.scratch_chunks - 1) / from.scratch_chunks;
      scratch_chunk_ = std::min(chunk_, (chunk + plan_.alignment - 1) / plan_.alignment * plan_.alignment);
    }
    gpu.scratch = Bytes(scratch_chunk_ * from.scratch_chunks);
    gpu.blocks.reserve(from.blocks.size());
    for (const Plan::Block& block : from.blocks) {
      gpu.blocks.push_back({block.id, plan_.threads, {}});
      where_ = {index, &block, &gpu};
      add_block(block, gpu.blocks.back());
    }
  }

  void add_block(const Plan::Block& from, Block& block) {
    for (std::size_t i = 0; i < from.steps.size();) {
      if (from.steps[i].pipeline == 0) {
        add(from.steps[i++], 0, ~std::uint64_t{0}, block);
        continue;
      }
      std::size_t end = i;
      while (end < from.steps.size() && from.steps[end].pipeline == from.steps[i].pipeline) ++end;
      const std::uint64_t unit = from.steps[i].unit, bytes = chunk_ * from.steps[i].pipeline_chunks;
      for (std::uint64_t offset = 0; offset < bytes; offset += unit)
        for (std::size_t k = i; k < end; ++k) add(from.steps[k], offset, unit, block);
      i = end;
    }
  }

  /// Adds a step with the bytes [offset, offset + most) of each of its operands.
  void add(const Step& step, std::uint64_t offset, std::uint64_t most, Block& block) {
    if (++num_operations_ > most_operations)
      throw Error(ErrorCode::bad_input, {.file = plan_.file},
                  fmt::format("the plan has more than {} operations for this message", most_operations), "fewer",
                  "Give its pipelines a larger unit_size.");
    Operation operation{.kind = step.kind, .transport = step.transport};
    operation.barrier = {step.barrier, step.num_blocks};
    operation.number = step.number;
    const bool is_paired = operand_rules(step.kind, step.transport).is_paired;
    const bool by_proxy = step.transport == Transport::port && uses_channels(step.kind, step.transport);
    if (is_paired && !by_proxy) operation.order = Order::one_after_other;
    sources_.clear();
    destinations_.clear();
    for (const Plan::Chunks& source : step.sources) sources_.push_back(operand(step, source, offset, most));
    for (const Plan::Chunks& target : step.destinations) destinations_.push_back(operand(step, target, offset, most));
    where_.gpu->add(block, operation, sources_, destinations_, step.ids);
  }

  Operand operand(const Step& step, const Plan::Chunks& chunks, std::uint64_t offset, std::uint64_t most) const {
    const Cut share{cut_.size(chunks.index, chunks.count) / plan_.alignment, step.share.size, plan_.alignment};
    const std::uint64_t own = share.offset(step.share.part), bytes = share.size(step.share.part, 1);
    const bool is_packets = is_packets_kind(step.kind);  // of which pipelines repeat all
    if (is_packets) offset = 0;
    Operand operand;
    operand.gpu = chunks.gpu;
    operand.buffer = chunks.buffer;
    operand.access = chunks.access;
    operand.bytes = Bytes(std::min(bytes - std::min(bytes, offset), is_packets ? bytes : most));
    operand.offset = own + offset + cut_.offset(chunks.index);
    if (chunks.buffer == Buffer::scratch) place_in_scratch(chunks, step, own, offset, operand);
    return operand;
  }
  /// Reused scratch holds the first bytes of each chunk, and later bytes take their places.
  void place_in_scratch(const Plan::Chunks& chunks, const Step& step, std::uint64_t own, std::uint64_t offset,
                        Operand& operand) const {
    operand.offset = chunks.index * scratch_chunk_ + own + offset;
    if (scratch_chunk_ == chunk_) return;
    const std::uint64_t start = own + offset % scratch_chunk_;
    operand.offset = chunks.index * scratch_chunk_ + start;
    if (operand.bytes > Bytes(0) && start + operand.bytes.count() > chunks.count * scratch_chunk_)
      throw Error(ErrorCode::bad_input, {.file = plan_.file},
                  fmt::format("{}: it uses {} bytes of a chunk of reused scratch, of which {} are there",
                              plan_.place(where_.index, *where_.block, step), start + operand.bytes.count(),
                              chunks.count * scratch_chunk_),
                  "a pipeline whose unit_size divides the scratch, or a smaller message");
  }
  static bool is_packets_kind(OperationKind kind) {
    const OperandRules rules = operand_rules(kind, Transport::memory);
    return is_packets(rules.first_source) || is_packets(rules.more_sources) || is_packets(rules.first_destination);
  }

  struct Where {
    std::uint32_t index = 0;
    const Plan::Block* block = nullptr;
    Gpu* gpu = nullptr;
  };

  const Plan& plan_;
  std::uint64_t chunk_ = 0;  ///< bytes
  Cut cut_{};
  std::uint64_t scratch_chunk_ = 0;  ///< bytes, of this GPU
  Where where_;
  std::uint64_t num_operations_ = 0;
  std::vector<Operand> sources_, destinations_;
};

}  // namespace

Bytes next_size(const Plan& plan, Bytes message) {
  const std::uint64_t unit = whole_chunks(plan) * plan.alignment;
  const std::uint64_t units = message.count() / unit + (message.count() % unit != 0 ? 1 : 0);
  return Bytes(unit) * units;
}

Program make_program(const Plan& plan, Bytes message) { return ProgramMaker(plan, message).make(); }

}  // namespace orrery::gpu
