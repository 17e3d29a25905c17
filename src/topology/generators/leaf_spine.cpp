#include "fabric_builder.hpp"

namespace orrery::topology {
namespace {

GeneratedGraph make_leaf_spine(const GraphParameters& given) {
  const std::uint32_t leaves = given.count("leaves"), spines = given.count("spines");
  const std::uint32_t hosts = given.count("hosts-per-leaf"), links = given.count("links-per-pair");
  if (spines == 0 && leaves > 1) given.refuse("spines", "found 0 with several leaves", "1 or more");
  FabricBuilder builder(given, std::uint64_t{leaves} * hosts);
  const std::uint32_t leaf = builder.add_switches("leaf", leaves), spine = builder.add_switches("spine", spines);
  builder.attach_all(leaf, leaves, hosts);
  for (std::uint32_t l = 0; l < leaves; ++l)
    for (std::uint32_t s = 0; s < spines; ++s) builder.join(leaf + l, spine + s, "uplink", links);
  return builder.take();
}

constexpr GraphParameter leaf_spine_parameters[] = {
    {.name = "leaves", .help = "switches that have hosts", .default_text = ""},
    {.name = "hosts-per-leaf", .help = "places for hosts at a leaf", .default_text = ""},
    {.name = "spines", .help = "switches that join the leaves; 0 with one leaf", .default_text = "", .least = 0},
    {.name = "links-per-pair", .help = "links from a leaf to a spine", .default_text = "1", .otherwise = 1},
};

}  // namespace

extern const GraphGenerator leaf_spine_generator;
constinit const GraphGenerator leaf_spine_generator{
    .name = "leaf-spine",
    .help = "leaves with hosts, each of which has links to all spines",
    .parameters = leaf_spine_parameters,
    .make = make_leaf_spine,
};

}  // namespace orrery::topology
