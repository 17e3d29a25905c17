#include "fabric_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "orrery/base/text.hpp"

namespace orrery::topology {

ServerPlan make_server(std::uint32_t num_npus, ServerInside inside, const LinkPhysics& physics) {
  ServerPlan plan;
  plan.num_npus = num_npus;
  plan.kinds = {{"inside", physics.bytes_per_ns, physics.latency_ns}};
  for (std::uint32_t n = 0; n < num_npus; ++n) plan.ports.push_back({n, {}});
  if (num_npus == 1) return plan;
  if (inside == ServerInside::one_switch) {
    plan.devices = {"switch"};
    for (std::uint32_t n = 0; n < num_npus; ++n) plan.links.push_back({n, num_npus, 0});
  }
  if (inside == ServerInside::all_pairs)
    for (std::uint32_t a = 0; a < num_npus; ++a)
      for (std::uint32_t b = a + 1; b < num_npus; ++b) plan.links.push_back({a, b, 0});
  if (inside == ServerInside::ring) {
    plan.npus_forward = true;
    for (std::uint32_t n = 0; n + (num_npus == 2 ? 1 : 0) < num_npus; ++n)
      plan.links.push_back({n, (n + 1) % num_npus, 0});
  }
  return plan;
}

std::uint32_t GraphParameters::count(std::string_view name, std::optional<std::uint32_t> otherwise) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second.at(0);
  if (otherwise) return *otherwise;
  const auto known = std::ranges::find(known_, name, &GraphParameter::name);
  if (known == known_.end() || !known->otherwise) refuse(name, "is missing", "a whole number");
  return *known->otherwise;
}

const std::vector<std::uint32_t>& GraphParameters::list(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) refuse(name, "is missing", "a list of whole numbers");
  return found->second;
}

void GraphParameters::refuse(std::string_view name, const std::string& found, const std::string& expected) const {
  refusal_(name, found, expected);
  ensure_failed("the refusal of a parameter throws", std::source_location::current());
}

FabricBuilder::FabricBuilder(const GraphParameters& parameters, std::uint64_t capacity) : parameters_(parameters) {
  std::vector<ServerPlan> filling;
  const std::vector<ServerPlan>* servers = &parameters.servers;
  if (servers->empty() && capacity <= most_generated_nodes) {
    const ServerPlan each = parameters.server.value_or(make_server(1, ServerInside::none, {}));
    if (!each.ports.empty()) filling.assign(capacity / each.ports.size(), each);
    servers = &filling;
  }
  std::uint64_t num_npus = 0, num_nodes = 0;
  for (const ServerPlan& plan : *servers) {
    num_npus += plan.num_npus;
    num_nodes += plan.num_npus + plan.devices.size();
  }
  if (num_nodes > most_generated_nodes || capacity > most_generated_nodes)
    parameters.refuse("generate", fmt::format("found places for {} nodes", std::max(num_nodes, capacity)),
                      fmt::format("{} at the most", most_generated_nodes));
  if (num_npus < 2) parameters.refuse("generate", fmt::format("found {}", counted(num_npus, "NPU")), "2 or more");
  made_.graph.num_npus = static_cast<std::uint32_t>(num_npus);
  made_.graph.nodes.resize(num_npus);
  std::uint32_t npu = 0, device = made_.graph.num_npus;
  for (const ServerPlan& plan : *servers) add_server(plan, npu, device);
}

void FabricBuilder::add_server(const ServerPlan& plan, std::uint32_t& npu, std::uint32_t& device) {
  const std::uint32_t server = num_servers_++, first = npu;
  num_machines_ = num_servers_;
  for (std::uint32_t n = 0; n < plan.num_npus; ++n, ++npu)
    made_.graph.nodes[npu] = {fmt::format("npu.{}", npu), server};
  const auto node_of = [&](std::uint32_t node) {
    return node < plan.num_npus ? first + node : device + node - plan.num_npus;
  };
  for (const std::string& name : plan.devices)
    made_.graph.nodes.push_back({fmt::format("server.{}.{}", server, name), server});
  for (const ServerPlan::Link& link : plan.links) {
    const ComponentGraph::LinkKind& of = plan.kinds[link.kind];
    add_link(node_of(link.a), node_of(link.b), kind(of.name, {of.bytes_per_ns, of.latency_ns}));
  }
  for (std::uint32_t number = 0; number < plan.ports.size(); ++number)
    ports_.push_back({server, number, node_of(plan.ports[number].node), plan.ports[number].bytes_per_ns});
  device += static_cast<std::uint32_t>(plan.devices.size());
  made_.hosts_forward |= plan.npus_forward;
}

std::uint32_t FabricBuilder::kind(std::string_view name, const LinkPhysics& physics) {
  const KindKey key{std::string(name), {physics.bytes_per_ns.value_or(-1), physics.latency_ns.value_or(-1)}};
  const auto [known, is_new] = kinds_.emplace(key, static_cast<std::uint32_t>(made_.graph.kinds.size()));
  if (is_new) made_.graph.kinds.push_back({std::string(name), physics.bytes_per_ns, physics.latency_ns});
  return known->second;
}

void FabricBuilder::add_link(std::uint32_t a, std::uint32_t b, std::uint32_t kind) {
  if (made_.graph.links.size() >= most_generated_links)
    parameters_.refuse("generate", "found too many links", fmt::format("{} at the most", most_generated_links));
  made_.graph.links.push_back({a, b, kind});
}

std::uint32_t FabricBuilder::add_switch(std::string name) {
  if (made_.graph.nodes.size() >= most_generated_nodes)
    parameters_.refuse("generate", "found too many nodes", fmt::format("{} at the most", most_generated_nodes));
  made_.graph.nodes.push_back({std::move(name), num_machines_++});
  return static_cast<std::uint32_t>(made_.graph.nodes.size() - 1);
}

std::uint32_t FabricBuilder::add_switches(std::string_view name, std::uint64_t count) {
  if (count > most_generated_nodes - std::min<std::uint64_t>(made_.graph.nodes.size(), most_generated_nodes))
    parameters_.refuse("generate", "found too many nodes", fmt::format("{} at the most", most_generated_nodes));
  const auto first = static_cast<std::uint32_t>(made_.graph.nodes.size());
  for (std::uint64_t i = 0; i < count; ++i) add_switch(fmt::format("{}.{}", name, i));
  return first;
}

void FabricBuilder::attach(const Port& port, std::uint32_t to) {
  add_link(port.node, to, kind("host", {port.bytes_per_ns, {}}));
}

void FabricBuilder::join(std::uint32_t a, std::uint32_t b, std::string_view kind, std::uint32_t count) {
  const std::uint32_t number = this->kind(kind, {});
  for (std::uint32_t i = 0; i < count; ++i) add_link(a, b, number);
}

void FabricBuilder::attach_all(std::uint32_t first, std::uint32_t num_switches, std::uint32_t per_switch) {
  std::uint64_t place = 0;
  for (std::size_t p = 0; p < ports_.size();) {
    std::size_t end = p;
    while (end < ports_.size() && ports_[end].server == ports_[p].server) ++end;
    const std::uint64_t left = per_switch - place % per_switch;
    if (end - p <= per_switch && end - p > left) place += left;
    for (; p < end; ++p, ++place) {
      if (place / per_switch >= num_switches)
        parameters_.refuse(
            "servers", fmt::format("found {} with {}", counted(num_servers_, "server"), counted(ports_.size(), "port")),
            fmt::format("what fits at {} of {}", counted(num_switches, "switch", "switches"),
                        counted(per_switch, "place")));
      attach(ports_[p], first + static_cast<std::uint32_t>(place / per_switch));
    }
  }
}

}  // namespace orrery::topology
