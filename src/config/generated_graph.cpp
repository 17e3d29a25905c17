#include "generated_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/graphfile/nccl_server.hpp"

namespace orrery::config {
namespace {

using topology::GraphGenerator;
using topology::GraphParameter;
using topology::GraphParameters;
using topology::ServerInside;
using topology::ServerPlan;

constexpr std::string_view servers_expected = "how many servers, or a list such as [4, 6] or [{npus: 4}, {npus: 6}]";
constexpr std::uint32_t most_servers = 1U << 22U;

const Words<ServerInside>& insides() {
  static const Words<ServerInside> words = {{"switch", ServerInside::one_switch, "a switch joins the NPUs"},
                                            {"all-pairs", ServerInside::all_pairs, "each two NPUs have a link"},
                                            {"ring", ServerInside::ring, "NPUs have links to the next and the last"},
                                            {"none", ServerInside::none, "nothing joins them"}};
  return words;
}

topology::LinkPhysics read_physics(Section& section) {
  topology::LinkPhysics physics;
  if (const Value* const bandwidth = section.find("bandwidth"))
    physics.bytes_per_ns = as_bandwidth(*bandwidth, section.path("bandwidth")).bytes_per_ns();
  if (const Value* const latency = section.find("latency"))
    physics.latency_ns = as_nanoseconds(*latency, section.path("latency"));
  return physics;
}

/// Returns a server with what joins the NPUs of another one, which has equally many.
ServerPlan with_links(ServerPlan plan, const ServerPlan& other) {
  const auto first_device = static_cast<std::uint32_t>(plan.num_npus + plan.devices.size());
  const auto first_kind = static_cast<std::uint32_t>(plan.kinds.size());
  const auto node_of = [&](std::uint32_t node) {
    return node < plan.num_npus ? node : node - plan.num_npus + first_device;
  };
  for (const ServerPlan::Link& link : other.links)
    plan.links.push_back({node_of(link.a), node_of(link.b), first_kind + link.kind});
  plan.kinds.insert(plan.kinds.end(), other.kinds.begin(), other.kinds.end());
  plan.devices.insert(plan.devices.end(), other.devices.begin(), other.devices.end());
  plan.npus_forward |= other.npus_forward;
  return plan;
}

/// What `server` and the items of `servers` say of a server.
struct ServerEntry {
  std::optional<std::uint32_t> npus;
  std::optional<ServerInside> inside;
  topology::LinkPhysics physics;
  std::shared_ptr<const ServerPlan> topology;  ///< plan of an NCCL server

  ServerPlan plan(std::uint32_t otherwise) const {
    const ServerPlan made = make_server(topology ? topology->num_npus : npus.value_or(otherwise),
                                        inside.value_or(ServerInside::one_switch), physics);
    if (!topology) return made;
    return inside ? with_links(*topology, made) : *topology;
  }
};

/// Reads what a graph is made of.
class GeneratorReader {
 public:
  GeneratorReader(Section& section, Faults& faults) : section_(section), faults_(faults) {}

  std::optional<topology::GeneratedGraph> read();

 private:
  const GraphGenerator& read_generator(const Value& name) const;
  void read_parameter(const GraphParameter& parameter, GraphParameters& given);
  void read_servers(GraphParameters& given);
  ServerEntry read_server(Section server, ServerEntry entry);
  ServerPlan read_item(const Value& item, const std::string& path, const ServerEntry& entry);

  Section& section_;
  Faults& faults_;
};

const GraphGenerator& GeneratorReader::read_generator(const Value& name) const {
  std::vector<std::string_view> known;
  for (const GraphGenerator* const generator : GraphGenerator::registry()) {
    if (name.kind == Value::Kind::scalar && name.text == generator->name) return *generator;
    known.push_back(generator->name);
  }
  refuse_word(name, section_.path("generate"), known);
}

void GeneratorReader::read_parameter(const GraphParameter& parameter, GraphParameters& given) {
  const Value* const value = section_.find(parameter.name);
  if (value == nullptr) return;
  const std::string path = section_.path(parameter.name);
  faults_.attempt([&] {
    std::vector<std::uint32_t> numbers;
    if (parameter.is_list)
      for (const Value& item : as_list(*value, path, "a list of whole numbers"))
        numbers.push_back(as_count(item, path, parameter.least, topology::most_generated_nodes));
    else
      numbers.push_back(as_count(*value, path, parameter.least, topology::most_generated_nodes));
    given.set(parameter.name, std::move(numbers));
  });
}

ServerEntry GeneratorReader::read_server(Section server, ServerEntry entry) {
  faults_.attempt([&] {
    if (const Value* const npus = server.find("npus")) entry.npus = as_count(*npus, server.path("npus"), 1, 1U << 16U);
    if (const Value* const inside = server.find("inside"))
      entry.inside = as_word(*inside, server.path("inside"), insides());
    if (const Value* const topology = server.find("topology")) {
      const std::string path = server.path("topology");
      if (server.find("npus") != nullptr)
        throw Error(ErrorCode::bad_input, topology->place(path), "found npus beside a topology, which has its own",
                    "one of the two");
      entry.npus.reset();
      entry.topology = std::make_shared<const ServerPlan>(
          graphfile::read_nccl_server(as_path(*topology, path), entry.inside.has_value(), topology->place(path)));
    }
    const topology::LinkPhysics physics = read_physics(server);
    if (physics.bytes_per_ns) entry.physics.bytes_per_ns = physics.bytes_per_ns;
    if (physics.latency_ns) entry.physics.latency_ns = physics.latency_ns;
  });
  server.refuse_unknown();
  return entry;
}

/// Reads an item of `servers`: the number of its NPUs, or a mapping.
ServerPlan GeneratorReader::read_item(const Value& item, const std::string& path, const ServerEntry& entry) {
  if (item.kind == Value::Kind::mapping) return read_server(Section(&item, path, item, faults_), entry).plan(1);
  ServerEntry own = entry;
  own.topology.reset();
  own.npus = as_count(item, path, 1, 1U << 16U);
  return own.plan(1);
}

void GeneratorReader::read_servers(GraphParameters& given) {
  const ServerEntry each = read_server(section_.section("server"), {});
  const Value* const servers = section_.find("servers");
  if (servers == nullptr || servers->kind == Value::Kind::scalar) {
    if (each.npus || each.topology) given.server = each.plan(1);
    if (servers != nullptr)
      given.servers.assign(as_count(*servers, section_.path("servers"), 1, most_servers), each.plan(1));
    return;
  }
  const std::string path = section_.path("servers");
  for (const Value& item : as_list(*servers, path, servers_expected))
    faults_.attempt([&] { given.servers.push_back(read_item(item, path, each)); });
}

std::optional<topology::GeneratedGraph> GeneratorReader::read() {
  std::optional<topology::GeneratedGraph> made;
  faults_.attempt([&] {
    const std::size_t before = faults_.count();
    const GraphGenerator& generator = read_generator(*section_.find("generate"));
    GraphParameters given(generator.parameters,
                          [&](std::string_view name, const std::string& found, const std::string& expected) {
                            throw Error(ErrorCode::bad_input, section_.place(name), found, expected);
                          });
    for (const GraphParameter& parameter : generator.parameters) read_parameter(parameter, given);
    faults_.attempt([&] { read_servers(given); });
    const topology::LinkDefaults defaults = read_link_defaults(section_, faults_);
    if (faults_.count() != before) return;
    topology::GeneratedGraph graph = generator.make(given);
    complete_links(graph.graph, defaults, section_.place("links"), "a bandwidth and a latency of each link",
                   "Give bandwidth and latency of all links, or links: {NAME: {bandwidth, latency}}.");
    made = std::move(graph);
  });
  return made;
}

}  // namespace

topology::LinkDefaults read_link_defaults(Section& section, Faults& faults) {
  topology::LinkDefaults defaults;
  defaults.all = read_physics(section);
  if (const Value* const links = section.find("links")) {
    const Section names(links, section.path("links"), *links, faults);  // notes a value that is no mapping
    for (const Value::Entry& entry : links->entries) {
      Section of_link(&entry.value, names.path(entry.key), *links, faults);
      defaults.of_link[entry.key] = read_physics(of_link);
      of_link.refuse_unknown();
    }
  }
  return defaults;
}

std::optional<topology::GeneratedGraph> read_generated_graph(Section& section, Faults& faults) {
  return GeneratorReader(section, faults).read();
}

}  // namespace orrery::config
