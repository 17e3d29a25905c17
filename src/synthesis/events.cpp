#include "events.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::synthesis {
namespace {

using trace::NodeKind;

/// The communication of a role: its nodes by group, and by kind, peer and channel.
struct Communication {
  std::map<GroupShape, std::vector<std::uint32_t>> groups;
  std::map<std::tuple<NodeKind, Offsets, std::uint32_t>, std::vector<std::uint32_t>> messages;
};

Communication communication_of(const Model& model, const ScaledProgram& program) {
  Communication result;
  for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
    const Slot& slot = *program.nodes[k].slot;
    const Family& family = model.families[slot.family];
    if (!family.group.extents.empty()) result.groups[family.group].push_back(k);
    if (!family.peer.empty()) result.messages[{family.kind, family.peer, slot.channel}].push_back(k);
  }
  return result;
}

/// Says whether each of these nodes of a program depends on the one before it, at least through others. O(nodes +
/// dependencies).
bool is_chain(const ScaledProgram& program, const std::vector<std::uint32_t>& nodes) {
  std::vector<std::uint32_t> reached(program.nodes.size());  // number of the last one that a node depends on, from 1 on
  std::size_t next = 0;
  for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
    for (const auto source : program.nodes[k].dependencies) reached[k] = std::max(reached[k], reached[source]);
    if (next == nodes.size() || nodes[next] != k) continue;
    if (reached[k] != next) return false;
    reached[k] = static_cast<std::uint32_t>(++next);
  }
  return true;
}

[[noreturn]] void refuse(const std::string& found) {
  throw Error(ErrorCode::bad_input, {}, found + " at this scale",
              "a scale at which all ranks fit together: other factors, layers or micro-batches");
}

class Matcher {
 public:
  Matcher(const Model& model, const ScaledAxes& axes, std::span<const ScaledProgram> programs) : axes_(axes) {
    events_.first_node.push_back(0);
    for (const ScaledProgram& program : programs) {
      communications_.push_back(communication_of(model, program));
      events_.first_node.push_back(events_.first_node.back() + static_cast<std::uint32_t>(program.nodes.size()));
    }
    events_.of_node.resize(events_.first_node.back());
    std::iota(events_.of_node.begin(), events_.of_node.end(), 0U);
    events_.is_ordered.assign(events_.of_node.size(), 1);
    for (std::size_t role = 0; role < programs.size(); ++role) {
      const auto look = [&](const std::vector<std::uint32_t>& nodes) {
        if (is_chain(programs[role], nodes)) return;
        for (const auto node : nodes) events_.is_ordered[events_.first_node[role] + node] = 0;
      };
      for (const auto& [shape, nodes] : communications_[role].groups) look(nodes);
      for (const auto& [key, nodes] : communications_[role].messages) look(nodes);
    }
  }

  Events match() {
    std::vector<std::vector<std::uint32_t>> all;
    for (const Axis& axis : axes_.axes) {
      all.emplace_back(axis.size);
      std::iota(all.back().begin(), all.back().end(), 0U);
    }
    // One NPU for each combination of coordinates that decide about roles stands for all others.
    for (const auto npu : axes_.one_of_each_role(all)) {
      for (const auto& [shape, nodes] : of(npu).groups) match_group(npu, shape, nodes);
      for (const auto& [key, nodes] : of(npu).messages) match_messages(npu, key, nodes);
    }
    for (std::uint32_t i = 0; i < events_.of_node.size(); ++i) {
      events_.of_node[i] = find(i);
      if (events_.is_ordered[i] == 0) events_.is_ordered[events_.of_node[i]] = 0;
    }
    return std::move(events_);
  }

 private:
  const Communication& of(std::uint32_t npu) const { return communications_[axes_.role_of(npu)]; }

  void match_group(std::uint32_t npu, const GroupShape& shape, const std::vector<std::uint32_t>& nodes) {
    const auto along = axes_.members_along(npu, shape);
    for (const auto other : axes_.one_of_each_role(along)) {
      const std::uint32_t role = axes_.role_of(other);
      if (role == axes_.role_of(npu)) continue;
      const std::vector<std::uint32_t>* found = nullptr;
      for (const auto& [its, its_nodes] : communications_[role].groups)
        if (its.twin == shape.twin && axes_.members_along(other, its) == along) found = &its_nodes;
      if (found == nullptr || found->size() != nodes.size())
        refuse(fmt::format("rank {} has {} nodes of a group, but member {} has {}", npu, nodes.size(), other,
                           found == nullptr ? 0 : found->size()));
      for (std::size_t n = 0; n < nodes.size(); ++n) join(axes_.role_of(npu), nodes[n], role, (*found)[n]);
    }
  }

  void match_messages(std::uint32_t npu, const std::tuple<NodeKind, Offsets, std::uint32_t>& key,
                      const std::vector<std::uint32_t>& nodes) {
    const auto& [kind, offsets, channel] = key;
    const std::uint32_t peer = axes_.peer_of(npu, offsets);
    const NodeKind opposite = kind == NodeKind::send ? NodeKind::receive : NodeKind::send;
    std::size_t matched = 0;
    for (const auto& [its, its_nodes] : of(peer).messages) {
      if (std::get<0>(its) != opposite || std::get<2>(its) != channel || axes_.peer_of(peer, std::get<1>(its)) != npu)
        continue;
      matched = its_nodes.size();
      for (std::size_t n = 0; n < std::min(matched, nodes.size()); ++n)
        join(axes_.role_of(npu), nodes[n], axes_.role_of(peer), its_nodes[n]);
    }
    if (matched != nodes.size())
      refuse(fmt::format("rank {} has {} {} of a channel, but its peer {} has {} at the other end", npu, nodes.size(),
                         kind == NodeKind::send ? "sends" : "receives", peer, matched));
  }

  std::uint32_t find(std::uint32_t i) {
    auto& parents = events_.of_node;
    while (parents[i] != i) i = parents[i] = parents[parents[i]];
    return i;
  }

  void join(std::uint32_t role, std::uint32_t node, std::uint32_t other_role, std::uint32_t other) {
    const auto a = find(events_.first_node[role] + node), b = find(events_.first_node[other_role] + other);
    events_.of_node[std::max(a, b)] = std::min(a, b);
  }

  const ScaledAxes& axes_;
  std::vector<Communication> communications_;
  Events events_;
};

}  // namespace

Events match_events(const Model& model, const ScaledAxes& axes, std::span<const ScaledProgram> programs) {
  return Matcher(model, axes, programs).match();
}

}  // namespace orrery::synthesis
