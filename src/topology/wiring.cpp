#include "wiring.hpp"

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

// Numbers of a place's links.
constexpr std::uint32_t up = 0, down = 1, across = 2;

constexpr Device place(std::uint32_t number) { return {Device::Kind::place, number}; }
constexpr Device a_switch(std::uint32_t number) { return {Device::Kind::a_switch, number}; }

/// Ring and Mesh: to the next place and to the one before. In a ring of 2 they are one.
class Neighbours final : public Wiring {
 public:
  explicit Neighbours(const Dimension& dimension) : size_(dimension.size), is_open_(dimension.shape == Shape::mesh) {}

  std::uint32_t links_per_place() const override { return size_ == 2 ? 1 : 2; }
  Device from(LineLink link) const override { return place(link.place); }
  Device to(LineLink link) const override { return place((link.place + (link.number == up ? 1 : size_ - 1)) % size_); }
  LineLink towards(Device at, std::uint32_t place) const override {
    if (size_ == 2) return {at.number, up};
    const std::uint32_t distance = (place + size_ - at.number) % size_;
    const bool is_upwards = is_open_ ? place > at.number : distance <= size_ - distance;
    return {at.number, is_upwards ? up : down};
  }

 private:
  std::uint32_t size_;
  bool is_open_;
};

/// FullyConnected: to each other place, by distance.
class Pairs final : public Wiring {
 public:
  explicit Pairs(const Dimension& dimension) : size_(dimension.size) {}

  std::uint32_t links_per_place() const override { return size_ - 1; }
  Device from(LineLink link) const override { return place(link.place); }
  Device to(LineLink link) const override { return place((link.place + 1 + link.number) % size_); }
  LineLink towards(Device at, std::uint32_t place) const override {
    return {at.number, (place + size_ - at.number) % size_ - 1};
  }

 private:
  std::uint32_t size_;
};

/// Switch: up to it and down from it. One that is oversubscribed has two sides, joined by a link of the first place.
class Star final : public Wiring {
 public:
  explicit Star(const Dimension& dimension)
      : size_(dimension.size), oversubscription_(dimension.oversubscription), output_(has_core() ? 1 : 0) {}

  std::uint32_t links_per_place() const override { return has_core() ? 3 : 2; }
  Device from(LineLink link) const override {
    if (link.number == up) return place(link.place);
    return a_switch(link.number == across ? 0 : output_);
  }
  Device to(LineLink link) const override {
    if (link.number == down) return place(link.place);
    return a_switch(link.number == across ? output_ : 0);
  }
  LineLink towards(Device at, std::uint32_t place) const override {
    if (at.kind == Device::Kind::place) return {at.number, up};
    if (at.number == output_) return {place, down};
    return {0, across};
  }
  std::vector<Tier> tiers() const override {
    if (!has_core()) return {{"switch", 1}};
    return {{"switch input", 1}, {"switch output", 1}};
  }
  Part part(LineLink link) const override {
    if (!has_core() || link.number == up) return Part::link;
    return link.number == across ? Part::core : Part::behind_core;
  }
  double core() const override { return has_core() ? size_ / oversubscription_ : 0; }

 private:
  bool has_core() const { return oversubscription_ > 1; }

  std::uint32_t size_;
  double oversubscription_;
  std::uint32_t output_;
};

}  // namespace

std::unique_ptr<const Wiring> make_wiring(const Dimension& dimension) {
  switch (dimension.shape) {
    case Shape::ring:
    case Shape::mesh:
      return std::make_unique<Neighbours>(dimension);
    case Shape::fully_connected:
      return std::make_unique<Pairs>(dimension);
    case Shape::switched:
      return std::make_unique<Star>(dimension);
    case Shape::fat_tree:
      return make_fat_tree(dimension);
    case Shape::dragonfly:
      return make_dragonfly(dimension);
  }
  ensure_failed("a shape that does not exist", std::source_location::current());
}

}  // namespace orrery::topology
