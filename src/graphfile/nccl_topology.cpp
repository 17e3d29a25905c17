#include "nccl_topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "nccl_file.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::graphfile {
namespace {

constexpr std::uint32_t most_gpus = 1024;  // of one node
constexpr std::uint32_t assumed_nodes = 2;

constexpr double assumed_link = 25;  // GB/s, of a GPU that the tables do not have

struct Gpu : NcclGpu {
  std::string bus;
  double pcie_rate = 0;  ///< GB/s in one direction; 0: the file does not say it

  double link_rate() const { return rate ? rate->bytes_per_ns : 0; }
  std::uint32_t num_links() const {
    std::uint32_t sum = 0;
    for (const NcclLink& link : links) sum += link.count;
    return sum;
  }
  /// Returns GB/s to the CPU; 0: not known.
  double host_rate() const { return std::max(pcie_rate, c2c_rate); }
};
struct Nic : NcclNet {
  std::size_t card = 0;  ///< index in Devices::cards
};
struct Dimension {
  std::string shape;
  std::size_t size = 0;
  double bandwidth = 0;  ///< GB/s
  std::string latency, comment;
};

/// The GPUs and NICs of a topology.
struct Devices {
  std::vector<Gpu> gpus, bare_gpus;  ///< those with an element gpu; PCI devices that are GPUs
  std::vector<Nic> nics;
  std::vector<double> cards = {0};  ///< GB/s of the PCIe of PCI devices; 0: not known. The first stands for none
  std::vector<double> bare_nics;    ///< GB/s of the PCIe of network devices without an element net

  /// Takes what is in an element, which is in a card: a PCI device that may be a NIC.
  void take(const NcclNode& node, std::size_t card = 0) {
    for (const NcclNode& child : node.children) {
      std::size_t in = card;
      if (child.kind == NcclNode::Kind::pci) {
        in = cards.size();
        cards.push_back(child.pcie_rate.value_or(0));
        take_pci(child);
      }
      for (const NcclNet& net : child.nets) nics.push_back({net, card});
      take(child, in);
    }
  }

 private:
  void take_pci(const NcclNode& pci) {
    const double rate = pci.pcie_rate.value_or(0);
    for (const NcclGpu& gpu : pci.gpus) gpus.push_back({gpu, pci.bus, rate});
    if (pci.bare == NcclNode::Bare::gpu) bare_gpus.push_back({{}, pci.bus, rate});
    if (pci.bare == NcclNode::Bare::nic) bare_nics.push_back(rate);
  }
};

/// Decides what the dimensions of a system are.
class SystemMaker {
 public:
  /// `warnings` get the rates of links that are not known.
  SystemMaker(const std::vector<Gpu>& gpus, bool links_are_told, std::vector<std::string>& warnings)
      : gpus_(gpus), links_are_told_(links_are_told), warnings_(warnings) {
    for (std::size_t g = 0; g < gpus.size(); ++g) of_bus_.emplace(gpus[g].bus, g);
    peers_.resize(gpus.size());
    for (std::size_t g = 0; g < gpus.size(); ++g)
      for (const NcclLink& link : gpus[g].links) {
        if (link.leads_to_switch()) ++num_to_switch_;
        const auto peer = of_bus_.find(link.target);
        if (peer == of_bus_.end() || peer->second == g) continue;
        peers_[g][peer->second] += link.count;
        peers_[peer->second].try_emplace(g, 0);
      }
  }

  /// Returns the dimensions of a node.
  std::vector<Dimension> dimensions() {
    if (gpus_.size() == 1) return {};
    const bool has_links = std::ranges::any_of(gpus_, [](const Gpu& gpu) { return !gpu.links.empty(); });
    if (!has_links) return {pcie(gpus_.size())};
    if (least_links() == 0) return {uneven_pcie("some GPUs have no links")};
    const std::vector<std::size_t> island = islands();
    const bool is_known = std::ranges::any_of(peers_, [](const auto& peers) { return !peers.empty(); });
    if (num_to_switch_ > 0 || !is_known) {
      const std::string reason =
          num_to_switch_ > 0 ? "its links lead to NVSwitches"
                             : "the file does not say where links lead: all GPUs are assumed to reach each other";
      return {over_links("Switch", gpus_.size(), least_links(), reason)};
    }
    const std::size_t num_islands = std::set(island.begin(), island.end()).size();
    if (gpus_.size() % num_islands != 0 || std::ranges::any_of(island, [&](std::size_t i) {
          return static_cast<std::size_t>(std::ranges::count(island, i)) != gpus_.size() / num_islands;
        }))
      return {uneven_pcie("GPUs with links are in islands of several sizes")};
    std::vector<Dimension> found;
    if (gpus_.size() > num_islands) found.push_back(of_island(gpus_.size() / num_islands));
    if (num_islands > 1) {
      found.push_back(pcie(num_islands));
      found.back().comment += fmt::format(
          "; between {} islands of GPUs with links, whose GPUs have to be numbered "
          "island by island",
          num_islands);
    }
    return found;
  }

 private:
  /// Returns for each GPU the first GPU that it reaches over links.
  std::vector<std::size_t> islands() const {
    std::vector<std::size_t> island(gpus_.size(), gpus_.size());
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      if (island[g] < gpus_.size()) continue;
      std::vector<std::size_t> left = {g};
      while (!left.empty()) {
        const std::size_t at = left.back();
        left.pop_back();
        if (island[at] < gpus_.size()) continue;
        island[at] = g;
        for (const auto& [peer, count] : peers_[at]) left.push_back(peer);
      }
    }
    return island;
  }

  std::uint32_t least_links() const { return std::ranges::min(gpus_, {}, &Gpu::num_links).num_links(); }

  Dimension over_links(std::string shape, std::size_t size, std::uint32_t links, std::string_view reason) {
    const Gpu& slowest = std::ranges::min(gpus_, {}, &Gpu::link_rate);
    const double rate = slowest.rate ? slowest.link_rate() : assumed_link;
    const bool is_known = slowest.rate && !slowest.rate->is_assumed;
    if (!is_known)
      warnings_.push_back(fmt::format(
          "the rate of a link of {} is not known: {} is assumed, so that a GPU has {:g} GB/s "
          "over {}",
          slowest.kind,
          slowest.rate ? fmt::format("{} GB/s, as of the newest GPU before it,", rate) : fmt::format("{} GB/s", rate),
          links * rate, counted(links, "link")));
    return {
        std::move(shape), size, links * rate, "500 ns",
        fmt::format("{}; {} of {} GB/s in each direction ({}{}); the latency is assumed", reason,
                    counted(links, "link"), rate, slowest.kind, is_known ? "" : ", whose rate is not known: assumed")};
  }

  /// Returns the dimension of GPUs that reach each other over links.
  Dimension of_island(std::size_t size) {
    bool is_full = true, is_ring = true;
    std::uint32_t least = ~std::uint32_t{0}, most = 0;
    for (const auto& peers : peers_) {
      is_full = is_full && peers.size() == size - 1;
      is_ring = is_ring && peers.size() == 2;
      for (const auto& [peer, count] : peers) {
        least = std::min(least, count);
        most = std::max(most, count);
      }
    }
    least = std::max(least, 1U);
    const std::string_view uneven =
        least == most ? "" : ", not equally many: the fewest between two GPUs are taken for all";
    if (is_full)
      return over_links("FullyConnected", size, least, fmt::format("each GPU has links to each other one{}", uneven));
    if (is_ring)
      return over_links("Ring", size, least,
                        fmt::format("each GPU has links to two others{}; the numbers of the GPUs are assumed to follow "
                                    "the ring",
                                    uneven));
    return over_links("Switch", size, std::max(least_links(), 1U),
                      "the links are a partial mesh, which no dimension describes: a switch with the links of the GPU "
                      "that has the fewest is assumed");
  }

  /// Returns the dimension of GPUs whose links no dimension describes.
  Dimension uneven_pcie(std::string_view why) const {
    Dimension all = pcie(gpus_.size());
    all.comment += fmt::format("; {}, which no dimension describes", why);
    return all;
  }

  Dimension pcie(std::size_t size) const {
    constexpr double assumed = 31.5;  // generation 4, 16 lanes
    const Gpu& slowest = std::ranges::min(gpus_, {}, &Gpu::host_rate);
    const double rate = slowest.host_rate();
    return {"Switch", size, rate > 0 ? rate : assumed, "1 us",
            fmt::format("{}{}; the latency is assumed{}", slowest.c2c_rate > slowest.pcie_rate ? "C2C" : "PCIe",
                        rate > 0 ? "" : ", whose speed the file does not say: generation 4 with 16 lanes is assumed",
                        links_are_told_ ? ""
                                        : "; the file does not list NVLinks, which NCCL finds when it starts: if the "
                                          "GPUs have some, write their bandwidth here")};
  }

  const std::vector<Gpu>& gpus_;
  bool links_are_told_;
  std::vector<std::string>& warnings_;
  std::map<std::string, std::size_t> of_bus_;
  std::vector<std::map<std::size_t, std::uint32_t>> peers_;  ///< [GPUs] links to each other GPU
  std::uint32_t num_to_switch_ = 0;
};

/// Returns the Mbit/s that the NICs which count carry together: each card no more than its PCIe.
double sum_of_nics(const Devices& topology, double least, std::size_t& used, bool& is_limited) {
  std::map<std::size_t, double> of_card;
  for (const Nic& nic : topology.nics)
    if (const double speed = nic.speed(); speed > 0 && speed >= least) {
      of_card[nic.card] += speed;
      ++used;
    }
  double sum = 0;
  for (const auto& [card, mbps] : of_card) {
    const double most = topology.cards[card] * 8000;
    is_limited = is_limited || (most > 0 && most < mbps);
    sum += most > 0 ? std::min(most, mbps) : mbps;
  }
  return sum;
}

/// Returns GB/s of all GPUs to their CPUs; 0 if the file does not say it of each.
double rate_of_gpus(const std::vector<Gpu>& gpus) {
  double sum = 0;
  for (const Gpu& gpu : gpus) {
    if (gpu.host_rate() == 0) return 0;
    sum += gpu.host_rate();
  }
  return sum;
}

/// Returns the dimension between nodes. `comments` get what it takes from the file and what it assumes.
Dimension between_nodes(const Devices& topology, const std::vector<Gpu>& gpus, std::optional<std::uint32_t> num_nodes) {
  double sum = 0, fastest = 0;  // Mbit/s
  std::size_t used = 0;
  std::string comment;
  for (const Nic& nic : topology.nics) fastest = std::max(fastest, nic.speed());
  bool is_limited = false;
  sum = sum_of_nics(topology, slow_nic_share * fastest, used, is_limited);
  if (used > 0) {
    comment = fmt::format("{} of {} with {:g} Gbit/s in all, shared by {}", used, counted(topology.nics.size(), "NIC"),
                          sum / 1000, counted(gpus.size(), "GPU"));
    if (is_limited) comment += "; the PCIe of NICs is slower than their ports, so it counts";
    const double most = rate_of_gpus(gpus) * 8000;
    if (most > 0 && most < sum) {
      sum = most;
      comment += fmt::format("; the GPUs reach their CPUs with {:g} Gbit/s in all, so this counts", sum / 1000);
    }
    if (used < topology.nics.size()) comment += "; those with less than a tenth of the fastest are left out";
    if (std::ranges::any_of(topology.nics, [](const Nic& nic) { return nic.mbps > most_nic_mbps; }))
      comment += "; speeds above 3200 Gbit/s are taken as kbit/s";
  } else if (!topology.bare_nics.empty()) {
    constexpr double assumed = 200, of_generation_5 = 400, of_generation_3 = 100;  // Gbit/s
    for (const double rate : topology.bare_nics)
      sum += 1000 * (rate > 60 ? of_generation_5 : rate > 0 && rate < 16 ? of_generation_3 : assumed);
    comment =
        fmt::format("{} without speeds, {:g} Gbit/s in all by the generation of their PCIe, shared by {}: assumed",
                    counted(topology.bare_nics.size(), "NIC"), sum / 1000, counted(gpus.size(), "GPU"));
  } else {
    constexpr double assumed = 100000;
    sum = assumed;
    comment =
        fmt::format("the file has no NIC: one of 100 Gbit/s is assumed, shared by {}", counted(gpus.size(), "GPU"));
  }
  comment += num_nodes ? "; the latency is assumed" : "; the number of nodes and the latency are assumed";
  return {"Switch", num_nodes.value_or(assumed_nodes), sum / 8000 / static_cast<double>(gpus.size()), "2 us", comment};
}

/// Returns the facts of a file, one comment each.
std::string facts(const Devices& topology) {
  std::set<std::uint32_t> links;
  std::set<std::string> switches, kinds;
  for (const Gpu& gpu : topology.gpus) {
    links.insert(gpu.num_links());
    kinds.insert(gpu.kind);
    for (const NcclLink& link : gpu.links)
      if (link.leads_to_switch()) switches.insert(link.target);
  }
  std::string text =
      fmt::format("# GPUs: {}, and {} that are PCI devices only\n", topology.gpus.size(), topology.bare_gpus.size());
  if (!kinds.empty()) text += fmt::format("# kind of GPU: {}\n", fmt::join(kinds, ", "));
  if (!links.empty()) text += fmt::format("# links of a GPU: {}\n", fmt::join(links, ", "));
  text += fmt::format("# NVSwitches: {}\n", switches.size());
  for (const Nic& nic : topology.nics) text += fmt::format("# NIC: {} with {:.0f} Mbit/s\n", nic.name, nic.mbps);
  return text;
}

}  // namespace

bool is_nccl_topology(std::string_view beginning) {
  // The root is the first element: comments, declarations and what hwloc puts before it begin with <! or <?.
  for (std::size_t at = beginning.find('<'); at != std::string_view::npos; at = beginning.find('<', at + 1)) {
    const std::string_view rest = beginning.substr(at + 1);
    if (rest.starts_with("!--")) {
      at = beginning.find("-->", at);
      if (at == std::string_view::npos) return false;
      continue;
    }
    if (rest.starts_with("!") || rest.starts_with("?")) continue;
    const std::string_view name = rest.substr(0, rest.find_first_of(" \t\r\n/>"));
    return name == "system" || name == "graphs" || name == "topology";
  }
  return false;
}

SystemText nccl_topology_to_yaml(const std::filesystem::path& path, std::optional<std::uint32_t> num_nodes) {
  const NcclFile file = read_nccl_file(path, trace::read_unpacked(path));
  Devices topology;
  topology.take(file.system);
  const bool links_are_told = !topology.gpus.empty();
  std::vector<Gpu> gpus = links_are_told ? topology.gpus : topology.bare_gpus;
  if (gpus.empty() || gpus.size() > most_gpus)
    file.fail(file.system.line, fmt::format("the topology has {}", counted(gpus.size(), "GPU")),
              fmt::format("1 to {} GPUs of one node", most_gpus));
  SystemText system;
  std::vector<Dimension> dimensions = SystemMaker(gpus, links_are_told, system.warnings).dimensions();
  if (num_nodes != 1U || dimensions.empty()) dimensions.push_back(between_nodes(topology, gpus, num_nodes));
  system.yaml = "# A system made from a topology of NCCL or RCCL. The file says:\n" + facts(topology) +
                "system:\n  network:\n    dimensions:\n";
  for (const Dimension& dimension : dimensions)
    system.yaml +=
        fmt::format("      # {}\n      - {{shape: {}, size: {}, bandwidth: {:.6g} GB/s, latency: {}}}\n",
                    dimension.comment, dimension.shape, dimension.size, dimension.bandwidth, dimension.latency);
  return system;
}

}  // namespace orrery::graphfile
