#include "flat_pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "count_pool.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"

namespace orrery::cluster {

FlatPool::FlatPool(const Places& places, std::uint64_t seed)
    : Pool(places.npus, places.npus),
      policy_(places.policy),
      leaf_(places.leaf == 0 ? places.npus : places.leaf),
      num_leaves_((places.npus + leaf_ - 1) / leaf_),
      host_(places.npus_per_host),
      seed_(seed),
      free_((places.npus + 63) / 64, 0),
      of_leaf_(num_leaves_, 0),
      of_host_((places.npus + host_ - 1) / host_, 0),
      hosts_of_leaf_(num_leaves_, 0) {
  num_free_ = 0;
  Place all{places.npus, {}};
  for (std::uint32_t npu = 0; npu < places.npus; ++npu) all.npus.push_back(npu);
  change(all, true);
}

FlatPool::Request FlatPool::request(const Job& job) const {
  if (host_ == 1 || 2 * job.npus <= host_) return {job.npus, 1};
  return {(job.npus + host_ - 1) / host_, host_};
}

std::uint32_t FlatPool::occupied(const Job& job) const {
  const Request needed = request(job);
  return needed.units * needed.unit;
}

/// Marks NPUs that follow one another. O(NPUs / 64 + hosts + leaves).
void FlatPool::change_run(std::uint32_t first, std::uint32_t end, bool is_free) {
  // Calls visit(part, NPUs of the run in it) for each part of `size` NPUs that the run meets.
  const auto each_part = [&](std::uint32_t size, auto visit) {
    for (std::uint32_t part = first / size; part * size < end; ++part)
      visit(part, std::min(end, (part + 1) * size) - std::max(first, part * size));
  };
  each_part(64, [&](std::uint32_t word, std::uint32_t count) {
    const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    free_[word] ^= ones << (std::max(first, word * 64) - word * 64);
  });
  each_part(leaf_, [&](std::uint32_t leaf, std::uint32_t count) {
    of_leaf_[leaf] = is_free ? of_leaf_[leaf] + count : of_leaf_[leaf] - count;
  });
  if (host_ == 1) return;  // units are NPUs
  each_part(host_, [&](std::uint32_t host, std::uint32_t count) {
    const bool was_free = of_host_[host] == host_;
    of_host_[host] = is_free ? of_host_[host] + count : of_host_[host] - count;
    if (was_free == (of_host_[host] == host_)) return;
    const std::uint32_t leaf = host * host_ / leaf_;
    free_hosts_ = was_free ? free_hosts_ - 1 : free_hosts_ + 1;
    hosts_of_leaf_[leaf] = was_free ? hosts_of_leaf_[leaf] - 1 : hosts_of_leaf_[leaf] + 1;
  });
}

void FlatPool::change(const Place& place, bool is_free) {
  const auto& npus = place.npus;
  const bool is_one_run = policy_ == Placing::contiguous;
  for (std::size_t i = 0; i < npus.size();) {
    std::size_t end = is_one_run ? npus.size() : i + 1;
    while (end < npus.size() && npus[end] == npus[end - 1] + 1) ++end;
    change_run(npus[i], npus[end - 1] + 1, is_free);
    i = end;
  }
  const auto count = static_cast<std::uint32_t>(npus.size());
  num_free_ = is_free ? num_free_ + count : num_free_ - count;
  longest_run_ = -1;
}

bool FlatPool::is_unit_free(std::uint32_t unit, std::uint32_t size) const {
  return size == 1 ? is_free(unit) : of_host_[unit] == host_;
}

template <class Visit>
void FlatPool::visit_free(std::uint32_t first, std::uint32_t end, std::uint32_t size, Visit visit) const {
  if (size > 1) {
    for (std::uint32_t unit = first; unit < end; ++unit)
      if (is_unit_free(unit, size) && !visit(unit)) return;
    return;
  }
  for (std::uint32_t word = first / 64; word * 64 < end; ++word)
    for (std::uint64_t bits = free_[word]; bits != 0; bits &= bits - 1) {
      const std::uint32_t npu = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (npu >= end) return;
      if (npu >= first && !visit(npu)) return;
    }
}

std::uint32_t FlatPool::longest_run() const {
  if (longest_run_ >= 0) return static_cast<std::uint32_t>(longest_run_);
  std::uint32_t longest = 0, run = 0;
  for (const std::uint64_t word : free_) {
    if (word == ~std::uint64_t{0}) {
      run += 64;
      continue;
    }
    std::uint64_t rest = word;
    for (std::uint32_t left = 64; left > 0;) {
      const auto ones = std::min(left, static_cast<std::uint32_t>(std::countr_one(rest)));
      run += ones;
      left -= ones;
      if (left == 0) break;
      longest = std::max(longest, run);
      run = 0;
      rest = ones == 64 ? 0 : rest >> ones;
      const auto zeros = std::min(left, static_cast<std::uint32_t>(std::countr_zero(rest)));
      left -= zeros;
      rest = zeros >= 64 ? 0 : rest >> zeros;
    }
  }
  longest_run_ = std::max(longest, run);
  return static_cast<std::uint32_t>(longest_run_);
}

bool FlatPool::fits(const Job& job) const {
  const Request needed = request(job);
  if (policy_ != Placing::contiguous) return needed.unit == 1 ? needed.units <= num_free_ : needed.units <= free_hosts_;
  if (needed.units * needed.unit > num_free_) return false;
  if (needed.unit == 1) return needed.units <= longest_run();
  return !contiguous(needed).empty();
}

FlatPool::Units FlatPool::first(const Request& needed) const {
  Units units;
  visit_free(0, num_npus_ / needed.unit, needed.unit, [&](std::uint32_t unit) {
    units.push_back(unit);
    return units.size() < needed.units;
  });
  return units;
}

FlatPool::Units FlatPool::contiguous(const Request& needed) const {
  std::uint32_t begin = 0, length = 0;
  visit_free(0, num_npus_ / needed.unit, needed.unit, [&](std::uint32_t unit) {
    if (length == 0 || unit != begin + length) {
      begin = unit;
      length = 0;
    }
    return ++length < needed.units;
  });
  Units units;
  if (length < needed.units) return units;
  for (std::uint32_t i = 0; i < length; ++i) units.push_back(begin + i);
  return units;
}

std::uint32_t FlatPool::free_units_of_leaf(std::uint32_t leaf, std::uint32_t size) const {
  return size == 1 ? of_leaf_[leaf] : hosts_of_leaf_[leaf];
}

void FlatPool::take_of_leaf(std::uint32_t leaf, std::uint32_t count, std::uint32_t size, Units& units) const {
  const std::uint32_t first = leaf * leaf_ / size, end = std::min(num_npus_, (leaf + 1) * leaf_) / size;
  if (count == 0) return;
  visit_free(first, end, size, [&](std::uint32_t unit) {
    units.push_back(unit);
    return --count > 0;
  });
}

FlatPool::Units FlatPool::packed(const Request& needed) const {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<std::uint8_t> is_used(num_leaves_, 0);
  const auto fullest_with = [&](std::uint32_t count) {
    std::uint32_t best = none;
    for (std::uint32_t leaf = 0; leaf < num_leaves_; ++leaf) {
      const std::uint32_t free = free_units_of_leaf(leaf, needed.unit);
      if (free >= count && is_used[leaf] == 0 && (best == none || free < free_units_of_leaf(best, needed.unit)))
        best = leaf;
    }
    return best;
  };
  Units units;
  if (const std::uint32_t leaf = fullest_with(needed.units); leaf != none) {
    take_of_leaf(leaf, needed.units, needed.unit, units);
    return units;
  }
  std::vector<std::uint32_t> order(num_leaves_);
  for (std::uint32_t leaf = 0; leaf < num_leaves_; ++leaf) order[leaf] = leaf;
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return free_units_of_leaf(a, needed.unit) > free_units_of_leaf(b, needed.unit);
  });
  for (std::uint32_t leaf : order) {
    const auto rest = needed.units - static_cast<std::uint32_t>(units.size());
    if (free_units_of_leaf(leaf, needed.unit) >= rest) leaf = fullest_with(rest);
    take_of_leaf(leaf, std::min(rest, free_units_of_leaf(leaf, needed.unit)), needed.unit, units);
    is_used[leaf] = 1;
    if (units.size() == needed.units) break;
  }
  return units;
}

FlatPool::Units FlatPool::random(const Request& needed, std::uint64_t number) const {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> drawn;
  const std::uint64_t key = mix(seed_, number);
  visit_free(0, num_npus_ / needed.unit, needed.unit, [&](std::uint32_t unit) {
    drawn.emplace_back(mix(key, unit), unit);
    return true;
  });
  const auto end = drawn.begin() + needed.units;
  if (end != drawn.end()) std::nth_element(drawn.begin(), end, drawn.end());
  Units units;
  for (auto it = drawn.begin(); it != end; ++it) units.push_back(it->second);
  std::ranges::sort(units);
  return units;
}

Place FlatPool::find(const Job& job, std::uint64_t number) const {
  const Request needed = request(job);
  Units units;
  if (policy_ == Placing::first) units = first(needed);
  if (policy_ == Placing::contiguous) units = contiguous(needed);
  if (policy_ == Placing::packed) units = packed(needed);
  if (policy_ == Placing::random) units = random(needed, number);
  ensure(units.size() == needed.units, "a job that fits has a place");
  if (needed.unit == 1) return {needed.units, std::move(units)};
  Place place{needed.units * needed.unit, {}};
  for (const std::uint32_t unit : units)
    for (std::uint32_t i = 0; i < needed.unit; ++i) place.npus.push_back(unit * needed.unit + i);
  return place;
}

std::unique_ptr<Pool> FlatPool::copy() const {
  if (policy_ != Placing::contiguous && host_ == 1) return std::make_unique<CountPool>(num_npus_, num_free_);
  return std::make_unique<FlatPool>(*this);
}

std::vector<std::uint32_t> FlatPool::leaves(const Place& place) const {
  std::vector<std::uint32_t> found;
  for (const std::uint32_t npu : place.npus)
    if (found.empty() || found.back() != npu / leaf_) found.push_back(npu / leaf_);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace orrery::cluster
