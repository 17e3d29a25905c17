#include "orrery/pdes/load_record.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "load_limits.hpp"

namespace orrery::pdes {
namespace {

auto numbers_of(const LoadEvents& row) { return std::tuple(row.block, row.bin); }
auto numbers_of(const LoadFlow& row) { return std::tuple(row.from, row.to, row.sent, row.arrives); }
auto numbers_of(const LoadReply& row) { return std::tuple(row.communicator, row.last_arrival, row.completion); }

/// Sorts rows and adds the counts of those up that have the same numbers.
template <class Row, class Count>
void sort_and_add_rows(std::vector<Row>& rows, Count Row::*count) {
  const auto numbers = [](const Row& row) { return numbers_of(row); };
  if (!std::ranges::is_sorted(rows, {}, numbers)) std::ranges::sort(rows, {}, numbers);
  std::size_t kept = 0;
  for (const Row& row : rows) {
    if (kept > 0 && numbers_of(rows[kept - 1]) == numbers_of(row))
      rows[kept - 1].*count += row.*count;
    else
      rows[kept++] = row;
  }
  rows.resize(kept);
}

/// Returns the number of the last bin of flows and replies.
std::uint32_t last_bin(const LoadRecord& record) {
  std::uint32_t last = 0;
  for (const auto& row : record.flows) last = std::max(last, row.arrives);
  for (const auto& row : record.replies) last = std::max(last, row.completion);
  return last;
}

}  // namespace

std::uint32_t most_bins(std::uint32_t num_blocks) {
  const std::uint32_t bins = load_limits::cells / std::bit_ceil(std::max(num_blocks, 1U));
  return std::min(bins, load_limits::bins);
}

void sort_and_add(LoadRecord& record) {
  sort_and_add_rows(record.events, &LoadEvents::events);
  sort_and_add_rows(record.flows, &LoadFlow::events);
  sort_and_add_rows(record.replies, &LoadReply::count);
}

void coarsen(LoadRecord& record, std::uint32_t shift) {
  const std::uint32_t by = shift - std::min(shift, record.shift);
  record.shift += by;
  for (auto& row : record.events) row.bin >>= by;
  for (auto& row : record.flows) {
    row.sent >>= by;
    row.arrives >>= by;
  }
  for (auto& row : record.replies) {
    row.last_arrival >>= by;
    row.completion >>= by;
  }
  sort_and_add(record);
}

void limit_rows(LoadRecord& record) {
  sort_and_add(record);
  while (record.flows.size() + record.replies.size() > load_limits::rows && last_bin(record) >= load_limits::least_bins)
    coarsen(record, record.shift + 1);
}

}  // namespace orrery::pdes
