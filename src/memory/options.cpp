#include "orrery/memory/options.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::memory {

namespace {

void require(bool holds, std::string_view key, const std::string& found, const std::string& expected) {
  if (!holds) throw Error(ErrorCode::bad_input, {.key = std::string(key)}, found, expected);
}

void require_bandwidth(Bandwidth bandwidth, std::string_view key) {
  require(bandwidth.bytes_per_ns() > 0, key, "there is no bandwidth", "a positive number");
}

void require_latency(double ns, std::string_view key) {
  require(ns >= 0, key, fmt::format("found {}", ns), "0 or more");
}

}  // namespace

void HierarchyOptions::validate(std::uint32_t num_npus) const {
  require(groups > 0, "groups", "there are none", "1 or more memory groups");
  require(switches > 0 && groups % switches == 0, "switches", fmt::format("found {}", switches),
          fmt::format("a divisor of the {} memory groups, which are divided among the switches", groups));
  require_bandwidth(link, "link-bandwidth");
  require_latency(link_latency_ns, "link-latency");
  require_bandwidth(fabric, "fabric-bandwidth");
  require_latency(fabric_latency_ns, "fabric-latency");
  require(chunk * groups >= Bytes(num_npus) && chunk <= Bytes::most() / groups, "chunk-size",
          fmt::format("found {}", counted(chunk.count(), "byte")),
          fmt::format("as much as makes a byte for each of the {} NPUs from {}, at least", num_npus,
                      counted(groups, "group")));
}

void RemoteMemoryOptions::validate(std::uint32_t num_npus) const {
  if (!kind->has_memory) return;
  if (!(bandwidth.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "remote-mem-bw"}, "the remote memory has no bandwidth",
                "a positive number");
  require_latency(latency_ns, "remote-mem-latency");
  require(!kind->has_nodes || (npus_per_node > 0 && num_npus % npus_per_node == 0), "num-npus-per-node",
          fmt::format("found {}", npus_per_node), fmt::format("a divisor of the {} NPUs", num_npus));
  if (kind->has_hierarchy) hierarchy.validate(num_npus);
}

}  // namespace orrery::memory
