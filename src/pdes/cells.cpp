#include "orrery/pdes/cells.hpp"

#include <algorithm>

#include "orrery/pdes/options.hpp"

namespace orrery::pdes {

Cells::Cells(std::vector<std::uint32_t> of_lp, std::size_t num_lps)
    : of_lp_(std::move(of_lp)), cells_(num_cells(of_lp_)), deferred_(num_lps, cells_.size()), times_(cells_.size()) {
  of_lp_.resize(num_lps, 0);
}

LpId Cells::first_lp() const {
  const std::uint32_t cell = is_active() && time_of(active_) <= times_.least() ? active_ : times_.first();
  return deferred_.time(cell) <= pending_time(cell) ? deferred_.first_lp(cell) : cells_[cell].pending.top().target;
}

void Cells::push(const Event& event) {
  const std::uint32_t cell = of_lp_[event.target.index()];
  cells_[cell].pending.push(event);
  peak_ = std::max(peak_, ++num_pending_ + deferred_.size());
  if (cell == active_) return;
  make_ready(cell);
  if (event.time < times_[cell]) times_.set(cell, event.time);
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
  times_.set(cell, Time::max());
}

void Cells::rest(bool is_ready) {
  const std::uint32_t cell = std::exchange(active_, none);
  times_.set(cell, time_of(cell));
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

}  // namespace orrery::pdes
