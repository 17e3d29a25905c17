// Turns an MSCCL algorithm into a program: how NCCL's primitives, on which MSCCL's interpreter is built, carry its
// steps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "orrery/base/text.hpp"
#include "orrery/gpu/msccl.hpp"

namespace orrery::gpu {
namespace {

using collective::Msccl;
using enum OperationKind;

/// What a protocol of NCCL 2.12, which MSCCL is a branch of, needs (src/include/comm.h, src/include/devcomm.h).
struct Protocol {
  bool has_packets;
  PacketFormat packets;
  std::uint64_t slot;     ///< bytes of data
  std::uint32_t threads;  ///< threads of a block
};
constexpr std::uint32_t num_slots = 8;
constexpr std::uint32_t alignment = 16;
constexpr std::uint64_t most_pieces = std::uint64_t{1} << 20;
constexpr std::uint64_t most_together = 1 << 24;  // a step has no more chunks

Protocol protocol_of(Msccl::Protocol protocol) {
  switch (protocol) {
    case Msccl::Protocol::ll:  // 512 threads x 8 lines of 16 bytes, of which half are data
      return {true, PacketFormat::ll8, 512 * 8 * 8, 512};
    case Msccl::Protocol::ll128:  // 640 threads x 120 elements of 8 bytes, of which 15 in 16 are data
      return {true, PacketFormat::ll128, 640 * 120 * 8 / 16 * 15, 640};
    case Msccl::Protocol::simple:
      break;
  }
  return {false, PacketFormat::ll8, (4 << 20) / num_slots, 512};
}

/// A connection: sender, receiver, channel.
using Connection = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

struct Fifo {
  std::uint32_t at_sender = 0, at_receiver = 0;  ///< ends of the channel
  std::uint64_t first = 0;                       ///< byte of the receiver's scratch
  std::uint64_t pieces = 0, sent = 0, received = 0;
};

class MscclProgram {
 public:
  MscclProgram(const Msccl& algorithm, Bytes message) : from_(algorithm), protocol_(protocol_of(algorithm.protocol)) {
    if (message == Bytes(0) || message != next_size(algorithm, message))
      throw Error(ErrorCode::bad_input, {.file = algorithm.file},
                  fmt::format("the algorithm is asked for {} bytes", message.count()),
                  fmt::format("a multiple of {}: {} of whole units of {} bytes", next_size(algorithm, Bytes(1)).count(),
                              counted(algorithm.num_chunks, "chunk"), alignment));
    chunk_ = message.count() / algorithm.num_chunks;
    turns_ = (chunk_ + protocol_.slot - 1) / protocol_.slot;
    together_ =
        turns_ > 1 ? 1 : static_cast<std::uint32_t>(std::min<std::uint64_t>(protocol_.slot / chunk_, most_together));
  }

  Program make() {
    program_.name = from_.file;
    program_.file = from_.file;
    program_.in_place = from_.in_place;
    program_.gpus.resize(from_.num_gpus);
    for (std::uint32_t gpu = 0; gpu < from_.num_gpus; ++gpu) {
      Gpu& one = program_.gpus[gpu];
      one.input = Bytes(from_.num_input() * chunk_);
      one.output = Bytes(from_.num_output() * chunk_);
      one.scratch = Bytes(from_.num_scratch[gpu] * chunk_);
      for (const Msccl::Block& block : from_.blocks[gpu]) one.blocks.push_back({block.id, protocol_.threads, {}});
    }
    connect();
    add_semaphores();
    for (first_ = 0; first_ < chunk_; first_ += protocol_.slot)
      for (gpu_ = 0; gpu_ < from_.num_gpus; ++gpu_)
        for (const Msccl::Step& step : from_.steps[gpu_]) add_step(step);
    return std::move(program_);
  }

 private:
  using Step = Msccl::Step;

  // --- connections ---

  /// Returns the pieces that a step moves in one turn. Chunks that fit into a slot together are one.
  std::uint64_t pieces_of_turn(const Step& step) const { return (step.count + together_ - 1) / together_; }
  std::uint64_t pieces_of(const Step& step) const { return turns_ * pieces_of_turn(step); }
  static bool sends(const Step& step) { return step.operations[Msccl::sends].has_value(); }
  static bool receives(const Step& step) { return step.operations[Msccl::receives].has_value(); }

  const Msccl::Block& block_of(std::uint32_t gpu, const Step& step) const {
    return *std::ranges::find(from_.blocks[gpu], step.block, &Msccl::Block::id);
  }
  Fifo& fifo_to(std::uint32_t gpu, const Step& step) {
    const Msccl::Block& block = block_of(gpu, step);
    return fifos_.at({gpu, *block.send, block.channel});
  }
  Fifo& fifo_from(std::uint32_t gpu, const Step& step) {
    const Msccl::Block& block = block_of(gpu, step);
    return fifos_.at({*block.receive, gpu, block.channel});
  }

  void connect() {
    std::map<Connection, std::uint64_t> pieces;
    std::uint64_t all = 0;
    for (const auto& steps : from_.steps)
      for (const Step& step : steps) all += pieces_of(step);
    if (all > most_pieces)
      throw Error(ErrorCode::bad_input, {.file = from_.file},
                  fmt::format("the steps have {} for this message", counted(all, "piece")),
                  fmt::format("{} at the most", most_pieces),
                  "Give a smaller message, or take a protocol with larger slots.");
    for (std::uint32_t gpu = 0; gpu < from_.num_gpus; ++gpu)
      for (const Step& step : from_.steps[gpu])
        if (sends(step)) {
          const Msccl::Block& block = block_of(gpu, step);
          pieces[{gpu, *block.send, block.channel}] += pieces_of(step);
        }
    for (const auto& [connection, count] : pieces) {
      const auto [sender, receiver, channel] = connection;
      const auto [at_sender, at_receiver] = program_.connect(sender, receiver);
      Bytes& scratch = program_.gpus[receiver].scratch;
      fifos_[connection] = {at_sender, at_receiver, scratch.count(), count};
      // A slot of packets has a place for each of its pieces: NCCL's flags tell them apart, those of a program do not.
      scratch += Bytes(protocol_.slot) * (protocol_.has_packets ? count : std::min<std::uint64_t>(count, num_slots));
    }
    for (std::uint32_t gpu = 0; gpu < from_.num_gpus; ++gpu) {
      staging_.push_back(program_.gpus[gpu].scratch.count());
      program_.gpus[gpu].scratch += Bytes(protocol_.slot) * from_.blocks[gpu].size();
    }
  }

  /// Gives each step that waits for another one a semaphore, which that one releases.
  void add_semaphores() {
    for (std::uint32_t gpu = 0; gpu < from_.num_gpus; ++gpu)
      for (const Step& step : from_.steps[gpu])
        if (step.waits_for) {
          releases_[{gpu, step.waits_for->first, step.waits_for->second}].push_back(
              static_cast<std::uint32_t>(program_.gpus[gpu].semaphores.size()));
          acquires_[{gpu, step.block, step.number}] = static_cast<std::uint32_t>(program_.gpus[gpu].semaphores.size());
          program_.gpus[gpu].semaphores.push_back(0);
        }
  }

  // --- operations ---

  void add(OperationKind kind, std::span<const Operand> from = {}, std::span<const Operand> to = {},
           std::span<const std::uint32_t> ids = {}) {
    Operation operation{.kind = kind, .packets = protocol_.packets, .pays_op = !has_paid_ && kind != nop};
    operation.number = number_;
    has_paid_ = has_paid_ || kind != nop;
    program_.gpus[gpu_].add(*block_, operation, from, to, ids);
  }
  void add_with_id(OperationKind kind, std::uint32_t id) { add(kind, {}, {}, std::span(&id, 1)); }

  Operand local(Msccl::Location at, std::uint64_t first, std::uint64_t bytes) const {
    constexpr std::array buffers = {Buffer::input, Buffer::output, Buffer::scratch};
    return {at.offset * chunk_ + first, Bytes(bytes), gpu_, buffers[static_cast<std::size_t>(at.buffer)],
            Access::local};
  }
  Operand slot(const Fifo& fifo, std::uint64_t piece, std::uint64_t bytes, std::uint32_t gpu) const {
    const std::uint64_t place = protocol_.has_packets ? piece : piece % num_slots;
    const Access access = gpu == gpu_ ? (protocol_.has_packets ? Access::local_packets : Access::local)
                                      : (protocol_.has_packets ? Access::remote_packets : Access::remote);
    return {fifo.first + place * protocol_.slot, Bytes(bytes), gpu, Buffer::scratch, access};
  }
  /// A place for data of a step that writes them nowhere else.
  Operand staging(std::uint64_t bytes) const {
    const auto block = static_cast<std::uint64_t>(block_ - program_.gpus[gpu_].blocks.data());
    return {staging_[gpu_] + block * protocol_.slot, Bytes(bytes), gpu_, Buffer::scratch, Access::local};
  }

  void add_step(const Step& step) {
    auto& blocks = program_.gpus[gpu_].blocks;
    block_ = &*std::ranges::find(blocks, step.block, &Block::id);
    number_ = step.number;
    has_paid_ = false;
    if (const auto found = acquires_.find({gpu_, step.block, step.number}); found != acquires_.end()) {
      add_with_id(sem_acquire, found->second);
      add(nop);
    }
    for (std::uint32_t k = 0; k < step.count; k += together_) add_piece(step, k, std::min(together_, step.count - k));
    if (const auto found = releases_.find({gpu_, step.block, step.number}); found != releases_.end()) {
      add(nop);
      add(sem_release, {}, {}, found->second);
    }
    if (step.type == "cpy" || step.type == "re") add(nop);
  }

  /// Adds what a step does in this turn with some of its chunks, from the k-th one on.
  void add_piece(const Step& step, std::uint32_t k, std::uint32_t chunks) {
    const std::uint64_t first = k * chunk_ + first_,
                        bytes = chunks > 1 ? chunks * chunk_ : std::min(protocol_.slot, chunk_ - first_);
    if (step.type == "cpy" || step.type == "re") {
      const Operand from = local(step.from, first, bytes), to = local(step.to, first, bytes);
      if (step.type == "cpy")
        add(copy, std::array{from}, std::array{to});
      else
        add(re, std::array{to, from}, std::array{to});
    }
    if (!sends(step) && !receives(step)) return;
    std::vector<Operand> sources, targets;
    if (receives(step)) {
      Fifo& fifo = fifo_from(gpu_, step);
      sources.push_back(slot(fifo, fifo.received++, bytes, gpu_));
      if (!protocol_.has_packets) add_with_id(wait, fifo.at_receiver);
    }
    if (sends(step)) {
      Fifo& fifo = fifo_to(gpu_, step);
      const std::uint32_t peer = *block_of(gpu_, step).send;
      if (fifo.sent >= num_slots) add_with_id(rlxwait, fifo.at_sender);
      targets.push_back(slot(fifo, fifo.sent++, bytes, peer));
    }
    if (!protocol_.has_packets) add(nop);
    move(step, first, bytes, sources, targets);
    add(nop);
    if (sends(step) && !protocol_.has_packets) add_with_id(signal, fifo_to(gpu_, step).at_sender);
    if (receives(step)) add_credit(step);
  }
  /// Tells the sender that a slot is free, if it will wait for one.
  void add_credit(const Step& step) {
    const Fifo& fifo = fifo_from(gpu_, step);
    if (fifo.received + num_slots <= fifo.pieces) add_with_id(rlxsignal, fifo.at_receiver);
  }

  void move(const Step& step, std::uint64_t first, std::uint64_t bytes, std::vector<Operand> sources,
            std::vector<Operand> targets) {
    const bool packets = protocol_.has_packets, reduces = step.operations[Msccl::calculates].has_value();
    if (!receives(step)) {
      add(packets ? ppkt : put, std::array{local(step.from, first, bytes)}, targets);
    } else if (reduces) {
      sources.insert(sources.begin(), local(step.from, first, bytes));
      targets.insert(targets.begin(), step.keeps ? local(step.to, first, bytes) : staging(bytes));
      add(sends(step) ? (packets ? respkt : res) : (packets ? repkt : re), sources, targets);
    } else if (packets) {
      if (!targets.empty()) add(rppkt, sources, targets);
      add(upkt, sources, std::array{local(step.to, first, bytes)});
    } else {
      targets.insert(targets.begin(), local(step.to, first, bytes));
      add(sends(step) ? res : copy, sources, targets);
    }
  }

  const Msccl& from_;
  const Protocol protocol_;
  std::uint64_t chunk_ = 0;     ///< bytes
  std::uint64_t turns_ = 0;     ///< turns of the whole algorithm, each with a slot of each chunk
  std::uint64_t first_ = 0;     ///< byte of each chunk at which the turn begins
  std::uint32_t together_ = 1;  ///< most chunks in a slot
  Program program_;
  std::map<Connection, Fifo> fifos_;
  std::vector<std::uint64_t> staging_;                                        ///< [gpus] byte of scratch
  using StepOfGpu = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // GPU, block, number
  std::map<StepOfGpu, std::vector<std::uint32_t>> releases_;                  ///< semaphores
  std::map<StepOfGpu, std::uint32_t> acquires_;
  std::uint32_t gpu_ = 0, number_ = 0;
  Block* block_ = nullptr;
  bool has_paid_ = false;
};

}  // namespace

Bytes next_size(const collective::Msccl& algorithm, Bytes message) {
  const std::uint64_t unit = std::uint64_t{algorithm.num_chunks} * alignment;
  return Bytes(unit) * (message.count() / unit + (message.count() % unit != 0 ? 1 : 0));
}

Bytes test_message(const collective::Msccl& algorithm) {
  return next_size(algorithm, Bytes(10 * protocol_of(algorithm.protocol).slot) * algorithm.num_chunks);
}

Program make_program(const collective::Msccl& algorithm, Bytes message) {
  return MscclProgram(algorithm, message).make();
}

}  // namespace orrery::gpu
