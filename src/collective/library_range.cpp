// How far the times of libraries are to be trusted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/text.hpp"
#include "orrery/collective/library.hpp"

namespace orrery::collective {
namespace {

// Relative standard errors, from public runs of which each fabric was left out in turn.
constexpr double of_small = 0.20, of_middle = 0.15, of_large = 0.06, of_all_to_all = 0.12,
                 of_all_to_all_over_nodes = 0.30;
constexpr double of_rate_doubling = 0.06, of_nodes_doubling = 0.08, of_size = 0.10, of_large_nodes = 0.40;
constexpr double small_bytes = 1U << 20U, middle_bytes = 1U << 28U, largest_bytes = 34359738368.0;  // 2^35
constexpr double measured_nodes = 8, measured_of_node = 8;
constexpr double least_doublings = 0.2;  ///< between rates, which count as equal below

/// Adds up the squares of errors, and says why.
class Errors {
 public:
  void add(double error) { squares_ += error * error; }
  void add(double error, double factor, std::string reason) {
    add(error);
    range_.reasons.push_back(std::move(reason));
    range_.farthest = std::max(range_.farthest, factor);
  }
  void add_rate(std::string_view what, double rate, double reference) {
    const double doublings = std::abs(std::log2(rate / reference));
    if (doublings > least_doublings)
      add(of_rate_doubling * doublings, std::exp2(doublings),
          fmt::format("{} {}B/s, measured at {}B/s", what, with_prefix(rate), with_prefix(reference)));
  }
  LibraryRange take() {
    range_.error = std::sqrt(squares_);
    return std::move(range_);
  }

 private:
  LibraryRange range_;
  double squares_ = 0;
};

double base_error(const LibraryGroup& group, double bytes, bool is_all_to_all) {
  if (is_all_to_all) return group.nodes == 1 ? of_all_to_all : of_all_to_all_over_nodes;
  return bytes > middle_bytes ? of_large : bytes > small_bytes ? of_middle : of_small;
}

}  // namespace

LibraryRange library_range(const LibraryOptions& options, const LibraryGroup& group, double bytes,
                           const LibraryTime& time) {
  const bool is_all_to_all = time.algorithm == "direct";
  Errors errors;
  errors.add(base_error(group, bytes, is_all_to_all));
  if (group.ranks > group.nodes) errors.add_rate("links of", group.link, (*options.library)->link);
  if (group.nodes > 1) {
    errors.add_rate("a NIC of", group.nic, fabric_of(options).nic);
    if (group.of_node() > measured_of_node && (group.nodes > 2 || is_all_to_all))
      errors.add(of_large_nodes, group.of_node() / measured_of_node,
                 fmt::format("{} nodes of {}, measured with {}", group.nodes, group.of_node(), measured_of_node));
    if (group.nodes > measured_nodes)
      errors.add(of_nodes_doubling * std::log2(group.nodes / measured_nodes), group.nodes / measured_nodes,
                 fmt::format("{} nodes, measured up to {}", group.nodes, measured_nodes));
  }
  if (bytes > largest_bytes) errors.add(of_size, bytes / largest_bytes, "more than 32 GiB");
  return errors.take();
}

}  // namespace orrery::collective
