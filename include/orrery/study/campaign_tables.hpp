#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/campaign/campaign.hpp"
#include "orrery/campaign/optimum.hpp"
#include "orrery/config/campaign_file.hpp"
#include "orrery/results/table_file.hpp"
#include "orrery/study/campaign_times.hpp"

namespace orrery::study {

/// What a campaign found.
struct CampaignResults {
  const config::CampaignFile& file;
  const JobTimes& job;
  const campaign::Setup& setup;
  std::vector<campaign::Row> rows = {};
  std::vector<campaign::Period> timeline = {};
  std::vector<campaign::Estimate> estimates = {};  ///< [campaign::metrics()]
  /// What --optimise tried, by what it varied: interval, standby.
  std::vector<std::pair<std::string, campaign::Search>> searches = {};
  /// USD and J of an NPU-hour; nothing without prices.
  std::optional<double> usd_per_npu_hour = {}, joules_per_npu_hour = {};
};

/// A number that a formula gives.
struct ClosedForm {
  std::string name, units, description;
  double value = 0;
};
/// Returns what closed forms say of the setup.
std::vector<ClosedForm> closed_forms(const campaign::Setup& setup);

/// Returns the file of a campaign (docs/campaign.md).
results::TableFile campaign_file_of(const CampaignResults& found, const std::string& command_line);

/// Prints at most 20 lines of 80 columns.
void print_campaign(const CampaignResults& found);

}  // namespace orrery::study
