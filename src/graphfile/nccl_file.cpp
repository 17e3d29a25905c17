#include "nccl_file.hpp"

#include <fmt/format.h>
#include <tinyxml2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using tinyxml2::XMLElement;

constexpr int deepest_elements = 100;
constexpr double most_capability = 10'000, most_links = 1000, most_lanes = 64, most_number = 1 << 30, most_speed = 1e12;

std::string_view attribute(const XMLElement& at, const char* name) {
  const char* const text = at.Attribute(name);
  return text == nullptr ? std::string_view() : text;
}

std::uint64_t line_of(const XMLElement& at) { return static_cast<std::uint64_t>(at.GetLineNum()); }

/// Returns what a PCI device is by its class. A processing accelerator (0x1200) is a GPU without displays, such as
/// MI300X; a network controller is Ethernet, InfiniBand or another one. Other display controllers (0x0300) are those of
/// the board.
NcclNode::Bare kind_of_class(std::string_view text) {
  if (text.starts_with("0x0302") || text.starts_with("0x0380") || text.starts_with("0x1200"))
    return NcclNode::Bare::gpu;
  return text.starts_with("0x02") ? NcclNode::Bare::nic : NcclNode::Bare::none;
}

/// Reads the elements of a topology.
class Reader {
 public:
  explicit Reader(const NcclFile& file) : file_(file) {}

  /// Reads what is in an element.
  void read_children(const XMLElement& at, NcclNode& node, int depth = 0) const {
    if (depth > deepest_elements)
      file_.fail(line_of(at), "elements deeper than 100", "a tree of cpu, pci, gpu, nic and net");
    for (const XMLElement* child = at.FirstChildElement(); child != nullptr; child = child->NextSiblingElement()) {
      const std::string_view name = child->Name();
      if (name == "gpu") node.gpus.push_back(gpu_of(*child));
      if (name == "net") node.nets.push_back(net_of(*child));
      if (name != "cpu" && name != "pci" && name != "nic") continue;
      NcclNode& below = node.children.emplace_back();
      below.line = line_of(*child);
      below.kind = name == "cpu" ? NcclNode::Kind::cpu : name == "pci" ? NcclNode::Kind::pci : NcclNode::Kind::nic;
      if (name == "pci") read_pci(*child, below);
      read_children(*child, below, depth + 1);
      if (name == "pci" && below.gpus.empty() && below.children.empty())
        below.bare = kind_of_class(attribute(*child, "class"));
    }
  }

 private:
  double number(const XMLElement& at, const char* name, double most, double otherwise) const {
    const std::string_view text = attribute(at, name);
    if (text.empty()) return otherwise;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most))
      file_.fail(line_of(at), fmt::format("{} of the {} is '{}'", name, at.Name(), cited(text)),
                 fmt::format("a number, 0 to {}", most));
    return value;
  }
  std::uint32_t whole(const XMLElement& at, const char* name, double most, double otherwise) const {
    const double value = number(at, name, most, otherwise);
    if (value != std::floor(value))
      file_.fail(line_of(at), fmt::format("{} of the {} is {}", name, at.Name(), value), "a whole number");
    return static_cast<std::uint32_t>(value);
  }

  void read_pci(const XMLElement& at, NcclNode& node) const {
    node.bus = attribute(at, "busid");
    node.pcie_rate = pcie_bytes_per_ns(attribute(at, "link_speed"), whole(at, "link_width", most_lanes, 0));
  }

  NcclGpu gpu_of(const XMLElement& at) const {
    NcclGpu gpu;
    const std::string_view gcn = attribute(at, "gcn");
    const int sm = static_cast<int>(whole(at, "sm", most_capability, 0));
    gpu.kind = gcn.empty() ? fmt::format("sm {}", sm) : fmt::format("gcn {}", cited(gcn));
    gpu.rate = gcn.empty() ? nvlink_rate(sm) : xgmi_rate(gcn);
    if (!attribute(at, "rank").empty()) gpu.rank = whole(at, "rank", most_number, 0);
    gpu.device = whole(at, "dev", most_number, 0);
    for (const XMLElement* link = at.FirstChildElement(); link != nullptr; link = link->NextSiblingElement()) {
      const std::string_view name = link->Name();
      if (name == "c2c")  // bw is in MB/s
        gpu.c2c_rate += number(*link, "bw", most_speed, 0) / 1000 * whole(*link, "count", most_links, 1);
      if (name != "nvlink" && name != "xgmi") continue;
      const std::uint32_t count = whole(*link, "count", most_links, 1);
      if (count == 0) file_.fail(line_of(*link), fmt::format("count of the {} is 0", name), "1 or more");
      gpu.links.push_back(
          {std::string(name), std::string(attribute(*link, "target")), std::string(attribute(*link, "tclass")), count});
    }
    return gpu;
  }

  NcclNet net_of(const XMLElement& at) const {
    const double mbps = number(at, "speed", most_speed, 0);
    NcclNet net{.name = cited(attribute(at, "name")), .mbps = mbps < least_nic_mbps ? 0 : mbps, .device = {}};
    if (!attribute(at, "dev").empty()) net.device = number(at, "dev", most_number, 0);
    return net;
  }

  const NcclFile& file_;
};

void refuse_other_root(const std::string& file, const XMLElement* root) {
  const std::string_view name = root == nullptr ? "" : root->Name();
  if (name == "system") return;
  const Place place{.file = file};
  if (name == "graphs")
    throw Error(ErrorCode::bad_input, place, "this is a graph of NCCL (NCCL_GRAPH_DUMP_FILE), not a topology",
                "the file that NCCL_TOPO_DUMP_FILE names in the same run");
  if (name == "topology")
    throw Error(ErrorCode::bad_input, place, "this is XML of hwloc, which has no NVLinks with their counts",
                "a topology of NCCL: run an NCCL program with NCCL_TOPO_DUMP_FILE=topo.xml on this node");
  throw Error(ErrorCode::bad_input, place, fmt::format("the root of the XML is '{}'", cited(name)),
              "a topology of NCCL or RCCL, <system version=...>");
}

}  // namespace

bool NcclNode::has_nic() const {
  return std::ranges::any_of(children, [](const NcclNode& node) { return node.kind == Kind::nic; });
}

void NcclFile::fail(std::uint64_t line, std::string_view found, std::string_view expected) const {
  throw Error(ErrorCode::bad_input, {.file = name, .line = line}, found, expected);
}

NcclFile read_nccl_file(const std::filesystem::path& file, std::string_view text) {
  NcclFile result{.name = file.string(), .system = {}};
  tinyxml2::XMLDocument document;
  if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS)
    result.fail(static_cast<std::uint64_t>(std::max(document.ErrorLineNum(), 1)),
                fmt::format("this is no XML ({})", document.ErrorName()), "a topology of NCCL or RCCL");
  const XMLElement* const root = document.RootElement();
  refuse_other_root(result.name, root);
  result.system.line = line_of(*root);
  Reader(result).read_children(*root, result.system);
  return result;
}

}  // namespace orrery::graphfile
