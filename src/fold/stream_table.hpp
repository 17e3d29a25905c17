#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "orrery/fold/signature_graph.hpp"
#include "orrery/fold/signatures.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::fold {

/// What distinguishes a stream from the others of its NPU: send or receive, the peer and the tag.
using StreamKey = std::tuple<trace::NodeKind, NpuId, std::uint64_t>;

/// The streams of all NPUs, found by their keys.
class StreamTable {
 public:
  /// `npus` are all NPUs in order. O(streams log streams of an NPU).
  StreamTable(std::span<const npu::NpuSpec> npus, const StreamsOf& streams);

  /// [npus + 1] index of the first stream of each NPU among those of all NPUs.
  const std::vector<std::size_t>& first() const { return first_; }
  std::uint32_t count(std::uint32_t npu) const { return static_cast<std::uint32_t>(of_npu_[npu]->all.size()); }
  NpuId peer(std::uint32_t npu, std::uint32_t stream) const {
    return npus_[npu].trace->peers[of_npu_[npu]->all[stream].peer_slot];
  }
  StreamKey key_of(std::uint32_t npu, std::uint32_t stream) const;
  /// Returns the first stream of an NPU with this key; SignatureGraph::none if there is none. O(log streams).
  std::uint32_t find(std::uint32_t npu, const StreamKey& key) const;
  /// Returns the stream of the peer that a stream leads to or comes from.
  SignatureGraph::StreamEnd other_end(std::uint32_t npu, std::uint32_t stream) const;

 private:
  std::span<const npu::NpuSpec> npus_;
  std::vector<const npu::MessageStreams*> of_npu_;
  std::vector<std::size_t> first_;     // [npus + 1] index into sorted_
  std::vector<std::uint32_t> sorted_;  // streams of each NPU by key
};

}  // namespace orrery::fold
