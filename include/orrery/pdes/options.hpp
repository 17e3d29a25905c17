#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::pdes {

/// What may pass between this rank and another one. Delays are lower bounds; max() means that it never happens.
struct Neighbour {
  Rank rank;
  bool outgoing = false;             ///< this rank may send to it
  bool incoming = false;             ///< it may send to this rank
  Time event_delay = Time::max();    ///< from an action of a client here to its event for a client there
  Time service_delay = Time::max();  ///< from a request to a server here to its answer to a client there
  Time reply_delay = Time::max();    ///< from the first of the posts that belong together here to their reply there
  Time relay_delay = Time::max();    ///< from a request to a server here to that server's own request to a server there
  bool requests = false;             ///< clients here may call servers there, without delay
};

/// Whether and how a run is to end early.
enum class StopMode : std::uint8_t {
  none,
  now,        ///< as soon as all ranks know; clients and ranks may be ahead of others then
  caught_up,  ///< when every event is handled that is not later than the latest one that any rank has handled
};

struct Options {
  std::vector<Neighbour> neighbours;       ///< ascending in rank, without this rank
  std::uint32_t num_lps = 0;               ///< LPs on all ranks; every LP id is smaller
  Time service_delay = Time::max();        ///< from a request to any server of this rank to any answer
  Time reply_delay = Time::max();          ///< from the first of the posts that belong together to their reply here
  Time final_delay = Time::from_ps(1);     ///< from the last of the posts that belong together to any reply
  Time least_event_delay = Time::max();    ///< least event delay of all channels of all ranks
  Time least_service_delay = Time::max();  ///< least service or relay delay of all ranks to another rank
  Time least_reply_delay = Time::max();    ///< least reply delay of all ranks
  bool lps_run_ahead = false;              ///< clients may be ahead of others; the kernel then asks Model::awaits
  /// The cells of LPs, of which one at a time is handled; empty: all LPs are in one. If lps_run_ahead: [clients], see
  /// Cells. Else: [num_lps], see OrderedCells; then clients send to, and call, only LPs of their own cell on this rank,
  /// and posts bring about no replies.
  std::vector<std::uint32_t> cell_of;
  double watchdog_seconds = 300;  ///< the run ends with an error if no clock advances for so long; 0 = never
  /// A rank that has sent more bytes than this which the receivers have not taken yet handles nothing until they have.
  std::uint64_t most_bytes_under_way = std::uint64_t{64} << 20U;
  std::function<void(std::uint64_t events, Time now)> progress;  ///< called now and then, by a rank that waits too
  std::function<StopMode()> stop_mode;  ///< the kernel asks it now and then; a request of one rank is one of all
};

/// Returns the number of cells of Options::cell_of.
inline std::size_t num_cells(const std::vector<std::uint32_t>& cell_of) {
  return cell_of.empty() ? 1 : std::size_t{*std::ranges::max_element(cell_of)} + 1;
}

}  // namespace orrery::pdes
