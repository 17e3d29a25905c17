// All-gather, reduce-scatter and all-to-all between all pairs, by stores, loads or copy engines.
#include "kernel_writer.hpp"

namespace orrery::gpu {
namespace {

using enum OperationKind;

enum class Collective : std::uint8_t { all_gather, reduce_scatter, all_to_all };

/// KernelShape::bytes are those of the larger buffer: the output of an all-gather, else the input.
KernelWriter begin(const KernelShape& shape, std::string_view name, Collective what) {
  KernelWriter writer(shape, name, 1);
  const Bytes share(shape.bytes.count() / shape.gpus);
  writer.sizes(what == Collective::all_gather ? share : shape.bytes,
               what == Collective::reduce_scatter ? share : shape.bytes,
               what == Collective::reduce_scatter ? shape.bytes : Bytes(0));
  writer.connect_all(shape.blocks);
  return writer;
}

/// Returns the part of a block of the share of a GPU.
Piece part_of(const KernelShape& shape, std::uint32_t of, std::uint32_t block) {
  return Piece{0, shape.bytes.count()}.part(of, shape.gpus).part(block, shape.blocks);
}
Piece own_part(const KernelShape& shape, std::uint32_t block) {
  return Piece{0, shape.bytes.count() / shape.gpus}.part(block, shape.blocks);
}

void words(KernelWriter& writer, std::uint32_t gpu, std::uint32_t block, OperationKind signals, OperationKind waits) {
  const auto ids = writer.channels(gpu, writer.peers(gpu), block);
  writer.add_words(gpu, block, signals, ids, true);
  writer.add_words(gpu, block, waits, ids);
}

/// Data go to all others, then words say so. A reduce-scatter adds up what has come.
Program by_stores(const KernelShape& shape, std::string_view name, Collective what) {
  KernelWriter writer = begin(shape, name, what);
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    std::vector<Operand> from, to, added = {KernelWriter::local(Buffer::input, part_of(shape, gpu, block))};
    for (const std::uint32_t other : writer.peers(gpu)) {
      from.push_back(KernelWriter::local(
          Buffer::input, what == Collective::all_gather ? own_part(shape, block) : part_of(shape, other, block)));
      to.push_back(KernelWriter::remote(other, what == Collective::reduce_scatter ? Buffer::scratch : Buffer::output,
                                        part_of(shape, gpu, block)));
      added.push_back(KernelWriter::local(Buffer::scratch, part_of(shape, other, block)));
    }
    writer.add(gpu, block, {.kind = put, .order = Order::one_after_other}, from, to);
    words(writer, gpu, block, signal, wait);
    if (what == Collective::reduce_scatter)
      writer.add(gpu, block, {.kind = re}, added, {KernelWriter::local(Buffer::output, own_part(shape, block))});
  });
  return std::move(writer.program());
}

/// Words say that data are ready, then all load them.
Program by_loads(const KernelShape& shape, std::string_view name, Collective what) {
  KernelWriter writer = begin(shape, name, what);
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    words(writer, gpu, block, signal, wait);
    std::vector<Operand> from, to;
    if (what == Collective::reduce_scatter) from = {KernelWriter::local(Buffer::input, part_of(shape, gpu, block))};
    for (const std::uint32_t other : writer.peers(gpu)) {
      from.push_back(KernelWriter::remote(
          other, Buffer::input, what == Collective::all_gather ? own_part(shape, block) : part_of(shape, gpu, block)));
      to.push_back(KernelWriter::local(Buffer::output, part_of(shape, other, block)));
    }
    if (what == Collective::reduce_scatter)
      writer.add(gpu, block, {.kind = rre}, from, {KernelWriter::local(Buffer::output, own_part(shape, block))});
    else
      writer.add(gpu, block, {.kind = get, .order = Order::one_after_other}, from, to);
    words(writer, gpu, block, rlxsignal, rlxwait);
  });
  return std::move(writer.program());
}

/// One block of each GPU lets copy engines send its share to all others.
Program gather_by_engines(const KernelShape& shape) {
  KernelWriter writer(shape, "all-gather-engines", 1);
  const Bytes share(shape.bytes.count() / shape.gpus);
  writer.sizes(share, shape.bytes, Bytes(0));
  writer.connect_all(1, Transport::port);
  for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu) {
    const auto ids = writer.channels(gpu, writer.peers(gpu), 0);
    std::vector<Operand> from, to;
    for (const std::uint32_t other : writer.peers(gpu)) {
      from.push_back(KernelWriter::local(Buffer::input, {0, share.count()}));
      to.push_back(KernelWriter::remote(other, Buffer::output, Piece{0, shape.bytes.count()}.part(gpu, shape.gpus)));
    }
    writer.add(gpu, 0, {.kind = pws, .transport = Transport::port}, from, to, ids);
    writer.add_words(gpu, 0, wait, ids);
  }
  return std::move(writer.program());
}

}  // namespace

extern const Kernel gather_put_kernel, gather_get_kernel, scatter_put_kernel, scatter_get_kernel, all_to_all_put_kernel,
    all_to_all_get_kernel, gather_engines_kernel;
constinit const Kernel gather_put_kernel{
    .name = "all-gather-put",
    .help = "all-gather by stores to all others",
    .usual = {.gpus = 8, .blocks = 32},
    .make = [](const KernelShape& shape) { return by_stores(shape, "all-gather-put", Collective::all_gather); }};
constinit const Kernel gather_get_kernel{
    .name = "all-gather-get",
    .help = "all-gather by loads from all others",
    .usual = {.gpus = 8, .blocks = 32},
    .make = [](const KernelShape& shape) { return by_loads(shape, "all-gather-get", Collective::all_gather); }};
constinit const Kernel scatter_put_kernel{.name = "reduce-scatter-put",
                                          .help = "reduce-scatter by stores to all others, and sums of them",
                                          .usual = {.gpus = 8, .blocks = 32},
                                          .make = [](const KernelShape& shape) {
                                            return by_stores(shape, "reduce-scatter-put", Collective::reduce_scatter);
                                          }};
constinit const Kernel scatter_get_kernel{
    .name = "reduce-scatter-get",
    .help = "reduce-scatter by loads from all others",
    .usual = {.gpus = 8, .blocks = 32},
    .make = [](const KernelShape& shape) { return by_loads(shape, "reduce-scatter-get", Collective::reduce_scatter); }};
constinit const Kernel all_to_all_put_kernel{
    .name = "all-to-all-put",
    .help = "all-to-all by stores to all others",
    .usual = {.gpus = 8, .blocks = 32},
    .make = [](const KernelShape& shape) { return by_stores(shape, "all-to-all-put", Collective::all_to_all); }};
constinit const Kernel all_to_all_get_kernel{
    .name = "all-to-all-get",
    .help = "all-to-all by loads from all others",
    .usual = {.gpus = 8, .blocks = 32},
    .make = [](const KernelShape& shape) { return by_loads(shape, "all-to-all-get", Collective::all_to_all); }};
constinit const Kernel gather_engines_kernel{.name = "all-gather-engines",
                                             .help = "all-gather by copy engines",
                                             .usual = {.gpus = 8, .blocks = 1, .threads = 1},
                                             .make = gather_by_engines};

}  // namespace orrery::gpu
