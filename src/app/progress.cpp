#include "progress.hpp"

#include <unistd.h>

#include <array>
#include <string>

#include <fmt/format.h>
#include "orrery/base/text.hpp"

namespace orrery::app {

ProgressLine::ProgressLine(const config::RunOptions& options, const model::RankModel& model, std::uint64_t num_nodes)
    : model_(model),
      num_nodes_(num_nodes),
      renews_(options.progress == config::Progress::automatic && isatty(STDERR_FILENO) == 1),
      interval_(renews_ ? 0.5 : options.progress_interval_s),
      start_(Clock::now()),
      last_(start_) {}

ProgressLine::~ProgressLine() {
  if (shown_ && renews_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::update(std::uint64_t events, Time now) {
  const auto time = Clock::now();
  const std::chrono::duration<double> since = time - last_;
  if (since < interval_) return;
  const std::chrono::duration<double> elapsed = time - start_;
  const double share =
      static_cast<double>(model_.npus().num_completed_nodes()) / static_cast<double>(num_nodes_ ? num_nodes_ : 1);
  std::string end = "?";
  if (share > 0.01) end = fmt::format("{:.0f} s", elapsed.count() * (1 - share) / share);
  const auto line =
      fmt::format("rank 0: {:.1f} s, simulated {}, {} of {} NPUs done, {:.1f} % of nodes, {:.2f} M events/s, {} to go",
                  elapsed.count(), readable(now), model_.npus().num_done(), model_.run().npus.size(), 100 * share,
                  static_cast<double>(events - last_events_) / since.count() * 1e-6, end);
  fmt::print(stderr, "{}{}{}", renews_ ? "\r\x1b[K" : "", line, renews_ ? "" : "\n");
  std::fflush(stderr);
  shown_ = true;
  last_ = time;
  last_events_ = events;
}

}  // namespace orrery::app
