#pragma once

#include <cstdint>
#include <source_location>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::npu {

/// What tells the messages of an NPU apart that must be matched: the other NPU and the tag.
struct ChannelKey {
  NpuId other;
  std::uint32_t tag = 0;
};

/// Returns the channel of a send or a receive.
inline ChannelKey channel_of(const NpuSpec& npu, NodeId id) {
  const trace::Node& node = npu.program->graph->nodes[id.index()];
  return {npu.trace->peers[node.slot], static_cast<std::uint32_t>(npu.trace->tags[node.detail])};
}

/// Returns where the messages of a send or a receive go: to the peer itself, or to the NPU that represents it.
inline StreamEnd destination_of(const NpuSpec& npu, NodeId id) {
  if (npu.folded) return npu.folded->ends[npu.folded->streams->of_node[id.index()]];
  const ChannelKey channel = channel_of(npu, id);
  return {channel.other, channel.tag};
}

/// Returns the channel of an event of another NPU, whose `node` is StreamEnd::stream.
inline ChannelKey channel_of(const NpuSpec& npu, const pdes::Event& event) {
  if (!npu.folded) return {NpuId(event.source().value()), event.node};
  const MessageStream& stream = npu.folded->streams->all[event.node];
  return {npu.trace->peers[stream.peer_slot], static_cast<std::uint32_t>(npu.trace->tags[stream.tag_slot])};
}

/// Returns the channel of an NPU for the stream that a channel of `resumed_from` belongs to. O(streams).
inline ChannelKey same_channel(const NpuSpec& resumed, const NpuSpec& resumed_from, ChannelKey channel) {
  for (const MessageStream& stream : resumed.folded->streams->all)
    if (resumed_from.trace->peers[stream.peer_slot] == channel.other &&
        static_cast<std::uint32_t>(resumed_from.trace->tags[stream.tag_slot]) == channel.tag)
      return {resumed.trace->peers[stream.peer_slot], static_cast<std::uint32_t>(resumed.trace->tags[stream.tag_slot])};
  ensure_failed("a message in a channel that the trace does not have", std::source_location::current());
}

}  // namespace orrery::npu
