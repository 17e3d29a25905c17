#include "nccl_topology.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/graphfile/nccl_server.hpp"
#include "temporary_folder.hpp"

namespace orrery::graphfile {
namespace {

/// Links of a GPU: the target and the number of links.
using Links = std::vector<std::pair<std::string, int>>;

std::string bus(std::size_t gpu) { return fmt::format("0000:{:02x}:00.0", gpu + 1); }

/// Returns a node of GPUs with PCIe 4.0 x16, links and one NIC of so many Mbit/s.
std::string node(const std::vector<Links>& gpus, std::string_view kind = "sm=\"80\"", int mbps = 200000,
                 std::string_view target_class = "0x030200") {
  std::string xml = "<system version=\"1\"><cpu numaid=\"0\">\n";
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    xml += fmt::format(
        "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"><gpu dev=\"{}\" {} rank=\"{}\">",
        bus(g), g, kind, g);
    for (const auto& [target, count] : gpus[g])
      xml += fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>", target, count, target_class);
    xml += "</gpu></pci>\n";
  }
  return xml + fmt::format("<nic><net name=\"mlx5_0\" dev=\"0\" speed=\"{}\"/></nic></cpu></system>\n", mbps);
}

class NcclTopology : public testing::Test {
 protected:
  std::string yaml(std::string_view xml, std::optional<std::uint32_t> num_nodes = {}) const {
    std::ofstream(path_) << xml;
    return nccl_topology_to_yaml(path_, num_nodes).yaml;
  }
  std::string refusal(std::string_view xml) const {
    try {
      return "accepted: " + yaml(xml);
    } catch (const Error& error) {
      return error.what();
    }
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "topo.xml";
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(NcclTopology, LinksToSwitchesAreASwitch) {
  // Four A100 with 12 links each to one NVSwitch: a Switch of 4 with 12 x 25 GB/s, and 2 assumed nodes with a NIC of
  // 25 GB/s that four GPUs share.
  const std::string text = yaml(node(std::vector<Links>(4, {{"0000:c0:00.0", 12}}), "sm=\"80\"", 200000, "0x068000"));
  EXPECT_HAS(text, "{shape: Switch, size: 4, bandwidth: 300 GB/s");
  EXPECT_HAS(text, "{shape: Switch, size: 2, bandwidth: 6.25 GB/s");
  EXPECT_HAS(text, "the number of nodes and the latency are assumed");
}

TEST_F(NcclTopology, LinksToAllOthersAreFullyConnected) {
  // Three GPUs of gcn gfx942 with one link to each other one: FullyConnected with the 64 GB/s of a link.
  const std::string text = yaml(
      node({{{bus(1), 1}, {bus(2), 1}}, {{bus(0), 1}, {bus(2), 1}}, {{bus(0), 1}, {bus(1), 1}}}, "gcn=\"gfx942\""));
  EXPECT_HAS(text, "shape: FullyConnected, size: 3");
  EXPECT_HAS(text, "each GPU has links to each other one");
}

TEST_F(NcclTopology, LinksToTwoOthersAreARing) {
  // Four GPUs with two links to each neighbour in a ring: a Ring of 4.
  std::vector<Links> gpus;
  for (std::size_t g = 0; g < 4; ++g) gpus.push_back({{bus((g + 1) % 4), 2}, {bus((g + 3) % 4), 2}});
  EXPECT_HAS(yaml(node(gpus)), "shape: Ring, size: 4");
}

TEST_F(NcclTopology, IslandsAreJoinedByPcie) {
  // Two pairs of GPUs with links within each pair: a dimension of 2 over links and one of 2 over PCIe 4.0 x16, whose
  // encoding leaves 31.5 GB/s.
  const std::string text = yaml(node({{{bus(1), 12}}, {{bus(0), 12}}, {{bus(3), 12}}, {{bus(2), 12}}}));
  EXPECT_HAS(text, "size: 2, bandwidth: 300 GB/s");
  EXPECT_HAS(text, "size: 2, bandwidth: 31.5077 GB/s");
  EXPECT_HAS(text, "between 2 islands of GPUs with links");
}

TEST_F(NcclTopology, WithoutLinksThereIsPcie) {
  // Two GPUs without links: a Switch over PCIe, and a comment that says what is assumed.
  const std::string text = yaml(node({{}, {}}));
  EXPECT_HAS(text, "{shape: Switch, size: 2, bandwidth: 31.5077 GB/s");
  EXPECT_HAS(text, "PCIe");
}

TEST_F(NcclTopology, AGpuWithoutLinksLeavesPcie) {
  // Two GPUs, of which one has links to an NVSwitch, or to a place that the file does not tell: a switch of links would
  // have no bandwidth, so there is a Switch over PCIe.
  for (const std::string_view target_class : {"0x068000", "0x030200"}) {
    const std::string text = yaml(node({{{"0000:c0:00.0", 12}}, {}}, "sm=\"80\"", 200000, target_class));
    EXPECT_HAS(text, "{shape: Switch, size: 2, bandwidth: 31.5077 GB/s");
    EXPECT_HAS(text, "some GPUs have no links");
  }
}

TEST_F(NcclTopology, ASpeedNextToNothingIsNone) {
  // Two GPUs whose PCIe has 1e-9 GT/s, and a NIC of 1e-9 Mbit/s: the rates that are assumed where there are none.
  std::string xml = node({{}, {}});
  for (const std::string_view speed : {"16 GT/s", "16 GT/s", "200000"})
    xml.replace(xml.find(speed), speed.size(), "1e-9");
  EXPECT_HAS(yaml(xml), "size: 2, bandwidth: 31.5 GB/s");
  EXPECT_HAS(yaml(xml), "size: 2, bandwidth: 6.25 GB/s");
}

TEST_F(NcclTopology, NumberOfNodesIsTaken) {
  // Two GPUs and 16 nodes: the last dimension has size 16 and no comment assumes it. One node has no such dimension.
  const std::string many = yaml(node({{}, {}}), 16);
  EXPECT_HAS(many, "{shape: Switch, size: 16, bandwidth: 12.5 GB/s");
  EXPECT_EQ(many.find("number of nodes"), std::string::npos) << many;
  EXPECT_EQ(yaml(node({{}, {}}), 1).find("NIC with"), std::string::npos);
}

TEST_F(NcclTopology, BadFilesAreRefusedWithTheLine) {
  // Each file has one fault: the message names the file, the line where there is one, and what is wrong.
  const std::string count = node({{{bus(1), 0}}, {}});
  EXPECT_HAS(refusal(count), "xml:2: count of the nvlink is 0; expected 1 or more");
  EXPECT_HAS(refusal("<system version=\"1\"/>"), "the topology has 0 GPUs");
  EXPECT_HAS(refusal("<graphs/>"), "this is a graph of NCCL");
  EXPECT_HAS(refusal("<topology/>"), "this is XML of hwloc");
  EXPECT_HAS(refusal("<system><gpu"), "this is no XML");
  EXPECT_HAS(refusal(node({{}, {}}, "sm=\"x\"")), "sm of the gpu is 'x'");
}

/// Returns a node of two PCI devices of a class and a NIC of a class, without elements gpu, nic and net.
std::string bare_node(std::string_view gpu_class, std::string_view nic_class) {
  const auto device = [](int bus, std::string_view type) {
    return fmt::format("<pci busid=\"0000:0{}:00.0\" class=\"{}\" link_speed=\"16 GT/s\" link_width=\"16\"/>", bus,
                       type);
  };
  return fmt::format("<system version=\"1\"><cpu numaid=\"0\">{}{}{}</cpu></system>", device(1, gpu_class),
                     device(2, gpu_class), device(3, nic_class));
}

TEST_F(NcclTopology, BothUsersTellDevicesByTheirClasses) {
  // GPUs are display controllers for computing and processing accelerators (MI300X), NICs any network controller. Both
  // the system and the server of a graph have two GPUs and one NIC.
  for (const char* gpu_class : {"0x030200", "0x038000", "0x120000"})
    for (const char* nic_class : {"0x020000", "0x020700", "0x028000"}) {
      const std::string text = yaml(bare_node(gpu_class, nic_class));
      EXPECT_HAS(text, "# GPUs: 0, and 2 that are PCI devices only");
      EXPECT_HAS(text, "1 NIC without speeds, 200 Gbit/s in all");
      const topology::ServerPlan plan = read_nccl_server(path_, true, {});
      EXPECT_EQ(plan.num_npus, 2U) << gpu_class;
      EXPECT_EQ(plan.ports.size(), 1U) << nic_class;
    }
}

TEST_F(NcclTopology, TheDisplayOfTheBoardIsNoGpu) {
  // A VGA controller beside the GPUs is the display of the board: neither the system nor the graph counts it.
  EXPECT_HAS(refusal(bare_node("0x030000", "0x020000")), "the topology has 0 GPUs");
  EXPECT_THROW(read_nccl_server(path_, true, {}), Error);
}

TEST_F(NcclTopology, TheRootDecides) {
  // The first element of a file decides whether it is taken, whatever comments and declarations stand before it.
  EXPECT_TRUE(is_nccl_topology("<?xml version=\"1.0\"?>\n<!-- <algo> -->\n<system version=\"1\">"));
  EXPECT_TRUE(is_nccl_topology("<graphs version=\"1\">"));
  EXPECT_FALSE(is_nccl_topology("<algo name=\"x\">"));
  EXPECT_FALSE(is_nccl_topology("system"));
}

}  // namespace
}  // namespace orrery::graphfile
