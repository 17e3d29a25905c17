#include <fmt/format.h>

#include "fabric_builder.hpp"

namespace orrery::topology {
namespace {

GeneratedGraph make_dragonfly_plus(const GraphParameters& given) {
  const std::uint32_t groups = given.count("groups"), leaves = given.count("leaves-per-group");
  const std::uint32_t spines = given.count("spines-per-group"), hosts = given.count("hosts-per-leaf");
  const std::uint32_t global = groups > 1 ? given.count("global-links") : 0;
  const std::uint64_t ports = std::uint64_t{spines} * global;
  if (groups > 1 && (ports == 0 || ports % (groups - 1) != 0))
    given.refuse("global-links", fmt::format("found {} links of a group to {} other groups", ports, groups - 1),
                 "equally many links to each other group");
  if (std::uint64_t{groups} * leaves > most_generated_nodes || std::uint64_t{groups} * spines > most_generated_nodes)
    given.refuse("groups", "found too many switches", fmt::format("{} at the most", most_generated_nodes));
  FabricBuilder builder(given, std::uint64_t{groups} * leaves * hosts);
  const std::uint32_t leaf = builder.add_switches("leaf", groups * leaves);
  const std::uint32_t spine = builder.add_switches("spine", groups * spines);
  builder.attach_all(leaf, groups * leaves, hosts);
  for (std::uint32_t group = 0; group < groups; ++group)
    for (std::uint32_t l = 0; l < leaves; ++l)
      for (std::uint32_t s = 0; s < spines; ++s)
        builder.join(leaf + group * leaves + l, spine + group * spines + s, "uplink");
  // Global port x of a group leads to the group that is x mod (groups - 1) + 1 farther, in each round of groups - 1.
  for (std::uint32_t group = 0; group < groups; ++group)
    for (std::uint64_t x = 0; x < ports; ++x) {
      const auto distance = static_cast<std::uint32_t>(x % (groups - 1) + 1);
      const std::uint32_t other = (group + distance) % groups;
      if (other < group) continue;
      const std::uint64_t back = x - (distance - 1) + (groups - distance - 1);
      builder.join(spine + group * spines + static_cast<std::uint32_t>(x / global),
                   spine + other * spines + static_cast<std::uint32_t>(back / global), "global");
    }
  return builder.take();
}

constexpr GraphParameter dragonfly_plus_parameters[] = {
    {.name = "groups", .help = "groups of leaves and spines", .default_text = ""},
    {.name = "leaves-per-group", .help = "switches of a group that have hosts", .default_text = ""},
    {.name = "spines-per-group", .help = "switches of a group with links to all of its leaves", .default_text = ""},
    {.name = "hosts-per-leaf", .help = "places for hosts at a leaf", .default_text = ""},
    {.name = "global-links",
     .help = "links of a spine to other groups; those of a group are a multiple of the number of other groups",
     .default_text = ""},
};

}  // namespace

extern const GraphGenerator dragonfly_plus_generator;
constinit const GraphGenerator dragonfly_plus_generator{
    .name = "dragonfly+",
    .help = "groups of leaves and spines, whose spines have links to other groups",
    .parameters = dragonfly_plus_parameters,
    .make = make_dragonfly_plus,
};

}  // namespace orrery::topology
