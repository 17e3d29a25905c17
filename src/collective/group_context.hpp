#pragma once

#include <cstdint>
#include <memory>

#include "group_layout.hpp"
#include "orrery/network/delay_model.hpp"
#include "ps.hpp"

namespace orrery::collective {

/// Bytes of the message by which a receiver lets a sender send (rendezvous; docs/model.md, 4).
constexpr Bytes clear_to_send_bytes{8192};

class LinkLoads;

/// What the delays of a phase in the dimension groups of an axis depend on.
struct GroupContext {
  const network::DelayModel& delays;
  const Rules& rules;
  const Axis& axis;
  Ps endpoint_delay = 0;
  Bandwidth local_memory;  ///< 0: reductions are free
  bool rendezvous = false;
  std::uint64_t share = 1;   ///< chunks in service, of all collectives, that share the bandwidth evenly
  std::uint32_t group = 0;   ///< which of the axis' groups, where they differ
  bool has_detours = false;  ///< a link that the group may use has failed
  /// Messages that a position sends at a time; they share the one link that it has to a switch.
  std::uint64_t at_once = 1;
  /// How many messages of a step share each link; null: every message has its links for itself.
  std::shared_ptr<const LinkLoads> loads = nullptr;

  /// Returns whether all links of the group are alike: Axis::circulant and Axis::transitive hold.
  bool is_regular() const;
  /// Returns whether the hops in the axis' dimensions depend on the distance of two positions alone: `hop_delay` holds.
  bool hops_follow_distances() const;
  bool is_circulant() const { return axis.circulant && is_regular(); }
  bool is_transitive() const { return axis.transitive && is_regular(); }
  /// Returns whether the positions divide one dimension into equal parts, so that every turn of them maps routes to
  /// routes.
  bool is_evenly_spaced() const;

  /// Returns the link delay of a message in the k-th of the axis' dimensions alone, between coordinates that differ by
  /// `difference`, in a group that is regular.
  Ps hop_delay(std::size_t k, std::uint32_t difference, Bytes size) const;
  /// Returns the link delay of a message from position i to another position j (docs/model.md, 3 and 4).
  Ps link(std::uint32_t i, std::uint32_t j, Bytes size) const;
  /// Returns for how long a message from position i to position j, which differ in the axis' k-th dimension, holds one
  /// of the links there.
  Ps holds(std::size_t k, std::uint32_t i, std::uint32_t j, Bytes size) const;
  /// Returns the time in which the NPU moves so many bytes to or from its local memory `passes` times.
  Ps memory(Bytes size, std::uint64_t passes) const;
  /// Returns the time of the reduction of a received message: one write, two reads (docs/model.md, 6).
  Ps reduction(Bytes size) const { return memory(size, 3); }
  /// Returns the link delay of the receiver's clear to send, which goes from position j to the sender i before the
  /// data; 0 without rendezvous.
  Ps clear_to_send(std::uint32_t i, std::uint32_t j) const;

 private:
  /// The sender and the receiver of data. Clears to send share links with as many others as the data do.
  struct Pair {
    std::uint32_t sender, receiver;
  };

  /// Returns the bytes that take as long on a link of the axis' k-th dimension alone as a message takes beside those
  /// that share it, `load` messages of the step in all.
  Bytes beside_others(std::size_t k, Bytes size, std::uint64_t load) const;
  std::uint64_t load(std::size_t k, Pair data) const;
  Ps delay(std::uint32_t from, std::uint32_t to, Bytes size, Pair data) const;
  /// Returns the slower of the two ports of a message from position i to position j in the axis' k-th dimension.
  topology::Port port(std::size_t k, std::uint32_t i, std::uint32_t j) const;
};

}  // namespace orrery::collective
