#include "orrery/gpu/device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device_state.hpp"
#include "orrery/base/error.hpp"

namespace orrery::gpu {
namespace {

/// Executes the operations of a block one after the other.
Task run(BlockRun& block) {
  const Parameters& parameters = block.device.parameters;
  for (; block.operation < block.block.operations.size(); ++block.operation) {
    const Operation& operation = block.current();
    using enum OperationKind;
    const bool is_data_or_word = operation.kind != nop && operation.kind != barrier && operation.kind != sem_acquire &&
                                 operation.kind != sem_release;
    if (operation.pays_op && is_data_or_word) co_await Until{block, block.device.now() + parameters.op, Stall::issue};
    switch (operation.kind) {
      case nop:
        co_await Until{block, block.device.now() + parameters.nop, Stall::issue};
        break;
      case barrier:
        co_await pass_barrier(block, operation);
        break;
      case put:
      case ppkt:
        if (operation.transport == Transport::port)
          co_await ask_proxy(block, operation);
        else
          co_await store_pairs(block, operation);
        break;
      case signal:
      case rlxsignal:
        if (operation.transport == Transport::port)
          co_await ask_proxy(block, operation);
        else
          co_await send_words(block, operation, operation.kind == rlxsignal);
        break;
      case pws:
      case pwsf:
      case flush:
        co_await ask_proxy(block, operation);
        break;
      case wait:
      case rlxwait:
        co_await await_words(block, operation);
        break;
      case get:
      case rre:
        co_await load(block, operation);
        break;
      case sem_acquire:
        co_await acquire(block, operation);
        break;
      case sem_release:
        co_await release(block, operation);
        break;
      default:
        co_await stream(block, operation);
    }
  }
  block.device.end_block(block);
}

/// Returns whether what a GPU holds of the collective fits its L2.
bool fits(const Gpu& gpu, bool in_place, Bytes l2) {
  const Bytes own = in_place ? std::max(gpu.input, gpu.output) : gpu.input + gpu.output;
  return own + gpu.scratch <= l2;
}

}  // namespace

std::string_view name(Stall stall) {
  static constexpr std::array<std::string_view, num_stalls> names = {"launch", "issue", "memory", "poll",    "words",
                                                                     "link",   "load",  "acks",   "barrier", "proxy"};
  return names[static_cast<std::size_t>(stall)];
}

std::optional<Request> answer_to(const Request& request, const Parameters& parameters) {
  const auto lines = [&](std::uint64_t bytes) { return (bytes + parameters.line - 1) / parameters.line; };
  Request answer{.to = request.from, .group = request.group, .block = request.block, .burst = request.burst};
  const bool is_load = request.kind == RequestKind::load || request.kind == RequestKind::switch_load;
  if (is_load) {
    answer.kind = request.kind == RequestKind::load ? RequestKind::answer : RequestKind::switch_part;
    answer.tag = request.tag;
    answer.bytes = request.bytes;
    answer.wire = request.bytes + lines(request.bytes) * parameters.data_header;
    return answer;
  }
  if (!request.wants_ack) return {};
  answer.kind = RequestKind::ack;
  answer.wire = lines(request.held) * parameters.ack_header;
  return answer;
}

Time delay_of(RequestKind kind, const Parameters& parameters) {
  switch (kind) {
    case RequestKind::store:
    case RequestKind::switch_store:
    case RequestKind::word:
      return parameters.in;
    case RequestKind::ack:
      return parameters.out;
    case RequestKind::load:
    case RequestKind::switch_load:
      return std::max(parameters.load - path_of_load * 2, Time::zero());
    case RequestKind::answer:
    case RequestKind::switch_part:
      return Time::zero();
  }
  return Time::zero();
}

Device::State::State(const Program& the_program, std::uint32_t the_gpu, const Parameters& the_parameters,
                     Granularity granular, Simulation& the_simulation)
    : program(the_program),
      self(the_program.gpus[the_gpu]),
      gpu(the_gpu),
      parameters(the_parameters),
      granularity(granular),
      around(the_simulation),
      fits_l2(fits(self, the_program.in_place, the_parameters.l2_size)) {
  signals.words.resize(self.channels.size());
  for (const std::uint32_t value : self.semaphores) signals.semaphores.push_back({value, {}});
  for (std::uint32_t b = 0; b < self.blocks.size(); ++b) {
    blocks.push_back({.device = *this, .block = self.blocks[b], .index = b});
    blocks.back().touched.resize(program.gpus.size());
  }
}

void Device::State::send(Time time, Request request) {
  request.from = gpu;
  const auto kind = static_cast<std::size_t>(request.kind);
  counts.requests[kind] += request.bytes > 0 ? lines(request.bytes) : 1;
  counts.wire[kind] += request.wire;
  around.send(time, request);
}

void Device::State::packets_come(Buffer buffer, std::uint64_t begin, std::uint64_t end) {
  Packets& here = packets[static_cast<std::size_t>(buffer)];
  here.there.add(begin, end);
  Waiters ready;
  std::erase_if(here.readers, [&](const PacketReader& reader) {
    if (!here.there.covers(reader.begin, reader.end)) return false;
    ready.push_back(reader.reader);
    return true;
  });
  resume_all(ready);
}

void Device::State::word_comes(std::uint32_t channel) {
  ++signals.words[channel].come;
  resume_all(signals.words[channel].waiters);
}

/// Starts blocks that wait for an SM, in the order of their numbers, as long as there is one.
void Device::State::start_blocks() {
  const std::uint64_t places = std::uint64_t{parameters.sms} * parameters.blocks_per_sm;
  while (!kernel.for_sm.empty() && blocks.size() - kernel.num_over - kernel.for_sm.size() < places) {
    const std::uint32_t next = kernel.for_sm.front();
    kernel.for_sm.pop_front();
    blocks[next].stalls[static_cast<std::size_t>(Stall::launch)] = now() - kernel.begun;
    tell_sms();
    kernel.tasks[next].start();
  }
}

void Device::State::tell_sms() {
  const std::uint64_t on = blocks.size() - kernel.num_over - kernel.for_sm.size();
  around.hold_sms(gpu, static_cast<std::uint32_t>((on + parameters.blocks_per_sm - 1) / parameters.blocks_per_sm));
}

void Device::State::end_block(BlockRun& block) {
  block.is_over = true;
  kernel.last_block = block.index;
  ++kernel.num_over;
  tell_sms();
  if (kernel.num_over == blocks.size()) return around.finish(gpu, now() + parameters.end);
  start_blocks();
}

Device::Device(const Program& program, std::uint32_t gpu, const Parameters& parameters, Granularity granularity,
               Simulation& simulation)
    : state_(std::make_unique<State>(program, gpu, parameters, granularity, simulation)) {}

Device::~Device() = default;

namespace {

/// Starts the first blocks after the launch of the kernel.
Detached launch(Device::State& device) {
  const Parameters& parameters = device.parameters;
  const Time before = device.program.is_plan ? parameters.plan_load : parameters.l2 * device.program.prologue;
  co_await Later{device, device.now() + parameters.launch + before};
  device.start_blocks();
}

}  // namespace

void Device::begin() {
  state_->kernel.begun = state_->now();
  for (BlockRun& block : state_->blocks) {
    state_->kernel.tasks.push_back(run(block));
    state_->kernel.for_sm.push_back(block.index);
  }
  if (state_->blocks.empty()) return state_->around.finish(state_->gpu, state_->now());
  launch(*state_);
}

void Device::arrive(const Request& request) {
  take(request);
  if (const auto answer = answer_to(request, state_->parameters)) state_->send(state_->now(), *answer);
}

void Device::take(const Request& request) {
  State& device = *state_;
  switch (request.kind) {
    case RequestKind::store:
    case RequestKind::switch_store:
      if (request.has_packets) device.packets_come(request.buffer, request.offset, request.offset + request.bytes);
      return;
    case RequestKind::ack: {
      BlockRun& block = device.blocks[request.block];
      if (--block.not_acked == 0) resume_all(block.for_acks);
      return;
    }
    case RequestKind::answer:
    case RequestKind::switch_part: {
      State::Load& load = device.loads[request.tag];
      if (--load.missing == 0 && load.waiter) load.waiter.resume();
      return;
    }
    case RequestKind::word:
      return device.word_comes(request.tag);
    case RequestKind::load:
    case RequestKind::switch_load:
      return;
  }
}

void Device::left(std::uint32_t number, std::uint64_t bytes) {
  BlockRun& block = state_->blocks[number];
  block.not_left -= bytes;
  if (!block.for_room.empty()) resume_all(block.for_room);
}

bool Device::is_over() const { return state_->kernel.num_over == state_->blocks.size(); }

bool Device::is_quiet() const {
  return is_over() && std::ranges::all_of(state_->blocks, [](const BlockRun& block) {
           return block.not_left == 0 && block.not_acked == 0;
         });
}

std::vector<std::string> Device::waits() const {
  std::vector<std::string> lines;
  for (const BlockRun& block : state_->blocks) {
    if (block.is_over) continue;
    if (block.operation == 0 && block.waits_for == Stall::launch) {
      lines.push_back(fmt::format("GPU {}, thread block {}: waits for an SM", state_->gpu, block.block.id));
      continue;
    }
    const Operation& operation = block.current();
    std::string line = fmt::format("{}: waits for {}", state_->program.place(state_->gpu, block.block, operation),
                                   gpu::name(block.waits_for));
    const bool is_wait = operation.kind == OperationKind::wait || operation.kind == OperationKind::rlxwait;
    for (const std::uint32_t id : state_->self.ids_of(operation)) {
      if (!is_wait) break;
      const State::Words& words = state_->signals.words[id];
      if (words.come < words.taken)
        line += fmt::format(", word {} of channel {} from GPU {}", words.taken, id, state_->self.channels[id].peer);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

const std::array<Time, num_stalls>& Device::stalls(std::uint32_t block) const { return state_->blocks[block].stalls; }

std::array<Time, num_stalls> Device::all_stalls() const {
  std::array<Time, num_stalls> sums{};
  for (const BlockRun& block : state_->blocks)
    for (std::size_t k = 0; k < num_stalls; ++k) sums[k] += block.stalls[k];
  return sums;
}

std::uint32_t Device::last_block() const { return state_->kernel.last_block; }

const RequestCounts& Device::counts() const { return state_->counts; }

}  // namespace orrery::gpu
