#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/leading_requests.hpp"
#include "orrery/pdes/least_times.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/pending_set.hpp"

namespace orrery::pdes {

/// The pending events of a rank's LPs, which each cell handles in the order of time. A cell is a set of clients with
/// the servers that they call. One cell at a time is active, so that the state of few LPs is in use for long. It may be
/// ahead of other cells, up to the horizon: nothing that comes from another cell is earlier (docs/kernel.md, *Cells of
/// servers*). Costs are those of PendingSet, and O(log cells) for what passes between cells.
class OrderedCells {
 public:
  /// Because of other ranks, or of a stop, events at these times or later may not be handled yet.
  struct Limits {
    Time servers = Time::max(), clients = Time::max();
  };

  /// `of_lp`: [LPs] the cell of each; all are in one if it is empty. `service_delay`: see Options. `is_alone`: there
  /// are no other ranks.
  OrderedCells(std::vector<std::uint32_t> of_lp, Time service_delay, bool is_alone);

  // Of all cells:
  bool are_several() const { return cells_.size() > 1; }
  std::size_t size() const { return size_; }
  std::size_t peak() const { return peak_; }
  /// Returns the time of the earliest event of a client, of a server, or of a server that may lead to events on other
  /// ranks; max() if there is none.
  Time client_time() const { return std::min(client_times_.least(), cells_[active_].clients.time()); }
  Time server_time() const { return std::min(server_times_.least(), cells_[active_].servers.time()); }
  Time leading_time();
  /// Adds an event. Asks the model for its scope if that matters.
  void push(const Event& event, const Model& model);
  /// Takes note that an event of this time comes from another rank.
  void note_input(Time time) {
    if (are_several()) horizon_ = std::min(horizon_, time + service_delay_);
  }
  /// Returns the latest time that the servers in the cell of an LP have handled.
  Time served(LpId lp) const { return cells_[cell_of(lp)].served; }
  /// Says that all events up to this time have been handled.
  void begin_after(Time time) {
    for (Cell& cell : cells_) cell.served = time;
  }

  /// Calls visit(event) for all events of a stage, in no particular order.
  template <class Visit>
  void for_each(Stage stage, Visit&& visit) const {
    for (const Cell& cell : cells_) cell.of(stage).for_each(visit);
  }
  /// Takes out the events of servers for which is_wanted(event), and returns them in no particular order. There must be
  /// one cell. O(events).
  template <class IsWanted>
  std::vector<Event> take(IsWanted&& is_wanted) {
    ensure(!are_several(), "events of servers in several cells are taken back");
    std::vector<Event> taken = cells_.front().servers.take(is_wanted);
    size_ -= taken.size();
    return taken;
  }

  // Of the active cell:
  Time horizon() const { return horizon_; }
  const PendingSet& pending(Stage stage) const { return cells_[active_].of(stage); }
  Event pop_client() {
    --size_;
    return cells_[active_].clients.pop();
  }
  template <class Prefetch>
  Event pop_server(Prefetch&& prefetch) {
    --size_;
    return cells_[active_].servers.pop(prefetch);
  }
  void note_served(Time time) { cells_[active_].served = time; }
  /// Counts the events that the active cell has handled. Returns whether its turn is over.
  bool has_had_its_turn(std::uint64_t handled) { return are_several() && (handled_ += handled) >= turn; }
  /// Makes the cell active that has the earliest event, if this event may be handled. Returns whether there is one.
  bool begin_turn(const Limits& limits, Model& model);

 private:
  struct Cell {
    const PendingSet& of(Stage stage) const { return stage == Stage::client ? clients : servers; }

    PendingSet clients, servers;
    LeadingRequests leading, leaving;  // of `servers`: to other ranks, and to other cells
    Time served = Time::from_ps(-1);   // the latest time that its servers have handled
    bool has_changed = false;          // since its bound was found
    bool is_bound_exact = true;
  };
  static constexpr std::uint64_t turn = 65536;  ///< events, so that cells get on, and each comes into the cache seldom

  std::uint32_t cell_of(LpId lp) const { return of_lp_.empty() ? 0 : of_lp_[lp.index()]; }
  void note_times(std::uint32_t cell);
  std::optional<std::uint32_t> earliest_safe(const Limits& limits) const;
  bool raise_horizon(Model& model);
  Time bound_of(std::uint32_t cell, const LookaheadBound& calls);

  std::vector<std::uint32_t> of_lp_;
  Time service_delay_;
  bool is_alone_;
  std::vector<Cell> cells_;
  std::uint32_t active_ = 0;
  std::uint64_t handled_ = 0;                               // by the active cell in its turn
  LeastTimes client_times_, server_times_, leading_times_;  // [cells] of the earliest events; max() if it is active
  LeastTimes bounds_;                   // [cells] of the earliest events that a cell may bring about in other ones
  std::vector<std::uint32_t> changed_;  // cells whose bounds have to be found again
  Time horizon_;
  std::size_t size_ = 0, peak_ = 0;
};

}  // namespace orrery::pdes
