#include "idle_conditions.hpp"

namespace orrery::config {

std::vector<IdleCondition> idle_conditions_of_packets() {
  return {
      {{"system.network.packets."},
       "without system.network.model: packet",
       [](const IdleSubject& s) { return s.network().model->sends_packets; }},
      {{"system.network.packets.least-rate", "system.network.packets.additive-increase"},
       "without system.network.packets.control: dcqcn, dctcp, hpcc or timely",
       [](const IdleSubject& s) {
         return s.has_control({"dcqcn", "dctcp", "hpcc", "timely"});
       }},
      {{"system.network.packets.fast-increase"},
       "without system.network.packets.control: dcqcn or timely",
       [](const IdleSubject& s) {
         return s.has_control({"dcqcn", "timely"});
       }},
      {{"system.network.packets.gain"},
       "without system.network.packets.control: dcqcn or dctcp",
       [](const IdleSubject& s) {
         return s.has_control({"dcqcn", "dctcp"});
       }},
      {{"system.network.packets.payload", "system.network.packets.header", "system.network.packets.acknowledgement",
        "system.network.packets.time-unit", "system.network.packets.gain", "system.network.packets.least-rate",
        "system.network.packets.additive-increase"},
       "with system.network.packets.transport: tcp",
       [](const IdleSubject& s) { return !s.is_tcp(); }},
      {{"system.network.packets.alpha-interval", "system.network.packets.decrease-interval",
        "system.network.packets.increase-interval", "system.network.packets.fast-recovery-steps",
        "system.network.packets.clamps-target"},
       "without system.network.packets.control: dcqcn",
       [](const IdleSubject& s) { return s.has_control({"dcqcn"}); }},
      {{"system.network.packets.target-utilisation", "system.network.packets.increase-stages",
        "system.network.packets.telemetry-unit"},
       "without system.network.packets.control: hpcc",
       [](const IdleSubject& s) { return s.has_control({"hpcc"}); }},
      {{"system.network.packets.window-follows-rate"},
       "with a system.network.packets.control that sets no rates",
       [](const IdleSubject& s) { return s.has_window() && s.packets().control->make != nullptr; }},
      {{"system.network.packets.window"},
       "with a system.network.packets.control that sets the windows itself",
       [](const IdleSubject& s) { return s.has_window(); }},
      {{"system.network.packets.flow-control", "system.network.packets.pauses", "system.network.packets.buffer",
        "system.network.packets.reserve", "system.network.packets.headroom"},
       "with a system.network.packets.discipline whose ports have queues of their own",
       [](const IdleSubject& s) { return s.shares_buffers(); }},
      {{"system.network.packets.marks"},
       "with system.network.packets.transport: uec, or discipline: drop-tail",
       [](const IdleSubject& s) { return !s.is_uec() && s.packets().queues()->marks; }},
      {{"system.network.packets.buffer", "system.network.packets.reserve", "system.network.packets.headroom"},
       "with system.network.packets.flow-control: credits",
       [](const IdleSubject& s) { return !s.packets().uses_credits; }},
      {{"system.network.packets.pause-frame", "system.network.packets.share-shift",
        "system.network.packets.resume-offset"},
       "without system.network.packets.flow-control: pauses",
       [](const IdleSubject& s) { return s.shares_buffers() && !s.packets().uses_credits && s.packets().pauses; }},
      {{"system.network.packets.seed"},
       "without marks, a discipline with queues, a system.network.packets.routing that draws, or transport: uec",
       [](const IdleSubject& s) { return s.draws(); }},
  };
}

}  // namespace orrery::config
