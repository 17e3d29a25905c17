#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/network/flit_rules.hpp"

namespace orrery::network::flit {

constexpr std::uint32_t most_packets = 1U << 31U;  ///< packets under way at a time, whose slots fit into a flit

/// A flit is a number: the slot of its packet, and whether it is the tail.
constexpr std::uint32_t flit_of(std::uint32_t packet, bool is_tail) { return packet << 1U | (is_tail ? 1U : 0U); }
constexpr std::uint32_t packet_of(std::uint32_t flit) { return flit >> 1U; }
constexpr bool is_tail(std::uint32_t flit) { return (flit & 1U) != 0; }

/// The first member of a set, a mask, from `from` on and then from 0 on. The set is not empty.
constexpr std::uint32_t first_from(std::uint32_t set, std::uint32_t from) {
  const std::uint32_t behind = set & (~0U << from);
  return static_cast<std::uint32_t>(std::countr_zero(behind != 0 ? behind : set));
}

/// What the link from an NPU to its router has done.
struct SourceCounts {
  std::uint64_t flits = 0;
  std::uint64_t starved = 0;                    ///< cycles in which a flit waited and had no credit
  std::uint64_t waiting = 0, most_waiting = 0;  ///< flits that wait for injection
};

/// The NPUs of a network of flits as sources: each has a queue of packets without a limit, and injects a flit each
/// cycle, packet by packet, on the first virtual channel behind the last one used that has credit.
class Sources {
 public:
  Sources(std::uint32_t num_npus, const FlitRules& rules)
      : channels_(rules.virtual_channels),
        buffer_(rules.buffer),
        room_(rules.flow_control == FlitFlowControl::virtual_cut_through ? rules.packet : 1),
        npus_(num_npus),
        used_(std::size_t{num_npus} * rules.virtual_channels),
        ready_((num_npus + 63) / 64) {
    for (Npu& npu : npus_) npu.credit = npu.room = rules.all_channels();
  }

  /// Adds a packet to the queue of an NPU.
  void add(std::uint32_t npu, std::uint32_t packet, std::uint32_t flits) {
    const std::uint32_t entry = queue_.put({packet, flits, none});
    Npu& source = npus_[npu];
    if (source.first == none)
      source.first = entry;
    else
      queue_[source.last].next = entry;
    source.last = entry;
    ready_[npu / 64] |= std::uint64_t{1} << npu % 64;
    source.counts.waiting += flits;
    source.counts.most_waiting = std::max(source.counts.most_waiting, source.counts.waiting);
    ++waiting_;
  }
  const SourceCounts& counts(std::uint32_t npu) const { return npus_[npu].counts; }
  bool is_empty(std::uint32_t npu) const { return npus_[npu].first == none; }
  bool is_idle() const { return waiting_ == 0; }
  void give_back(std::uint32_t npu, std::uint32_t channel) {
    --used_[npu * channels_ + channel];
    update(npu, channel);
  }
  /// Injects a flit of each NPU that can: calls enter(npu, channel, flit).
  template <class Enter>
  void inject(Enter enter) {
    for (std::size_t word = 0; word < ready_.size(); ++word)
      for (std::uint64_t rest = ready_[word]; rest != 0; rest &= rest - 1)
        inject_from(static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(std::countr_zero(rest)), enter);
  }

  void serialize(Archive& archive) { archive(npus_, used_, ready_, queue_, waiting_); }

 private:
  static constexpr std::uint32_t none = ~0U;
  struct Entry {
    std::uint32_t packet, flits, next;
  };
  struct Npu {
    std::uint32_t first = none, last = none;  ///< packets that wait
    std::uint32_t sent = 0;                   ///< flits of the first one
    std::uint32_t channel = none;             ///< the last one used
    bool has_channel = false;                 ///< the first packet has one
    SourceCounts counts = {};
    std::uint32_t credit = 0, room = 0;  ///< channels with credit for a flit, and with what a packet needs
  };

  void update(std::uint32_t npu, std::uint32_t channel) {
    const std::uint32_t used = used_[npu * channels_ + channel], bit = 1U << channel;
    Npu& source = npus_[npu];
    source.credit = used < buffer_ ? source.credit | bit : source.credit & ~bit;
    source.room = used + room_ <= buffer_ ? source.room | bit : source.room & ~bit;
  }

  static void starve(Npu& source) { ++source.counts.starved; }

  template <class Enter>
  void inject_from(std::uint32_t npu, Enter enter) {
    Npu& source = npus_[npu];
    if (!source.has_channel) {
      if (source.room == 0) return starve(source);
      // The first packet of an NPU takes the first channel: there all are free.
      source.channel = first_from(source.room, source.channel == none ? 0 : (source.channel + 1) % channels_);
      source.has_channel = true;
    }
    if ((source.credit >> source.channel & 1U) == 0) return starve(source);
    const Entry entry = queue_[source.first];
    const bool is_last = source.sent + 1 == entry.flits;
    enter(npu, source.channel, flit_of(entry.packet, is_last));
    ++used_[npu * channels_ + source.channel];
    update(npu, source.channel);
    ++source.sent;
    ++source.counts.flits;
    --source.counts.waiting;
    if (!is_last) return;
    queue_.free(source.first);
    source.first = entry.next;
    source.sent = 0;
    source.has_channel = false;
    --waiting_;
    if (source.first == none) ready_[npu / 64] &= ~(std::uint64_t{1} << npu % 64);
  }

  std::uint32_t channels_, buffer_, room_;
  std::vector<Npu> npus_;
  std::vector<std::uint16_t> used_;   // [npus * channels] flits sent and not given back
  std::vector<std::uint64_t> ready_;  // words of a set of the NPUs with packets
  Slots<Entry> queue_;
  std::uint64_t waiting_ = 0;  // packets
};

}  // namespace orrery::network::flit
