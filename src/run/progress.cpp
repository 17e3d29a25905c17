#include "orrery/run/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"

namespace orrery::run {
namespace {

constexpr double seconds_between_renewals = 0.5;
constexpr int tellings_per_interval = 2;
constexpr std::size_t usual_columns = 80, narrowest_bar = 10, widest_bar = 40;
constexpr double least_share_for_estimate = 0.01;

/// Returns the number of NPUs of this rank, those included that they represent.
std::uint64_t count_npus(const model::RankModel& model) {
  std::uint64_t count = 0;
  for (const auto& npus : model.run().npus) count += npus.count();
  return count;
}

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_columns;
}

/// Returns "42 s", "3 min 05 s" or "2 h 05 min".
std::string rounded(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string rate(const ProgressFigures& figures) {
  return fmt::format("{} events/s", with_prefix(figures.events_per_second));
}

/// Returns the time left if the other nodes take as long as those that are done.
std::string time_left(const ProgressFigures& figures) {
  if (figures.share < least_share_for_estimate) return "? left";
  return rounded(figures.elapsed_s * (1 - figures.share) / figures.share) + " left";
}

/// Returns a share as a whole number of `parts`, rounded down so that only a whole is shown as one.
std::size_t part(double share, std::size_t parts) {
  return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(parts));
}

/// Returns whether a rank prints one line that renews itself.
bool renews_line(const config::RunOptions& options, bool is_root) {
  return is_root && options.progress == config::Progress::automatic && isatty(STDERR_FILENO) == 1;
}

/// Returns the wall-clock seconds between two lines.
double interval_of(const config::RunOptions& options, bool renews) {
  return renews ? seconds_between_renewals : options.progress_interval_s;
}

double percent(double share) { return static_cast<double>(part(share, 1000)) / 10; }

}  // namespace

std::string progress_bar(const ProgressFigures& figures, std::size_t columns) {
  const std::size_t width =
      columns - std::min<std::size_t>(columns, 1);  // terminals wrap a line that fills the last one
  std::string line = fmt::format("{:5.1f} %", percent(figures.share));
  const std::array more = {"  " + time_left(figures), "  " + rate(figures),
                           fmt::format("  {}/{} NPUs", figures.npus_done, figures.num_npus)};
  for (const std::string& text : more) {
    if (line.size() + text.size() + narrowest_bar > width) break;
    line += text;
  }
  if (line.size() + narrowest_bar <= width) {
    const std::size_t inside = std::min(width - line.size(), widest_bar) - 3;  // brackets and a blank
    const std::size_t filled = part(figures.share, inside);
    line = fmt::format("[{}{}] {}", std::string(filled, '#'), std::string(inside - filled, '-'), line);
  }
  return line.substr(0, width);
}

std::string progress_text(const ProgressFigures& figures) {
  return fmt::format("orrery: {:.1f} % of nodes, {} of {} NPUs done, {}, {}, simulated {} in {}",
                     percent(figures.share), figures.npus_done, figures.num_npus, rate(figures), time_left(figures),
                     readable(figures.simulated), rounded(figures.elapsed_s));
}

ReadingLine::ReadingLine(const config::RunOptions& options, Rank rank, std::size_t num_npus)
    : is_shown_(options.shows_progress() && rank == Rank(0)),
      renews_(renews_line(options, rank == Rank(0))),
      num_npus_(num_npus),
      interval_(interval_of(options, renews_)),
      start_(Clock::now()),
      last_(start_) {}

ReadingLine::~ReadingLine() {
  if (is_on_screen_) fmt::print(stderr, "\r\x1b[K");
}

void ReadingLine::update(std::size_t num_read, double share) {
  if (!is_shown_) return;
  const auto time = Clock::now();
  if (time - last_ < interval_) return;
  last_ = time;
  const std::chrono::duration<double> elapsed = time - start_;
  const std::string text = fmt::format("reading: the traces of {} of {} NPUs of rank 0{} in {}", num_read, num_npus_,
                                       share > 0 ? fmt::format(" and {:.0f} % of the next file", 100 * share) : "",
                                       rounded(elapsed.count()));
  if (renews_) {
    const std::size_t columns = terminal_columns();
    fmt::print(stderr, "\r{}\x1b[K", text.substr(0, columns - std::min<std::size_t>(columns, 1)));
    is_on_screen_ = true;
  } else {
    fmt::print(stderr, "orrery: {}\n", text);
  }
  std::fflush(stderr);
}

ProgressLine::ProgressLine(const config::RunOptions& options, const model::RankModel& model, std::uint64_t num_nodes,
                           parallel::Communicator& world)
    : model_(model), is_root_(world.is_root()), own_npus_(count_npus(model)), start_(Clock::now()), last_(start_) {
  std::array totals = {static_cast<std::int64_t>(own_npus_), static_cast<std::int64_t>(num_nodes),
                       std::int64_t{renews_line(options, is_root_)}};
  world.sum(totals);
  num_npus_ = static_cast<std::uint64_t>(totals[0]);
  num_nodes_ = static_cast<std::uint64_t>(totals[1]);
  renews_ = totals[2] == 1;
  interval_ = std::chrono::duration<double>(interval_of(options, renews_));
  if (!is_root_) interval_ /= tellings_per_interval;
  if (is_root_) counts_.resize(static_cast<std::size_t>(world.size()));
  if (world.size() > 1) transport_ = parallel::make_transport(world);
}

ProgressLine::~ProgressLine() { remove(); }

void ProgressLine::update(std::uint64_t events, Time now) {
  const auto time = Clock::now();
  const std::chrono::duration<double> since = time - last_;
  if (since < interval_) return;
  last_ = time;
  if (!is_root_) return tell(count(events, now));
  counts_[0] = count(events, now);
  take_in();
  const ProgressFigures all = figures(since.count());
  if (renews_)
    fmt::print(stderr, "\r{}\x1b[K", progress_bar(all, terminal_columns()));
  else
    fmt::print(stderr, "{}\n", progress_text(all));
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::finish() {
  if (is_root_) {
    counts_[0].is_last = true;
    const WaitForRanks wait;
    while (transport_ && !std::ranges::all_of(counts_, &Counts::is_last)) take_in();
  } else {
    Counts last;
    last.is_last = true;
    tell(last);
  }
  remove();
}

ProgressLine::Counts ProgressLine::count(std::uint64_t events, Time now) const {
  const auto& npus = model_.npus();
  return {events, own_npus_ - npus.num_unfinished(), npus.num_completed_nodes(), now.ps(), false};
}

void ProgressLine::tell(const Counts& counts) {
  // Rank 0 may be suspended for long. What it is told later replaces what it is not told now.
  if (!counts.is_last && transport_->bytes_under_way(0) > 0) return;
  transport_->send(Rank(0), std::as_bytes(std::span(&counts, 1)));
}

void ProgressLine::take_in() {
  if (!transport_) return;
  transport_->poll([this](Rank from, std::span<const std::byte> message) {
    ensure(message.size() == sizeof(Counts), "counts of another rank");
    Counts told;
    std::memcpy(&told, message.data(), sizeof told);
    if (told.is_last)
      counts_[from.index()].is_last = true;
    else
      counts_[from.index()] = told;
  });
}

ProgressFigures ProgressLine::figures(double seconds_since_last) {
  std::uint64_t events = 0, nodes = 0;
  ProgressFigures all;
  for (const Counts& counts : counts_) {
    events += counts.events;
    nodes += counts.nodes_done;
    all.npus_done += counts.npus_done;
    all.simulated = std::max(all.simulated, Time::from_ps(counts.simulated_ps));
  }
  all.share = static_cast<double>(nodes) / static_cast<double>(std::max<std::uint64_t>(num_nodes_, 1));
  all.num_npus = num_npus_;
  all.events_per_second = static_cast<double>(events - last_events_) / seconds_since_last;
  all.elapsed_s = std::chrono::duration<double>(last_ - start_).count();
  last_events_ = events;
  return all;
}

void ProgressLine::remove() {
  if (shown_ && renews_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace orrery::run
