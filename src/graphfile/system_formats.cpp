#include "orrery/graphfile/system_formats.hpp"

#include <vector>

#include "nccl_topology.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::graphfile {
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
  if (trace::format_of(path)) return nullptr;
  const std::string text = trace::read_unpacked(path);
  const std::string_view beginning = std::string_view(text).substr(0, bytes_looked_at);
  for (const SystemFormat& format : system_formats())
    if (format.recognises(beginning)) return &format;
  return nullptr;
}

}  // namespace orrery::graphfile
