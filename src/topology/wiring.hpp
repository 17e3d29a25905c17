#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "orrery/topology/dimension.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::topology {

/// What links of a line join: its places, and its switches.
struct Device {
  enum class Kind : std::uint8_t { place, a_switch };

  Kind kind = Kind::place;
  std::uint32_t number = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

/// A directed link of a line: one of those that belong to a place.
struct LineLink {
  std::uint32_t place = 0;
  std::uint32_t number = 0;
};

/// Switches of one kind; those of a line are numbered tier by tier.
struct Tier {
  std::string_view name;
  std::uint32_t count = 0;  ///< in a line
};

/// How the lines of a dimension are wired. What is asked of links that no way takes does not matter: places that have
/// fewer than others.
class Wiring {
 public:
  virtual ~Wiring() = default;

  virtual std::uint32_t links_per_place() const = 0;
  virtual Device from(LineLink link) const = 0;
  virtual Device to(LineLink link) const = 0;
  /// The link over which a message leaves a device for a place that is another one.
  virtual LineLink towards(Device at, std::uint32_t place) const = 0;

  virtual std::vector<Tier> tiers() const { return {}; }
  virtual Part part(LineLink) const { return Part::link; }
  /// Bandwidth of the core in links of the dimension; 0: there is none.
  virtual double core() const { return 0; }
};

/// For a line of 2 or more.
std::unique_ptr<const Wiring> make_wiring(const Dimension& dimension);
std::unique_ptr<const Wiring> make_fat_tree(const Dimension& dimension);
std::unique_ptr<const Wiring> make_dragonfly(const Dimension& dimension);

}  // namespace orrery::topology
