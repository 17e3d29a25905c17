#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "orrery/base/hosting.hpp"
#include "orrery/fold/signature_graph.hpp"
#include "orrery/fold/signatures.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// What distinguishes a stream from the others of its NPU: send or receive, the peer and the tag.
using StreamKey = std::tuple<trace::NodeKind, NpuId, std::uint64_t>;

/// The streams of the NPUs of this rank, found by their keys. NPUs are counted among those of this rank.
class StreamTable {
 public:
  /// `npus` are all NPUs of this rank, ascending. O(streams log streams of an NPU).
  StreamTable(std::span<const npu::NpuSpec> npus, const StreamsOf& streams);

  /// [npus + 1] index of the first stream of each NPU among those of all NPUs of this rank.
  const std::vector<std::size_t>& first() const { return first_; }
  std::uint32_t count(std::uint32_t npu) const { return static_cast<std::uint32_t>(first_[npu + 1] - first_[npu]); }
  NpuId peer(std::uint32_t npu, std::uint32_t stream) const {
    return npus_[npu].trace->peers[of_npu_[npu]->all[stream].peer_slot];
  }
  StreamKey key_of(std::uint32_t npu, std::uint32_t stream) const;
  /// Returns the first stream of an NPU with this key; SignatureGraph::none if there is none. O(log streams).
  std::uint32_t find(std::uint32_t npu, const StreamKey& key) const;
  /// Returns the stream of the peer that each stream of this rank leads to or comes from. Collective. O(streams log
  /// streams of an NPU).
  std::vector<SignatureGraph::StreamEnd> other_ends(const Hosting& hosting, parallel::Communicator& world) const;

 private:
  struct Question;
  std::uint32_t answer(const Question& question) const;

  std::span<const npu::NpuSpec> npus_;
  std::vector<const npu::MessageStreams*> of_npu_;
  std::vector<std::size_t> first_;     // [npus + 1] index into sorted_
  std::vector<std::uint32_t> sorted_;  // streams of each NPU by key
};

}  // namespace orrery::fold
