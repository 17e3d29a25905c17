#include "orrery/results/kernel_figures.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::results {
namespace {

double ratio(double part, double whole, double without = 0) { return whole > 0 ? part / whole : without; }

KernelRecord total_of(std::span<const KernelRecord> ranks) {
  KernelRecord total;
  for (const auto& rank : ranks) {
    total.events += rank.events;
    total.data_messages += rank.data_messages;
    total.null_messages += rank.null_messages;
    total.null_messages_received += rank.null_messages_received;
    total.promise_requests += rank.promise_requests;
    total.events_sent += rank.events_sent;
    total.posts_sent += rank.posts_sent;
    total.waits += rank.waits;
    total.message_bytes += rank.message_bytes;
    total.reductions += rank.reductions;
    total.blocked_time += rank.blocked_time;
    total.busy_time += rank.busy_time;
    total.peak_pending_events = std::max(total.peak_pending_events, rank.peak_pending_events);
    total.peak_memory_bytes = std::max(total.peak_memory_bytes, rank.peak_memory_bytes);
    total.critical_path = std::max(total.critical_path, rank.critical_path);
  }
  return total;
}

Limit limit_of(const KernelFigures& figures, std::size_t num_ranks) {
  constexpr double blocked_much = 0.1;
  constexpr double many_messages = 10;  // per hundred events
  if (num_ranks == 1) return Limit::one_rank;
  if (figures.blocked_share >= blocked_much && 1 - figures.efficiency >= figures.blocked_share / 2)
    return Limit::imbalance;
  if ((figures.null_per_data > 1 && figures.null_per_100_events > 1) || figures.messages_per_100_events > many_messages)
    return Limit::messages;
  return figures.blocked_share >= blocked_much ? Limit::waiting : Limit::work;
}

}  // namespace

std::string_view name(Limit limit) {
  switch (limit) {
    case Limit::one_rank:
      return "one rank";
    case Limit::imbalance:
      return "imbalance";
    case Limit::messages:
      return "messages";
    case Limit::waiting:
      return "waiting";
    case Limit::work:
      return "work";
  }
  ensure_failed("a limit has a name", std::source_location::current());
}

KernelFigures kernel_figures(std::span<const KernelRecord> ranks) {
  KernelFigures figures;
  figures.total = total_of(ranks);
  const auto& total = figures.total;
  const auto events = static_cast<double>(total.events);
  const auto null = static_cast<double>(total.null_messages);
  const auto data = static_cast<double>(total.data_messages);
  std::uint64_t most = 0;
  for (const auto& rank : ranks) most = std::max(most, rank.events);
  figures.null_per_data = ratio(null, data, null);  // without data, as if there were one
  figures.null_per_100_events = 100 * ratio(null, events);
  figures.messages_per_100_events = 100 * ratio(null + data, events);
  figures.blocked_share = ratio(total.blocked_time, total.blocked_time + total.busy_time);
  figures.efficiency = ratio(events, static_cast<double>(ranks.size()) * static_cast<double>(most), 1);
  figures.best_speedup = ratio(events, static_cast<double>(total.critical_path), 1);
  figures.limit = limit_of(figures, ranks.size());
  return figures;
}

}  // namespace orrery::results
