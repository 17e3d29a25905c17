#include "orrery/workload/table_placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "layer.hpp"
#include "model_states.hpp"
#include "orrery/base/text.hpp"

namespace orrery::workload {
namespace {

TableSharding sharding_of(const Dlrm& model, std::size_t table, const TableDivision& division) {
  return model.tables[table].sharding.value_or(division.sharding);
}

/// Returns what one NPU has of each table that is not divided evenly or by rows.
std::vector<TablePart> parts_of(const Dlrm& model, const TableDivision& division) {
  std::vector<TablePart> parts;
  for (std::uint32_t i = 0; i < model.tables.size(); ++i) {
    const TableSharding sharding = sharding_of(model, i, division);
    if (sharding != TableSharding::table && sharding != TableSharding::column) continue;
    const std::uint64_t width = model.width_of(i);
    const std::uint64_t each = sharding == TableSharding::table ? width : division.columns;
    for (std::uint64_t at = 0; at < width; at += each) parts.push_back({i, std::min(each, width - at)});
  }
  return parts;
}

std::uint32_t most(const TablePlacement& placement, std::uint64_t TableShare::*what) {
  const auto& shares = placement.shares();
  const auto kind = std::ranges::max_element(shares, {}, what) - shares.begin();
  const auto& kinds = placement.kinds();
  return static_cast<std::uint32_t>(std::ranges::find(kinds, kind) - kinds.begin());
}

}  // namespace

TablePlacement::TablePlacement(const Dlrm& model, const Parallel& parallel) : parts_(parallel[Axis::dp]) {
  place(model, parallel.sharding.tables);
  count(model, parallel.sharding.tables);
}

void TablePlacement::place(const Dlrm& model, const TableDivision& division) {
  auto parts = parts_of(model, division);
  const auto load = [&](const TablePart& part) {
    return part.columns *
           (division.balance == TableBalance::bytes ? model.tables[part.table].rows : model.pooling_of(part.table));
  };
  std::ranges::stable_sort(parts, std::ranges::greater(), load);
  using Loaded = std::pair<std::uint64_t, std::uint32_t>;  // load, NPU
  std::priority_queue<Loaded, std::vector<Loaded>, std::greater<>> npus;
  for (std::uint32_t npu = 0; npu < parts_.size(); ++npu) npus.emplace(0, npu);
  for (const TablePart& part : parts) {
    const auto [least, npu] = npus.top();
    npus.pop();
    parts_[npu].push_back(part);
    npus.emplace(least + load(part), npu);
  }
}

void TablePlacement::count(const Dlrm& model, const TableDivision& division) {
  const std::uint64_t npus = parts_.size();
  TableShare common;              // what every NPU has
  std::uint64_t even = 0;         // parameters of all NPUs
  std::uint64_t vectors = 0;      // values of which NPUs send equal shares
  std::uint64_t row_indices = 0;  // that each NPU sends
  for (std::size_t i = 0; i < model.tables.size(); ++i) {
    const std::uint64_t rows = model.tables[i].rows, width = model.width_of(i), pooling = model.pooling_of(i);
    const TableSharding sharding = sharding_of(model, i, division);
    const bool is_even = sharding == TableSharding::even;
    if (!is_even && sharding != TableSharding::row) continue;
    common.read += pooling * width;
    common.pooled += (is_even ? 1 : npus) * width;
    if (is_even) {
      even += rows * width;
      vectors += width;
    } else {
      common.parameters += workload::share(rows, npus) * width;
      summed_ += npus * width;
      row_indices += pooling;
    }
  }
  common.parameters += workload::share(even, npus);
  std::map<TableShare, std::uint32_t> known;
  TableShare placed;  // of all NPUs together
  for (const auto& parts : parts_) {
    TableShare own;
    std::uint64_t sent = 0, asked = 0;
    for (const TablePart& part : parts) {
      own.parameters += model.tables[part.table].rows * part.columns;
      own.read += npus * model.pooling_of(part.table) * part.columns;
      sent += npus * part.columns;
      asked += npus * model.pooling_of(part.table);
    }
    own.pooled = sent;
    exchanged_ = std::max(exchanged_, vectors + sent);
    indices_ = std::max(indices_, row_indices + asked);
    const auto add = [](const TableShare& a, const TableShare& b) {
      return TableShare{a.parameters + b.parameters, a.read + b.read, a.pooled + b.pooled};
    };
    placed = add(placed, own);
    const auto [kind, added] = known.try_emplace(add(common, own), static_cast<std::uint32_t>(shares_.size()));
    if (added) shares_.push_back(kind->first);
    kinds_.push_back(kind->second);
  }
  mean_ = {common.parameters + workload::share(placed.parameters, npus),
           common.read + workload::share(placed.read, npus), common.pooled + workload::share(placed.pooled, npus)};
}

std::uint32_t TablePlacement::largest() const { return most(*this, &TableShare::parameters); }

std::uint32_t TablePlacement::busiest() const { return most(*this, &TableShare::read); }

TableBytes table_bytes(const TableShare& share, const Parallel& parallel) {
  const std::uint64_t each = value_bytes(parallel.precision);
  return {share.parameters * each, share.read * each * parallel.micro_batch};
}

std::string text_of(const TablePlacement& placement, const Parallel& parallel) {
  const TableBytes mean = table_bytes(placement.mean(), parallel);
  const auto line = [&](std::uint32_t npu, std::string_view does, std::uint64_t TableBytes::*what) {
    const std::uint64_t bytes = table_bytes(placement.share(npu), parallel).*what;
    return fmt::format("tables: NPU {} {}, {}, {:.2f} times the mean\n", npu, does, size_text(bytes, 0),
                       static_cast<double>(bytes) / static_cast<double>(mean.*what));
  };
  return line(placement.largest(), "holds most", &TableBytes::held) +
         line(placement.busiest(), "looks up most in a micro-batch", &TableBytes::read);
}

}  // namespace orrery::workload
