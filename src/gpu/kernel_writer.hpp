#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace orrery::gpu {

/// The bytes [begin, end) of a buffer.
struct Piece {
  std::uint64_t begin = 0, end = 0;

  std::uint64_t size() const { return end - begin; }
  /// Returns part i of n equal ones.
  Piece part(std::uint64_t i, std::uint64_t n) const { return {begin + size() * i / n, begin + size() * (i + 1) / n}; }
};

/// Writes programs operation by operation.
class KernelWriter {
 public:
  KernelWriter(const KernelShape& shape, std::string_view name, std::uint32_t prologue) : shape_(shape) {
    program_.name = name;
    program_.is_plan = false;
    program_.prologue = prologue;
    program_.gpus.resize(shape.gpus);
    for (Gpu& gpu : program_.gpus) gpu.blocks.resize(shape.blocks);
    for (Gpu& gpu : program_.gpus)
      for (std::uint32_t b = 0; b < shape.blocks; ++b) {
        gpu.blocks[b].id = b;
        gpu.blocks[b].threads = shape.threads;
      }
    ends_.resize(std::size_t{shape.gpus} * shape.gpus);
  }

  Program& program() { return program_; }
  const KernelShape& shape() const { return shape_; }
  void sizes(Bytes input, Bytes output, Bytes scratch) {
    for (Gpu& gpu : program_.gpus) {
      gpu.input = input;
      gpu.output = output;
      gpu.scratch = scratch;
    }
  }
  /// Returns the other GPUs: the next one first.
  std::vector<std::uint32_t> peers(std::uint32_t gpu) const {
    std::vector<std::uint32_t> others;
    for (std::uint32_t k = 1; k < shape_.gpus; ++k) others.push_back((gpu + k) % shape_.gpus);
    return others;
  }
  /// Makes `count` connections between each two GPUs.
  void connect_all(std::uint32_t count, Transport transport = Transport::memory) {
    for (std::uint32_t k = 0; k < count; ++k)
      for (std::uint32_t a = 0; a < shape_.gpus; ++a)
        for (std::uint32_t b = a + 1; b < shape_.gpus; ++b) {
          const auto [of_a, of_b] = program_.connect(a, b, transport);
          end(a, b).push_back(of_a);
          end(b, a).push_back(of_b);
        }
  }
  /// Returns the k-th channels of a GPU to others.
  std::vector<std::uint32_t> channels(std::uint32_t gpu, const std::vector<std::uint32_t>& to, std::uint32_t k) {
    std::vector<std::uint32_t> ids;
    for (const std::uint32_t other : to) ids.push_back(end(gpu, other)[k]);
    return ids;
  }
  static Operand local(Buffer buffer, Piece piece) { return {piece.begin, Bytes(piece.size()), 0, buffer}; }
  static Operand packets(Piece piece) {
    return {piece.begin, Bytes(piece.size()), 0, Buffer::scratch, Access::local_packets};
  }
  static Operand remote(std::uint32_t gpu, Buffer buffer, Piece piece) {
    return {piece.begin, Bytes(piece.size()), gpu, buffer, Access::remote};
  }
  static Operand remote_packets(std::uint32_t gpu, Piece piece) {
    return {piece.begin, Bytes(piece.size()), gpu, Buffer::scratch, Access::remote_packets};
  }
  static Operand switch_packets(std::uint32_t group, Piece piece) {
    return {piece.begin, Bytes(piece.size()), group, Buffer::scratch, Access::switch_packets};
  }
  static Operand in_switch(std::uint32_t group, Buffer buffer, Piece piece) {
    return {piece.begin, Bytes(piece.size()), group, buffer, Access::in_switch};
  }

  void add(std::uint32_t gpu, std::uint32_t block, Operation operation, const std::vector<Operand>& from = {},
           const std::vector<Operand>& to = {}, const std::vector<std::uint32_t>& ids = {}) {
    Gpu& here = program_.gpus[gpu];
    operation.number = static_cast<std::uint32_t>(here.blocks[block].operations.size());
    here.add(here.blocks[block], operation, from, to, ids);
  }
  void add_words(std::uint32_t gpu, std::uint32_t block, OperationKind kind, const std::vector<std::uint32_t>& ids,
                 bool pays_op = false, Transport transport = Transport::memory) {
    add(gpu, block, {.kind = kind, .transport = transport, .pays_op = pays_op}, {}, {}, ids);
  }
  void add_barrier(std::uint32_t gpu, std::uint32_t block) {
    add(gpu, block, {.kind = OperationKind::barrier, .barrier = {0, shape_.blocks}});
  }
  template <class Visit>
  void for_each_block(Visit visit) const {
    for (std::uint32_t gpu = 0; gpu < shape_.gpus; ++gpu)
      for (std::uint32_t block = 0; block < shape_.blocks; ++block) visit(gpu, block);
  }

 private:
  std::vector<std::uint32_t>& end(std::uint32_t gpu, std::uint32_t other) {
    return ends_[std::size_t{gpu} * shape_.gpus + other];
  }

  KernelShape shape_;
  Program program_;
  std::vector<std::vector<std::uint32_t>> ends_;  // [GPUs][GPUs] channels, in the order of their making
};

/// Returns the stripe of a block. If stripes of the whole are smaller than `least`, the first blocks have that much.
inline Piece stripe(std::uint64_t bytes, std::uint32_t block, std::uint32_t blocks, std::uint64_t least) {
  if (bytes >= blocks * least) return Piece{0, bytes}.part(block, blocks);
  return {std::min(bytes, block * least), std::min(bytes, (block + 1) * least)};
}

}  // namespace orrery::gpu
