#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/results/kernel_figures.hpp"
#include "orrery/results/read.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;

ordered_json row(const results::KernelRecord& rank) {
  return {{"events", rank.events},
          {"data_messages", rank.data_messages},
          {"null_messages", rank.null_messages},
          {"null_messages_received", rank.null_messages_received},
          {"promise_requests", rank.promise_requests},
          {"events_sent", rank.events_sent},
          {"posts_sent", rank.posts_sent},
          {"message_bytes", rank.message_bytes},
          {"reductions", rank.reductions},
          {"waits", rank.waits},
          {"blocked_time_s", rank.blocked_time},
          {"busy_time_s", rank.busy_time},
          {"peak_pending_events", rank.peak_pending_events},
          {"peak_memory_bytes", rank.peak_memory_bytes},
          {"critical_path", rank.critical_path}};
}

/// Returns what the limit means, with the figures that show it.
std::string explanation(const results::KernelFigures& figures) {
  switch (figures.limit) {
    case results::Limit::one_rank:
      return "there is one rank, which waits for no other rank";
    case results::Limit::imbalance:
      return fmt::format(
          "ranks are blocked for {:.0f} % of their time, and their events are uneven (efficiency {:.2f}): "
          "try another partition",
          100 * figures.blocked_share, figures.efficiency);
    case results::Limit::messages:
      return fmt::format(
          "{:.2f} messages per hundred events, {:.2f} null messages per data message: try a partition that "
          "cuts less, or fewer ranks",
          figures.messages_per_100_events, figures.null_per_data);
    case results::Limit::waiting:
      return fmt::format(
          "ranks are blocked for {:.0f} % of their time though their events are even: what happens depends "
          "on other ranks; the best possible speedup is {:.2f}",
          100 * figures.blocked_share, figures.best_speedup);
    case results::Limit::work:
      return fmt::format("ranks are blocked for {:.1f} % of their time only: more ranks may help",
                         100 * figures.blocked_share);
  }
  ensure_failed("a limit is explained", std::source_location::current());
}

void print_row(std::string_view rank, const results::KernelRecord& r) {
  fmt::print("{:>5} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10} {:>9.3f} {:>9.3f} {:>9} {:>9.1f} {:>12}\n", rank,
             r.events, r.data_messages, r.null_messages, r.promise_requests, r.message_bytes, r.reductions,
             r.blocked_time, r.busy_time, r.peak_pending_events, static_cast<double>(r.peak_memory_bytes) / (1 << 20),
             r.critical_path);
}

void print_table(const results::KernelTable& table, const results::KernelFigures& figures) {
  fmt::print("{} on {}, {:.3f} s of wall time\n\n", table.status, counted(table.ranks.size(), "rank"), table.wall_time);
  fmt::print("{:>5} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12}\n", "", "", "data", "null",
             "", "", "", "blocked", "busy", "peak", "peak MiB", "critical");
  fmt::print("{:>5} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12}\n", "rank", "events",
             "messages", "messages", "requests", "bytes", "reductions", "s", "s", "pending", "memory", "path");
  for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) print_row(fmt::to_string(rank), table.ranks[rank]);
  print_row("all", figures.total);
  fmt::print("\nnull messages per data message: {:.3f}\n", figures.null_per_data);
  fmt::print("null messages per hundred events: {:.3f}\n", figures.null_per_100_events);
  fmt::print("efficiency: {:.3f} (events / (ranks x largest events of a rank))\n", figures.efficiency);
  fmt::print("busy: {:.3f} of the ranks' time\n", 1 - figures.blocked_share);
  fmt::print("best possible speedup: {:.2f} (events / critical path)\n", figures.best_speedup);
  fmt::print("limit: {}: {}\n", name(figures.limit), explanation(figures));
}

}  // namespace

void show_kernel(const ShowKernelCommand& command) {
  const auto table = results::read_kernel(command.file);
  const auto figures = results::kernel_figures(table.ranks);
  if (!command.json) {
    print_table(table, figures);
    return;
  }
  ordered_json json;
  json["file"] = command.file.string();
  json["status"] = table.status;
  json["wall_time_s"] = table.wall_time;
  for (const auto& rank : table.ranks) json["ranks"].push_back(row(rank));
  json["total"] = row(figures.total);
  json["null_messages_per_data_message"] = figures.null_per_data;
  json["null_messages_per_100_events"] = figures.null_per_100_events;
  json["messages_per_100_events"] = figures.messages_per_100_events;
  json["blocked_share"] = figures.blocked_share;
  json["efficiency"] = figures.efficiency;
  json["best_possible_speedup"] = figures.best_speedup;
  json["limit"] = name(figures.limit);
  json["explanation"] = explanation(figures);
  print_figures(json, true);
}

}  // namespace orrery::show
