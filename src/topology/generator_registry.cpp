#include "orrery/topology/graph_generator.hpp"

namespace orrery::topology {

// Each is in a file of its own in src/topology/generators.
extern const GraphGenerator leaf_spine_generator, clos_generator, rails_generator, dragonfly_plus_generator,
    torus_generator;

std::span<const GraphGenerator* const> GraphGenerator::registry() {
  static constexpr const GraphGenerator* generators[] = {&leaf_spine_generator, &clos_generator, &rails_generator,
                                                         &dragonfly_plus_generator, &torus_generator};
  return generators;
}

}  // namespace orrery::topology
