// All-reduces of MSCCL++ (github:microsoft/mscclpp at 1f5f065d) and of others who call themselves one-stage.
#include "kernel_writer.hpp"

namespace orrery::gpu {
namespace {

using enum OperationKind;

/// Each GPU sends all of its data to all others as packets of 8 bytes, and adds up what it gets. A warp serves each
/// peer (src/ext/collectives/allreduce/allreduce_allpair_packet.cu). Scratch: a vector of each GPU.
Program one_shot(const KernelShape& shape) {
  KernelWriter writer(shape, "one-shot", 2);
  writer.sizes(shape.bytes, shape.bytes, shape.bytes * shape.gpus);
  const std::uint64_t all = shape.bytes.count();
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const Piece piece = Piece{0, all}.part(block, shape.blocks);
    const auto in_scratch = [&](std::uint32_t of) { return Piece{all * of + piece.begin, all * of + piece.end}; };
    const Operand own = KernelWriter::local(Buffer::input, piece);
    std::vector<Operand> sent, gotten = {own};
    const auto peers = writer.peers(gpu);
    for (const std::uint32_t other : peers) {
      sent.push_back(KernelWriter::remote_packets(other, in_scratch(gpu)));
      gotten.push_back(KernelWriter::packets(in_scratch(other)));
    }
    writer.add(gpu, block, {.kind = ppkt, .order = Order::by_threads, .packets = PacketFormat::ll8, .threads = 32},
               std::vector<Operand>(peers.size(), own), sent);
    writer.add(gpu, block, {.kind = repkt, .packets = PacketFormat::ll8, .operand_first = true}, gotten,
               {KernelWriter::local(Buffer::output, piece)});
  });
  return std::move(writer.program());
}

/// The same with packets of 16 bytes: block i sends all data to peer i, and adds up its share.
Program one_shot_by_blocks(const KernelShape& shape) {
  KernelWriter writer(shape, "one-shot-blocks", 2);
  writer.sizes(shape.bytes, shape.bytes, shape.bytes * shape.gpus);
  const std::uint64_t all = shape.bytes.count();
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const auto peers = writer.peers(gpu);
    const Piece share = Piece{0, all}.part(block, shape.blocks);
    std::vector<Operand> gotten = {KernelWriter::local(Buffer::input, share)};
    for (const std::uint32_t other : peers)
      gotten.push_back(KernelWriter::packets({all * other + share.begin, all * other + share.end}));
    writer.add(gpu, block, {.kind = ppkt}, {KernelWriter::local(Buffer::input, {0, all})},
               {KernelWriter::remote_packets(peers[block], {all * gpu, all * (gpu + 1)})});
    writer.add(gpu, block, {.kind = repkt, .operand_first = true}, gotten,
               {KernelWriter::local(Buffer::output, share)});
  });
  return std::move(writer.program());
}

std::string_view need_block_for_each_peer(const KernelShape& shape) {
  return shape.blocks + 1 == shape.gpus ? std::string_view() : "it has one block for each other GPU";
}
std::string_view need_blocks_for_each_peer(const KernelShape& shape) {
  return shape.gpus > 1 && shape.blocks % (shape.gpus - 1) == 0 ? std::string_view()
                                                                : "it has equally many blocks for each other GPU";
}

/// Each GPU adds up its chunk of packets of all others, and sends them the sum (test/mscclpp-test, allreduce6). Block
/// i = l + k m sends stripe l of chunk P[k]. Scratch: a chunk of each GPU, then the sums.
Program two_shot(const KernelShape& shape) {
  KernelWriter writer(shape, "two-shot", 1);
  writer.sizes(shape.bytes, shape.bytes, shape.bytes * 2);
  const std::uint64_t all = shape.bytes.count();
  const std::uint32_t for_peer = shape.blocks / (shape.gpus - 1);
  const auto chunk = [&](std::uint32_t gpu) { return Piece{0, all}.part(gpu, shape.gpus); };
  const auto moved = [](Piece piece, std::uint64_t by) { return Piece{piece.begin + by, piece.end + by}; };
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const auto peers = writer.peers(gpu);
    const std::uint32_t peer = peers[block / for_peer], l = block % for_peer;
    // Of the chunk of the receiver: where the sender's data lie in its scratch.
    const auto received = [&](std::uint32_t at, std::uint32_t from, Piece part) {
      return moved(part, chunk(at).size() * from);
    };
    const Piece to_peer = Piece{0, chunk(peer).size()}.part(l, for_peer);
    writer.add(gpu, block, {.kind = ppkt}, {KernelWriter::local(Buffer::input, moved(to_peer, chunk(peer).begin))},
               {KernelWriter::remote_packets(peer, received(peer, gpu, to_peer))});
    // Its share of the own chunk: every (GPUs - 1)-th packet of a stripe. The sums lie side by side.
    const Piece stripe = Piece{0, chunk(gpu).size()}.part(l, for_peer);
    const Piece share = stripe.part(block / for_peer, shape.gpus - 1);
    std::vector<Operand> gotten = {KernelWriter::local(Buffer::input, moved(share, chunk(gpu).begin))};
    const Operand sum = KernelWriter::local(Buffer::output, moved(share, chunk(gpu).begin));
    std::vector<Operand> sums;
    for (const std::uint32_t other : peers) {
      gotten.push_back(KernelWriter::packets(received(gpu, other, stripe)));
      gotten.back().bytes = Bytes(share.size());
      gotten.back().spread = Bytes(stripe.size());
      sums.push_back(KernelWriter::remote_packets(other, moved(share, all + chunk(gpu).begin)));
    }
    writer.add(gpu, block, {.kind = repkt}, gotten, {sum});
    writer.add(gpu, block, {.kind = ppkt}, {sum}, sums);
    const Piece of_peer = moved(to_peer, chunk(peer).begin);
    writer.add(gpu, block, {.kind = upkt}, {KernelWriter::packets(moved(of_peer, all))},
               {KernelWriter::local(Buffer::output, of_peer)});
  });
  return std::move(writer.program());
}

/// Words to all others and from them, on channels of each block.
void meet(KernelWriter& writer, std::uint32_t gpu, std::uint32_t block, OperationKind signals, OperationKind waits) {
  const auto ids = writer.channels(gpu, writer.peers(gpu), block);
  writer.add_words(gpu, block, signals, ids, true);
  writer.add_words(gpu, block, waits, ids);
}

/// Each block loads its share from all GPUs, between words before and after.
Program one_stage(const KernelShape& shape) {
  KernelWriter writer(shape, "one-stage", 2);
  writer.sizes(shape.bytes, shape.bytes, Bytes(0));
  writer.connect_all(shape.blocks);
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const Piece share = Piece{0, shape.bytes.count()}.part(block, shape.blocks);
    meet(writer, gpu, block, rlxsignal, rlxwait);
    std::vector<Operand> from = {KernelWriter::local(Buffer::input, share)};
    for (const std::uint32_t other : writer.peers(gpu))
      from.push_back(KernelWriter::remote(other, Buffer::input, share));
    writer.add(gpu, block, {.kind = rre}, from, {KernelWriter::local(Buffer::output, share)});
    meet(writer, gpu, block, rlxsignal, rlxwait);
  });
  return std::move(writer.program());
}

/// Each GPU loads and adds up its chunk, then loads the sums of the others.
Program two_stage(const KernelShape& shape) {
  KernelWriter writer(shape, "two-stage", 2);
  writer.sizes(shape.bytes, shape.bytes, Bytes(shape.bytes.count() / shape.gpus));
  writer.connect_all(shape.blocks);
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const auto share_of = [&](std::uint32_t of) {
      return Piece{0, shape.bytes.count()}.part(of, shape.gpus).part(block, shape.blocks);
    };
    const Piece own = share_of(gpu);
    meet(writer, gpu, block, rlxsignal, rlxwait);
    std::vector<Operand> from = {KernelWriter::local(Buffer::input, own)}, sums;
    for (const std::uint32_t other : writer.peers(gpu)) from.push_back(KernelWriter::remote(other, Buffer::input, own));
    const Piece in_scratch = Piece{0, shape.bytes.count() / shape.gpus}.part(block, shape.blocks);
    writer.add(gpu, block, {.kind = rre}, from, {KernelWriter::local(Buffer::scratch, in_scratch)});
    meet(writer, gpu, block, signal, wait);
    std::vector<Operand> to;
    for (const std::uint32_t other : writer.peers(gpu)) {
      sums.push_back(KernelWriter::remote(other, Buffer::scratch, in_scratch));
      to.push_back(KernelWriter::local(Buffer::output, share_of(other)));
    }
    writer.add(gpu, block, {.kind = get}, sums, to);
  });
  return std::move(writer.program());
}

/// Reduce-scatter and all-gather by stores between all pairs.
Program all_pairs_put(const KernelShape& shape) {
  KernelWriter writer(shape, "all-pairs-put", 1);
  writer.sizes(shape.bytes, shape.bytes, shape.bytes);
  writer.connect_all(shape.blocks);
  const std::uint64_t all = shape.bytes.count();
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const auto peers = writer.peers(gpu);
    const auto share_of = [&](std::uint32_t of) {
      return Piece{0, all}.part(of, shape.gpus).part(block, shape.blocks);
    };
    const auto in_scratch = [&](std::uint32_t of) {
      return Piece{0, all}.part(of, shape.gpus).part(block, shape.blocks);
    };
    std::vector<Operand> sent, there, added = {KernelWriter::local(Buffer::input, share_of(gpu))}, sums;
    for (const std::uint32_t other : peers) {
      sent.push_back(KernelWriter::local(Buffer::input, share_of(other)));
      there.push_back(KernelWriter::remote(other, Buffer::scratch, in_scratch(gpu)));
      added.push_back(KernelWriter::local(Buffer::scratch, in_scratch(other)));
      sums.push_back(KernelWriter::remote(other, Buffer::output, share_of(gpu)));
    }
    writer.add(gpu, block, {.kind = put, .order = Order::one_after_other}, sent, there);
    meet(writer, gpu, block, signal, wait);
    writer.add(gpu, block, {.kind = re}, added, {KernelWriter::local(Buffer::output, share_of(gpu))});
    writer.add(gpu, block, {.kind = put}, {KernelWriter::local(Buffer::output, share_of(gpu))}, sums);
    meet(writer, gpu, block, signal, wait);
  });
  return std::move(writer.program());
}

/// The switch adds up each GPU's share and sends it to all, as MSCCL++'s plan allreduce_nvls_zero_copy does.
Program in_switch(const KernelShape& shape) {
  KernelWriter writer(shape, "in-switch", 0);
  writer.program().is_plan = true;
  writer.program().in_place = true;
  writer.sizes(shape.bytes, shape.bytes, Bytes(0));
  writer.connect_all(shape.blocks);
  std::vector<std::uint32_t> all;
  for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu) all.push_back(gpu);
  writer.program().groups = {all};
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const Piece share = Piece{0, shape.bytes.count()}.part(gpu, shape.gpus).part(block, shape.blocks);
    const auto ids = writer.channels(gpu, writer.peers(gpu), block);
    const auto nop_then = [&](OperationKind kind) {
      writer.add(gpu, block, {.kind = nop});
      writer.add_words(gpu, block, kind, ids, true);
    };
    nop_then(rlxsignal);
    nop_then(rlxwait);
    writer.add(gpu, block, {.kind = nop});
    const Operand sum = KernelWriter::in_switch(0, Buffer::input, share);
    if (share.size() > 0) writer.add(gpu, block, {.kind = glres}, {sum}, {sum});
    nop_then(rlxsignal);
    nop_then(rlxwait);
  });
  return std::move(writer.program());
}

/// Each GPU sends its data to all by one store to the switch, as packets, and adds up what has come.
Program multicast(const KernelShape& shape) {
  KernelWriter writer(shape, "multicast", 1);
  writer.sizes(shape.bytes, shape.bytes, shape.bytes * shape.gpus);
  std::vector<std::uint32_t> all;
  for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu) all.push_back(gpu);
  writer.program().groups = {all};
  const std::uint64_t bytes = shape.bytes.count();
  writer.for_each_block([&](std::uint32_t gpu, std::uint32_t block) {
    const Piece piece = Piece{0, bytes}.part(block, shape.blocks);
    const auto in_scratch = [&](std::uint32_t of) { return Piece{bytes * of + piece.begin, bytes * of + piece.end}; };
    if (piece.size() == 0) return;
    std::vector<Operand> gotten = {KernelWriter::local(Buffer::input, piece)};
    for (const std::uint32_t other : writer.peers(gpu)) gotten.push_back(KernelWriter::packets(in_scratch(other)));
    writer.add(gpu, block, {.kind = gstorepkt}, {KernelWriter::local(Buffer::input, piece)},
               {KernelWriter::switch_packets(0, in_scratch(gpu))});
    writer.add(gpu, block, {.kind = repkt, .operand_first = true, .polls_side_by_side = true}, gotten,
               {KernelWriter::local(Buffer::output, piece)});
  });
  return std::move(writer.program());
}

}  // namespace

extern const Kernel one_shot_kernel, one_shot_blocks_kernel, two_shot_kernel, one_stage_kernel, two_stage_kernel,
    all_pairs_put_kernel, in_switch_kernel, multicast_kernel;
constinit const Kernel one_shot_kernel{.name = "one-shot",
                                       .help = "all-reduce: packets of 8 bytes to all, a warp for each peer (MSCCL++)",
                                       .usual = {.gpus = 8, .blocks = 28, .threads = 512},
                                       .make = one_shot};
constinit const Kernel one_shot_blocks_kernel{
    .name = "one-shot-blocks",
    .help = "all-reduce: packets of 16 bytes to all, a block for each peer (MSCCL++)",
    .usual = {.gpus = 8, .blocks = 7, .threads = 1024},
    .make = one_shot_by_blocks,
    .validation_error = need_block_for_each_peer};
constinit const Kernel two_shot_kernel{.name = "two-shot",
                                       .help = "all-reduce: packets of chunks, then of their sums (MSCCL++)",
                                       .usual = {.gpus = 8, .blocks = 21, .threads = 512},
                                       .make = two_shot,
                                       .validation_error = need_blocks_for_each_peer};
constinit const Kernel one_stage_kernel{.name = "one-stage",
                                        .help = "all-reduce: loads all data of all others (vLLM, SGLang)",
                                        .usual = {.gpus = 8, .blocks = 36, .threads = 512},
                                        .make = one_stage};
constinit const Kernel two_stage_kernel{.name = "two-stage",
                                        .help = "all-reduce: loads chunks of all others, then their sums",
                                        .usual = {.gpus = 8, .blocks = 36, .threads = 512},
                                        .make = two_stage};
constinit const Kernel all_pairs_put_kernel{.name = "all-pairs-put",
                                            .help = "all-reduce: stores chunks to all others, then their sums",
                                            .usual = {.gpus = 8, .blocks = 45, .threads = 512},
                                            .make = all_pairs_put};
constinit const Kernel in_switch_kernel{.name = "in-switch",
                                        .help = "all-reduce: the switch adds up and multiplies (MSCCL++ plan)",
                                        .usual = {.gpus = 8, .blocks = 8, .threads = 1024},
                                        .make = in_switch};
constinit const Kernel multicast_kernel{.name = "multicast",
                                        .help = "all-reduce: each GPU stores its packets to all by the switch",
                                        .usual = {.gpus = 8, .blocks = 4, .threads = 512},
                                        .make = multicast};

}  // namespace orrery::gpu
