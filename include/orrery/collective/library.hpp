#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"
#include "orrery/collective/expert_exchange.hpp"
#include "orrery/collective/measured_series.hpp"
#include "orrery/network/network_figures.hpp"

namespace orrery::collective {

enum class Kind : std::uint8_t;  // options.hpp

/// What a collective takes besides its bytes: a time that any message takes, and a time that it takes the more the
/// closer its size comes to that from which on the links are filled.
struct Ramp {
  double latency = 0;  ///< seconds
  double filling = 0;  ///< seconds
  double bytes = 1;    ///< size at which half of `filling` is paid

  double seconds(double size) const { return latency + filling * size / (size + bytes); }
};

/// The generations of GPUs that NCCL's tuning model knows and that have a library.
enum class NcclGeneration : std::uint8_t { ampere, hopper, blackwell };
enum class LibraryFamily : std::uint8_t { nccl, rccl };

/// Shares of the described rate of the links within a node that the bytes of each algorithm reach; 0: a library does
/// not have the algorithm, or a configuration takes the library's share.
struct NodeShares {
  double ring = 0, nvls = 0, nvls_tree = 0, tree = 0, all_to_all = 0;

  friend bool operator==(const NodeShares&, const NodeShares&) = default;
};
/// Shares of the rate of NICs that the bytes of each algorithm reach; 0: as above.
struct NicShares {
  double ring = 0, tree = 0, all_to_all = 0;
  double plain_tree = 0;  ///< share of trees in nodes whose switch does not reduce

  friend bool operator==(const NicShares&, const NicShares&) = default;
};

/// Thread blocks of a GPU that carry out a collective, one on each multiprocessor.
struct Channels {
  std::uint32_t count = 0;  ///< 0: not known
  double rate = 0;          ///< bytes per second that all of them move at most; 0: no limit is known
};

/// Bandwidths of a machine that was measured, in bytes per second, and ramps: they hold whatever the network is
/// (LibraryOptions::relative).
struct AbsoluteFigures {
  double ring = 0;             ///< bus bandwidth of rings within a node
  double ring_over_nodes = 0;  ///< likewise over nodes, if their NICs are not slower; 0: that within a node
  double in_switch = 0;        ///< algorithm bandwidth of all-reduces in the switch; 0: it has none
  Ramp within_node;
  Ramp infiniband;  ///< ramp for each doubling of the nodes, besides
  Ramp efa;         ///< likewise with Amazon's Elastic Fabric Adapter
};

/// What a collective library reaches on a generation of GPUs, relative to the links of a node. Sources:
/// src/collective/libraries.cpp.
struct Library {
  std::string_view name;  ///< "nccl-h100"
  std::string_view help;  ///< one line
  LibraryFamily family = LibraryFamily::nccl;
  NcclGeneration generation = NcclGeneration::hopper;  ///< generation of NCCL's GPUs
  std::string_view processor = {};                     ///< compute::Processor of these GPUs; empty: there is none
  double link = 0;         ///< rate of a member's links into its node where it was measured, bytes per second
  double hop_latency = 0;  ///< seconds of a hop within the node there
  NodeShares shares;
  Channels channels = {}, nvls_channels = {};  ///< those of rings, and of reductions in the switch
  std::uint32_t fewest_in_switch = 5;          ///< members from which on the switch reduces
  std::uint32_t mesh = 0;  ///< GPUs of a node if each has a link to each other one; 0: a switch joins them
  Ramp small;              ///< time that the protocol of small messages saves: `filling` and `bytes`
  Ramp large;              ///< time that filling the pipelines costs: `filling` and `bytes`
  AbsoluteFigures absolute;

  static std::span<const Library* const> registry();
};
using LibraryName = Registered<Library>;

/// A network between nodes with its software. Sources: src/collective/libraries.cpp.
struct Fabric {
  std::string_view name;  ///< "infiniband"
  std::string_view help;  ///< one line
  double step = 0;        ///< seconds of a step between nodes besides those of the library
  Ramp ramp;              ///< `filling` and `bytes` for each doubling of the nodes
  NicShares shares;
  double nic = 0;       ///< rate of a NIC where it was measured, bytes per second
  bool is_efa = false;  ///< AbsoluteFigures::efa

  static std::span<const Fabric* const> registry();
};
using FabricName = Registered<Fabric>;

/// Figures of a fabric that a configuration puts in the place of those of Fabric; nothing: as there.
struct FabricFigures {
  std::optional<Time> step, ramp;   ///< Fabric::step, and Ramp::filling of Fabric::ramp
  std::optional<Bytes> ramp_bytes;  ///< Ramp::bytes of Fabric::ramp
  std::optional<Bandwidth> nic;     ///< Fabric::nic

  friend bool operator==(const FabricFigures&, const FabricFigures&) = default;
};

/// What the bandwidths of a network are: those of data sheets, or those that rings reach.
enum class LinkRates : std::uint8_t { data_sheet, reached };

/// Collectives take what a library is known to take, in place of what their algorithms take in the network.
struct LibraryOptions {
  std::optional<LibraryName> library;
  FabricName fabric;
  FabricFigures fabric_figures;
  bool collnet = false;               ///< switches between nodes reduce (SHARP), which NCCL may use
  std::uint32_t node_dimensions = 1;  ///< dimensions of the network within a node
  ExpertOptions experts = {};         ///< with and without a library
  Time launch;                        ///< time that no collective takes less than
  LinkRates rates = LinkRates::data_sheet;
  double nics_per_node = 0;  ///< NICs of a node; 0: one for each NPU
  double goodput = 1;        ///< share of what links carry that is data, where packets are simulated
  NodeShares shares;         ///< shares in place of the library's
  NicShares nic_shares;      ///< shares in place of the fabric's
  bool relative = true;      ///< false: AbsoluteFigures
  /// [dimensions] of networks whose links are shared by NPUs that nothing else joins; empty: there are none.
  std::vector<network::DimensionCut> cuts = {};
  std::map<Kind, std::vector<MeasuredFile>> measured;
};

/// Returns the fabric, with the figures that the options put in the place of its own.
Fabric fabric_of(const LibraryOptions& options);

/// A link of a member of a group in a dimension between nodes.
struct OuterLink {
  std::uint32_t dimension = 0;
  double ring = 0;         ///< bytes per second of a member to the next node
  double direct = 0;       ///< bytes per second of a member to all others
  double below = 1;        ///< members that differ in lower dimensions only
  double above = 1;        ///< members that differ in this dimension and in lower ones only
  std::uint32_t port = 0;  ///< number of the port through which it leads: LibraryGroup::port
};

/// A group as a library sees it. Rates are bytes per second of a member in one direction, of the slowest port, divided
/// by the groups that use them at a time.
struct LibraryGroup {
  std::uint32_t ranks = 1, nodes = 1;
  double nic = std::numeric_limits<double>::infinity();   ///< rate to other nodes
  double link = std::numeric_limits<double>::infinity();  ///< rate within the node
  double hop_latency = 0;                                 ///< seconds of a hop within the node
  std::uint32_t hops = 2;                                 ///< hops between members of a node
  double outer_latency = 0;                               ///< seconds of the longest hop between nodes
  bool has_switches = true;                               ///< only switches join the members of a node
  std::uint32_t npus_of_node = 1;                         ///< NPUs that a node of the network has
  double nics = 1;                                        ///< NICs of an NPU
  std::vector<OuterLink> outer = {};
  std::vector<double> further_ports = {};  ///< rates to other nodes of ports besides `nic`

  /// Returns the rate of the port with this number; that of number 0 is `nic`.
  double port(std::uint32_t number) const { return number == 0 ? nic : further_ports[number - 1]; }
  double of_node() const { return static_cast<double>(ranks) / nodes; }
};

/// What the bytes of a collective pass.
enum class ResourceKind : std::uint8_t { latency, links, nic, dimension, channels };
struct Resource {
  ResourceKind kind = ResourceKind::latency;
  std::uint32_t dimension = 0;  ///< dimension of ResourceKind::dimension
  double bytes = 0;             ///< bytes of a member
  double capacity = 0;          ///< bytes per second of a member, as the configuration has it
  double share = 1;             ///< share of the capacity that they reach

  double seconds() const { return bytes > 0 ? bytes / (capacity * share) : 0; }
};
/// Returns "links in the node", "NIC", "dimension 2", "GPU channels" or "latency".
std::string name(const Resource& resource);

/// What a collective takes, and how it is carried out.
struct LibraryTime {
  std::string_view algorithm = {};  ///< "ring", "tree", "NVLS"
  double seconds = 0;
  double latency = 0, ramp = 0, transfer = 0;  ///< seconds: `seconds` is no less than their sum
  Resource bound = {};                         ///< resource that decides `transfer`
  double leaving = 0;                          ///< bytes of a member that leave its node
  std::vector<Resource> resources = {};        ///< all that the bytes pass
};
/// Returns what a collective takes from when its last member is ready: the latency, the ramp and the time of the
/// slowest resource, by the fastest algorithm that the library may take (docs/collectives.md, Libraries). `bytes` are
/// those of nccl-tests: the whole buffer. O(algorithms * dimensions).
LibraryTime library_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes);

/// A measured file that corrects a group.
struct Correction {
  const MeasuredFile* file = nullptr;  ///< null: none does
  bool is_near = false;                ///< the file has other members, within a factor of two
};
/// Returns the file that corrects collectives of a kind in a group: one of such nodes, with as many members if there is
/// one, else with the nearest number within a factor of two.
Correction correction_of(const LibraryOptions& options, Kind kind, const LibraryGroup& group);
/// Returns what a collective takes if a measured series says by how much library_time errs. `measured` is the group on
/// the network of the file. The ratio is interpolated in the logarithm of the size; above the largest size the last one
/// holds, and below the smallest the difference in seconds. O(points * cost of library_time) at the most.
LibraryTime corrected_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes,
                           const MeasuredSeries& series, const LibraryGroup& measured);

/// How far a time is to be trusted.
struct LibraryRange {
  double error = 0;                       ///< relative standard error
  std::vector<std::string> reasons = {};  ///< why the time is extrapolated; none: it is not
  double farthest = 1;                    ///< factor between what is asked for and what was measured
};
/// Returns the range of a time that library_time has given.
LibraryRange library_range(const LibraryOptions& options, const LibraryGroup& group, double bytes,
                           const LibraryTime& time);

/// How NCCL's tuning model has a collective carried out.
struct LibraryChoice {
  std::string_view algorithm;  ///< "ring", "tree", "NVLS", "NVLSTree", "CollNetDirect", "CollNetChain", "PAT"
  std::string_view protocol;   ///< "LL", "LL128", "Simple"
  std::uint32_t channels = 0;
  double seconds = 0;  ///< estimate of the tuning model; library_time is nearer to measurements
};
/// Returns the choice for a collective; nothing for kinds that are messages between all.
std::optional<LibraryChoice> library_choice(const LibraryOptions& options, Kind kind, const LibraryGroup& group,
                                            double bytes);

}  // namespace orrery::collective
