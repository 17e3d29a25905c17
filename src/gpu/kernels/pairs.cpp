// Kernels of two GPUs: those of MSCCL++'s tutorials 03 and 04 (github:microsoft/mscclpp at 1f5f065d), and copies.
#include "kernel_writer.hpp"

namespace orrery::gpu {
namespace {

using enum OperationKind;

enum class Way : std::uint8_t { put, get, packets };

/// Both GPUs move their buffer to the other one.
Program exchange(const KernelShape& shape, std::string_view name, Way way) {
  KernelWriter writer(shape, name, 1);
  writer.sizes(shape.bytes, Bytes(0), Bytes(0));
  writer.connect_all(2);
  const std::uint64_t bytes = shape.bytes.count();
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const std::uint32_t other = 1 - gpu;
    const auto words = [&](OperationKind kind, std::uint32_t k) {
      if (block == 0) writer.add_words(gpu, block, kind, writer.channels(gpu, {other}, k));
    };
    words(rlxsignal, 0);
    words(rlxwait, 0);
    writer.add_barrier(gpu, block);
    const Piece piece = stripe(bytes, block, shape.blocks, way == Way::packets ? 8192 : 16384);
    const Operand own = KernelWriter::local(Buffer::input, piece);
    if (way == Way::put) {
      if (piece.size() > 0)
        writer.add(gpu, block, {.kind = put}, {own}, {KernelWriter::remote(other, Buffer::input, piece)});
      writer.add_barrier(gpu, block);
      words(signal, 1);
      words(wait, 1);
    } else if (piece.size() == 0) {
      return;
    } else if (way == Way::get) {
      writer.add(gpu, block, {.kind = get}, {KernelWriter::remote(other, Buffer::input, piece)}, {own});
    } else {
      writer.add(gpu, block, {.kind = ppkt}, {own}, {KernelWriter::remote_packets(other, piece)});
      writer.add(gpu, block, {.kind = upkt, .pays_op = false}, {KernelWriter::packets(piece)}, {own});
    }
  });
  return std::move(writer.program());
}

std::string_view need_pairs(const KernelShape& shape) {
  return shape.gpus == 2 ? std::string_view() : "it has two GPUs";
}

/// GPU 0 stores to GPU 1, and nothing else goes on.
Program one_way(const KernelShape& shape) {
  KernelWriter writer(shape, "copy", 1);
  writer.sizes(shape.bytes, Bytes(0), Bytes(0));
  for (std::uint32_t block = 0; block < shape.blocks; ++block) {
    const Piece piece = Piece{0, shape.bytes.count()}.part(block, shape.blocks);
    writer.add(0, block, {.kind = put, .pays_op = false}, {KernelWriter::local(Buffer::input, piece)},
               {KernelWriter::remote(1, Buffer::input, piece)});
  }
  writer.program().gpus[1].blocks.clear();
  return std::move(writer.program());
}

/// One thread of each GPU has the copy engine do it: signal, wait, put and signal, wait.
Program by_engine(const KernelShape& shape) {
  KernelWriter writer(shape, "copy-engine", 1);
  writer.sizes(shape.bytes, Bytes(0), Bytes(0));
  writer.connect_all(1, Transport::port);
  for (std::uint32_t gpu = 0; gpu < 2; ++gpu) {
    const std::uint32_t other = 1 - gpu;
    const auto ids = writer.channels(gpu, {other}, 0);
    const Piece all{0, shape.bytes.count()};
    writer.add_words(gpu, 0, signal, ids, false, Transport::port);
    writer.add_words(gpu, 0, wait, ids);
    writer.add(gpu, 0, {.kind = pws, .transport = Transport::port, .pays_op = false},
               {KernelWriter::local(Buffer::input, all)}, {KernelWriter::remote(other, Buffer::input, all)}, ids);
    writer.add_words(gpu, 0, wait, ids);
  }
  return std::move(writer.program());
}

/// GPU 0 has the copy engine copy as many times as the kernel has blocks.
Program engine_copies(const KernelShape& shape) {
  KernelShape one = shape;
  one.blocks = 1;
  KernelWriter writer(one, "copy-engine-copies", 1);
  writer.sizes(shape.bytes, Bytes(0), Bytes(0));
  writer.connect_all(1, Transport::port);
  const Piece all{0, shape.bytes.count()};
  const auto ids = writer.channels(0, {1}, 0);
  for (std::uint32_t k = 0; k < shape.blocks; ++k)
    writer.add(0, 0, {.kind = put, .transport = Transport::port, .pays_op = false},
               {KernelWriter::local(Buffer::input, all)}, {KernelWriter::remote(1, Buffer::input, all)}, ids);
  writer.add_words(0, 0, flush, ids, false, Transport::port);
  writer.program().gpus[1].blocks.clear();
  return std::move(writer.program());
}

/// Each block loads its stripe, and stores it in its own memory: a kernel that scales a vector.
Program scale(const KernelShape& shape) {
  KernelWriter writer(shape, "scale", 0);
  writer.sizes(shape.bytes, Bytes(0), Bytes(0));
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const Operand own = KernelWriter::local(Buffer::input, Piece{0, shape.bytes.count()}.part(block, shape.blocks));
    writer.add(gpu, block, {.kind = copy, .pays_op = false}, {own}, {own});
  });
  return std::move(writer.program());
}

}  // namespace

extern const Kernel put_kernel, get_kernel, packets_kernel, copy_kernel, copy_engine_kernel, engine_copies_kernel,
    scale_kernel;
constinit const Kernel put_kernel{.name = "put",
                                  .help = "two GPUs store their buffers to each other (MSCCL++ tutorial 03)",
                                  .usual = {.gpus = 2, .blocks = 32},
                                  .make = [](const KernelShape& shape) { return exchange(shape, "put", Way::put); },
                                  .validation_error = need_pairs};
constinit const Kernel get_kernel{.name = "get",
                                  .help = "two GPUs load each other's buffers (MSCCL++ tutorial 03)",
                                  .usual = {.gpus = 2, .blocks = 32},
                                  .make = [](const KernelShape& shape) { return exchange(shape, "get", Way::get); },
                                  .validation_error = need_pairs};
constinit const Kernel packets_kernel{
    .name = "packets",
    .help = "two GPUs send each other packets of 16 bytes (MSCCL++ tutorial 03)",
    .usual = {.gpus = 2, .blocks = 32},
    .make = [](const KernelShape& shape) { return exchange(shape, "packets", Way::packets); },
    .validation_error = need_pairs};
constinit const Kernel copy_kernel{.name = "copy",
                                   .help = "one GPU stores its buffer to another one",
                                   .usual = {.gpus = 2, .blocks = 8},
                                   .make = one_way,
                                   .validation_error = need_pairs};
constinit const Kernel copy_engine_kernel{.name = "copy-engine",
                                          .help = "two GPUs let copy engines send their buffers (MSCCL++ tutorial 04)",
                                          .usual = {.gpus = 2, .blocks = 1, .threads = 1},
                                          .make = by_engine,
                                          .validation_error = need_pairs};
constinit const Kernel engine_copies_kernel{.name = "engine-copies",
                                            .help = "a copy engine copies a buffer `blocks` times",
                                            .usual = {.gpus = 2, .blocks = 4, .threads = 1},
                                            .make = engine_copies,
                                            .validation_error = need_pairs};
constinit const Kernel scale_kernel{.name = "scale",
                                    .help = "one GPU reads and writes its own memory",
                                    .usual = {.gpus = 1, .blocks = 64, .threads = 256},
                                    .make = scale};

}  // namespace orrery::gpu
