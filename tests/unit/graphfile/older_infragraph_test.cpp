// Descriptions of InfraGraph of older schemas: connections become edges, and counts follow from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/graphfile/infragraph.hpp"
#include "orrery/topology/network_graph.hpp"
#include "replaced.hpp"

namespace orrery::graphfile {

using namespace topology;
namespace {

const std::string box = R"(
  - name: box
    components:
      - {name: acc, type: xpu}
      - {name: out-port, type: nic, external: true}
      - {name: hub, type: custom}
    links:
      - {name: wide, bandwidth: {choice: giga_bytes_per_second, giga_bytes_per_second: 64}, latency: {ns: 100}}
      - {name: bus, bandwidth: {choice: giga_transfers_per_second, giga_transfers_per_second: 8}}
    connections: [acc.0.wide.hub.0, acc.1.wide.hub.0, acc.0.bus.out-port.0, acc.1.bus.out-port.1]
)";
const std::string tor = R"(
  - name: tor
    components: [{name: chip, type: custom}, {name: port, type: nic, count: 6}]
    links: [{name: inside}]
    connections: [chip.0.inside.port.0]
)";
std::string pod(const std::string& devices) {
  return "infrastructure:\n  name: small\n  devices:" + devices + R"(
  links: [{name: rail, bandwidth: {gigabits_per_second: 400}}]
  instances: [{name: host, device: box}, {name: top, device: tor}]
  connections:
    - host.0.out-port.0.rail.top.0.port.0
    - host.0.out-port.1.rail.top.0.port.1
    - host.1.out-port.0.rail.top.0.port.2
    - host.1.out-port.1.rail.top.0.port.5
)";
}
std::map<ComponentGraph::Kind, std::size_t> kinds_of(const ComponentGraph& graph) {
  std::map<ComponentGraph::Kind, std::size_t> kinds;
  for (const auto& component : graph.components) ++kinds[component.kind];
  return kinds;
}
std::vector<std::string> links_of(const ComponentGraph& graph) {
  std::vector<std::string> links;
  for (const auto& link : graph.links)
    links.push_back(graph.components[link.a].name + " " + graph.components[link.b].name);
  return links;
}
std::string refusal_of(const std::string& text, const std::string& file = "graph.yaml",
                       const std::vector<InfragraphFile>& devices = {}) {
  try {
    (void)network_of(parse_infragraph(text, "graph.yaml", devices));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.place().file, file) << error.what();
    return error.what();
  }
  return "accepted";
}

// Two boxes of 2 + 2 + 1 components and 4 links, a switch of 7 and 1, and 4 links. The hub is at two XPUs, which makes
// it a switch. A rate in transfers is none.
TEST(OlderInfraGraph, ConnectionsCount) {
  using Kind = ComponentGraph::Kind;
  const ComponentGraph graph = parse_infragraph(pod(box + tor), "graph.yaml");
  EXPECT_EQ(graph.name, "small");
  EXPECT_EQ(graph.machines.size(), 3U);
  EXPECT_EQ(kinds_of(graph), (std::map<Kind, std::size_t>{
                                 {Kind::custom, 1}, {Kind::xpu, 4}, {Kind::nic, 4 + 6}, {Kind::network_switch, 2}}));
  EXPECT_EQ(graph.links.size(), 2U * 4 + 1 + 4);
  ASSERT_EQ(graph.notes.size(), 1U);
  EXPECT_NE(graph.notes[0].find("lacks the width of the link. It is taken as none"), std::string::npos);
  const NetworkGraph network = network_of(graph);
  EXPECT_EQ(network.num_npus, 4U);
  EXPECT_EQ(network.num_switches(), 3U);
  EXPECT_EQ(network.links.size(), 4U + 4);
  EXPECT_EQ(find_dimensions(network), (std::vector<GraphDimension>{{"Switch", 2}, {"Switch", 2}}));
  std::map<std::string, std::pair<double, double>> physics;
  for (const auto& kind : network.kinds)
    physics[kind.name] = {kind.bytes_per_ns.value_or(0), kind.latency_ns.value_or(0)};
  EXPECT_EQ(physics.at("wide"), std::pair(64.0, 100.0));
  EXPECT_EQ(physics.at("bus"), std::pair(0.0, 0.0));
  EXPECT_EQ(physics.at("rail"), std::pair(50.0, 0.0));
}

// Connections of the infrastructure name the sixth host in place of the second one. Six hosts are made, and a note says
// that four of them are named by nothing.
TEST(OlderInfraGraph, LeftOutIndicesAreTold) {
  const std::string text = replaced(replaced(pod(box + tor), "host.1.out-port.0", "host.5.out-port.0"),
                                    "host.1.out-port.1", "host.5.out-port.1");
  const ComponentGraph graph = parse_infragraph(text, "graph.yaml");
  EXPECT_EQ(graph.machines.size(), 6U + 1);
  ASSERT_EQ(graph.notes.size(), 2U);
  EXPECT_EQ(graph.notes[1], "4 of 6 'host' of the infrastructure are named by no connection");
}

// The file of devices has an infrastructure of its own, which is refused, or devices that nothing uses, which are told.
TEST(OlderInfraGraph, FilesOfDevicesHaveDevicesThatAreUsed) {
  const std::vector<InfragraphFile> whole = {{pod(box + tor), "other.yaml"}}, unused = {{"devices:" + tor, "tor.yaml"}};
  try {
    (void)parse_infragraph(pod(box + tor), "graph.yaml", whole);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.place().file, "other.yaml");
    EXPECT_NE(std::string(error.what()).find("an infrastructure of its own"), std::string::npos) << error.what();
  }
  const ComponentGraph graph = parse_infragraph("device:" + box, "box.yaml", unused);
  EXPECT_EQ(graph.notes.back(), "tor.yaml: none of its devices is used");
}

// Devices of other files are the same, in whichever schema; a device that is missing is named, with what to do.
TEST(OlderInfraGraph, DevicesAreInOtherFiles) {
  const std::string alone = replaced(pod(" []"), "devices: []", "devices:");
  const std::vector<InfragraphFile> files = {{"device:" + box, "box.yaml"}, {"devices:" + tor, "tor.yaml"}};
  const ComponentGraph whole = parse_infragraph(pod(box + tor), "graph.yaml"),
                       parts = parse_infragraph(alone, "graph.yaml", files);
  EXPECT_EQ(links_of(parts), links_of(whole));
  ASSERT_EQ(parts.notes.size(), 1U);
  EXPECT_EQ(parts.notes[0].find("box.yaml: "), 0U) << parts.notes[0];
  const InfragraphFile newer = {R"(
devices:
  - name: tor
    components: [{name: chip, choice: custom}, {name: port, choice: nic, count: 6}]
    links: [{name: inside}]
    edges: [{ep1: {component: chip}, ep2: {component: "port[0]"}, scheme: many2many, link: inside}]
)",
                                "tor.yaml"};
  EXPECT_EQ(links_of(parse_infragraph(alone, "graph.yaml", std::vector{files[0], newer})), links_of(whole));
  const std::string missing = refusal_of(alone, "graph.yaml", {files[0]});
  EXPECT_NE(missing.find("instance 'top' is of device 'tor', which is not there"), std::string::npos) << missing;
  EXPECT_NE(missing.find("--devices"), std::string::npos) << missing;
  EXPECT_NE(refusal_of(alone, "none.yaml", {{"name: none", "none.yaml"}}).find("the file has no devices"),
            std::string::npos);
  EXPECT_NE(refusal_of(pod(box + tor), "tor.yaml", {files[1]}).find("device 'tor' is in graph.yaml, too"),
            std::string::npos);
}

// An instance of an unknown device that no connection uses is left out.
TEST(OlderInfraGraph, UnusedInstancesMayBeUnknown) {
  const std::string more =
      replaced(pod(box + tor), "{name: top, device: tor}", "{name: top, device: tor}, {name: core, device: router}");
  const ComponentGraph graph = parse_infragraph(more, "graph.yaml");
  EXPECT_EQ(graph.machines.size(), 3U);
  EXPECT_NE(graph.notes.back().find("instance 'core' is of device 'router'"), std::string::npos);
  const std::string used = replaced(more, "top.0.port.5", "core.0.port.5");
  EXPECT_NE(refusal_of(used).find("instance 'core' is of device 'router', which is not there"), std::string::npos);
}

// A package has a CPU and an XPU, and there are two. Its own connection is in each. An end at it is at its XPU.
TEST(OlderInfraGraph, ComponentsAreInComponents) {
  const std::string text = R"(
device:
  - name: board
    components:
      - {name: duo, type: xpu, count: 2, components: [{name: core, type: cpu}, {name: acc, type: xpu}]}
      - {name: card, type: nic, count: 2}
    links: [{name: c2c}, {name: bus}]
    connections: [core.0.c2c.acc.0, card.0.bus.duo.0, card.1.bus.core.1]
)";
  EXPECT_EQ(
      links_of(parse_infragraph(text, "graph.yaml")),
      (std::vector<std::string>{"board.0.duo.0.core.0 board.0.duo.0.acc.0", "board.0.duo.1.core.0 board.0.duo.1.acc.0",
                                "board.0.card.0 board.0.duo.0.acc.0", "board.0.card.1 board.0.duo.1.core.0"}));
  // All packages are listed one by one.
  EXPECT_EQ(links_of(parse_infragraph(replaced(text, "card.0.bus.duo.0", "core.1.c2c.acc.1"), "graph.yaml")).size(),
            3U);
  EXPECT_NE(refusal_of(replaced(text, "core.1]", "core.2]")).find("names 'duo[2]', of which there are 2"),
            std::string::npos);
  const std::string both = refusal_of(replaced(text, "{name: acc, type: xpu}", "{name: acc, type: xpu, choice: nic}"));
  EXPECT_NE(both.find("has the type 'xpu' and the choice 'nic'"), std::string::npos) << both;
  EXPECT_NE(refusal_of(replaced(text, "{name: acc, type: xpu}", "{name: acc, type: custom}"))
                .find("ends at 'duo', which has components of its own"),
            std::string::npos);
}

// Connections from a device itself lead to instances: these are devices in it.
TEST(OlderInfraGraph, InstancesAreInADevice) {
  const std::string text = R"(
infrastructure:
  devices:
    - name: card
      components: [{name: chip, type: custom}, {name: port, type: custom}]
      links: [{name: wire}]
      connections: [chip.0.wire.port.0]
    - name: box
      components: [{name: acc, type: xpu}]
      links: [{name: bus}]
      connections: [acc.0.bus.acc.1]
  instances: [{name: slot, device: card}]
  connections: [itself.0.acc.0.bus.slot.0.port.1, itself.0.acc.1.bus.slot.1.port.0]
)";
  const ComponentGraph graph = parse_infragraph(text, "graph.yaml");
  EXPECT_EQ(graph.name, "box");
  EXPECT_EQ(graph.machines.size(), 1U);
  EXPECT_EQ(graph.components.size(), 2U + 2 * 3);
  EXPECT_EQ(links_of(graph).back(), "itself.0.acc.1 itself.0.slot.1.port.0");
  EXPECT_EQ(network_of(graph).links.size(), 1U);
  // A link that the device does not have, or a second one of it: then the name is that of an instance.
  for (const std::string& other : {replaced(text, "acc.0.bus.slot.0", "acc.0.wire.slot.0"),
                                   replaced(text, "itself.0.acc.1.bus", "itself.1.acc.1.bus")})
    EXPECT_NE(refusal_of(other).find("names the instance 'itself', which is not there"), std::string::npos);
}

// A device without connections is counted.
TEST(OlderInfraGraph, DevicesMayHaveNoConnections) {
  const ComponentGraph graph = parse_infragraph(
      "devices: [{name: box, components: [{name: acc, type: xpu, count: 3}, {name: cpu, type: cpu, description:}]}]",
      "graph.yaml");
  EXPECT_EQ(graph.components.size(), 4U);
  EXPECT_TRUE(network_of(graph).links.empty());
}

// What cannot be meant is refused, with the connection.
TEST(OlderInfraGraph, FaultsAreTold) {
  const std::string good = pod(box + tor);
  const std::vector<std::pair<std::string, std::string>> faults = {
      {replaced(good, "acc.1.wide.hub.0", "acc.1.wide.hub"),
       "connections[1] of device 'box' is 'acc.1.wide.hub', of 4 parts"},
      {replaced(good, "acc.1.wide.hub.0", "acc.x.wide.hub.0"), "where 'x' is no index"},
      {replaced(good, "acc.1.wide.hub.0", "acc.1.wide.bub.0"),
       "connections[1] of device 'box' names the component 'bub', which device 'box' does not have"},
      {replaced(good, "acc.1.wide.hub.0", "acc.1.wade.hub.0"), "names the link 'wade', which is not there"},
      {replaced(good, "acc.1.wide.hub.0", "acc.1.wide.acc.1"), "joins a component with itself"},
      {replaced(good, "acc.1.wide.hub.0", "{a: 1}"), "connections[1] of device 'box' is no text"},
      {replaced(good, "top.0.port.5", "top.0.port.6"),
       "connections[3] of the infrastructure names 'port[6]', of which there are 6"},
      {replaced(good, "host.0.out-port.0.rail", "host.0.rail"), "connections[0] of the infrastructure is"},
      {replaced(good, "host.0.out-port.0.rail", "best.0.out-port.0.rail"), "names the instance 'best'"},
      {replaced(good, "{name: acc, type: xpu}", "{name: a.c, type: xpu}"), "has the name 'a.c'"},
      {replaced(good, "    connections: [chip", "    edges: [chip"), "has edges, but connections or types"},
      {"devices:" + box + tor, "has no instances"}};
  for (const auto& [text, expected] : faults)
    EXPECT_NE(refusal_of(text).find(expected), std::string::npos) << refusal_of(text);
}

}  // namespace
}  // namespace orrery::graphfile
