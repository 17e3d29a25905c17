#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"

namespace orrery::collective {

/// One measured collective.
struct MeasuredCollective {
  double bytes = 0, seconds = 0;
};

/// Measured collectives of one kind and group.
struct MeasuredSeries {
  std::uint32_t ranks = 0, hosts = 0;
  std::vector<MeasuredCollective> points;  ///< ascending in bytes, at least one
};

/// A file of nccl-tests, and what a configuration says of the machine that it was measured on.
struct MeasuredFile {
  std::filesystem::path file;
  std::optional<std::uint32_t> node = {};  ///< ranks of a node
  std::vector<Bandwidth> bandwidths = {};  ///< bandwidth by dimension, from the first on; missing ones are as described
  MeasuredSeries series = {};

  /// Returns the ranks of a node: `node`, or the NPUs of a node of the network if the ranks fill such nodes, or the
  /// ranks of a host.
  double ranks_of_node(std::uint32_t npus_of_node) const;
  friend bool operator==(const MeasuredFile& a, const MeasuredFile& b) {
    return a.file == b.file && a.node == b.node && a.bandwidths == b.bandwidths;
  }
};

/// Reads what nccl-tests or rccl-tests print, as text or as JSON (-J). Throws Error (bad_input) with the file and line.
MeasuredSeries read_nccl_tests(const std::filesystem::path& file);
MeasuredSeries parse_nccl_tests(std::string_view text, const std::string& name);

}  // namespace orrery::collective
