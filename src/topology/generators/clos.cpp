#include <fmt/format.h>

#include "fabric_builder.hpp"

namespace orrery::topology {
namespace {

/// The numbers of switches of a Clos network. Those that are not given follow from the ports of a switch, as in the fat
/// tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008).
struct Clos {
  explicit Clos(const GraphParameters& given) {
    const std::uint32_t over = given.count("oversubscription");
    std::optional<std::uint32_t> half, up, ports, all;
    if (given.has("ports")) {
      ports = given.count("ports");
      if (*ports % 2 != 0) given.refuse("ports", fmt::format("found {}", *ports), "an even number");
      half = *ports / 2;
      if (*half % over != 0)
        given.refuse("oversubscription", fmt::format("found {}", over), "a divisor of half of the ports");
      up = *half / over;
    } else if (given.has("oversubscription") && over != 1) {
      given.refuse("oversubscription", "found oversubscription without ports",
                   "ports, or aggregations-per-pod and hosts-per-edge");
    }
    pods = given.count("pods", ports);
    edges = given.count("edges-per-pod", half);
    hosts = given.count("hosts-per-edge", half);
    aggregations = given.count("aggregations-per-pod", up);
    if (half && std::uint64_t{aggregations} * *half <= most_generated_nodes) all = aggregations * *half;
    cores = pods > 1 ? given.count("cores", all) : 0;
    if (pods > 1 && (cores == 0 || cores % aggregations != 0))
      given.refuse("cores", fmt::format("found {} with {} aggregation switches in a pod", cores, aggregations),
                   "a multiple of aggregations-per-pod");
  }

  std::uint32_t pods = 0, edges = 0, hosts = 0, aggregations = 0, cores = 0;
};

GeneratedGraph make_clos(const GraphParameters& given) {
  const Clos clos(given);
  const std::uint32_t links = given.count("links-per-pair");
  FabricBuilder builder(given, std::uint64_t{clos.pods} * clos.edges * clos.hosts);
  const std::uint32_t edge = builder.add_switches("edge", std::uint64_t{clos.pods} * clos.edges);
  const std::uint32_t aggregation = builder.add_switches("aggregation", std::uint64_t{clos.pods} * clos.aggregations);
  const std::uint32_t core = builder.add_switches("core", clos.cores);
  builder.attach_all(edge, clos.pods * clos.edges, clos.hosts);
  for (std::uint32_t pod = 0; pod < clos.pods; ++pod)
    for (std::uint32_t e = 0; e < clos.edges; ++e)
      for (std::uint32_t a = 0; a < clos.aggregations; ++a)
        builder.join(edge + pod * clos.edges + e, aggregation + pod * clos.aggregations + a, "uplink", links);
  // The cores are dealt to the aggregation switches of a pod in blocks, so that each has one link to every pod.
  for (std::uint32_t pod = 0; pod < clos.pods; ++pod)
    for (std::uint32_t c = 0; c < clos.cores; ++c)
      builder.join(aggregation + pod * clos.aggregations + c / (clos.cores / clos.aggregations), core + c, "core");
  return builder.take();
}

constexpr GraphParameter clos_parameters[] = {
    {.name = "ports", .help = "k of a k-ary fat tree, even; the others follow from it", .default_text = "none"},
    {.name = "oversubscription",
     .help = "of an edge switch of a k-ary fat tree; a divisor of k/2",
     .default_text = "1",
     .otherwise = 1},
    {.name = "pods", .help = "groups of edge and aggregation switches", .default_text = "k"},
    {.name = "edges-per-pod", .help = "switches of a pod that have hosts", .default_text = "k/2"},
    {.name = "hosts-per-edge", .help = "places for hosts at an edge switch", .default_text = "k/2"},
    {.name = "aggregations-per-pod",
     .help = "switches of a pod that have a link to each of its edge switches",
     .default_text = "k/2 / oversubscription"},
    {.name = "cores",
     .help = "switches with a link to each pod; a multiple of aggregations-per-pod; none with one pod",
     .default_text = "aggregations-per-pod k/2",
     .least = 0},
    {.name = "links-per-pair",
     .help = "links from an edge to an aggregation switch",
     .default_text = "1",
     .otherwise = 1},
};

}  // namespace

extern const GraphGenerator clos_generator;
constinit const GraphGenerator clos_generator{
    .name = "clos",
    .help = "pods of edge and aggregation switches, joined by core switches; with ports a k-ary fat tree",
    .parameters = clos_parameters,
    .make = make_clos,
};

}  // namespace orrery::topology
