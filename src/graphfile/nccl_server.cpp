// The server of a topology of NCCL or RCCL as nodes and links.
#include "orrery/graphfile/nccl_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nccl_file.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using topology::ComponentGraph;
using topology::ServerPlan;

constexpr std::uint32_t no_place = ~0U;

/// Makes nodes and links of a topology. Nodes are numbered as they come, and renumbered in the end with the GPUs first.
class ServerMaker {
 public:
  ServerMaker(const NcclFile& file, bool joins_gpus) : file_(file), joins_gpus_(joins_gpus) {}

  ServerPlan make();

 private:
  enum class NodeKind : std::uint8_t { gpu, nic, other };
  struct Node {
    NodeKind kind = NodeKind::other;
    std::string name;
    double order = 0;     ///< rank of a GPU, number of a NIC
    bool is_used = true;  ///< whether there are GPUs or NICs in it or below it
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
    const NcclLink* link = nullptr;
    std::optional<double> rate;  ///< rate of one
  };

  std::uint32_t add(NodeKind kind, std::string name, double order = 0);
  bool add_children(const NcclNode& of, std::uint32_t node);
  bool add_pci(const NcclNode& pci, std::uint32_t parent);
  bool add_nic(const NcclNode& nic, std::uint32_t parent);
  void join_gpu(const NcclGpu& gpu, std::uint32_t node, std::uint32_t parent, const ComponentGraph::LinkKind& pcie);
  void join_gpus();
  ServerPlan plan() const;

  const NcclFile& file_;
  bool joins_gpus_;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Net> nets_;
  std::vector<GpuLink> gpu_links_;
  std::vector<std::uint32_t> cpus_;
  std::uint32_t cpu_ = no_place;  // CPU whose devices are read
  std::map<std::string, std::uint32_t, std::less<>> gpu_of_bus_;
  bool lists_gpus_ = false;
};

std::uint32_t ServerMaker::add(NodeKind kind, std::string name, double order) {
  nodes_.push_back({kind, std::move(name), order});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

/// Adds what is below a CPU or a PCIe switch. Says whether there is a GPU or a NIC.
bool ServerMaker::add_children(const NcclNode& of, std::uint32_t node) {
  bool is_used = false;
  for (const NcclNode& child : of.children) {
    if (child.kind == NcclNode::Kind::pci) is_used |= add_pci(child, node);
    if (child.kind == NcclNode::Kind::nic) is_used |= add_nic(child, node);
  }
  return is_used;
}

/// Adds a PCI device and what is below it, and joins it to its parent with the rate of its own link.
bool ServerMaker::add_pci(const NcclNode& pci, std::uint32_t parent) {
  const ComponentGraph::LinkKind pcie = {"pcie", pci.pcie_rate, {}};
  const auto join = [&](std::uint32_t node) { links_.push_back({node, parent, pcie}); };
  for (const NcclGpu& gpu : pci.gpus) {
    const std::uint32_t node = add(NodeKind::gpu, "gpu", gpu.rank.value_or(gpu.device));
    gpu_of_bus_.emplace(pci.bus, node);
    const auto rate = gpu.rate ? std::optional(gpu.rate->bytes_per_ns) : std::nullopt;
    for (const NcclLink& link : gpu.links) gpu_links_.push_back({node, &link, rate});
    join_gpu(gpu, node, parent, pcie);
    lists_gpus_ = true;
  }
  if (pci.bare == NcclNode::Bare::gpu) {
    const std::uint32_t node = add(NodeKind::gpu, "gpu", static_cast<double>(nodes_.size()));
    gpu_of_bus_.emplace(pci.bus, node);
    join(node);
    return true;
  }
  if (pci.bare == NcclNode::Bare::nic) {
    const std::uint32_t node = add(NodeKind::nic, fmt::format("nic.{}", pci.bus));
    nets_.push_back({node, 0, static_cast<double>(nets_.size())});
    join(node);
    return true;
  }
  const bool has_nic = pci.has_nic();
  if (!pci.gpus.empty() && !has_nic) return true;
  const std::uint32_t node =
      add(has_nic ? NodeKind::nic : NodeKind::other, fmt::format("{}.{}", has_nic ? "nic" : "pcie", pci.bus));
  join(node);
  const bool is_used = add_children(pci, node);
  nodes_[node].is_used = is_used;
  return is_used || !pci.gpus.empty();
}

/// Adds a NIC, which is the PCI device `node` already, or is at a CPU.
bool ServerMaker::add_nic(const NcclNode& nic, std::uint32_t node) {
  std::uint32_t own = node;
  if (nodes_[node].kind != NodeKind::nic) {
    own = add(NodeKind::nic, "nic");
    links_.push_back({own, node, {"pcie", {}, {}}});
  }
  for (const NcclNet& net : nic.nets)
    nets_.push_back({own, net.speed(), net.device.value_or(static_cast<double>(nets_.size()))});
  nodes_[own].is_used = !nic.nets.empty();
  return !nic.nets.empty();
}

/// Joins a GPU to the device above it, and to its CPU if the two have a chip-to-chip link (C2C), as in GH200 and GB200.
/// This is the only link to the CPU if it is faster than PCIe, which then may have a lane or two.
void ServerMaker::join_gpu(const NcclGpu& gpu, std::uint32_t node, std::uint32_t parent,
                           const ComponentGraph::LinkKind& pcie) {
  const double rate = gpu.c2c_rate;
  const bool is_below_cpu = parent == cpu_;
  if (rate > 0 && (!is_below_cpu || rate >= pcie.bytes_per_ns.value_or(0)))
    links_.push_back({node, cpu_, {"c2c", rate, {}}});
  if (rate == 0 || !is_below_cpu || rate < pcie.bytes_per_ns.value_or(0)) links_.push_back({node, parent, pcie});
}

/// Adds NVSwitches and the links of GPUs. Both GPUs of a pair list their links, which count once.
void ServerMaker::join_gpus() {
  std::map<std::string, std::uint32_t, std::less<>> nvswitches;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  // Some files give each GPU as its own target: then all GPUs are assumed to reach each other.
  const bool leads_nowhere = std::ranges::none_of(gpu_links_, [&](const GpuLink& link) {
    const auto found = gpu_of_bus_.find(link.link->target);
    return link.link->leads_to_switch() || (found != gpu_of_bus_.end() && found->second != link.gpu);
  });
  for (const GpuLink& link : gpu_links_) {
    std::uint32_t other = no_place;
    if (link.link->leads_to_switch() || leads_nowhere) {
      const std::string name = leads_nowhere ? "nvswitch" : fmt::format("nvswitch.{}", link.link->target);
      const auto found = nvswitches.find(name);
      other = found == nvswitches.end() ? nvswitches.emplace(name, add(NodeKind::other, name)).first->second
                                        : found->second;
    } else if (const auto found = gpu_of_bus_.find(link.link->target);
               found != gpu_of_bus_.end() && found->second != link.gpu) {
      other = found->second;
    }
    if (other == no_place) continue;  // a GPU that this file does not have
    const auto [pair, is_new] = known.emplace(std::minmax(link.gpu, other), links_.size());
    std::optional<double> rate = link.rate;
    if (rate) rate = *rate * link.link->count;
    if (is_new)
      links_.push_back({link.gpu, other, {link.link->kind, rate, {}}});
    else if (rate > links_[pair->second].kind.bytes_per_ns)
      links_[pair->second].kind.bytes_per_ns = rate;
  }
}

/// Numbers GPUs, other devices and NICs, without those that lead nowhere and NICs that are slow.
ServerPlan ServerMaker::plan() const {
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

ServerPlan ServerMaker::make() {
  const std::uint64_t line = file_.system.line;
  for (const NcclNode& cpu : file_.system.children) {
    if (cpu.kind != NcclNode::Kind::cpu) continue;
    const std::uint32_t node = cpu_ = add(NodeKind::other, fmt::format("cpu.{}", cpus_.size()));
    nodes_[node].is_used = add_children(cpu, node);
    if (nodes_[node].is_used) cpus_.push_back(node);
  }
  for (std::size_t a = 0; a < cpus_.size(); ++a)
    for (std::size_t b = a + 1; b < cpus_.size(); ++b) links_.push_back({cpus_[a], cpus_[b], {"cpu", {}, {}}});
  if (gpu_of_bus_.empty()) file_.fail(line, "the topology has no GPU", "a node with GPUs");
  if (!lists_gpus_ && !joins_gpus_)
    file_.fail(line, "the file does not list the links of GPUs, which NCCL finds when it starts",
               "a file that NCCL_TOPO_DUMP_FILE named, or `inside` beside `topology`");
  join_gpus();
  if (nets_.empty()) file_.fail(line, "the topology has no NIC", "a node with NICs, which lead to the others");
  return plan();
}

}  // namespace

ServerPlan read_nccl_server(const std::filesystem::path& file, bool joins_gpus, const Place& named_by) {
  const NcclFile topology = read_nccl_file(file, read_text(file, named_by));
  return ServerMaker(topology, joins_gpus).make();
}

}  // namespace orrery::graphfile
