#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/topology/dimension.hpp"
#include "orrery/topology/shape.hpp"

namespace orrery::topology {

/// What the links of a dimension group join: its positions, each of which is an NPU, and its switches.
struct Device {
  enum class Kind : std::uint8_t { position, network_switch };

  Kind kind = Kind::position;
  std::uint32_t number = 0;  ///< among the devices of its kind

  friend bool operator==(const Device&, const Device&) = default;
};

/// A directed link of a dimension group. Every link belongs to a position.
struct GroupLink {
  std::uint32_t position = 0;
  std::uint32_t number = 0;  ///< among the links of the position

  friend bool operator==(const GroupLink&, const GroupLink&) = default;
};

/// Switches of one kind. The switches of a group are numbered tier by tier.
struct SwitchTier {
  std::string_view name;
  std::uint32_t count = 0;  ///< number in a group
};

/// What a link is for. An oversubscribed switch has a core, the way through it, and behind it the links that lead from
/// it, with which the core shares their latency. A port that dimensions share has a link of its own to and from the
/// NPU, which shares the latency of the links behind it.
enum class LinkRole : std::uint8_t { plain, core, behind_core, port };

/// Links of a dimension group that have failed in both directions: the positions that each joined, the lower one first.
using FailedLinks = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Returns whether the link between two positions is among the failed ones.
inline bool has_failed(const FailedLinks& failed, std::uint32_t a, std::uint32_t b) {
  return std::ranges::find(failed, std::pair(std::min(a, b), std::max(a, b))) != failed.end();
}

/// The NPUs at the positions of a dimension group.
struct GroupNpus {
  NpuId first;
  std::uint32_t stride = 1;

  NpuId operator[](std::uint32_t position) const { return NpuId(first.value() + position * stride); }
};

/// The links of a dimension group and the routes of messages over them. A shape says its links and its route from
/// device to device. The rest follows from these; a shape declares it again only where a closed form is faster. A
/// property test holds each closed form to the links and routes.
class Wiring {
 public:
  explicit Wiring(std::uint32_t size) : size_(size) {}
  virtual ~Wiring() = default;

  /// Returns the number of positions.
  std::uint32_t size() const { return size_; }

  // ---- What a shape says ----

  /// Returns how many links belong to a position. Numbers of links are below this.
  virtual std::uint32_t links_per_position() const = 0;
  /// Returns whether a link is there: some positions may have fewer links than others.
  virtual bool exists(GroupLink link) const;
  /// Returns the device that an existing link leads from, or to.
  virtual Device from(GroupLink link) const = 0;
  virtual Device to(GroupLink link) const = 0;
  /// Returns the link over which a message leaves a device for another position.
  virtual GroupLink towards(Device at, std::uint32_t position) const = 0;
  /// Returns the links over which a switch may send a message for a position instead of over `regular`, towards(at,
  /// position), if the switches of the shape choose (Dimension::routing). From the ends of these links the message
  /// takes towards() again. None if there is no choice.
  virtual std::vector<GroupLink> alternatives(GroupLink regular, std::uint32_t position) const;
  /// Returns the kinds of switches of a group; none if NPUs are joined directly.
  virtual std::vector<SwitchTier> switch_tiers() const { return {}; }
  virtual LinkRole role(GroupLink link) const;
  /// Returns whether packets that take the link use the second virtual channel of a pair from there on, in this
  /// dimension. If routes are such that packets could wait for each other in a circle, some link of each circle does.
  virtual bool turns_channel(GroupLink) const { return false; }
  /// Returns the bandwidth of the core, in links of the dimension; 0 if there is none.
  virtual double core_bandwidth() const { return 0; }

  // ---- Failed links. The last two functions are for shapes with detours (ShapeType::has_detours) ----

  /// Says why a group cannot lose these links, of which the last one is new. Returns nothing if it can, or if the shape
  /// has no reason of its own.
  virtual std::optional<ValidationError> validation_error(const FailedLinks& failed, const GroupNpus& npus) const;
  /// Returns the position next to `from` on the way to another position around the failed links.
  virtual std::uint32_t next_around(const FailedLinks& failed, std::uint32_t from, std::uint32_t to) const;
  /// Returns the hops of that way.
  virtual std::uint32_t hops_around(const FailedLinks& failed, std::uint32_t from, std::uint32_t to) const;

  // ---- What follows; each may have a closed form ----

  /// Returns the hops between two different positions: the links of the route, without the core of a switch. O(hops).
  virtual std::uint32_t hops(std::uint32_t from, std::uint32_t to) const;
  /// Returns a lower bound of the hops between two different positions. O(links) without a closed form.
  virtual std::uint32_t fewest_hops() const;
  /// Returns an upper bound of the hops between two positions. O(size^2 hops) without a closed form.
  virtual std::uint32_t most_hops() const;
  /// Returns the number of links that lead out of positions. O(links) without a closed form.
  virtual std::uint64_t num_injection_links() const;
  /// Returns the last link of the route between two different positions. O(hops) without a closed form.
  virtual GroupLink last_link(std::uint32_t from, std::uint32_t to) const;
  /// Returns the first link of the route between two different positions.
  GroupLink first_link(std::uint32_t from, std::uint32_t to) const {
    return towards({Device::Kind::position, from}, to);
  }

 private:
  std::uint32_t size_;
};

/// Makes the wiring of a valid dimension.
std::unique_ptr<const Wiring> make_wiring(const Dimension& dimension);

}  // namespace orrery::topology
