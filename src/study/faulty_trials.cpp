#include "faulty_trials.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "study_table.hpp"

namespace orrery::study {
namespace {

constexpr std::size_t most_reasons = 5;
constexpr std::size_t longest_reason = 500;

/// Why some trials have a fault.
struct FaultReason {
  TrialStatus status = TrialStatus::refused;
  std::string text;
  std::uint64_t count = 0;
  std::size_t first = 0;  ///< row
};

bool has_fault(TrialStatus status) {
  return status == TrialStatus::refused || status == TrialStatus::stuck || status == TrialStatus::failed ||
         status == TrialStatus::timed_out;
}

/// Returns the reasons, the most frequent one first.
std::vector<FaultReason> fault_reasons(const std::vector<Row>& rows) {
  std::map<std::pair<TrialStatus, std::string>, std::size_t> positions;
  std::vector<FaultReason> reasons;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const Trial& trial = rows[row].trial;
    if (!has_fault(trial.status)) continue;
    const auto [known, is_new] = positions.emplace(std::pair(trial.status, trial.text), reasons.size());
    if (is_new) reasons.push_back({trial.status, trial.text, 0, row});
    ++reasons[known->second].count;
  }
  std::ranges::stable_sort(reasons, std::greater<>(), &FaultReason::count);
  return reasons;
}

}  // namespace

void print_faulty_trials(const StudyRun& run, const std::vector<Row>& rows) {
  const auto reasons = fault_reasons(rows);
  if (reasons.empty()) return;
  fmt::print("\nWhy trials are not done:\n");
  for (std::size_t i = 0; i < std::min(reasons.size(), most_reasons); ++i) {
    const FaultReason& reason = reasons[i];
    std::string text = reason.text;
    for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) text.replace(at, 3, "; ");
    fmt::print("{:>12}  {}: {}\n{:>14}such as trial {} ({})\n", reason.count, name(reason.status),
               cited(text, longest_reason), "", rows[reason.first].number,
               values_text(run.space, run.points[reason.first], all_names(run.study)));
  }
  std::uint64_t rest = 0;
  for (std::size_t i = most_reasons; i < reasons.size(); ++i) rest += reasons[i].count;
  if (rest > 0)
    fmt::print("{:>12}  for {}, which the results have\n", rest, counted(reasons.size() - most_reasons, "more reason"));
}

}  // namespace orrery::study
