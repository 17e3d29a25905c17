#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "line_script.hpp"
#include "orrery/collective/message_program.hpp"
#include "plan.hpp"

namespace orrery::collective {

/// A phase as its members see it.
struct ScriptPhase {
  const Axis* axis = nullptr;
  const std::uint32_t* stands = nullptr;  ///< [members] line * places + place; none: the members' own numbers
  std::unique_ptr<LineScript> lines;
  std::vector<bool> has_data;    ///< [lines] or empty: all
  std::uint64_t in_service = 1;  ///< services of its queue at a time

  std::uint32_t stand(std::uint32_t member) const { return stands == nullptr ? member : stands[member]; }
};

struct MessageProgram::Parts {
  Parts(const network::DelayModel& delays, const Options& options, std::shared_ptr<const GroupLayout> layout, Kind kind,
        Bytes size, const Schedule& schedule);

  ScriptPhase make_phase(const network::DelayModel& delays, const Options& options, const Phase& phase);
  std::vector<bool> lines_with_data(const Axis& axis) const;

  std::shared_ptr<const GroupLayout> layout;  ///< which phases point into
  std::uint64_t num_chunks = 0;
  std::vector<Service> services;
  std::vector<std::uint32_t> queue_of;                       ///< [services]
  std::map<const Axis*, std::vector<std::uint32_t>> stands;  ///< what phases point into
  std::vector<ScriptPhase> phases;                           ///< of all routes
};

}  // namespace orrery::collective
