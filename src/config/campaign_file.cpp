#include "orrery/config/campaign_file.hpp"

#include "keys/keys.hpp"
#include "orrery/base/text.hpp"
#include "resolution.hpp"

namespace orrery::config {

CampaignFile read_campaign(const Inputs& inputs) {
  CampaignFile result;
  Faults faults;
  Value root;
  faults.attempt([&] { root = read_root(inputs, result.configuration, faults); });
  faults.raise();
  result.has_system = root.find("system") != nullptr;
  result.has_workload = root.find("workload") != nullptr || root.find("jobs") != nullptr;
  if (result.has_system) {
    Inputs whole = inputs;
    whole.system_only = !result.has_workload;
    result.configuration = read(whole);
    return result;
  }
  Reading reading{result.configuration, faults, true};
  Sections sections(Section(&root, "", root, faults));
  read_keys(campaign_keys(), sections, result.configuration, reading);
  read_keys(cluster_keys(), sections, result.configuration, reading);
  sections.refuse_unknown();
  faults.raise();
  return result;
}

bool is_of_cluster(const Inputs& inputs) {
  Configuration unused;
  Faults faults;
  Value root;
  faults.attempt([&] { root = read_root(inputs, unused, faults); });
  return faults.empty() && root.find("cluster") != nullptr && root.find("workload") == nullptr &&
         root.find("jobs") == nullptr;
}

}  // namespace orrery::config
