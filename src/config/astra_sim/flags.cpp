#include "astra_sim.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view no_file = "empty";  // how ASTRA-sim's scripts name a file that there is not

constexpr auto flag_of(Text name, std::string_view argument = {}) {
  return flag(name, Heading::astra_sim, argument,
              {Taker::run, Taker::check, Taker::partition, Taker::show_topology, Taker::show_collective});
}

bool needs_workload(const AstraSimInputs&, const Reading& reading) { return !reading.system_only; }

constexpr Handling<AstraSimInputs> groups() {
  return {[](const Value& value, const std::string& path, AstraSimInputs& files, Reading&) {
    if (value.text != no_file) files.groups = as_path(value, path);
  }};
}

constexpr Handling<AstraSimInputs> ignored_file() {
  return {[](const Value& value, const std::string& path, AstraSimInputs& files, Reading&) {
    if (value.text != no_file) files.ignored.push_back(path.substr(path.find_first_not_of('-')));
  }};
}

constexpr AstraSimRow<AstraSimInputs> flag_rows[] = {
    {"workload-configuration", "workload.traces", "traces PREFIX.<npu>.et, one for each NPU", Default::none(),
     any_text("a prefix of traces"), [](auto& files) { return &files.workload; },
     flag_of("workload-configuration", "PREFIX"), needed_if(needs_workload, "the command needs a workload")},
    {"system-configuration", "system", "system.json", Default::needed(), file(),
     [](auto& files) { return &files.system; }, flag_of("system-configuration", "FILE")},
    {"network-configuration", "system.network", "network.yml, or config.txt of ns-3", Default::needed(), file(),
     [](auto& files) { return &files.network; }, flag_of("network-configuration", "FILE")},
    {"remote-memory-configuration", "system.remote-memory", "remote_memory.json", Default::none(), file(),
     [](auto& files) { return &files.remote_memory; }, flag_of("remote-memory-configuration", "FILE"),
     needed_if(needs_workload, "the command needs a workload")},
    {"logical-topology-configuration", "system.network.dimensions",
     "sizes of the dimensions, beside a config.txt of ns-3", Default::none(), file(),
     [](auto& files) { return &files.logical; }, flag_of("logical-topology-configuration", "FILE")},
    {"comm-group-configuration", "workload.groups", "comm_group.json, or `empty`", Default::none(), file(), groups(),
     flag_of("comm-group-configuration", "FILE")},
    {"num-queues-per-dim", "system.collectives.queues", "queues of each dimension", Default::built_in(), count(),
     [](auto& files) { return &files.num_queues_per_dim; }, flag_of("num-queues-per-dim", "N")},
    {"injection-scale", "system.collectives.endpoint-delay", "factor of the endpoint delay of system.json",
     Default::built_in(), number("0 or more"), [](auto& files) { return &files.injection_scale; },
     flag_of("injection-scale", "X")},
    {"rendezvous-protocol", "system.communication.rendezvous", "let a sender wait until its receiver is ready",
     Default::built_in(), boolean(), [](auto& files) { return &files.rendezvous; }, flag_of("rendezvous-protocol")},
    {"comm-scale", "-", "accepted, without effect; a warning names it unless it is 1", Default::built_in(),
     number("0 or more"), [](auto& files) { return &files.comm_scale; }, flag_of("comm-scale", "X")},
    {"compute-scale", "-", "accepted, without effect; a warning names it unless it is 1", Default::built_in(),
     number("0 or more"), [](auto& files) { return &files.compute_scale; }, flag_of("compute-scale", "X")},
    {"logging-folder", "-", "accepted, without effect; a warning names it unless it is `empty`", Default::none(),
     file(), ignored_file(), flag_of("logging-folder", "FILE")},
    {"logging-configuration", "-", "accepted, without effect; a warning names it unless it is `empty`", Default::none(),
     file(), ignored_file(), flag_of("logging-configuration", "FILE")},
};

}  // namespace

const Keys<AstraSimInputs>& astra_sim_flags() {
  static const Keys<AstraSimInputs> all("ASTRA-sim's flags", flag_rows);
  return all;
}

}  // namespace orrery::config
