#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/last_arrival.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/communicator/spec.hpp"

namespace orrery::communicator {

/// What a report says. In each of them the times are of participants on one rank.
enum class ReportKind : std::uint8_t {
  begun,        ///< to the host: a participant has arrived at this time; others of its rank have not
  arrivals,     ///< to the host: all participants of a rank have arrived, at these times
  completions,  ///< from the host: the participants complete at these times
  left,         ///< to the host: the last participant of a rank completed its part at this time (Execution::by_members)
};

/// What the member side and the host side of a communicator tell each other about one of its collectives. Times go
/// beside it: one for each participant of the rank in the order of their numbers, or a single one for all.
struct Report {
  std::uint32_t group = 0;      ///< GroupId of the communicator
  std::uint32_t ordinal = 0;    ///< number of the collective in its communicator, from 0
  std::uint32_t npu = 0;        ///< who said first which collective it is
  std::uint32_t depth = 0;      ///< pdes::Event::depth of what led to the report
  std::uint64_t node_id = 0;    ///< the node of that NPU, as its trace numbers nodes
  Bytes size = {};              ///< data of the collective; with `completions` the data that each member sent
  LastArrival last = {};        ///< last arrival, with `completions`
  collective::Turn turn = {};   ///< to the host: the least Join::turn of the participants
  Time recorded = {};           ///< shortest of what the participants recorded; zero: one recorded nothing
  std::uint8_t collective = 0;  ///< collective::Kind
  ReportKind kind = ReportKind::arrivals;
  /// Behind the times there are places among simultaneous events (wire::append): EndPlace with `completions`, JoinPlace
  /// with `arrivals`.
  bool has_places = false;
  bool is_recorded = true;  ///< all participants that have arrived want a record
};
static_assert(std::is_trivially_copyable_v<Report>);

/// Brings a report to the other side on rank `to`, which may be this one. The times are valid during the call.
using SendReport = std::function<void(Rank to, const Report& report, std::span<const Time> times)>;

/// Says where a node of an NPU's trace is, for errors. May read the trace of another rank's NPU.
using PlaceOf = std::function<Place(NpuId, std::uint64_t node)>;

/// Gives the first of two reports about one collective the larger size, which only an all-to-all that may be uneven
/// has. Throws Error (bad_input) that names both nodes if they disagree on its kind or size.
void agree(Report& first, const Report& other, bool may_be_uneven, const CommunicatorSpec& spec,
           const PlaceOf& place_of);

}  // namespace orrery::communicator
