#include "checkpoints.hpp"

#include <algorithm>

namespace orrery::campaign {

Checkpoints::Checkpoints(const Setup& setup) : tiers_(setup.tiers), saved_(tiers_.size(), {Saved{}}) {
  if (tiers_.empty()) return;
  interval_ = tiers_.front().interval;
  for (const Tier& tier : tiers_) multiples_.push_back(tier.interval / interval_);
}

Nanoseconds Checkpoints::next_due(Nanoseconds progress) const {
  return any() ? (progress / interval_ + 1) * interval_ : longest;
}

bool Checkpoints::is_due(Nanoseconds progress) const {
  if (!any() || progress == 0 || progress % interval_ != 0) return false;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    if (progress % tiers_[i].interval == 0 && saved_[i].back().progress < progress) return true;
  return false;
}

void Checkpoints::keep(std::size_t tier, Saved saved) {
  auto& all = saved_[tier];
  all.push_back(saved);
  if (all.size() > tiers_[tier].keep)
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(tiers_[tier].keep));
}

Nanoseconds Checkpoints::take_due(Nanoseconds progress, Nanoseconds now) {
  const auto is_due_in = [&](std::size_t i) {
    return progress % tiers_[i].interval == 0 && saved_[i].back().progress < progress;
  };
  Nanoseconds stall = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    if (is_due_in(i)) stall += tiers_[i].stall;
  for (std::size_t i = 0; i < tiers_.size(); ++i)
    if (is_due_in(i)) keep(i, {progress, now + std::max(tiers_[i].durable, stall)});
  return stall;
}

void Checkpoints::take_planned(Nanoseconds progress, Nanoseconds now) { saved_[0].push_back({progress, now}); }

Checkpoints::Restored Checkpoints::roll_back(Nanoseconds now, bool of_group, Nanoseconds before) {
  Restored best;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    auto& saved = saved_[i];
    const bool survives = of_group ? tiers_[i].survives_group : tiers_[i].survives_host;
    std::erase_if(saved,
                  [&](const Saved& s) { return survives ? s.durable > now || s.progress > before : s.progress > 0; });
    if (saved.empty()) saved.push_back({});
    if (!survives) continue;
    const Nanoseconds newest = saved.back().progress;
    if (newest > best.progress || (newest == best.progress && tiers_[i].read < best.read))
      best = {newest, tiers_[i].read};
  }
  for (auto& saved : saved_) {
    std::erase_if(saved, [&](const Saved& s) { return s.progress > best.progress; });
    if (saved.empty()) saved.push_back({});
  }
  return best;
}

Nanoseconds Checkpoints::stalls(Nanoseconds number) const {
  Nanoseconds sum = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i) sum += tiers_[i].stall * (number / multiples_[i]);
  return sum;
}

Nanoseconds Checkpoints::time_to(Nanoseconds work, Nanoseconds progress, Nanoseconds most) const {
  if (work - progress > most) return work - progress;
  if (!any()) return work - progress;
  return work - progress + stalls((work - 1) / interval_) - stalls(progress / interval_);
}

Checkpoints::Reached Checkpoints::run(Nanoseconds work, Nanoseconds progress, Nanoseconds now, Nanoseconds elapsed) {
  if (!any()) return {std::min(work, progress + elapsed), 0, 0};
  const Nanoseconds first = progress / interval_;
  const Nanoseconds stalls_before = stalls(first);
  const auto start_of = [&](Nanoseconds k) { return k * interval_ - progress + stalls(k - 1) - stalls_before; };
  Nanoseconds low = first, high = std::min((work - 1) / interval_, first + elapsed / interval_ + 1);
  while (low < high) {  // the last checkpoint that has begun
    const Nanoseconds middle = low + (high - low + 1) / 2;
    if (start_of(middle) <= elapsed)
      low = middle;
    else
      high = middle - 1;
  }
  const Nanoseconds last = low;
  if (last == first) return {std::min(work, progress + elapsed), 0, 0};
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const Nanoseconds newest = last / multiples_[i], before = first / multiples_[i];
    for (Nanoseconds n = std::max(before, newest - static_cast<Nanoseconds>(tiers_[i].keep)) + 1; n <= newest; ++n) {
      const Nanoseconds k = n * multiples_[i];
      keep(i, {k * interval_, now + start_of(k) + std::max(tiers_[i].durable, stall_of(k))});
    }
  }
  const Nanoseconds in_last = elapsed - start_of(last), stall = stall_of(last);
  const Nanoseconds stalled = stalls(last - 1) - stalls_before + std::min(in_last, stall);
  if (in_last < stall) return {last * interval_, stalled, stall - in_last};
  return {std::min(work, last * interval_ + in_last - stall), stalled, 0};
}

}  // namespace orrery::campaign
