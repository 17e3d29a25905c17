#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "algorithm.hpp"
#include "orrery/collective/message_program.hpp"
#include "plan.hpp"

namespace orrery::collective {

/// A phase as its members see it.
struct ProgramPhase {
  const Axis* axis = nullptr;
  const std::uint32_t* cells = nullptr;  ///< [members] group * positions + position; null: the members' own numbers
  ForChunks<std::unique_ptr<PositionProgram>> programs;
  std::vector<bool> has_data;    ///< [groups]; empty: all groups have data
  std::uint64_t in_service = 1;  ///< services of its queue at a time

  std::uint32_t cell(std::uint32_t member) const { return cells == nullptr ? member : cells[member]; }
};

struct MessageProgram::Parts {
  Parts(const network::DelayModel& delays, const Options& options, std::shared_ptr<const GroupLayout> layout, Kind kind,
        Bytes size, Turn turn, const Schedule& schedule);
  /// Makes a program of all members together, which carry out all of `programs` beside each other.
  Parts(std::shared_ptr<const GroupLayout> layout, std::vector<std::unique_ptr<PositionProgram>> programs);

  ProgramPhase make_phase(const network::DelayModel& delays, const Options& options, const Phase& phase);
  std::vector<bool> groups_with_data(const Axis& axis) const;

  std::shared_ptr<const GroupLayout> layout;  ///< which phases point into
  bool clears_first = false;                  ///< network::Rules::clears_first
  bool in_order_of_chunks = false;            ///< Rules::chunks_begin_in_order
  std::uint64_t num_chunks = 0;
  std::vector<Service> services;
  std::vector<std::uint32_t> queue_of;                      ///< [services]
  std::map<const Axis*, std::vector<std::uint32_t>> cells;  ///< cells that phases point into
  std::unique_ptr<Axis> everyone;                           ///< group of all members, which phases point into too
  std::vector<ProgramPhase> phases;                         ///< phases of all routes
};

}  // namespace orrery::collective
