#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "group_layout.hpp"
#include "line.hpp"
#include "routes.hpp"
#include "schedule.hpp"

namespace orrery::collective {

/// Chunks of the phase's queue that are in service at a time.
std::uint64_t in_service(const network::DelayModel& delays, const Options& options, const Phase& phase);

/// Bandwidth is shared by this many chunks in each axis (docs/collectives.md); 1 where the rules do not share it.
std::vector<std::uint64_t> shares(const Rules& rules, const std::vector<Stage>& stages, std::uint64_t num_chunks);

/// And by this many collectives, each of whose chunks they are.
std::uint32_t sharers(const Rules& rules, const Options& options, const Axis& axis);

/// Working memory of Plan::run, kept between calls.
struct Workspace {
  std::vector<Ps> arrays;  ///< [Schedule::num_arrays][members]
  std::vector<Ps> times;   ///< [lines][places]
  std::vector<Ps> starts;  ///< [lines][places]
  Scratch scratch;
};

/// Everything that completions follow from, for one layout, kind and size. The layout must outlive it.
class Plan {
 public:
  Plan(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind, Bytes size);

  /// Members that arrive together complete together, `end` later.
  bool alike() const { return alike_; }
  /// From an arrival that all share to the last completion.
  Ps end() const { return schedule_.end; }
  const Schedule& schedule() const { return schedule_; }
  /// Bytes that the plan holds, within a factor of two.
  std::size_t memory() const;
  /// The recurrences (docs/model.md, 5) in the order of the schedule. arrivals and completions: [members]; no arrival
  /// before 0. O(members * chunks * phases) for rings and the shapes in which all pairs are alike.
  void run(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const;

 private:
  struct Stop {
    const Axis* axis = nullptr;
    std::unique_ptr<LineProgram> program;
    Ps latency[2] = {0, 0};  ///< of even and odd chunks: for what their bytes do not hold up who comes next
    Ps busy[2] = {0, 0};     ///< the rest
  };

  std::vector<Stop> stops_;  ///< one per stage of the schedule
  Schedule schedule_;
  bool alike_ = true;
};

}  // namespace orrery::collective
