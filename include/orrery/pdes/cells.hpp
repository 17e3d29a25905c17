#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/cell_events.hpp"
#include "orrery/pdes/deferred_events.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/least_times.hpp"

namespace orrery::pdes {

/// The pending events of clients that may be ahead of others, by cells: small sets of clients that talk most to each
/// other. One cell at a time is active, so that the state of few clients is in use for long (docs/kernel.md, *Cells*).
/// A cell is ready if it has events that are not known to be uncertain. Deferred are events that are. Costs are
/// O(log events of the cell), and O(log cells) where a cell that is not active is given its earliest event.
class Cells {
 public:
  /// `of_lp`: [LPs] the cell of each client; all in one if it is empty.
  Cells(std::vector<std::uint32_t> of_lp, std::size_t num_lps);

  /// Returns the number of events.
  std::size_t size() const { return num_pending_ + deferred_.size(); }
  std::size_t peak() const { return peak_; }
  /// Returns the time of the earliest event of all, max() if there is none.
  Time time() const { return is_active() ? std::min(times_.least(), time_of(active_)) : times_.least(); }
  /// Returns the client of the earliest event. There must be one.
  LpId first_lp() const;
  /// Adds an event. Its cell becomes ready.
  void push(const Event& event);

  /// Calls visit(event) for all events, in no particular order. O(LPs + events).
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Cell& cell : cells_) cell.pending.for_each(visit);
    deferred_.for_each(visit);
  }

  bool is_active() const { return active_ != none; }
  /// Makes the cell active that has been ready for longest. Returns whether there is one. No cell may be active.
  bool activate_ready();
  /// Makes the cell with the earliest event of all active. There must be one, and no cell may be active.
  void activate_earliest() { activate(times_.first()); }
  /// Ends the turn of the active cell. It stays ready if `is_ready`.
  void rest(bool is_ready);
  /// Counts the events that the active cell has handled. Returns whether its turn is over.
  bool has_had_its_turn(std::uint64_t handled) { return (handled_ += handled) >= turn; }

  // Of the active cell:
  bool has_pending() const { return !cells_[active_].pending.empty(); }
  const Event& top() const { return cells_[active_].pending.top(); }
  Event pop() {
    --num_pending_;
    return cells_[active_].pending.pop();
  }
  void defer(const Event& event) { deferred_.defer(event, active_); }

  bool has_deferred() const { return !deferred_.empty(); }
  /// Returns whether events of this client are deferred.
  bool holds(LpId lp) const { return deferred_.holds(lp); }
  /// Makes the deferred events of a client pending again. Their cell becomes ready.
  void release(LpId lp);
  /// Does so for all clients that have a deferred event before a time. Returns whether there are any.
  bool release_before(Time time);

 private:
  struct Cell {
    CellEvents pending;
    bool is_ready = false;
  };
  static constexpr std::uint32_t none = ~0U;
  static constexpr std::uint64_t turn = 4096;  ///< events, so that all cells get on

  Time pending_time(std::uint32_t cell) const {
    return cells_[cell].pending.empty() ? Time::max() : cells_[cell].pending.top().time;
  }
  Time time_of(std::uint32_t cell) const { return std::min(pending_time(cell), deferred_.time(cell)); }
  void activate(std::uint32_t cell);
  void make_ready(std::uint32_t cell);

  std::vector<std::uint32_t> of_lp_;
  std::vector<Cell> cells_;
  DeferredEvents deferred_;
  std::deque<std::uint32_t> ready_;
  LeastTimes times_;  // [cells] of the earliest event, max() if it is active
  std::uint32_t active_ = none;
  std::uint64_t handled_ = 0;
  std::size_t num_pending_ = 0, peak_ = 0;
};

}  // namespace orrery::pdes
