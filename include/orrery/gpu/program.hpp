#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/plan_operations.hpp"

namespace orrery::gpu {

// Programs have the operations and buffers of execution plans.
using collective::mscclpp::Access;
using collective::mscclpp::awaits_words;
using collective::mscclpp::Buffer;
using collective::mscclpp::Channel;
using collective::mscclpp::is_of_group;
using collective::mscclpp::is_packets;
using collective::mscclpp::is_reduction;
using collective::mscclpp::name;
using collective::mscclpp::num_operation_kinds;
using collective::mscclpp::operand_rules;
using collective::mscclpp::OperandRules;
using collective::mscclpp::OperationKind;
using collective::mscclpp::sends_words;
using collective::mscclpp::Transport;
using collective::mscclpp::uses_channels;
using collective::mscclpp::uses_semaphores;

/// Bytes that an operation reads or writes. Of packets they are those of the data: a packet for the bytes [a, b) of a
/// scratch is the one that a read of [a, b) waits for, whatever the room that packets take in memory.
struct Operand {
  std::uint64_t offset = 0;  ///< bytes from the start of the buffer
  Bytes bytes;
  std::uint32_t gpu = 0;  ///< the owner of the buffer; for `in_switch` an index into Program::groups
  Buffer buffer = Buffer::input;
  Access access = Access::local;
  /// Of packets that are read: the bytes over which `bytes` are spread evenly, from `offset` on, as by threads that
  /// read each n-th packet; 0: they lie side by side.
  Bytes spread = {};

  friend bool operator==(const Operand&, const Operand&) = default;
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
  std::uint32_t num_blocks = 0;  ///< number of blocks that it joins
};

/// One operation of a thread block. Its operands are in Gpu::operands, sources first, and its ids in Gpu::ids.
struct Operation {
  OperationKind kind = OperationKind::nop;
  Transport transport = Transport::memory;
  Order order = Order::each_iteration;
  PacketFormat packets = PacketFormat::ll16;
  bool pays_op = true;              ///< it takes the fixed cost `op` first (plans; own kernels may not)
  bool operand_first = false;       ///< order of packets: S[0] is read before the polls, for free
  bool polls_side_by_side = false;  ///< polling of packets: sources are polled at one time
  std::uint32_t threads = 0;        ///< threads that work for each destination or source; 0: all of the block
  std::uint32_t first_operand = 0;
  std::uint32_t num_sources = 0;
  std::uint32_t num_destinations = 0;
  std::uint32_t first_id = 0;  ///< id of the first channel (Gpu::channels) or semaphore (Gpu::semaphores)
  std::uint32_t num_ids = 0;
  BarrierUse barrier = {};   ///< use of a `barrier`
  std::uint32_t number = 0;  ///< number of the operation in its block of the file, for messages
};

struct Block {
  std::uint32_t id = 0;  ///< id in the file
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
  /// It is copied to shared memory before the first operation (parameter `plan-load`); otherwise `prologue` polls of
  /// L2.
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
