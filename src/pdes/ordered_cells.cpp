#include "orrery/pdes/ordered_cells.hpp"

#include "orrery/pdes/options.hpp"

namespace orrery::pdes {

OrderedCells::OrderedCells(std::vector<std::uint32_t> of_lp, Time service_delay, bool is_alone)
    : of_lp_(std::move(of_lp)),
      service_delay_(service_delay),
      is_alone_(is_alone),
      cells_(num_cells(of_lp_)),
      client_times_(cells_.size()),
      server_times_(cells_.size()),
      leading_times_(cells_.size()),
      bounds_(cells_.size()),
      horizon_(are_several() ? Time::zero() : Time::max()) {}

Time OrderedCells::leading_time() {
  Cell& active = cells_[active_];
  return std::min(leading_times_.least(), active.leading.next(active.servers));
}

void OrderedCells::push(const Event& event, const Model& model) {
  const std::uint32_t number = cell_of(event.target);
  Cell& cell = cells_[number];
  if (event.stage() == Stage::client) {
    cell.clients.push(event);
  } else {
    const Scope scope = is_alone_ && !are_several() ? Scope::anywhere : model.scope(event);
    if (!is_alone_) cell.leading.note(cell.servers, event.time, scope == Scope::anywhere);
    if (are_several()) cell.leaving.note(cell.servers, event.time, scope != Scope::cell);
    cell.servers.push(event);
  }
  peak_ = std::max(peak_, ++size_);
  if (number == active_) return;
  note_input(event.time);
  note_times(number);
}

/// Takes note of the earliest events of a cell that is not active, which may have changed.
void OrderedCells::note_times(std::uint32_t number) {
  Cell& cell = cells_[number];
  client_times_.set(number, cell.clients.time());
  server_times_.set(number, cell.servers.time());
  if (!is_alone_) leading_times_.set(number, cell.leading.next(cell.servers));
  if (std::exchange(cell.has_changed, true)) return;
  changed_.push_back(number);
}

bool OrderedCells::begin_turn(const Limits& limits, Model& model) {
  note_times(active_);
  std::optional<std::uint32_t> next = earliest_safe(limits);
  while (!next && raise_horizon(model)) next = earliest_safe(limits);
  if (next) active_ = *next;
  handled_ = 0;
  for (LeastTimes* times : {&client_times_, &server_times_, &leading_times_}) times->set(active_, Time::max());
  return next.has_value();
}

/// Returns the cell with the earliest event, if the kernel may handle one of its events now. No cell is active.
std::optional<std::uint32_t> OrderedCells::earliest_safe(const Limits& limits) const {
  const std::uint32_t of_server = server_times_.first(), of_client = client_times_.first();
  if (server_times_.least() < client_times_[of_server] && server_times_.least() < std::min(limits.servers, horizon_))
    return of_server;
  const Time answer = server_times_[of_client] + service_delay_;
  if (client_times_.least() < std::min({limits.clients, horizon_, answer})) return of_client;
  return {};
}

/// Finds the horizon again from what all cells may bring about. Returns whether it is later than it was. The model is
/// asked about those cells only that come first as far as is known without it.
bool OrderedCells::raise_horizon(Model& model) {
  for (const std::uint32_t number : changed_) {
    Cell& cell = cells_[number];
    const Time bound = bound_of(number, {Time::zero(), Time::zero()});
    bounds_.set(number, bound);
    cell.has_changed = false;
    cell.is_bound_exact = bound == cell.leaving.next(cell.servers) + service_delay_;
  }
  changed_.clear();
  for (;;) {
    const std::uint32_t first = bounds_.first();
    if (std::exchange(cells_[first].is_bound_exact, true)) break;
    bounds_.set(first, bound_of(first, model.lookahead_of_cell(first)));
  }
  if (bounds_.least() <= horizon_) return false;
  horizon_ = bounds_.least();
  return true;
}

/// Returns the time before which a cell brings about nothing in other ones, if nothing comes from there before. `calls`
/// bounds the calls of its clients from which something follows in other cells.
Time OrderedCells::bound_of(std::uint32_t number, const LookaheadBound& calls) {
  Cell& cell = cells_[number];
  const Time earliest = std::min(client_times_[number], server_times_[number] + service_delay_);
  const Time call = std::max(earliest, std::min(calls.output, earliest + calls.reaction));
  return std::min(call, cell.leaving.next(cell.servers)) + service_delay_;
}

}  // namespace orrery::pdes
