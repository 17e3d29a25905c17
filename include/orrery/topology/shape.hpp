#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "orrery/base/registry.hpp"

namespace orrery::topology {

struct Dimension;
class Wiring;

/// The reason why a dimension or a fault is not possible: the found and the expected value, as parts of a message.
struct ValidationError {
  std::string found;
  std::string expected = {};
};

/// A positive number that describes the structure of a dimension, such as the ports of a FatTree's switches.
struct ShapeParameter {
  std::string_view name;               ///< as configurations spell it
  std::string_view help;               ///< one line
  std::string_view example;            ///< a value
  std::string_view default_text = {};  ///< text of the value that `default_value` computes, for tables
  /// Computes the value for a dimension that does not set it, from the parameters before it. Null: it must be set.
  std::uint32_t (*default_value)(const Dimension& dimension) = nullptr;
};

/// A name that stands for several dimensions of one shape, such as Torus2D for two Rings.
struct ShapeShorthand {
  std::string_view name;
  std::uint32_t dimensions = 1;
  std::string_view help;       ///< one line
  bool is_one_router = false;  ///< a group may be simulated flit by flit, as one router
};

/// Which renumberings of the positions of a dimension group keep the hops between any two of them. Delays are computed
/// with these hops (Topology::hops). Each value but `none` includes those above it.
enum class HopSymmetry : std::uint8_t {
  none,          ///< none is known
  translations,  ///< hops depend on the distance of two positions
  rotations,     ///< hops depend on their distance modulo the size
  permutations,  ///< all pairs are Wiring::most_hops apart
};

/// The pattern of messages that a shape carries best. The default algorithms of collectives follow from it.
enum class TrafficPattern : std::uint8_t {
  neighbours,  ///< each position sends to the next one
  exchanges,   ///< positions exchange data in pairs
  all_pairs,   ///< each position sends to all others
};

/// A shape of the registry: the parameters of a dimension of this shape, and how its groups are wired.
struct ShapeType {
  std::string_view name;  ///< as configurations spell it
  std::string_view help;  ///< one line
  std::span<const ShapeParameter> parameters = {};
  std::span<const ShapeShorthand> shorthands = {};
  HopSymmetry symmetry = HopSymmetry::none;
  TrafficPattern pattern = TrafficPattern::neighbours;
  /// Its links are shared by pairs of NPUs that nothing else joins, so that a pair has no delay of its own: only a
  /// network that simulates every link can have the shape.
  bool is_of_links_only = false;
  bool sends_over_one_link = false;    ///< all that a position sends leaves it over one link
  bool may_be_oversubscribed = false;  ///< Dimension::oversubscription may be more than 1
  bool has_switch_operations = false;  ///< Dimension::in_switch_operations may be more than 0
  bool has_alternatives = false;       ///< its switches may choose among ways (Wiring::alternatives)
  bool has_detours = false;            ///< messages have a way around a failed link (Wiring::next_around)
  /// Says which parameter of the shape, or which size, is not possible; nothing if all are. Null: all are possible.
  std::optional<ValidationError> (*validation_error)(const Dimension& dimension) = nullptr;
  /// Makes the wiring of a dimension that is valid.
  std::unique_ptr<const Wiring> (*make)(const Dimension& dimension) = nullptr;

  /// Returns all shapes: the table of src/topology/shape_registry.cpp.
  static std::span<const ShapeType* const> registry();
};

using Shape = Registered<ShapeType>;

/// Returns the names of the shapes that every network model can have, for messages.
std::string shapes_of_any_network();

/// Returns the name of a shape as configurations spell it.
inline std::string_view name(Shape shape) { return shape.name(); }

}  // namespace orrery::topology
