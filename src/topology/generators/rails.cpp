#include <fmt/format.h>

#include <algorithm>

#include "fabric_builder.hpp"

namespace orrery::topology {
namespace {

GeneratedGraph make_rails(const GraphParameters& given) {
  if (given.servers.empty()) given.refuse("servers", "is missing", "how many servers there are");
  const auto num_servers = static_cast<std::uint32_t>(given.servers.size());
  const std::uint32_t per_group = given.count("servers-per-group", num_servers), spines = given.count("spines");
  const std::uint32_t groups = (num_servers + per_group - 1) / per_group;
  if (spines == 0 && groups > 1) given.refuse("spines", fmt::format("found 0 with {} groups", groups), "1 or more");
  FabricBuilder builder(given, 0);
  std::uint32_t rails = 0;
  for (const auto& port : builder.ports()) rails = std::max(rails, port.number + 1);
  std::uint32_t first = 0;
  for (std::uint32_t group = 0; group < groups; ++group)
    for (std::uint32_t rail = 0; rail < rails; ++rail) {
      const std::uint32_t node = builder.add_switch(fmt::format("group.{}.rail.{}", group, rail));
      if (group == 0 && rail == 0) first = node;
    }
  const std::uint32_t spine = builder.add_switches("spine", spines);
  for (const auto& port : builder.ports()) builder.attach(port, first + port.server / per_group * rails + port.number);
  for (std::uint32_t leaf = 0; leaf < groups * rails; ++leaf)
    for (std::uint32_t s = 0; s < spines; ++s)
      builder.join(first + leaf, spine + s, "uplink", given.count("links-per-pair"));
  GeneratedGraph made = builder.take();
  made.hosts_forward |= spines == 0;  // from one rail to another only an NPU of the right number leads
  return made;
}

constexpr GraphParameter rails_parameters[] = {
    {.name = "servers-per-group", .help = "servers that share their rail switches", .default_text = "all"},
    {.name = "spines",
     .help = "switches that join all rail switches; without them NPUs forward from rail to rail in their server",
     .default_text = "0",
     .otherwise = 0,
     .least = 0},
    {.name = "links-per-pair", .help = "links from a rail switch to a spine", .default_text = "1", .otherwise = 1},
};

}  // namespace

extern const GraphGenerator rails_generator;
constinit const GraphGenerator rails_generator{
    .name = "rails",
    .help = "servers whose NIC of number r is at rail switch r of their group",
    .parameters = rails_parameters,
    .make = make_rails,
};

}  // namespace orrery::topology
