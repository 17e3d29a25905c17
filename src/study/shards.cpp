#include "shards.hpp"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/quantity_text.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/metric_registry.hpp"
#include "orrery/results/study.hpp"
#include "study_table.hpp"

namespace orrery::study {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& found, std::string_view expected,
                         std::string_view hint = {}) {
  throw Error(ErrorCode::bad_input, {.file = file.string()}, found, expected, hint);
}

/// Returns the columns of Trial::metrics.
std::vector<std::string> columns() {
  std::vector<std::string> names;
  for (const auto& metric : results::study_metrics()) names.emplace_back(metric.name);
  for (const std::string_view figure : results::figure_names())
    names.push_back(column_of(fmt::format("/metrics/{}", figure)));
  return names;
}

struct Number {
  std::uint64_t index = 0, count = 0;
};
Number number_of(const std::string& shard, const std::filesystem::path& file) {
  const std::size_t slash = shard.find('/');
  if (slash == std::string::npos) refuse(file, "holds a whole study", "the file of a job with --shard");
  return {parse_count(shard.substr(0, slash), 0, 1'000'000), parse_count(shard.substr(slash + 1), 1, 1'000'000)};
}

void require_all(const std::map<std::uint64_t, std::filesystem::path>& shards, std::uint64_t count) {
  std::vector<std::uint64_t> missing;
  for (std::uint64_t i = 0; i < count; ++i)
    if (!shards.contains(i)) missing.push_back(i);
  if (!missing.empty())
    refuse(shards.begin()->second,
           fmt::format("is one of {} shards, and the files of others are missing: {}", count, fmt::join(missing, ", ")),
           "the files of all shards");
}

}  // namespace

std::map<std::uint64_t, Trial> read_shards(const std::vector<std::filesystem::path>& files,
                                           const TrialJournal::Identity& identity, const explore::Points& points) {
  const auto names = columns();
  std::map<std::uint64_t, std::filesystem::path> shards;
  std::map<std::uint64_t, Trial> trials, ruled_out;
  std::uint64_t count = 0;
  for (const auto& file : files) {
    const auto stored = results::read_study(file, names);
    if (const auto differing = differences(identity, stored.identity); !differing.empty())
      refuse(file, fmt::format("is of another study: {} differ", fmt::join(differing, ", ")), "a shard of this study");
    const Number shard = number_of(stored.shard, file);
    if (count != 0 && shard.count != count)
      refuse(file, fmt::format("is one of {} shards", shard.count),
             fmt::format("one of {}, as the first file is", count));
    count = shard.count;
    const auto [entry, is_new] = shards.emplace(shard.index, file);
    if (!is_new)
      refuse(file, fmt::format("is shard {}, and so is {}", shard.index, entry->second.string()), "each shard once");
    for (std::size_t row = 0; row < stored.number.size(); ++row) {
      Trial trial{status_of(stored.status[row]), {}, stored.error[row]};
      for (const auto& column : stored.metrics) trial.metrics.push_back(column[row]);
      auto& kept = trial.status == TrialStatus::ruled_out ? ruled_out : trials;
      kept.emplace(stored.number[row], std::move(trial));
    }
  }
  require_all(shards, count);
  for (std::size_t i = 0; i < points.size(); ++i)
    if (const auto number = points.number(i); !trials.contains(number) && !ruled_out.contains(number))
      refuse(shards[number % count], fmt::format("lacks trial {}", number), "all trials of the shard",
             "Run this shard again without --limit.");
  return trials;
}

}  // namespace orrery::study
