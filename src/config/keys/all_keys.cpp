#include "keys.hpp"

namespace orrery::config {
namespace {

/// Adds the keys that a subcommand has flags for.
template <class Target>
void add_flags(const Keys<Target>& keys, Taker command, std::vector<FlagKey>& flags) {
  for (const auto& key : keys)
    if (const auto& flag = key->info().flag; flag && flag->commands.has(command))
      flags.push_back({&key->info(), [&key](const std::string& text, const std::string& option) {
                         Configuration unused;
                         Faults faults;
                         Reading reading{unused, faults};
                         Target target{};
                         key->read(option_value(text), option, &target, reading);
                       }});
}

}  // namespace

std::span<const Keys<Configuration>* const> configuration_keys() {
  static const Keys<Configuration>* const all[] = {&system_keys(),
                                                   &network_keys(),
                                                   &packet_keys(),
                                                   &tcp_keys(),
                                                   &collective_keys(),
                                                   &gpu_keys(),
                                                   &custom_collective_keys(),
                                                   &collective_library_keys(),
                                                   &compute_keys(),
                                                   &communication_keys(),
                                                   &remote_memory_keys(),
                                                   &perturbation_keys(),
                                                   &cost_keys(),
                                                   &campaign_keys(),
                                                   &cluster_keys(),
                                                   &job_list_keys(),
                                                   &generated_workload_keys(),
                                                   &workload_keys(),
                                                   &provenance_keys(),
                                                   &run_keys()};
  return all;
}

const AnyKey* find_key(std::string_view path) {
  for (const auto* const keys : configuration_keys())
    if (const auto* const key = keys->find(path)) return key;
  return nullptr;
}

std::vector<FlagKey> flag_keys(Taker command) {
  std::vector<FlagKey> flags;
  for (const auto* const keys : configuration_keys()) add_flags(*keys, command, flags);
  add_flags(parallel_keys(), command, flags);
  add_flags(transformer_keys(), command, flags);
  return flags;
}

}  // namespace orrery::config
