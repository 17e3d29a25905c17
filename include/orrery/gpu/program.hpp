#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"

namespace orrery::gpu {

/// The buffers of a GPU. If a program works in place, input and output overlap: the smaller one of GPU r is the r-th
/// part of the larger one.
enum class Buffer : std::uint8_t { input, output, scratch };

/// How an operation reaches bytes.
enum class Access : std::uint8_t {
  local,           ///< memory of the block's own GPU
  local_packets,   ///< packets in the scratch of the block's own GPU: a read waits for their flags
  remote,          ///< memory of another GPU: a load if it is a source, a store if it is a destination
  remote_packets,  ///< packets in the scratch of another GPU. Only destinations
  in_switch,       ///< the same place in all GPUs of a group: a source is added up, a destination is multiplied
};

/// Bytes that an operation reads or writes. Of packets they are those of the data: a packet for the bytes [a, b) of a
/// scratch is the one that a read of [a, b) waits for, whatever the room that packets take in memory.
struct Operand {
  std::uint64_t offset = 0;  ///< bytes from the start of the buffer
  Bytes bytes;
  std::uint32_t gpu = 0;  ///< whose buffer it is; of `in_switch` the index of the group in Program::groups
  Buffer buffer = Buffer::input;
  Access access = Access::local;
  /// Of packets that are read: the bytes over which `bytes` are spread evenly, from `offset` on, as by threads that
  /// read each n-th packet; 0: they lie side by side.
  Bytes spread = {};

  friend bool operator==(const Operand&, const Operand&) = default;
};

/// The operations of a thread block, by the names that plans of MSCCL++ give them (gpu.md, MSCCL++ plans). S: sources,
/// D: destinations, in the order in which they stand in an Operation; C: ids of channels; Q: ids of semaphores.
enum class OperationKind : std::uint8_t {
  nop,          ///< the threads of the block wait for each other
  barrier,      ///< all blocks that name the barrier wait for each other
  put,          ///< S[i] local -> D[i] remote. On a port channel the proxy of C[i] carries out the i-th
  pws,          ///< on port channels: put, then signal on the same channels
  pwsf,         ///< pws, then flush
  get,          ///< S[i] remote -> D[i] local
  copy,         ///< S[0] local -> D[0] local
  signal,       ///< a word on each of C, after all earlier writes of the block can be seen
  rlxsignal,    ///< a word on each of C, at once
  wait,         ///< waits for the next word of each of C
  rlxwait,      ///< likewise
  flush,        ///< waits until the proxy has carried out all earlier requests on C
  re,           ///< D[0] = S[0] + S[1..], all local
  res,          ///< re, and the sum to D[1..] remote
  rre,          ///< D[0] = S[0] local + S[1..] remote
  rres,         ///< rre, and the sum to D[1..] remote
  ppkt,         ///< S[i] local -> D[i] remote packets
  rppkt,        ///< S[0] local packets -> D[0..] remote packets
  repkt,        ///< D[0] = S[0] local + S[1..] local packets
  respkt,       ///< repkt, and the sum to D[1..] remote packets
  recpkt,       ///< repkt, and the sum to D[1] local packets
  recspkt,      ///< repkt, and the sum to D[1] local packets and D[2..] remote packets
  cpkt,         ///< S[0] local -> D[0] local packets
  upkt,         ///< S[0] local packets -> D[0] local
  glres,        ///< S[0] in_switch -> D[0] in_switch
  gstore,       ///< S[0] local -> D[0] in_switch
  gstorepkt,    ///< S[0] local packets -> D[0] in_switch
  sem_acquire,  ///< waits until each of Q is above 0, and takes one
  sem_release,  ///< adds one to each of Q
};
inline constexpr std::size_t num_operation_kinds = static_cast<std::size_t>(OperationKind::sem_release) + 1;

/// Returns the name of an operation in plans.
std::string_view name(OperationKind kind);

/// How words and data of a channel travel.
enum class Transport : std::uint8_t {
  memory,  ///< loads and stores of the block's threads
  port,    ///< requests to the proxy on the host, which starts copy engines or sends messages
};

/// How data and flags share a packet.
enum class PacketFormat : std::uint8_t {
  ll8,    ///< 4 bytes of data and 4 of flag
  ll16,   ///< 8 bytes of data and 8 of flags
  ll128,  ///< 120 bytes of data and 8 of flag
};

/// In which order an operation serves its destinations (put, ppkt) or sources (get).
enum class Order : std::uint8_t {
  one_after_other,  ///< all bytes of the first, then all of the second, as the executor of MSCCL++ does
  each_iteration,   ///< side by side: in each iteration those of all
  by_threads,       ///< at one time, each by its own Operation::threads of the block
};

/// What a `barrier` joins.
struct BarrierUse {
  std::uint32_t id = 0;
  std::uint32_t num_blocks = 0;  ///< that it joins
};

/// One operation of a thread block. Its operands are in Gpu::operands, sources first, and its ids in Gpu::ids.
struct Operation {
  OperationKind kind = OperationKind::nop;
  Transport transport = Transport::memory;
  Order order = Order::each_iteration;
  PacketFormat packets = PacketFormat::ll16;
  bool pays_op = true;         ///< it takes the fixed cost `op` first (plans; own kernels may not)
  bool operand_first = false;  ///< of packets: the local S[0] is read before the polls and costs nothing after them
  bool polls_side_by_side = false;  ///< of packets: sources are polled at one time
  std::uint32_t threads = 0;        ///< that work for each destination or source; 0: all of the block
  std::uint32_t first_operand = 0;
  std::uint32_t num_sources = 0;
  std::uint32_t num_destinations = 0;
  std::uint32_t first_id = 0;  ///< of channels (Gpu::channels) or semaphores (Gpu::semaphores)
  std::uint32_t num_ids = 0;
  BarrierUse barrier = {};   ///< of a `barrier`
  std::uint32_t number = 0;  ///< of the operation in its block of the file, for messages
};

/// One end of a connection between two GPUs. Words that are sent on it come to `paired` of `peer`, and words that are
/// awaited on it are those that `paired` of `peer` sent, the k-th one for the k-th wait.
struct Channel {
  Transport transport = Transport::memory;
  std::uint32_t peer = 0;    ///< the GPU
  std::uint32_t paired = 0;  ///< index in Gpu::channels of the peer
};

struct Block {
  std::uint32_t id = 0;  ///< in the file
  std::uint32_t threads = 1024;
  std::vector<Operation> operations;
};

/// What one GPU executes. Blocks start in their order.
struct Gpu {
  std::vector<Block> blocks;
  std::vector<Channel> channels;
  std::vector<std::uint32_t> semaphores;  ///< their values at the start
  Bytes input, output, scratch;           ///< sizes of the buffers; of packets in scratch, their data
  std::vector<Operand> operands;
  std::vector<std::uint32_t> ids;

  std::span<const Operand> sources(const Operation& operation) const {
    return std::span(operands).subspan(operation.first_operand, operation.num_sources);
  }
  std::span<const Operand> destinations(const Operation& operation) const {
    return std::span(operands).subspan(operation.first_operand + operation.num_sources, operation.num_destinations);
  }
  /// Returns the indices of its channels in `channels`, or of its semaphores in `semaphores`.
  std::span<const std::uint32_t> ids_of(const Operation& operation) const {
    return std::span(ids).subspan(operation.first_id, operation.num_ids);
  }
  /// Adds an operation at the end of a block, and fills in where its operands and ids are.
  void add(Block& block, Operation operation, std::span<const Operand> sources = {},
           std::span<const Operand> destinations = {}, std::span<const std::uint32_t> used_ids = {});
};

/// What the GPUs of a group execute for a collective of one size. Plans of MSCCL++, algorithms of MSCCL and kernels
/// that are written by hand are turned into it. GPUs are numbered by their position in the group.
struct Program {
  std::string name;
  std::string file;  ///< it was read from; empty: from none
  bool in_place = false;
  /// It is copied to shared memory before the first operation (parameter `plan-load`); else `prologue` polls of L2.
  bool is_plan = true;
  std::uint32_t prologue = 0;
  std::vector<Gpu> gpus;
  std::vector<std::vector<std::uint32_t>> groups;  ///< the GPUs of each group of a switch, ascending

  /// Adds a connection between two different GPUs and returns the index of its end in Gpu::channels of each.
  std::pair<std::uint32_t, std::uint32_t> connect(std::uint32_t a, std::uint32_t b,
                                                  Transport transport = Transport::memory);
  /// Returns "GPU 3, thread block 1, operation 2 (put)".
  std::string place(std::uint32_t gpu, const Block& block, const Operation& operation) const;
};

}  // namespace orrery::gpu
