#include "orrery/pdes/cells.hpp"

#include <algorithm>
#include <bit>

namespace orrery::pdes {
namespace {

std::size_t count_of(const std::vector<std::uint32_t>& of_lp) {
  return of_lp.empty() ? 1 : std::size_t{*std::ranges::max_element(of_lp)} + 1;
}

}  // namespace

Cells::Cells(std::vector<std::uint32_t> of_lp, std::size_t num_lps)
    : of_lp_(std::move(of_lp)), cells_(count_of(of_lp_)), deferred_(num_lps, cells_.size()) {
  of_lp_.resize(num_lps, 0);
  leaves_ = std::bit_ceil(cells_.size());
  least_.resize(2 * leaves_, Time::max());
}

LpId Cells::first_lp() const {
  const std::uint32_t cell = is_active() && time_of(active_) <= least_[1] ? active_ : earliest();
  return deferred_.time(cell) <= pending_time(cell) ? deferred_.first_lp(cell) : cells_[cell].pending.top().target;
}

void Cells::push(const Event& event) {
  const std::uint32_t cell = of_lp_[event.target.index()];
  cells_[cell].pending.push(event);
  peak_ = std::max(peak_, ++num_pending_ + deferred_.size());
  if (cell == active_) return;
  make_ready(cell);
  if (event.time < least_[leaves_ + cell]) set_time(cell, event.time);
}

bool Cells::activate_ready() {
  if (ready_.empty()) return false;
  activate(ready_.front());
  return true;
}

void Cells::activate(std::uint32_t cell) {
  if (cells_[cell].is_ready) {
    ready_.erase(std::ranges::find(ready_, cell));
    cells_[cell].is_ready = false;
  }
  active_ = cell;
  handled_ = 0;
  set_time(cell, Time::max());
}

void Cells::rest(bool is_ready) {
  const std::uint32_t cell = std::exchange(active_, none);
  set_time(cell, time_of(cell));
  if (is_ready) make_ready(cell);
}

void Cells::make_ready(std::uint32_t cell) {
  if (std::exchange(cells_[cell].is_ready, true)) return;
  ready_.push_back(cell);
}

void Cells::release(LpId lp) {
  deferred_.release(
      lp, [this](const Event& event) { push(event); }, of_lp_[lp.index()]);
}

bool Cells::release_before(Time time) {
  bool any = false;
  for (std::uint32_t cell = 0; cell < cells_.size(); ++cell)
    while (deferred_.time(cell) < time) {
      release(deferred_.first_lp(cell));
      any = true;
    }
  return any;
}

std::uint32_t Cells::earliest() const {
  std::size_t node = 1;
  while (node < leaves_) node = 2 * node + static_cast<std::size_t>(least_[2 * node + 1] < least_[2 * node]);
  return static_cast<std::uint32_t>(node - leaves_);
}

void Cells::set_time(std::uint32_t cell, Time time) {
  std::size_t node = leaves_ + cell;
  least_[node] = time;
  while (node > 1) {
    node /= 2;
    const Time least = std::min(least_[2 * node], least_[2 * node + 1]);
    if (least_[node] == least) return;
    least_[node] = least;
  }
}

}  // namespace orrery::pdes
