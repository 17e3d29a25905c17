#include "orrery/topology/shape.hpp"

namespace orrery::topology {

// Each is in a file of its own in src/topology/shapes.
extern const ShapeType ring_shape, mesh_shape, fully_connected_shape, switched_shape, fat_tree_shape, dragonfly_shape;

std::span<const ShapeType* const> ShapeType::registry() {
  static constexpr const ShapeType* shapes[] = {&ring_shape,     &mesh_shape,     &fully_connected_shape,
                                                &switched_shape, &fat_tree_shape, &dragonfly_shape};
  return shapes;
}

std::string shapes_of_any_network() {
  return names_where<ShapeType>([](const ShapeType& shape) { return !shape.is_of_links_only; });
}

}  // namespace orrery::topology
