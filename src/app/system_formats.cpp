#include "system_formats.hpp"

#include <fstream>
#include <vector>

#include "nccl_topology.hpp"

namespace orrery::app {
namespace {

constexpr std::size_t bytes_looked_at = 4096;

const std::vector<SystemFormat>& system_formats() {
  static const std::vector<SystemFormat> all = {
      {"topology of NCCL or RCCL", is_nccl_topology, nccl_topology_to_yaml},
  };
  return all;
}

}  // namespace

const SystemFormat* find_system_format(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string beginning(bytes_looked_at, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  for (const SystemFormat& format : system_formats())
    if (format.recognises(beginning)) return &format;
  return nullptr;
}

}  // namespace orrery::app
