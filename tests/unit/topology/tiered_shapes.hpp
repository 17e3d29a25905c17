#pragma once

#include "dimension_of.hpp"

namespace orrery::topology {

inline Dimension fat_tree(std::uint32_t ports, std::uint32_t size, double oversubscription = 1) {
  Dimension tree = dimension_of(Shape("FatTree"), size);
  tree.parameters = {{"ports", ports}};
  tree.oversubscription = oversubscription;
  return tree;
}

/// `npus` and `links`: of a router.
inline Dimension dragonfly(std::uint32_t routers, std::uint32_t npus, std::uint32_t links, std::uint32_t size) {
  Dimension fly = dimension_of(Shape("Dragonfly"), size);
  fly.parameters = {{"routers", routers}, {"npus-per-router", npus}, {"global-links", links}};
  return fly;
}

}  // namespace orrery::topology
