// The server of a topology of NCCL or RCCL as nodes and links.
#include "orrery/topology/nccl_server.hpp"

#include <fmt/format.h>
#include <tinyxml2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::topology {
namespace {

using tinyxml2::XMLElement;

constexpr std::uint32_t no_place = ~0U;
constexpr int deepest_elements = 100;
constexpr double most_of_count = 1000, most_width = 64, most_number = 1 << 30, most_speed = 1e12;

std::string_view attribute(const XMLElement& at, const char* name) {
  const char* const text = at.Attribute(name);
  return text == nullptr ? std::string_view() : text;
}

/// Reads the elements of a topology. Nodes are numbered as they come, and renumbered in the end with the GPUs first.
class ServerReader {
 public:
  ServerReader(std::string file, bool joins_gpus) : file_(std::move(file)), joins_gpus_(joins_gpus) {}

  ServerPlan read(const XMLElement& root);

 private:
  enum class NodeKind : std::uint8_t { gpu, nic, other };
  struct Node {
    NodeKind kind = NodeKind::other;
    std::string name;
    double order = 0;     ///< rank of a GPU, number of a NIC
    bool is_used = true;  ///< there are GPUs or NICs in it or below it
  };
  struct Link {
    std::uint32_t a = 0, b = 0;
    ComponentGraph::LinkKind kind;
  };
  struct Net {
    std::uint32_t node = 0;
    double mbps = 0;
    double order = 0;
  };
  struct GpuLink {
    std::uint32_t gpu = 0;
    std::string target, target_class, name;
    double count = 0;
    std::optional<double> rate;  ///< rate of one link
  };

  [[noreturn]] void fail(const XMLElement& at, const std::string& found, const std::string& expected) const {
    throw Error(ErrorCode::bad_input, {.file = file_, .line = static_cast<std::uint64_t>(at.GetLineNum())}, found,
                expected);
  }
  double number(const XMLElement& at, const char* name, double most, double otherwise) const;
  std::uint32_t add(NodeKind kind, std::string name, double order = 0);
  bool read_children(const XMLElement& at, std::uint32_t node, int depth);
  bool read_pci(const XMLElement& pci, std::uint32_t parent, int depth);
  bool read_nic(const XMLElement& nic, std::uint32_t parent, const std::string& name);
  void read_gpu(const XMLElement& gpu, std::uint32_t node);
  void join_gpu(const XMLElement& gpu, std::uint32_t node, std::uint32_t parent, const ComponentGraph::LinkKind& pcie);
  void join_gpus();
  ServerPlan plan() const;

  std::string file_;
  bool joins_gpus_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Net> nets_;
  std::vector<GpuLink> gpu_links_;
  std::vector<std::uint32_t> cpus_;
  std::uint32_t cpu_ = no_place;  ///< whose devices are read
  std::map<std::string, std::uint32_t, std::less<>> gpu_of_bus_;
  bool lists_gpus_ = false;
};

double ServerReader::number(const XMLElement& at, const char* name, double most, double otherwise) const {
  const std::string_view text = attribute(at, name);
  if (text.empty()) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most))
    fail(at, fmt::format("{} of the {} is '{}'", name, at.Name(), cited(text)), fmt::format("a number, 0 to {}", most));
  return value;
}

std::uint32_t ServerReader::add(NodeKind kind, std::string name, double order) {
  nodes_.push_back({kind, std::move(name), order});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

/// Reads what is below a CPU or a PCIe switch. Says whether there is a GPU or a NIC.
bool ServerReader::read_children(const XMLElement& at, std::uint32_t node, int depth) {
  if (depth > deepest_elements) fail(at, "elements deeper than 100", "a tree of cpu, pci, gpu, nic and net");
  bool is_used = false;
  for (const XMLElement* child = at.FirstChildElement(); child != nullptr; child = child->NextSiblingElement()) {
    const std::string_view name = child->Name();
    if (name == "pci") is_used |= read_pci(*child, node, depth + 1);
    if (name == "nic") is_used |= read_nic(*child, node, "");
  }
  return is_used;
}

/// Reads a PCI device and what is below it, and joins it to its parent with the rate of its own link.
bool ServerReader::read_pci(const XMLElement& pci, std::uint32_t parent, int depth) {
  const std::string bus(attribute(pci, "busid"));
  const std::string_view kind = attribute(pci, "class");
  const auto width = static_cast<std::uint32_t>(number(pci, "link_width", most_width, 0));
  const ComponentGraph::LinkKind pcie = {"pcie", pcie_bytes_per_ns(attribute(pci, "link_speed"), width), {}};
  const auto join = [&](std::uint32_t node) { links_.push_back({node, parent, pcie}); };
  bool is_device = false;
  for (const XMLElement* gpu = pci.FirstChildElement("gpu"); gpu != nullptr; gpu = gpu->NextSiblingElement("gpu")) {
    const std::uint32_t node =
        add(NodeKind::gpu, "gpu", number(*gpu, "rank", most_number, number(*gpu, "dev", most_number, 0)));
    gpu_of_bus_.emplace(bus, node);
    read_gpu(*gpu, node);
    join_gpu(*gpu, node, parent, pcie);
    is_device = lists_gpus_ = true;
  }
  const bool has_nic = pci.FirstChildElement("nic") != nullptr;
  const bool is_bare = pci.FirstChildElement() == nullptr;
  if (is_bare && (kind.starts_with("0x0302") || kind.starts_with("0x0380") || kind.starts_with("0x1200"))) {
    const std::uint32_t node = add(NodeKind::gpu, "gpu", static_cast<double>(nodes_.size()));
    gpu_of_bus_.emplace(bus, node);
    join(node);
    return true;
  }
  if (is_bare && kind.starts_with("0x02")) {
    const std::uint32_t node = add(NodeKind::nic, fmt::format("nic.{}", bus));
    nets_.push_back({node, 0, static_cast<double>(nets_.size())});
    join(node);
    return true;
  }
  if (is_device && !has_nic) return true;
  const std::uint32_t node =
      add(has_nic ? NodeKind::nic : NodeKind::other, fmt::format("{}.{}", has_nic ? "nic" : "pcie", bus));
  join(node);
  const bool is_used = read_children(pci, node, depth);
  nodes_[node].is_used = is_used;
  return is_used || is_device;
}

/// Reads a NIC, which is the PCI device `node` already, or is at a CPU.
bool ServerReader::read_nic(const XMLElement& nic, std::uint32_t node, const std::string& name) {
  std::uint32_t own = node;
  if (nodes_[node].kind != NodeKind::nic) {
    own = add(NodeKind::nic, fmt::format("nic{}", name));
    links_.push_back({own, node, {"pcie", {}, {}}});
  }
  bool has_net = false;
  for (const XMLElement* net = nic.FirstChildElement("net"); net != nullptr; net = net->NextSiblingElement("net")) {
    double mbps = number(*net, "speed", most_speed, 0);
    if (mbps > most_nic_mbps) mbps /= 1000;
    nets_.push_back(
        {own, mbps < least_nic_mbps ? 0 : mbps, number(*net, "dev", most_number, static_cast<double>(nets_.size()))});
    has_net = true;
  }
  nodes_[own].is_used = has_net;
  return has_net;
}

void ServerReader::read_gpu(const XMLElement& gpu, std::uint32_t node) {
  const std::string_view gcn = attribute(gpu, "gcn");
  const auto known = gcn.empty() ? nvlink_rate(static_cast<int>(number(gpu, "sm", most_of_count, 0))) : xgmi_rate(gcn);
  const auto rate = known ? std::optional(known->bytes_per_ns) : std::nullopt;
  for (const XMLElement* link = gpu.FirstChildElement(); link != nullptr; link = link->NextSiblingElement()) {
    const std::string_view name = link->Name();
    if (name != "nvlink" && name != "xgmi") continue;
    const double count = number(*link, "count", most_of_count, 1);
    if (count < 1) fail(*link, fmt::format("count of the {} is {}", name, count), "1 or more");
    gpu_links_.push_back({node, std::string(attribute(*link, "target")), std::string(attribute(*link, "tclass")),
                          std::string(name), std::floor(count), rate});
  }
}

/// Joins a GPU to the device above it, and to its CPU if the two have a chip-to-chip link (C2C), as in GH200 and GB200.
/// This is the only link to the CPU if it is faster than PCIe, which then may have a lane or two.
void ServerReader::join_gpu(const XMLElement& gpu, std::uint32_t node, std::uint32_t parent,
                            const ComponentGraph::LinkKind& pcie) {
  double rate = 0;  // bw is in MB/s
  for (const XMLElement* c2c = gpu.FirstChildElement("c2c"); c2c != nullptr; c2c = c2c->NextSiblingElement("c2c"))
    rate += number(*c2c, "bw", most_speed, 0) / 1000 * std::floor(number(*c2c, "count", most_of_count, 1));
  const bool is_below_cpu = parent == cpu_;
  if (rate > 0 && (!is_below_cpu || rate >= pcie.bytes_per_ns.value_or(0)))
    links_.push_back({node, cpu_, {"c2c", rate, {}}});
  if (rate == 0 || !is_below_cpu || rate < pcie.bytes_per_ns.value_or(0)) links_.push_back({node, parent, pcie});
}

/// Adds NVSwitches and the links of GPUs. Both GPUs of a pair list their links, which count once.
void ServerReader::join_gpus() {
  std::map<std::string, std::uint32_t, std::less<>> nvswitches;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  // Some files give each GPU as its own target: then all GPUs are assumed to reach each other.
  const bool leads_nowhere = std::ranges::none_of(gpu_links_, [&](const GpuLink& link) {
    const auto found = gpu_of_bus_.find(link.target);
    return link.target_class == nvswitch_class || (found != gpu_of_bus_.end() && found->second != link.gpu);
  });
  for (const GpuLink& link : gpu_links_) {
    std::uint32_t other = no_place;
    if (link.target_class == nvswitch_class || leads_nowhere) {
      const std::string name = leads_nowhere ? "nvswitch" : fmt::format("nvswitch.{}", link.target);
      const auto found = nvswitches.find(name);
      other = found == nvswitches.end() ? nvswitches.emplace(name, add(NodeKind::other, name)).first->second
                                        : found->second;
    } else if (const auto found = gpu_of_bus_.find(link.target);
               found != gpu_of_bus_.end() && found->second != link.gpu) {
      other = found->second;
    }
    if (other == no_place) continue;  // a GPU that this file does not have
    const auto [pair, is_new] = known.emplace(std::minmax(link.gpu, other), links_.size());
    std::optional<double> rate = link.rate;
    if (rate) rate = *rate * link.count;
    if (is_new)
      links_.push_back({link.gpu, other, {link.name, rate, {}}});
    else if (rate > links_[pair->second].kind.bytes_per_ns)
      links_[pair->second].kind.bytes_per_ns = rate;
  }
}

/// Numbers GPUs, other devices and NICs, without those that lead nowhere and NICs that are slow.
ServerPlan ServerReader::plan() const {
  ServerPlan plan;
  double fastest = 0;
  for (const Net& net : nets_) fastest = std::max(fastest, net.mbps);
  const auto counts = [&](const Net& net) {
    return net.mbps == 0 ? fastest == 0 : net.mbps >= slow_nic_share * fastest;
  };
  std::vector<std::uint32_t> gpus;
  std::vector<std::uint32_t> number_of(nodes_.size(), no_place);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node)
    if (nodes_[node].kind == NodeKind::gpu) gpus.push_back(node);
  std::ranges::stable_sort(gpus, {}, [&](std::uint32_t node) { return nodes_[node].order; });
  plan.num_npus = static_cast<std::uint32_t>(gpus.size());
  for (std::uint32_t g = 0; g < gpus.size(); ++g) number_of[gpus[g]] = g;
  std::uint32_t next = plan.num_npus;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const bool has_net = nodes_[node].kind != NodeKind::nic ||
                         std::ranges::any_of(nets_, [&](const Net& net) { return net.node == node && counts(net); });
    if (nodes_[node].kind == NodeKind::gpu || !nodes_[node].is_used || !has_net) continue;
    number_of[node] = next++;
    plan.devices.push_back(cited(nodes_[node].name));
  }
  for (const Link& link : links_) {
    if (number_of[link.a] == no_place || number_of[link.b] == no_place) continue;
    const auto same = std::ranges::find_if(plan.kinds, [&](const auto& kind) {
      return kind.name == link.kind.name && kind.bytes_per_ns == link.kind.bytes_per_ns;
    });
    const auto kind = static_cast<std::uint32_t>(same - plan.kinds.begin());
    if (same == plan.kinds.end()) plan.kinds.push_back(link.kind);
    plan.links.push_back({number_of[link.a], number_of[link.b], kind});
  }
  std::vector<Net> nets;
  std::ranges::copy_if(nets_, std::back_inserter(nets), counts);
  std::ranges::stable_sort(nets, {}, &Net::order);
  for (const Net& net : nets)
    plan.ports.push_back({number_of[net.node], net.mbps > 0 ? std::optional(net.mbps / 8000) : std::nullopt});
  return plan;
}

ServerPlan ServerReader::read(const XMLElement& root) {
  for (const XMLElement* cpu = root.FirstChildElement("cpu"); cpu != nullptr; cpu = cpu->NextSiblingElement("cpu")) {
    const std::uint32_t node = cpu_ = add(NodeKind::other, fmt::format("cpu.{}", cpus_.size()));
    nodes_[node].is_used = read_children(*cpu, node, 0);
    if (nodes_[node].is_used) cpus_.push_back(node);
  }
  for (std::size_t a = 0; a < cpus_.size(); ++a)
    for (std::size_t b = a + 1; b < cpus_.size(); ++b) links_.push_back({cpus_[a], cpus_[b], {"cpu", {}, {}}});
  if (gpu_of_bus_.empty()) fail(root, "the topology has no GPU", "a node with GPUs");
  if (!lists_gpus_ && !joins_gpus_)
    fail(root, "the file does not list the links of GPUs, which NCCL finds when it starts",
         "a file that NCCL_TOPO_DUMP_FILE named, or `inside` beside `topology`");
  join_gpus();
  if (nets_.empty()) fail(root, "the topology has no NIC", "a node with NICs, which lead to the others");
  return plan();
}

}  // namespace

ServerPlan read_nccl_server(const std::filesystem::path& file, bool joins_gpus, const Place& named_by) {
  const std::string text = read_text(file, named_by);
  tinyxml2::XMLDocument document;
  if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS)
    throw Error(ErrorCode::bad_input,
                {.file = file.string(), .line = static_cast<std::uint64_t>(std::max(document.ErrorLineNum(), 1))},
                fmt::format("this is no XML ({})", document.ErrorName()), "a topology of NCCL or RCCL");
  const XMLElement* const root = document.RootElement();
  if (root == nullptr || std::string_view(root->Name()) != "system")
    throw Error(ErrorCode::bad_input, {.file = file.string()},
                fmt::format("the root of the XML is '{}'", root == nullptr ? "" : cited(root->Name())),
                "a topology of NCCL or RCCL, <system version=...>");
  return ServerReader(file.string(), joins_gpus).read(*root);
}

}  // namespace orrery::topology
