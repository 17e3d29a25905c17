#include "stream_table.hpp"

#include <algorithm>
#include <utility>

namespace orrery::fold {

using trace::NodeKind;

StreamsOf streams_of_programs(std::span<const npu::NpuSpec> npus) {
  StreamsOf streams;
  const npu::Program* last = nullptr;
  for (const npu::NpuSpec& npu : npus) {
    if (npu.program == last) continue;
    last = npu.program;
    if (const auto [found, added] = streams.try_emplace(last); added)
      found->second = npu::message_streams_of(*last->graph);
  }
  return streams;
}

StreamTable::StreamTable(std::span<const npu::NpuSpec> npus, const StreamsOf& streams) : npus_(npus) {
  first_.push_back(0);
  const npu::Program* last = nullptr;
  const npu::MessageStreams* its = nullptr;
  for (const npu::NpuSpec& npu : npus) {
    if (npu.program != last) its = &streams.at(last = npu.program);
    of_npu_.push_back(its);
    const auto begin = sorted_.size();
    for (std::uint32_t s = 0; s < its->all.size(); ++s) sorted_.push_back(s);
    std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(begin), sorted_.end(), [&](auto a, auto b) {
      return std::pair(key_of(npu.id.value(), a), a) < std::pair(key_of(npu.id.value(), b), b);
    });
    first_.push_back(sorted_.size());
  }
}

StreamKey StreamTable::key_of(std::uint32_t npu, std::uint32_t stream) const {
  const auto& its = of_npu_[npu]->all[stream];
  return {its.kind, peer(npu, stream), npus_[npu].trace->tags[its.tag_slot]};
}

std::uint32_t StreamTable::find(std::uint32_t npu, const StreamKey& key) const {
  const auto own = std::span(sorted_).subspan(first_[npu], first_[npu + 1] - first_[npu]);
  const auto at = std::ranges::lower_bound(own, key, {}, [&](std::uint32_t s) { return key_of(npu, s); });
  return at != own.end() && key_of(npu, *at) == key ? *at : SignatureGraph::none;
}

SignatureGraph::StreamEnd StreamTable::other_end(std::uint32_t npu, std::uint32_t stream) const {
  const auto& [kind, peer, tag] = key_of(npu, stream);
  const auto other = kind == NodeKind::send ? NodeKind::receive : NodeKind::send;
  return {peer.value(), find(peer.value(), {other, NpuId(npu), tag})};
}

}  // namespace orrery::fold
