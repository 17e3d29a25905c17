#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/workload/parallel.hpp"
#include "orrery/workload/tables.hpp"

namespace orrery::workload {

struct Layer;
struct ParameterCount;

/// A deep-learning recommendation model (Naumov et al., arXiv 1906.00091). Its MLPs are data parallel; its tables are
/// divided among all NPUs.
struct Dlrm {
  static constexpr std::string_view family = "dlrm";
  static constexpr std::string_view help = "recommendation model of two MLPs and embedding tables";

  struct Table {
    std::uint64_t rows = 0;
    std::uint64_t width = 0;                     ///< 0: that of the last layer of `bottom`
    std::uint64_t pooling = 0;                   ///< rows that a sample looks up; 0: see Dlrm::pooling
    std::optional<TableSharding> sharding = {};  ///< none: Sharding::tables

    friend bool operator==(const Table&, const Table&) = default;
  };

  std::uint64_t dense_features = 13;
  std::vector<std::uint64_t> bottom;         ///< widths of the MLP over dense features; the last is that of the tables
  std::vector<Table> tables;                 ///< embedding tables
  std::uint64_t pooling = 1;                 ///< rows of a table that a sample looks up
  std::vector<std::uint64_t> poolings = {};  ///< [tables] the same of each table, in place of `pooling`; or empty
  std::uint32_t cross_layers = 0;            ///< layers of low rank (DCN V2, arXiv 2008.13535); 0: dot products instead
  std::uint64_t cross_rank = 512;
  std::vector<std::uint64_t> top;  ///< widths of the MLP over the interaction

  /// Returns the width of a table, and the rows of it that a sample looks up.
  std::uint64_t width_of(std::size_t table) const;
  std::uint64_t pooling_of(std::size_t table) const;

  void validate(const Parallel& parallel) const;
  /// Returns the kind of each NPU: NPUs of one kind have equal tables.
  std::vector<std::uint32_t> kinds_of_npus(const Parallel& parallel) const;
  std::vector<Layer> make_layers(const Parallel& parallel, std::optional<std::uint32_t> kind) const;
  ParameterCount count_parameters() const;
  std::uint64_t num_blocks() const { return 1; }

  friend bool operator==(const Dlrm&, const Dlrm&) = default;
};

}  // namespace orrery::workload
