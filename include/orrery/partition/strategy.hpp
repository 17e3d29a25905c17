#pragma once

#include <span>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/partition/partition.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::partition {

struct CommunicationGraph;

/// What a partition is made from.
struct Problem {
  const topology::Topology& topology;
  int num_ranks = 1;
  const CommunicationGraph* graph = nullptr;  ///< present for strategies that need the traces
};

/// A way to deal NPUs to ranks (partitions/README.md). Each has a file of its own and one line in the registry.
struct Strategy {
  std::string_view name = {};       ///< as users write it: "dimension"
  std::string_view parameter = {};  ///< text that follows the name after a colon: "<d>"; empty: nothing
  std::string_view example = {};    ///< one that can be used as it is: "dimension:0"
  std::string_view help = {};       ///< one line: where NPU i of N goes on R ranks
  bool needs_traces = false;        ///< `make` uses Problem::graph
  /// Throws Error (bad_input) at `place` if the parameter cannot be read.
  void (*check_syntax)(std::string_view parameter, const Place& place) = nullptr;
  /// Throws Error (bad_input) at `place` if the parameter does not fit the topology.
  void (*check_range)(std::string_view parameter, const topology::Topology& topology, const Place& place) = nullptr;
  /// Deals the NPUs. Gives the same partition for the same input.
  Partition (*make)(std::string_view parameter, const Problem& problem) = nullptr;
};

/// Returns all strategies, the default one first. The last one is the rank map, whose parameter is the file and whose
/// name users do not write.
std::span<const Strategy> strategies();

/// Returns the strategies that have a name: all but the rank map.
std::span<const Strategy> named_strategies();

/// Returns the strategy as users write it: "block", "dimension:<d>".
std::string usage(const Strategy& strategy);

/// The choice of a strategy.
class PartitionOptions {
 public:
  /// Chooses contiguous blocks.
  PartitionOptions() = default;
  /// Reads "block", "dimension:1", ...; any other text is the name of a rank map's file. Throws Error (bad_input) at
  /// `place` for a parameter that cannot be read.
  PartitionOptions(std::string_view text, const Place& place);
  /// Chooses the rank map in this file.
  static PartitionOptions rank_map(std::string file);

  const Strategy& strategy() const { return *strategy_; }
  bool is_default() const;
  bool is_rank_map() const;
  /// Returns the text after the colon, or the file of a rank map.
  const std::string& parameter() const { return parameter_; }
  /// Returns the choice as users write it; `PartitionOptions(text(), ...)` is an equal one.
  std::string text() const;

  /// Throws Error (bad_input) at `named_by` if the strategy cannot be used on this topology.
  void validate(const topology::Topology& topology, const Place& named_by) const;
  /// Deals the NPUs of the topology to ranks. Throws Error (bad_input) with file and line for a rank map that cannot be
  /// used.
  Partition make(const Problem& problem) const { return strategy_->make(parameter_, problem); }

  friend bool operator==(const PartitionOptions&, const PartitionOptions&) = default;

 private:
  const Strategy* strategy_ = &strategies().front();
  std::string parameter_;
};

}  // namespace orrery::partition
