// Descriptions of InfraGraph: what they expand to, the network that they are, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/graphfile/infragraph.hpp"
#include "orrery/topology/network_graph.hpp"
#include "replaced.hpp"

namespace orrery::graphfile {

using namespace topology;
namespace {

/// A server with four XPUs, two NICs at each of two switches, and a switch that all XPUs are at.
const std::string server = R"(
  - name: server
    components:
      - {name: xpu, choice: xpu, count: 4}
      - {name: nic, choice: nic, count: 4}
      - {name: nvsw, choice: switch}
      - {name: pciesw, choice: switch, count: 2}
    links:
      - {name: nvlink, physical: {bandwidth: {gigabytes_per_second: 100}, latency: {choice: us, us: 0.25}}}
      - {name: pcie}
    edges:
      - {ep1: {component: xpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
      - {ep1: {component: "pciesw[0]"}, ep2: {component: "xpu[0:2]"}, scheme: many2many, link: pcie}
      - {ep1: {component: "pciesw[1]"}, ep2: {component: "xpu[2:4]"}, scheme: many2many, link: pcie}
      - {ep1: {component: "nic[0:4:2]"}, ep2: {component: pciesw}, scheme: one2one, link: pcie}
      - {ep1: {component: "nic[1:4:2]"}, ep2: {component: pciesw}, scheme: one2one, link: pcie}
)";
const std::string leaf = R"(
  - name: leaf
    components: [{name: asic, choice: custom, custom: {type: asic}}, {name: port, choice: port, count: 8}]
    links: [{name: inside}]
    edges: [{ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: inside}]
)";
std::string fabric(const std::string& edge) {
  return "name: fabric\ndevices:" + server + leaf +
         "links: [{name: rail, physical: {bandwidth: {gigabits_per_second: 400}}}]\n"
         "instances: [{name: host, device: server, count: 2}, {name: leaf, device: leaf}]\n"
         "edges: [" +
         edge + "]\n";
}
const std::string rails =
    "{ep1: {instance: host, component: nic}, ep2: {instance: leaf, component: port}, scheme: one2one, link: rail}";

std::string refusal_of_text(const std::string& text) {
  try {
    (void)network_of(parse_infragraph(text, "graph.yaml"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_EQ(error.place().file, "graph.yaml");
    return error.what();
  }
  return "accepted";
}

// Two servers with 11 components and 4 + 4 + 4 links each, a switch of 9 and 8, and 8 links between them.
TEST(InfraGraph, CountsAreExpanded) {
  const ComponentGraph graph = parse_infragraph(fabric(rails), "graph.yaml");
  EXPECT_EQ(graph.machines.size(), 3U);
  EXPECT_EQ(graph.components.size(), 2U * 11 + 9);
  EXPECT_EQ(graph.links.size(), 2U * 12 + 8 + 8);
  EXPECT_EQ(graph.components[11].name, "host.1.xpu.0");
  EXPECT_EQ(graph.components[11].machine, 1U);
  EXPECT_TRUE(graph.notes.empty());
}

// The NVSwitch counts, because all XPUs of its host are at it; the PCIe switches do not. The k-th NIC is the k-th XPU,
// and the switch between the hosts is one node.
TEST(InfraGraph, MachinesBecomeANetwork) {
  const NetworkGraph network = network_of(parse_infragraph(fabric(rails), "graph.yaml"));
  EXPECT_EQ(network.num_npus, 8U);
  EXPECT_EQ(network.num_switches(), 3U);
  EXPECT_EQ(network.links.size(), 8U + 8);
  const NetworkGraph::Link& last = network.links.back();
  EXPECT_EQ(network.nodes[last.a].name, "host.1.xpu.3");
  EXPECT_EQ(network.nodes[last.b].name, "leaf.0");
  const std::vector<GraphDimension> expected = {{"Switch", 4}, {"Switch", 2}};
  EXPECT_EQ(find_dimensions(network), expected);
}

// Two boxes with a NIC each are joined, and no host reaches them.
TEST(InfraGraph, MachinesThatNoHostReachesAreLeftOut) {
  const std::string box = R"(
  - {name: box, components: [{name: nic, choice: nic}]}
)";
  std::string text = replaced(fabric(rails), "links: [{name: rail,", box + "links: [{name: rail,");
  text = replaced(text, "instances: [", "instances: [{name: box, device: box, count: 2}, ");
  text = replaced(text, "scheme: one2one, link: rail}]",
                  "scheme: one2one, link: rail}, {ep1: {instance: \"box[0]\", component: nic}, ep2: {instance: "
                  "\"box[1]\", component: nic}, scheme: one2one, link: rail}]");
  const NetworkGraph network = network_of(parse_infragraph(text, "graph.yaml")),
                     alone = network_of(parse_infragraph(fabric(rails), "graph.yaml"));
  EXPECT_EQ(network.nodes.size(), alone.nodes.size());
  EXPECT_EQ(network.links.size(), alone.links.size());
}

// Ranks number the XPUs; a rank that is missing is refused.
TEST(InfraGraph, RanksNumberTheNpus) {
  const auto with_ranks = [](int last) {
    std::string text =
        "infrastructure:\n  name: one\n  instances: [{name: host, device: pair}]\n  devices: [{name: pair, components: "
        "[{name: "
        "xpu, choice: xpu, count: 2}], links: [{name: l}], edges: [{ep1: {component: 'xpu[0]'}, ep2: "
        "{component: 'xpu[1]'}, scheme: one2one, link: l}]}]\nannotations:\n  nodes:\n";
    for (int i = 0; i < 2; ++i)
      text += "    - {name: host.0.xpu." + std::to_string(i) + ", attributes: [{attribute: rank, value: '" +
              std::to_string(i == 0 ? 1 : last) + "'}]}\n";
    return text;
  };
  const NetworkGraph network = network_of(parse_infragraph(with_ranks(0), "graph.yaml"));
  EXPECT_EQ(network.nodes[0].name, "host.0.xpu.1");
  EXPECT_EQ(find_dimensions(network), (std::vector<GraphDimension>{{"Ring", 2}}));
  EXPECT_NE(refusal_of_text(with_ranks(2)).find("the ranks of XPUs lack 0"), std::string::npos);
}

// A pair counts once in one statement, and again in another one. A component is not joined with itself.
TEST(InfraGraph, StatementsAddParallelLinks) {
  const std::string text =
      "{\"name\": \"box\", \"components\": [{\"name\": \"xpu\", \"choice\": \"xpu\", \"count\": 4}], \"links\": "
      "[{\"name\": \"l\"}], \"edges\": [" +
      std::string(
          "{\"ep1\": {\"component\": \"xpu\"}, \"ep2\": {\"component\": \"xpu\"}, \"scheme\": \"many2many\", "
          "\"link\": \"l\"}, {\"ep1\": {\"component\": \"xpu\"}, \"ep2\": {\"component\": \"xpu\"}, "
          "\"scheme\": \"ring\", \"link\": \"l\"}]}");
  const ComponentGraph graph = parse_infragraph(text, "graph.json");
  EXPECT_EQ(graph.links.size(), 6U + 4);
  EXPECT_EQ(find_dimensions(network_of(graph)), (std::vector<GraphDimension>{{"FullyConnected", 4}}));
}

// Devices in devices are expanded in place, and paths lead to their components.
TEST(InfraGraph, DevicesAreInDevices) {
  const std::string text = R"(
devices:
  - name: card
    components: [{name: bus, choice: custom, custom: {type: bus}}, {name: port, choice: port, count: 2}]
    links: [{name: inside}]
    edges: [{ep1: {component: bus}, ep2: {component: port}, scheme: many2many, link: inside}]
  - name: box
    components: [{name: xpu, choice: xpu, count: 2}, {name: card, choice: device, count: 2}]
    links: [{name: pcie}]
    edges: [{ep1: {component: xpu}, ep2: {device: "card[0:2]", component: "bus[0]"}, scheme: one2one, link: pcie}]
instances: [{name: host, device: box}]
)";
  const ComponentGraph graph = parse_infragraph(text, "graph.yaml");
  EXPECT_EQ(graph.components.size(), 2U + 2 * 3);
  EXPECT_EQ(graph.links.size(), 2U * 2 + 2);
  EXPECT_TRUE(std::ranges::any_of(graph.components,
                                  [](const auto& component) { return component.name == "host.0.card.1.port.0"; }));
}

// Rates and delays are those of the file, else the defaults; those that are still missing are listed.
TEST(InfraGraph, LinksNeedRatesAndDelays) {
  const ComponentGraph graph = parse_infragraph(fabric(rails), "graph.yaml");
  NetworkGraph network = network_of(graph);
  try {
    complete_links(network, {}, "graph.yaml");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("links without latency: 'rail'"), std::string::npos) << error.what();
  }
  network = network_of(graph);
  LinkDefaults defaults{.all = {{}, 500}, .of_link = {}};
  defaults.of_link["nvlink"] = {200, {}};
  complete_links(network, defaults, "graph.yaml");
  EXPECT_DOUBLE_EQ(*network.kinds[network.links.back().kind].bytes_per_ns, 50);
  EXPECT_DOUBLE_EQ(*network.kinds[network.links.back().kind].latency_ns, 500);
  EXPECT_DOUBLE_EQ(*network.kinds[network.links.front().kind].bytes_per_ns, 200);
  EXPECT_DOUBLE_EQ(*network.kinds[network.links.front().kind].latency_ns, 250);
  defaults.of_link["nvlnk"] = {200, {}};
  EXPECT_THROW(complete_links(network, defaults, "graph.yaml"), Error);
}

// Keys that nobody knows are told once; what cannot be meant is refused, with its place.
TEST(InfraGraph, FaultsAreTold) {
  const std::string good = fabric(rails);
  EXPECT_EQ(parse_infragraph(replaced(good, "count: 4}", "count: 4, vendor: x}"), "graph.yaml").notes.size(), 1U);
  const std::vector<std::pair<std::string, std::string>> faults = {
      {replaced(good, "xpu[2:4]", "xpu[2:5]"), "names 'xpu[2:5]', of which there are 4"},
      {replaced(good, "nic[1:4:2]", "nic[1:4]"), "joins 3 components and 2 one to one"},
      {replaced(good, "ep2: {component: nvsw}", "ep2: {component: nvlsw}"), "which device 'server' does not have"},
      {replaced(good, "instance: leaf", "instance: leafs"), "names the instance 'leafs', which is not there"},
      {replaced(good, "link: rail", "link: eth"), "names the link 'eth', which is not there"},
      {replaced(good, "gigabytes_per_second", "gigatransfers_per_second"), "lacks the width"},
      {replaced(good, "gigabytes_per_second: 100", "gigabytes_per_second: 1e-10"), "has a bandwidth of 1e-10 GB/s"},
      {replaced(good, "gigabytes_per_second: 100", "gigabytes_per_second: 1e300"), "has a bandwidth of 1e+300 GB/s"},
      {replaced(good, "us: 0.25", "us: 1e20"), "has a latency of 1e+20 us"},
      {replaced(good, "scheme: many2many", "scheme: mesh"), "edges[0] of device 'server' has scheme 'mesh'"},
      {replaced(good, "device: server", "device: servers"), "is of device 'servers', which is not there"},
      {replaced(good, "count: 4", "count: none"), "has count none"},
      {replaced(good, "edges:", "connections:"), "one schema of InfraGraph in a file"},
      {replaced(good, "nic, count: 4", "nic, count: 2"), "names 'nic[0:4:2]', of which there are 2"},
      {"{", "this is no JSON"},
      {"{\"count\": 8e2888}", "a number that no double can hold"},
      {"a: [", "this is no YAML"},
      {"name: x", "has no instances"}};
  for (const auto& [text, expected] : faults)
    EXPECT_NE(refusal_of_text(text).find(expected), std::string::npos) << refusal_of_text(text);
}

// Two hosts of two XPUs with one NIC each: both XPUs have a link to the switch with half of the rate, also of one that
// is given for links without a rate.
TEST(InfraGraph, XpusShareNics) {
  const std::string text = R"(
devices:
  - {name: box, components: [{name: xpu, choice: xpu, count: 2}, {name: nic, choice: nic}]}
  - {name: leaf, components: [{name: port, choice: port, count: 2}]}
links: [{name: rail, physical: {bandwidth: {gigabits_per_second: 400}}}]
instances: [{name: host, device: box, count: 2}, {name: leaf, device: leaf}]
edges: [{ep1: {instance: host, component: nic}, ep2: {instance: leaf, component: port}, scheme: one2one, link: rail}]
)";
  const std::string without_rate = replaced(text, ", physical: {bandwidth: {gigabits_per_second: 400}}", "");
  for (const std::string& each : {text, without_rate}) {
    NetworkGraph network = network_of(parse_infragraph(each, "graph.yaml"));
    LinkDefaults defaults;
    defaults.all = {50, 500};
    complete_links(network, defaults, "graph.yaml");
    EXPECT_EQ(network.num_npus, 4U);
    ASSERT_EQ(network.links.size(), 4U);
    for (std::uint32_t npu = 0; npu < 4; ++npu) {
      EXPECT_EQ(network.links[npu].a, npu);
      EXPECT_DOUBLE_EQ(network.kinds[network.links[npu].kind].bytes_per_ns.value_or(0), 25);
    }
  }
}

}  // namespace
}  // namespace orrery::graphfile
