#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/base/mix.hpp"
#include "orrery/base/text.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

using trace::NodeKind;

/// All messages from one NPU to another with one tag, as one of the two sides has them.
struct Channel {
  std::uint32_t sender = 0, receiver = 0;
  std::uint64_t tag = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  ///< digest of the sizes in any order

  auto key() const { return std::tie(sender, receiver, tag); }
};

/// The channels of one side of a structure: peer and tag are slots of the NPU's tables.
std::vector<Channel> channels_of(const trace::Graph& graph, NodeKind side) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, Channel> channels;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind != side) continue;
    Channel& channel = channels[{node.slot, node.detail}];
    channel.sender = channel.receiver = node.slot;
    channel.tag = node.detail;
    ++channel.count;
    channel.bytes += node.size;
    channel.digest += mix(0, node.size);
  }
  std::vector<Channel> result;
  for (const auto& [slots, channel] : channels) result.push_back(channel);
  return result;
}

/// Adds up the channels of equal keys: two slots of an NPU may hold one peer and one tag.
std::vector<Channel> merged(std::vector<Channel> channels) {
  std::ranges::sort(channels, {}, [](const Channel& channel) { return channel.key(); });
  std::vector<Channel> result;
  for (const Channel& channel : channels) {
    if (result.empty() || result.back().key() != channel.key()) {
      result.push_back(channel);
      continue;
    }
    result.back().count += channel.count;
    result.back().bytes += channel.bytes;
    result.back().digest += channel.digest;
  }
  return result;
}

/// The channels of one side of the checked NPUs, sorted by key.
std::vector<Channel> channels_of(const Subject& subject, NodeKind side) {
  std::map<const trace::Graph*, std::vector<Channel>> of_structure;
  std::vector<Channel> channels;
  for (const auto& npu : subject.run.npus) {
    const auto& graph = *npu.trace->graph;
    if (graph.num_peer_slots == 0) continue;
    const auto [found, added] = of_structure.try_emplace(&graph);
    if (added) found->second = channels_of(graph, side);
    for (Channel channel : found->second) {
      const auto peer = npu.trace->peers[channel.sender].value();
      const auto own = npu.id.value();
      channel.tag = npu.trace->tags[channel.tag];
      std::tie(channel.sender, channel.receiver) = side == NodeKind::send ? std::pair(own, peer) : std::pair(peer, own);
      channels.push_back(channel);
    }
  }
  return merged(std::move(channels));
}

/// Returns the `index`-th node (from 0) of one side of a channel.
NodeId node_of(const npu::NpuSpec& npu, NodeKind side, const Channel& channel, std::uint64_t index) {
  const auto& graph = *npu.trace->graph;
  const auto peer = side == NodeKind::send ? channel.receiver : channel.sender;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if (node.kind == side && npu.trace->peers[node.slot].value() == peer &&
        npu.trace->tags[node.detail] == channel.tag && index-- == 0)
      return NodeId(i);
  }
  ensure_failed("a channel without nodes", std::source_location::current());
}

/// Returns the fault of a channel. `mine` has more messages than `theirs`, or as many of other sizes.
Error fault_of(const Subject& subject, NodeKind side, const Channel& mine, const Channel& theirs) {
  const NpuId own(side == NodeKind::send ? mine.sender : mine.receiver);
  const auto& npu = *std::ranges::find(subject.run.npus, own, &npu::NpuSpec::id);
  const bool has_more = mine.count > theirs.count;
  const Place place = place_of(subject, npu, node_of(npu, side, mine, has_more ? theirs.count : 0));
  const char* hint = "Correct the traces of both NPUs.";
  if (!has_more) {
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

/// Compares the channels of one side with what the ranks of the other side have of them.
void compare(const Subject& subject, const std::vector<char>& checked, NodeKind side, const std::vector<Channel>& mine,
             std::vector<Channel> theirs, Faults& faults) {
  std::ranges::sort(theirs, {}, [](const Channel& channel) { return channel.key(); });
  auto other = theirs.begin();
  for (const Channel& channel : mine) {
    if (!checked[side == NodeKind::send ? channel.receiver : channel.sender]) continue;
    while (other != theirs.end() && other->key() < channel.key()) ++other;
    const bool there = other != theirs.end() && other->key() == channel.key();
    const Channel found = there ? *other : Channel{};
    // The side with more messages reports the fault. The receiver reports sizes.
    const bool sizes_differ =
        side == NodeKind::receive && channel.count == found.count && channel.digest != found.digest;
    if (channel.count > found.count || sizes_differ) faults.add(fault_of(subject, side, channel, found));
  }
}

/// Sends each channel to the rank of its other side and returns those that come from there. Collective.
std::vector<Channel> exchanged(const Subject& subject, const std::vector<Channel>& mine, NodeKind side,
                               parallel::Communicator& world) {
  std::vector<std::vector<Channel>> outgoing(static_cast<std::size_t>(world.size()));
  for (const Channel& channel : mine) {
    const auto other = side == NodeKind::send ? channel.receiver : channel.sender;
    outgoing[subject.run.hosting.of_npu[other].index()].push_back(channel);
  }
  std::vector<Channel> incoming;
  for (const auto& part : world.exchange(outgoing)) incoming.insert(incoming.end(), part.begin(), part.end());
  return incoming;
}

/// Says whether the messages that all ranks send are those that they receive, each with its channel and its size, by a
/// digest of 64 bits. Needs no memory. Collective.
bool all_match(const Subject& subject, const std::vector<char>& checked, parallel::Communicator& world) {
  std::uint64_t sent_less_received = 0;
  for (const auto& npu : subject.run.npus) {
    const trace::NpuTrace& trace = *npu.trace;
    if (trace.graph->num_peer_slots == 0) continue;
    for (const trace::Node& node : trace.graph->nodes) {
      const bool sends = node.kind == NodeKind::send;
      if (!sends && node.kind != NodeKind::receive) continue;
      const std::uint64_t own = npu.id.value(), peer = trace.peers[node.slot].value();
      if (!checked[peer]) continue;
      const std::uint64_t ends = sends ? own << 32U | peer : peer << 32U | own;
      const std::uint64_t digest = mix(mix(ends, trace.tags[node.detail]), node.size);
      sent_less_received += sends ? digest : -digest;
    }
  }
  constexpr std::uint64_t half = 0xffffffffU;
  std::array<std::int64_t, 2> sums = {static_cast<std::int64_t>(sent_less_received & half),
                                      static_cast<std::int64_t>(sent_less_received >> 32U)};
  world.sum(sums);
  return (static_cast<std::uint64_t>(sums[1]) << 32U) + static_cast<std::uint64_t>(sums[0]) == 0;
}

/// O(messages). Only if any do not match, all are sorted, with one exchange for each side.
void check_messages(const Subject& subject, parallel::Communicator& world, Findings findings) {
  if (subject.run.options.replay_only) return;
  const auto checked = checked_npus(subject, world);
  if (all_match(subject, checked, world)) return;
  const auto sends = channels_of(subject, NodeKind::send);
  const auto receives = channels_of(subject, NodeKind::receive);
  const auto sent_to_us = exchanged(subject, sends, NodeKind::send, world);
  const auto received_from_us = exchanged(subject, receives, NodeKind::receive, world);
  compare(subject, checked, NodeKind::send, sends, received_from_us, findings.faults);
  compare(subject, checked, NodeKind::receive, receives, sent_to_us, findings.faults);
}

}  // namespace

Check messages() {
  return {"messages", "a send has no receive, a receive has no send, or both sides have other sizes",
          Check::Collective(check_messages)};
}

}  // namespace orrery::check
