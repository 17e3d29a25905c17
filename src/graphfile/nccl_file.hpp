#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nccl_rates.hpp"
#include "orrery/base/error.hpp"

namespace orrery::graphfile {

/// Links of a GPU to one target.
struct NcclLink {
  std::string kind;  ///< "nvlink" or "xgmi"
  std::string target, target_class;
  std::uint32_t count = 1;

  bool leads_to_switch() const { return target_class == nvswitch_class; }
};

/// An element `gpu`.
struct NcclGpu {
  std::string kind;                   ///< "sm 90" or "gcn gfx942"
  std::optional<std::uint32_t> rank;  ///< position among the GPUs that a program uses
  std::uint32_t device = 0;           ///< number of the GPU on its machine
  std::optional<GpuLinkRate> rate;    ///< rate of one of its links; none: not known
  double c2c_rate = 0;                ///< GB/s of the chip-to-chip link to its CPU; 0: it has none
  std::vector<NcclLink> links;
};

/// An element `net`: a port of a NIC.
struct NcclNet {
  std::string name;
  double mbps = 0;  ///< Mbit/s as the file has it, perhaps in kbit/s; 0: not known
  std::optional<double> device;

  /// Returns the Mbit/s, also where a driver gave kbit/s.
  double speed() const { return mbps > most_nic_mbps ? mbps / 1000 : mbps; }
};

/// An element that others are in: the root, a CPU, a PCI device or a NIC.
struct NcclNode {
  enum class Kind : std::uint8_t { system, cpu, pci, nic };
  /// Kind of a PCI device that has none of the elements gpu, nic and pci, by its class.
  enum class Bare : std::uint8_t { none, gpu, nic };

  Kind kind = Kind::system;
  std::uint64_t line = 0;
  std::string bus;                  ///< bus id of a PCI device
  std::optional<double> pcie_rate;  ///< GB/s of its link in one direction; none: the file does not say it
  Bare bare = Bare::none;
  std::vector<NcclGpu> gpus;       ///< GPUs of a PCI device
  std::vector<NcclNet> nets;       ///< networks of a NIC
  std::vector<NcclNode> children;  ///< CPUs, PCI devices and NICs, in the order of the file

  bool has_nic() const;
};

/// A topology that NCCL or RCCL wrote, as the file has it.
struct NcclFile {
  std::string name;
  NcclNode system;

  /// Throws Error (bad_input) with a line of the file.
  [[noreturn]] void fail(std::uint64_t line, std::string_view found, std::string_view expected) const;
};

/// Reads the text of a topology. Throws Error (bad_input) with the line for what is no XML or no number; and for the
/// XML of hwloc and NCCL's graphs, with what to give instead. O(elements).
NcclFile read_nccl_file(const std::filesystem::path& file, std::string_view text);

}  // namespace orrery::graphfile
