#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "orrery/base/mix.hpp"
#include "orrery/base/text.hpp"
#include "orrery/check/agreement.hpp"

namespace orrery::check {
namespace {

using trace::NodeKind;

/// All messages from one NPU to another with one tag, as one of the two sides has them.
struct Stream {
  std::uint32_t sender = 0, receiver = 0;
  std::uint64_t tag = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  ///< of the sizes, whatever their order

  auto key() const { return std::tie(sender, receiver, tag); }
};

/// The streams of one side of a structure: peer and tag are slots of the NPU's tables.
std::vector<Stream> streams_of(const trace::Graph& graph, NodeKind side) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, Stream> streams;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind != side) continue;
    Stream& stream = streams[{node.slot, node.detail}];
    stream.sender = stream.receiver = node.slot;
    stream.tag = node.detail;
    ++stream.count;
    stream.bytes += node.size;
    stream.digest += mix(0, node.size);
  }
  std::vector<Stream> result;
  for (const auto& [slots, stream] : streams) result.push_back(stream);
  return result;
}

/// The streams of this rank's NPUs of one side, sorted by key.
std::vector<Stream> streams_of(const Parties& parties, NodeKind side) {
  std::map<const trace::Graph*, std::vector<Stream>> of_structure;
  std::vector<Stream> streams;
  for (const auto& npu : parties.npus) {
    const auto& graph = *npu.trace->graph;
    if (graph.num_peer_slots == 0) continue;
    const auto [found, added] = of_structure.try_emplace(&graph);
    if (added) found->second = streams_of(graph, side);
    for (Stream stream : found->second) {
      const auto peer = npu.trace->peers[stream.sender].value();
      const auto own = npu.id.value();
      stream.tag = npu.trace->tags[stream.tag];
      std::tie(stream.sender, stream.receiver) = side == NodeKind::send ? std::pair(own, peer) : std::pair(peer, own);
      streams.push_back(stream);
    }
  }
  std::ranges::sort(streams, {}, [](const Stream& stream) { return stream.key(); });
  // Slots may lead to one peer and one tag.
  std::vector<Stream> result;
  for (const Stream& stream : streams) {
    if (result.empty() || result.back().key() != stream.key()) {
      result.push_back(stream);
      continue;
    }
    result.back().count += stream.count;
    result.back().bytes += stream.bytes;
    result.back().digest += stream.digest;
  }
  return result;
}

/// The `index`-th node (from 0) of one side of a stream.
NodeId node_of(const npu::NpuSpec& npu, NodeKind side, const Stream& stream, std::uint64_t index) {
  const auto& graph = *npu.trace->graph;
  const auto peer = side == NodeKind::send ? stream.receiver : stream.sender;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind == side && npu.trace->peers[node.slot].value() == peer &&
        npu.trace->tags[node.detail] == stream.tag && index-- == 0)
      return NodeId(i);
  }
  orrery::ensure(false, "a stream without nodes");
  return NodeId(0);
}

Error fault_of(const Parties& parties, NodeKind side, const Stream& mine, const Stream& theirs) {
  const NpuId own(side == NodeKind::send ? mine.sender : mine.receiver);
  const auto npu = std::find_if(parties.npus.begin(), parties.npus.end(), [&](const auto& n) { return n.id == own; });
  const bool extra = mine.count > theirs.count;
  const NodeId node = node_of(*npu, side, mine, extra ? theirs.count : 0);
  const Place place = parties.store.place(*npu->trace, own, node);
  const char* hint = "Correct the traces of both NPUs.";
  if (!extra) {
    const std::string received =
        mine.bytes == theirs.bytes ? std::string("as many bytes in other sizes") : counted(mine.bytes, "byte");
    return {
        ErrorCode::bad_input, place,
        fmt::format("NPU {} sends {} in {} with tag {} to NPU {}, which receives {}", mine.sender,
                    counted(theirs.bytes, "byte"), counted(theirs.count, "message"), mine.tag, mine.receiver, received),
        "the same sizes on both sides", hint};
  }
  if (side == NodeKind::send)
    return {ErrorCode::bad_input, place,
            fmt::format("a send without a receive: NPU {} sends {} with tag {} to NPU {}, which receives {}",
                        mine.sender, counted(mine.count, "message"), mine.tag, mine.receiver, theirs.count),
            "as many receives as sends", hint};
  return {ErrorCode::bad_input, place,
          fmt::format("a receive without a send: NPU {} receives {} with tag {} from NPU {}, which sends {}",
                      mine.receiver, counted(mine.count, "message"), mine.tag, mine.sender, theirs.count),
          "as many sends as receives", hint};
}

/// Compares one side with what the other side's ranks say of it.
void compare(const Parties& parties, NodeKind side, const std::vector<Stream>& mine, std::vector<Stream> theirs,
             Faults& faults) {
  std::sort(theirs.begin(), theirs.end(), [](const Stream& a, const Stream& b) { return a.key() < b.key(); });
  auto other = theirs.begin();
  for (const Stream& stream : mine) {
    if (!parties.is_read[side == NodeKind::send ? stream.receiver : stream.sender]) continue;
    while (other != theirs.end() && other->key() < stream.key()) ++other;
    const bool there = other != theirs.end() && other->key() == stream.key();
    const Stream found = there ? *other : Stream{};
    // Too few here is the other side's to say; sizes are the receiver's.
    const bool sizes_differ = side == NodeKind::receive && stream.count == found.count && stream.digest != found.digest;
    if (stream.count > found.count || sizes_differ) faults.add(fault_of(parties, side, stream, found));
  }
}

}  // namespace

void check_messages(const Parties& parties, parallel::Communicator& world, Faults& faults) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto sends = streams_of(parties, NodeKind::send);
  const auto receives = streams_of(parties, NodeKind::receive);
  std::vector<std::vector<Stream>> to_receivers(ranks), to_senders(ranks);
  for (const Stream& s : sends) to_receivers[parties.host_of_npu[s.receiver].index()].push_back(s);
  for (const Stream& s : receives) to_senders[parties.host_of_npu[s.sender].index()].push_back(s);
  const auto flatten = [](const std::vector<std::vector<Stream>>& parts) {
    std::vector<Stream> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const auto sent_to_us = flatten(world.exchange(to_receivers));
  const auto received_from_us = flatten(world.exchange(to_senders));
  compare(parties, NodeKind::send, sends, received_from_us, faults);
  compare(parties, NodeKind::receive, receives, sent_to_us, faults);
}

}  // namespace orrery::check
