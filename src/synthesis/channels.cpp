#include "channels.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace orrery::synthesis {
namespace {

using trace::NodeKind;

/// The messages of one NPU: positions in the program by kind, peer and tag.
using Streams = std::map<std::tuple<NodeKind, std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>>;

Streams streams_of(const Learned& learned, std::uint32_t npu) {
  const trace::NpuTrace& trace = learned.traces[npu];
  const Program& program = learned.programs[learned.role_of[npu]];
  Streams streams;
  for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
    const trace::Node& node = trace.graph->nodes[program.nodes[k]];
    if (is_message(node.kind))
      streams[{node.kind, trace.peers[node.slot].value(), trace.tags[node.detail]}].push_back(k);
  }
  return streams;
}

/// Sets of slots, each with a representative.
class Sets {
 public:
  std::uint32_t add() {
    parents_.push_back(static_cast<std::uint32_t>(parents_.size()));
    return parents_.back();
  }
  std::uint32_t find(std::uint32_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(std::uint32_t a, std::uint32_t b) { parents_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<std::uint32_t> parents_;
};

/// Numbers of the slots of messages of all roles.
class SlotNumbers {
 public:
  explicit SlotNumbers(Sets& sets) : sets_(sets) {}
  std::uint32_t of(std::uint32_t role, const Location& at) {
    const auto [found, added] = numbers_.try_emplace({role, at.token, at.offset}, 0);
    if (added) found->second = sets_.add();
    return found->second;
  }
  const auto& all() const { return numbers_; }

 private:
  Sets& sets_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;
};

}  // namespace

std::uint32_t find_channels(const Learned& learned, std::span<Role> roles) {
  Sets sets;
  SlotNumbers slots(sets);
  // Messages that are alike are of one channel in all roles, so that a role may stand in another one's place.
  std::map<std::uint32_t, std::uint32_t> of_symbol;
  std::map<std::uint32_t, Streams> known;
  const auto streams = [&](std::uint32_t npu) -> const Streams& {
    const auto [found, added] = known.try_emplace(npu);
    if (added) found->second = streams_of(learned, npu);
    return found->second;
  };
  for (std::uint32_t role = 0; role < roles.size(); ++role) {
    const std::uint32_t npu = learned.programs[role].npu;
    for (const auto& [key, positions] : streams(npu)) {
      const auto& [kind, peer, tag] = key;
      for (const auto k : positions) {
        const std::uint32_t slot = slots.of(role, learned.locations[role][k]);
        sets.join(slot, of_symbol.try_emplace(learned.programs[role].symbols[k], slot).first->second);
      }
      const NodeKind opposite = kind == NodeKind::send ? NodeKind::receive : NodeKind::send;
      const auto& others = streams(peer);
      const auto found = others.find({opposite, npu, tag});
      if (found == others.end()) continue;
      const std::uint32_t other = learned.role_of[peer];
      for (std::size_t n = 0; n < std::min(positions.size(), found->second.size()); ++n)
        sets.join(slots.of(role, learned.locations[role][positions[n]]),
                  slots.of(other, learned.locations[other][found->second[n]]));
    }
  }
  std::map<std::uint32_t, std::uint32_t> channels;
  for (const auto& [key, number] : slots.all()) {
    const auto& [role, token, offset] = key;
    roles[role].tokens[token].body[offset].channel =
        channels.try_emplace(sets.find(number), static_cast<std::uint32_t>(channels.size())).first->second;
  }
  return static_cast<std::uint32_t>(channels.size());
}

}  // namespace orrery::synthesis
