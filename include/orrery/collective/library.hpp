#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"

namespace orrery::collective {

enum class Kind : std::uint8_t;  // options.hpp

/// What a collective takes besides its bytes: a time that any message takes, and a time that it takes the more the
/// closer its size comes to that from which on the links are filled.
struct Ramp {
  double latency = 0;  ///< seconds
  double filling = 0;  ///< seconds
  double bytes = 1;    ///< at which half of `filling` is paid

  double seconds(double size) const { return latency + filling * size / (size + bytes); }
};

/// The generations of GPUs that NCCL's tuning model knows and that have a library.
enum class NcclGeneration : std::uint8_t { ampere, hopper, blackwell };
enum class LibraryFamily : std::uint8_t { nccl, rccl };

/// What a collective library reaches on a generation of GPUs. Sources: src/collective/libraries.cpp.
struct Library {
  std::string_view name;  ///< "nccl-h100"
  std::string_view help;  ///< one line
  LibraryFamily family = LibraryFamily::nccl;
  NcclGeneration generation = NcclGeneration::hopper;  ///< of NCCL
  double ring = 0;                                     ///< bus bandwidth of rings within a node, bytes per second
  double ring_over_nodes = 0;  ///< likewise of rings over nodes, if their NICs are not slower; 0: that within a node
  double in_switch = 0;        ///< algorithm bandwidth of all-reduces in the switch, bytes per second; 0: it has none
  std::uint32_t mesh = 0;      ///< GPUs of a node if each has a link to each other one; 0: a switch joins them
  Ramp within_node;
  Ramp infiniband;  ///< besides, for each doubling of the nodes
  Ramp efa;         ///< likewise with Amazon's Elastic Fabric Adapter

  static std::span<const Library* const> registry();
};
using LibraryName = Registered<Library>;

enum class Fabric : std::uint8_t { infiniband, efa };

/// One measured collective.
struct MeasuredCollective {
  double bytes = 0, seconds = 0;
};
/// Measured collectives of one kind and group.
struct MeasuredSeries {
  std::uint32_t ranks = 0, nodes = 0;
  std::vector<MeasuredCollective> points;  ///< ascending in bytes, at least one
};
/// Reads what nccl-tests or rccl-tests print. Throws Error (bad_input) with the file and line.
MeasuredSeries read_nccl_tests(const std::filesystem::path& file);
MeasuredSeries parse_nccl_tests(std::string_view text, const std::string& name);

/// Collectives take what a library is known to take, in place of what their algorithms take in the network.
struct LibraryOptions {
  std::optional<LibraryName> library;
  Fabric fabric = Fabric::infiniband;
  bool collnet = false;               ///< switches between nodes reduce (SHARP), which NCCL may use
  std::uint32_t node_dimensions = 1;  ///< dimensions of the network within a node
  std::map<Kind, std::vector<std::filesystem::path>> files;  ///< of nccl-tests
  std::map<Kind, std::vector<MeasuredSeries>> measured;      ///< what they hold
};

/// A group as a library sees it.
struct LibraryGroup {
  std::uint32_t ranks = 1, nodes = 1;
  double nic = 0;  ///< bytes per second that a rank sends to other nodes
};

/// What a collective takes, and how it is carried out.
struct LibraryTime {
  std::string_view algorithm;  ///< "ring", "tree", "NVLS"
  double seconds = 0;
};
/// Returns what a collective takes from when its last member is ready. `bytes` are those of nccl-tests: the whole
/// buffer. A measured series of the same kind corrects it: by the ratio between what was measured and what the
/// library's figures give, at its sizes and interpolated between them (in the logarithm of the size); the series whose
/// number of nodes, then of ranks, is nearest.
LibraryTime library_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes);

/// How NCCL's tuning model has a collective carried out.
struct LibraryChoice {
  std::string_view algorithm;  ///< "ring", "tree", "NVLS", "NVLSTree", "CollNetDirect", "CollNetChain", "PAT"
  std::string_view protocol;   ///< "LL", "LL128", "Simple"
  std::uint32_t channels = 0;
  double seconds = 0;  ///< as the tuning model estimates it; library_time is nearer to measurements
};
/// Returns the choice for a collective; nothing for kinds that are messages between all.
std::optional<LibraryChoice> library_choice(const LibraryOptions& options, Kind kind, const LibraryGroup& group,
                                            double bytes);

}  // namespace orrery::collective
