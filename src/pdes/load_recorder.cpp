#include "orrery/pdes/load_recorder.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "load_limits.hpp"
#include "orrery/base/error.hpp"

namespace orrery::pdes {
namespace {

// A flow is one number: two blocks of 12 bits and two bins of 20 bits. Bins of replies are one too.
constexpr std::uint32_t block_bits = 12, bin_bits = 20;
constexpr std::uint64_t bin_mask = (std::uint64_t{1} << bin_bits) - 1,
                        block_mask = (std::uint64_t{1} << block_bits) - 1;

constexpr std::uint64_t two_bins(std::uint64_t first, std::uint64_t second) { return first << bin_bits | second; }
constexpr std::uint64_t first_bin(std::uint64_t key) { return key >> bin_bits & bin_mask; }
constexpr std::uint64_t second_bin(std::uint64_t key) { return key & bin_mask; }

/// Makes the bins of counts wider by a factor of 2^by.
std::unordered_map<std::uint64_t, std::uint64_t> wider(const std::unordered_map<std::uint64_t, std::uint64_t>& counts,
                                                       std::uint32_t by) {
  std::unordered_map<std::uint64_t, std::uint64_t> result;
  for (const auto& [key, count] : counts)
    result[key >> 2 * bin_bits << 2 * bin_bits | two_bins(first_bin(key) >> by, second_bin(key) >> by)] += count;
  return result;
}

}  // namespace

LoadRecorder::LoadRecorder(LoadPlaces places)
    : places_(std::move(places)),
      log_bins_(static_cast<std::uint32_t>(std::countr_zero(most_bins(places_.num_blocks)))),
      num_bins_(std::uint64_t{1} << log_bins_),
      events_(places_.num_blocks * num_bins_) {
  ensure(places_.num_blocks <= block_mask + 1, "a load of too many blocks");
}

/// Makes bins so wide that a time is in one.
void LoadRecorder::fit(Time time) {
  std::uint32_t shift = shift_;
  while (static_cast<std::uint64_t>(time.ps()) >> shift >= num_bins_) ++shift;
  widen(shift);
}

void LoadRecorder::widen(std::uint32_t shift) {
  const std::uint32_t by = shift - shift_;
  shift_ = shift;
  for (std::size_t block = 0; block < places_.num_blocks; ++block) {
    std::uint64_t* const row = events_.data() + (block << log_bins_);
    for (std::uint64_t bin = 0; bin < num_bins_; ++bin) {
      const std::uint64_t events = std::exchange(row[bin], 0);
      row[bin >> by] += events;
    }
  }
  flows_ = wider(flows_, by);
  num_replies_ = 0;
  for (auto& [communicator, counts] : replies_) {
    counts = wider(counts, by);
    num_replies_ += counts.size();
  }
}

/// Keeps the number of flows and replies in bounds, as limit_rows does.
void LoadRecorder::limit() {
  while (flows_.size() + num_replies_ > load_limits::rows &&
         static_cast<std::uint64_t>(latest_.ps()) >> shift_ >= load_limits::least_bins)
    widen(shift_ + 1);
}

std::uint64_t LoadRecorder::bin_of(Time time) {
  latest_ = std::max(latest_, time);
  if (static_cast<std::uint64_t>(time.ps()) >> shift_ >= num_bins_) fit(time);
  return static_cast<std::uint64_t>(time.ps()) >> shift_;
}

void LoadRecorder::count(LpId lp, Time now) {
  auto bin = static_cast<std::uint64_t>(now.ps()) >> shift_;
  if (bin >= num_bins_) [[unlikely]] {
    fit(now);
    bin = static_cast<std::uint64_t>(now.ps()) >> shift_;
  }
  ++events_[(std::size_t{places_.block_of[lp.index()]} << log_bins_) + bin];
}

void LoadRecorder::pass(LpId from, Time sent, LpId to, Time arrives) {
  const std::uint64_t source = places_.block_of[from.index()], target = places_.block_of[to.index()];
  if (source == target || arrives == Time::max()) return;
  sent = std::max(sent, Time::zero());
  least_delay_ = std::min(least_delay_, arrives - sent);
  const std::uint64_t due = bin_of(arrives);
  ++flows_[(source << block_bits | target) << 2 * bin_bits | two_bins(bin_of(sent), due)];
  if (flows_.size() + num_replies_ > load_limits::rows) limit();
}

void LoadRecorder::reply(std::uint32_t communicator, Time last_arrival, Time first_end) {
  if (places_.is_spread[communicator] == 0 || first_end == Time::max()) return;
  const std::uint64_t due = bin_of(first_end);
  auto& count = replies_[communicator][two_bins(bin_of(last_arrival), due)];
  if (count++ == 0 && ++num_replies_ + flows_.size() > load_limits::rows) limit();
}

LoadRecord LoadRecorder::record() const {
  LoadRecord result;
  result.shift = shift_;
  result.num_blocks = places_.num_blocks;
  result.least_delay = least_delay_;
  for (std::uint32_t block = 0; block < places_.num_blocks; ++block)
    for (std::uint32_t bin = 0; bin < num_bins_; ++bin)
      if (const auto events = events_[(std::size_t{block} << log_bins_) + bin]; events > 0)
        result.events.push_back({block, bin, events});
  for (const auto& [key, events] : flows_)
    result.flows.push_back({static_cast<std::uint32_t>(key >> (2 * bin_bits + block_bits)),
                            static_cast<std::uint32_t>(key >> 2 * bin_bits & block_mask),
                            static_cast<std::uint32_t>(first_bin(key)), static_cast<std::uint32_t>(second_bin(key)),
                            events});
  for (const auto& [communicator, counts] : replies_)
    for (const auto& [key, count] : counts)
      result.replies.push_back({communicator, static_cast<std::uint32_t>(first_bin(key)),
                                static_cast<std::uint32_t>(second_bin(key)), count});
  limit_rows(result);
  return result;
}

}  // namespace orrery::pdes
