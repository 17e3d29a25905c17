#include "summary.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/sim/kernel_figures.hpp"
#include "progress.hpp"

namespace orrery::sim {
namespace {

void print_row(const char* label, const executor::NpuRecord& npu) {
  const double whole = std::max<double>(static_cast<double>(npu.finish.ps()), 1);
  const auto share = [&](Time time) { return 100 * static_cast<double>(time.ps()) / whole; };
  fmt::print("  {:<8} NPU {:<7} {:>14}  {:>7.2f} %  {:>7.2f} %  {:>7.2f} %  {:>7.2f} %  {:>7.2f} %\n", label,
             npu.npu.value(), readable(npu.finish), share(npu.compute), share(npu.cpu),
             share(npu.exposed_communication), share(npu.exposed_memory), share(npu.idle));
}

}  // namespace

void print_summary(const results::Gathered& all, double wall_seconds, const config::RunOptions& options) {
  std::vector<executor::NpuRecord> sorted = all.npus;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.finish != b.finish ? a.finish < b.finish : a.npu < b.npu; });
  fmt::print("step time {} ({})\n", readable(sorted.back().finish), counted(sorted.size(), "NPU"));
  fmt::print("                               finish    compute        CPU  exp. comm.   exp. mem.      idle\n");
  print_row("slowest", sorted.back());
  print_row("median", sorted[sorted.size() / 2]);
  print_row("fastest", sorted.front());
  const auto total = kernel_figures(all.ranks).total;
  const auto num_ranks = all.ranks.size();
  const double events = static_cast<double>(total.events);
  fmt::print("{} events in {:.3f} s on {} ({:.2f} M events/s), {} data and {} null messages, largest rank {:.0f} MiB\n",
             total.events, wall_seconds, counted(num_ranks, "rank"), events / std::max(wall_seconds, 1e-9) * 1e-6,
             total.data_messages, total.null_messages,
             static_cast<double>(total.peak_memory_bytes) / (1024.0 * 1024.0));
  fmt::print("results in {}\n", options.output.string());
}

void print_npus(const std::vector<executor::NpuRecord>& npus) {
  for (const auto& npu : npus)
    fmt::print("sys[{}] finished, {} cycles, exposed communication {} cycles.\n", npu.npu.value(),
               npu.finish.ps() / 1000, (npu.exposed_communication + npu.exposed_memory + npu.idle).ps() / 1000);
}

}  // namespace orrery::sim
