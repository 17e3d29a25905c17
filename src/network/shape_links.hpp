#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "flit/regions.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/network/link_delays.hpp"
#include "orrery/network/message.hpp"
#include "orrery/topology/circuits.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {

/// The links of shapes, with their delays.
class ShapeLinks {
 public:
  using Link = topology::Fabric::Link;

  /// The topology must outlive it. Throws Error (bad_input) if it has too many links.
  /// `circuits` may be null. Links belong to the NPUs whose ports they leave, wherever these stand.
  /// `regions`: dimensions whose groups take the messages of their links; null: none. They must outlive it.
  ShapeLinks(const topology::Topology& topology, std::shared_ptr<const topology::Circuits> circuits, Rounding rounding,
             const flit::Regions* regions = nullptr)
      : fabric_(topology),
        delays_(fabric_, rounding),
        rounding_(rounding),
        circuits_(std::move(circuits)),
        regions_(regions) {}
  ShapeLinks(const ShapeLinks&) = delete;
  ShapeLinks& operator=(const ShapeLinks&) = delete;

  std::uint32_t num_links() const { return fabric_.num_links(); }
  std::uint32_t links_of(NpuId) const { return fabric_.links_per_npu(); }
  topology::LinkId link_of(NpuId npu, std::uint32_t k) const { return fabric_.link_of(npu, k); }
  std::uint32_t number_at_owner(const Link& link) const { return fabric_.number_at_owner(link); }
  Link find(topology::LinkId link) const { return fabric_.find(link); }
  /// Returns the number of the logical process that takes a message for a link: that of the link, or that of a group of
  /// dimensions of flits, which come after all links.
  std::uint32_t process_of(topology::LinkId link) const {
    if (regions_ == nullptr) return link.value();
    const Link found = fabric_.find(link);
    const flit::Region* const region = regions_->of_dimension(found.dimension);
    return region == nullptr ? link.value() : num_links() + region->group_of(found.owner);
  }
  topology::Fabric::Ends ends(const Link& link) const { return fabric_.ends(link); }

  topology::LinkId first(const Message& message, Time) const {
    if (circuits_ == nullptr) return fabric_.first(message.source, message.destination);
    if (circuits_->lists_circuits(message.circuits)) return circuit(message, message.source);
    return of_port(message, fabric_.first(position(message, message.source), position(message, message.destination)));
  }
  std::optional<topology::LinkId> next(const Link& link, const Message& message, Time) const {
    if (circuits_ == nullptr) return fabric_.next(link, message.destination);
    if (circuits_->lists_circuits(message.circuits)) {
      const NpuId here(static_cast<std::uint32_t>(fabric_.ends(link).to));
      return here == message.destination ? std::nullopt : std::optional(circuit(message, here));
    }
    const Link at = fabric_.find(fabric_.link_of(position(message, link.owner), fabric_.number_at_owner(link)));
    const auto next = fabric_.next(at, position(message, message.destination));
    return next ? std::optional(of_port(message, *next)) : std::nullopt;
  }
  /// Returns this link and those with the same owner that a message may take instead (Fabric::alternatives), each with
  /// the links of the dimension that the message then takes; nothing if there is no choice.
  std::vector<std::pair<Link, std::uint32_t>> ways(const Link& link, const Message& message) const;
  Time works_until(const Link&) const { return Time::max(); }
  /// Returns the link that a message takes instead of one that has failed: no link of a shape fails during a run.
  topology::LinkId instead_of(const Link& link, const Message&, Time) const { return link.id; }
  bool continues(const Link& link, const Link& next) const { return fabric_.continues(link, next); }
  bool takes_whole(const Link& link) const { return fabric_.takes_whole(link); }

  /// What the delays of a link depend on: its dimension, its role, whether a port is beside it, and the bandwidth and
  /// latency of the NPU's links.
  using Kind = std::tuple<std::uint32_t, topology::LinkRole, bool, double, double>;
  Kind kind(const Link& link) const {
    const topology::Port port = fabric_.port(link);
    const bool is_beside_port = fabric_.port_before(link) != nullptr;
    return {link.dimension, fabric_.role(link), is_beside_port, port.bandwidth, port.latency};
  }
  Time holds(const Link& link, Bytes size) const { return delays_.holds(link, size); }
  Time passes(const Link& link, Bytes size) const { return delays_.passes(link, size); }
  /// Returns whether the delays of links depend on the configuration of the circuits.
  bool has_rates() const { return circuits_ != nullptr && circuits_->has_rates(); }
  /// Return the delays in a configuration of the circuits.
  Time holds(const Link& link, Bytes size, std::uint32_t configuration) const {
    const auto rate = rate_of(link, configuration);
    return rate ? orrery::delay(0, size, rate->bandwidth, rounding_) : holds(link, size);
  }
  Time passes(const Link& link, Bytes size, std::uint32_t configuration) const {
    const auto rate = rate_of(link, configuration);
    if (!rate) return passes(link, size);
    return std::max(orrery::delay(rate->latency_ns, size, rate->bandwidth, rounding_), tick(rounding_));
  }
  /// Returns when the circuits of an NPU's links that change are empty: the latest of free(number of the link).
  template <class Free>
  Time drained(NpuId npu, std::uint32_t before, std::uint32_t after, Free free) const {
    Time time;
    for (std::uint32_t k = 0; circuits_ != nullptr && k < links_of(npu); ++k)
      if (circuits_->changes_link(npu, k, before, after)) time = std::max(time, free(k));
    return time;
  }
  Time least_pass() const;
  /// Returns a time that no message passes a link in less than if what follows, the receipt of the source included, is
  /// on another rank; max() if there is no such link. O(NPUs * dimensions).
  Time least_pass_between_ranks(const Hosting& hosting) const;

  /// Returns whether all links of the ways of messages among these NPUs belong to NPUs of a set, as do the NPUs
  /// themselves. Says no if that would take long to find out. O(members * dimensions + pairs of their positions in a
  /// dimension * hops).
  bool keep_within(std::span<const NpuId> members, const std::function<bool(NpuId)>& is_in) const;

 private:
  NpuId position(const Message& message, NpuId npu) const { return circuits_->position_of(message.circuits, npu); }
  /// Returns the link of the NPU that stands where the link of the dimensions begins, in the message's configuration.
  topology::LinkId of_port(const Message& message, topology::LinkId of_position) const {
    const Link link = fabric_.find(of_position);
    return fabric_.link_of(circuits_->npu_at(message.circuits, link.owner), fabric_.number_at_owner(link));
  }
  topology::LinkId circuit(const Message& message, NpuId at) const;
  std::optional<topology::CircuitRate> rate_of(const Link& link, std::uint32_t configuration) const;
  std::vector<std::uint32_t> positions_passed(std::uint32_t d, std::span<const NpuId> members) const;

  topology::Fabric fabric_;
  LinkDelays delays_;
  Rounding rounding_;
  std::shared_ptr<const topology::Circuits> circuits_;
  const flit::Regions* regions_;
};

}  // namespace orrery::network
