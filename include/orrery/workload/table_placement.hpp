#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "orrery/workload/dlrm.hpp"

namespace orrery::workload {

/// What a single NPU holds of a table: all its rows, and all its columns or some.
struct TablePart {
  std::uint32_t table = 0;  ///< its number
  std::uint64_t columns = 0;
};

/// The part of all tables that an NPU holds, and its work for one sample of each NPU.
struct TableShare {
  std::uint64_t parameters = 0;
  std::uint64_t read = 0;    ///< values that it looks up
  std::uint64_t pooled = 0;  ///< values that it makes of these

  friend auto operator<=>(const TableShare&, const TableShare&) = default;
};

/// Says which NPU of a DLRM holds which tables. Parts that one NPU has go, the largest first, each to the NPU with the
/// least so far, as in TorchRec's greedy partitioner. NPUs with equal shares are of one kind. Cost O(parts log NPUs +
/// NPUs).
class TablePlacement {
 public:
  TablePlacement(const Dlrm& model, const Parallel& parallel);

  /// Returns the tables of an NPU other than those of which all NPUs hold equal shares.
  const std::vector<TablePart>& parts(std::uint32_t npu) const { return parts_[npu]; }
  const TableShare& share(std::uint32_t npu) const { return shares_[kinds_[npu]]; }
  /// Returns the shares of each kind of NPU, and the kind of each NPU.
  const std::vector<TableShare>& shares() const { return shares_; }
  const std::vector<std::uint32_t>& kinds() const { return kinds_; }
  /// Returns the mean of all NPUs, rounded up.
  TableShare mean() const { return mean_; }
  /// Returns the NPU that holds most, and the NPU that looks up most.
  std::uint32_t largest() const;
  std::uint32_t busiest() const;

  // What NPUs exchange for one sample of each NPU. Exchanges take as long as that of the NPU with most.

  std::uint64_t exchanged() const { return exchanged_; }  ///< pooled values that each NPU sends to those who need them
  std::uint64_t summed() const { return summed_; }        ///< pooled values of a part of the rows, which are added up
  std::uint64_t indices() const { return indices_; }      ///< numbers of rows that NPUs send to those who hold them

 private:
  void place(const Dlrm& model, const TableDivision& division);
  void count(const Dlrm& model, const TableDivision& division);

  std::vector<std::vector<TablePart>> parts_;  ///< [npus]
  std::vector<TableShare> shares_;             ///< [kinds]
  std::vector<std::uint32_t> kinds_;           ///< [npus]
  TableShare mean_;
  std::uint64_t exchanged_ = 0, summed_ = 0, indices_ = 0;
};

/// The bytes of tables that an NPU holds, and those that it looks up for a micro-batch of all NPUs.
struct TableBytes {
  std::uint64_t held = 0, read = 0;
};
TableBytes table_bytes(const TableShare& share, const Parallel& parallel);

/// Returns two lines for people: which NPU holds most of the tables and which looks up most, and how much that is.
std::string text_of(const TablePlacement& placement, const Parallel& parallel);

}  // namespace orrery::workload
