#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/results/scaling.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;
using results::ScalingRow;

/// Returns the numbers of ranks that were asked for, else powers of two. Throws Error (usage) for more ranks than
/// blocks.
std::vector<std::uint32_t> ranks_of(const ShowScalingCommand& command, std::uint32_t num_blocks) {
  if (command.ranks.empty()) {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t r = 2; r <= num_blocks; r *= 2) ranks.push_back(r);
    return ranks.empty() ? std::vector<std::uint32_t>{1} : ranks;
  }
  for (const std::uint32_t r : command.ranks)
    if (r > num_blocks)
      throw Error(ErrorCode::usage,
                  fmt::format("orrery show scaling: --ranks: found {}, but {} holds the load of {}; expected ranks of "
                              "1 to {}",
                              r, command.file.string(), counted(num_blocks, "block"), num_blocks));
  return command.ranks;
}

ordered_json to_json(const ScalingRow& row) {
  return {{"ranks", row.ranks},
          {"most_events", row.most_events},
          {"mean_events", row.mean_events},
          {"events_sent", row.events_sent},
          {"posts_sent", row.posts_sent},
          {"messages", row.messages},
          {"waits", row.waits},
          {"time_s", row.time},
          {"time_ahead_s", row.time_ahead},
          {"speedup", row.speedup},
          {"speedup_ahead", row.speedup_ahead},
          {"efficiency", row.efficiency},
          {"time_without_messages_s", row.time_without_messages},
          {"limit", name(row.limit)}};
}

void print_text(const results::LoadTable& table, const results::RankSpeed& speed, const std::vector<ScalingRow>& rows) {
  const auto& load = table.load;
  fmt::print("{} of {} on {}; {} of NPUs; bins of {}\n", counted(table.events, "event"), counted(load.num_npus, "NPU"),
             counted(static_cast<std::uint64_t>(table.num_ranks), "rank"), counted(load.record.num_blocks, "block"),
             readable(Time::from_ps(static_cast<std::int64_t>(load.record.bin_width()))));
  fmt::print("an event takes {:.4g} ns, a message {:.4g} ns from each of its two ranks, and {:.4g} ns under way\n",
             speed.event_time * 1e9, speed.message_time * 1e9, speed.latency * 1e9);
  fmt::print("one rank: {:.4g} s\n\n", static_cast<double>(table.events) * speed.event_time);
  fmt::print("{:>5} {:>10} {:>5} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9}\n", "", "events of", "most/", "events", "posts",
             "", "waits", "seconds", "seconds");
  fmt::print("{:>5} {:>10} {:>5} {:>9} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>5}  {}\n", "ranks", "busiest", "mean",
             "sent", "sent", "messages", "a rank", "ahead", "in order", "speedup", "eff.", "limit");
  for (const ScalingRow& row : rows)
    fmt::print("{:>5} {:>10} {:>5.2f} {:>9} {:>9} {:>9} {:>7.0f} {:>9.4g} {:>9.4g} {:>7.2f} {:>5.2f}  {}\n", row.ranks,
               row.most_events, row.mean_events > 0 ? static_cast<double>(row.most_events) / row.mean_events : 1,
               row.events_sent, row.posts_sent, row.messages, static_cast<double>(row.waits) / row.ranks,
               row.time_ahead, row.time, row.speedup, row.efficiency, name(row.limit));
}

void print_csv(const std::vector<ScalingRow>& rows) {
  std::vector<std::string> cells;
  const ordered_json head = to_json({});
  for (auto cell = head.begin(); cell != head.end(); ++cell) cells.push_back(cell.key());
  fmt::print("{}\n", fmt::join(cells, ","));
  for (const ScalingRow& row : rows) {
    cells.clear();
    const ordered_json values = to_json(row);
    for (const ordered_json& value : values)
      cells.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    fmt::print("{}\n", fmt::join(cells, ","));
  }
}

}  // namespace

void show_scaling(const ShowScalingCommand& command) {
  const auto table = results::read_load(command.file);
  if (table.status != "complete")
    spdlog::warn("the run in {} is {}: this is the part that it simulated", command.file.string(), table.status);
  const double measured = table.events > 0 ? table.busy_time / static_cast<double>(table.events) : 0;
  const results::RankSpeed speed{command.event_time_s.value_or(measured), command.message_time_s, command.latency_s};
  std::vector<ScalingRow> rows;
  for (const std::uint32_t ranks : ranks_of(command, table.load.record.num_blocks))
    rows.push_back(predict_scaling(table.load, ranks, speed));
  if (command.form == TableForm::text) return print_text(table, speed, rows);
  if (command.form == TableForm::csv) return print_csv(rows);
  ordered_json json{{"file", command.file.string()},
                    {"events", table.events},
                    {"blocks", table.load.record.num_blocks},
                    {"bin_width_ps", table.load.record.bin_width()},
                    {"event_time_s", speed.event_time},
                    {"message_time_s", speed.message_time},
                    {"latency_s", speed.latency},
                    {"rows", ordered_json::array()}};
  for (const ScalingRow& row : rows) json["rows"].push_back(to_json(row));
  print_figures(json, true);
}

}  // namespace orrery::show
