// PHOLD, the usual benchmark of parallel discrete-event kernels (Fujimoto 1990): every event that an LP handles makes
// one more, for itself or, with probability `remote`, for an LP drawn at random on another rank, after the lookahead
// and an exponential delay. On one rank the remote events go to any other LP.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cxxopts.hpp>
#include <exception>
#include <stdexcept>

#include "orrery/parallel/environment.hpp"
#include "orrery/pdes/kernel.hpp"

namespace orrery::pdes {
namespace {

struct Parameters {
  std::uint32_t lps = 4096;
  std::uint32_t pending = 32768;
  double remote = 0.25;
  std::int64_t lookahead = 100'000;  // ps
  double mean = 1'000'000;           // ps
  std::int64_t end = 0;              // ps
};

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double unit(std::uint64_t random) { return (static_cast<double>(random >> 11) + 0.5) * 0x1p-53; }

/// LPs are dealt to the ranks in turn.
class Phold final : public Model {
 public:
  Phold(const Parameters& parameters, int rank, int ranks)
      : parameters_(parameters),
        rank_(static_cast<std::uint32_t>(rank)),
        ranks_(static_cast<std::uint32_t>(ranks)),
        sequence_(parameters.lps) {}

  void start(Kernel& kernel) {
    kernel_ = &kernel;
    for (std::uint32_t i = 0; i < parameters_.pending; ++i) {
      const std::uint32_t lp = i % parameters_.lps;
      if (lp % ranks_ == rank_) kernel.schedule(next(Time::zero(), lp, lp, random(lp)));
    }
  }

  void handle(const Event& event) override {
    if (event.time.ps() >= parameters_.end) return;
    const auto lp = event.target.value();
    const auto first = random(lp), second = mixed(first + 0x9e3779b97f4a7c15U);
    std::uint32_t to = lp;
    if (unit(first) < parameters_.remote) {
      to = static_cast<std::uint32_t>(mixed(second) % parameters_.lps);
      if (ranks_ > 1 && to % ranks_ == rank_) to = to + 1 == parameters_.lps ? to - 1 : to + 1;
    }
    const Event made = next(event.time, lp, to, second);
    if (to % ranks_ == rank_)
      kernel_->schedule(made);
    else
      kernel_->send(Rank(static_cast<int>(to % ranks_)), made);
  }
  void settle(Time, Stage) override {}
  bool admit(Event&) override { return true; }
  Awaited awaits(LpId) const override { return {true, true, true}; }
  void proceed(LpId) override {}
  void receive(Rank, std::span<const std::byte>) override {}
  /// Any event may send at once; the kernel knows when the next one is.
  LookaheadBounds lookahead() override { return {{Time::zero(), Time::zero()}, {}}; }
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override { return {}; }

 private:
  std::uint64_t random(std::uint32_t lp) const {
    return mixed((static_cast<std::uint64_t>(lp) << 32 | sequence_[lp]) * 0x9e3779b97f4a7c15U + 1);
  }
  Event next(Time now, std::uint32_t from, std::uint32_t to, std::uint64_t random) {
    Event event;
    event.time = now + Time::from_ps(parameters_.lookahead +
                                     static_cast<std::int64_t>(-std::log(unit(random)) * parameters_.mean));
    event.order = Event::make_order(Stage::client, LpId(from), sequence_[from]++);
    event.target = LpId(to);
    return event;
  }

  const Parameters& parameters_;
  std::uint32_t rank_, ranks_;
  std::vector<std::uint32_t> sequence_;  // [LPs]
  Kernel* kernel_ = nullptr;
};

Options kernel_options(const Parameters& parameters, parallel::Communicator& world) {
  Options options;
  options.num_lps = parameters.lps;
  options.least_event_delay = Time::from_ps(parameters.lookahead);
  for (int r = 0; r < world.size(); ++r)
    if (r != world.rank().value())
      options.neighbours.push_back(
          {.rank = Rank(r), .outgoing = true, .incoming = true, .event_delay = options.least_event_delay});
  return options;
}

void run(const Parameters& parameters, parallel::Communicator& world) {
  Phold model(parameters, world.rank().value(), world.size());
  Kernel kernel(world, model, kernel_options(parameters, world));
  model.start(kernel);
  world.barrier();
  const auto start = std::chrono::steady_clock::now();
  kernel.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto& mine = kernel.statistics();
  const auto micros = [](double s) { return static_cast<std::int64_t>(s * 1e6); };
  std::array<std::int64_t, 7> sums{
      static_cast<std::int64_t>(mine.events),        static_cast<std::int64_t>(mine.data_messages),
      static_cast<std::int64_t>(mine.null_messages), static_cast<std::int64_t>(mine.promise_requests),
      static_cast<std::int64_t>(mine.reductions),    micros(mine.blocked_time),
      micros(mine.blocked_time + mine.busy_time)};
  std::int64_t longest = micros(seconds);
  world.sum(sums);
  world.maximum(std::span(&longest, 1));
  if (!world.is_root()) return;
  const auto events = static_cast<double>(sums[0]);
  const double rate = parameters.pending / (static_cast<double>(parameters.lookahead) + parameters.mean) /
                      world.size();  // per ps and rank
  fmt::print(
      "ranks {}  events/lookahead/rank {:.3g}  events {}  M events/s {:.2f}  data messages {}  null {}  null/data "
      "{:.3f}  "
      "null per 100 events {:.3f}  requests {}  reductions {}  blocked {:.1f} %\n",
      world.size(), rate * static_cast<double>(parameters.lookahead), sums[0], events / static_cast<double>(longest),
      sums[1], sums[2], static_cast<double>(sums[2]) / static_cast<double>(std::max<std::int64_t>(sums[1], 1)),
      100 * static_cast<double>(sums[2]) / events, sums[3], sums[4],
      100 * static_cast<double>(sums[5]) / static_cast<double>(std::max<std::int64_t>(sums[6], 1)));
}

/// Throws what the command line has wrong. False: it asked for help, which has been printed.
bool parse(int argc, char** argv, Parameters& parameters) {
  cxxopts::Options options("bench_phold", "PHOLD: events per second of the kernel");
  options.add_options()("pending", "events that wait at any time, on all ranks",
                        cxxopts::value(parameters.pending)->default_value("32768"))(
      "lps", "logical processes", cxxopts::value(parameters.lps)->default_value("4096"))(
      "remote", "share of events for other ranks", cxxopts::value(parameters.remote)->default_value("0.25"))(
      "lookahead", "least delay in ps", cxxopts::value(parameters.lookahead)->default_value("100000"))(
      "mean", "mean of the exponential delay in ps", cxxopts::value(parameters.mean)->default_value("1000000"))(
      "end", "simulated ps; 0 for about 10 million events", cxxopts::value(parameters.end)->default_value("0"))(
      "help", "this text");
  const auto parsed = options.parse(argc, argv);
  if (parsed.count("help")) return fmt::print("{}", options.help()), false;
  if (!parsed.unmatched().empty())
    throw std::invalid_argument(fmt::format("unexpected argument '{}'", parsed.unmatched().front()));
  // Negations, so that what is no number is refused as well.
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
  };
  constexpr double longest = 1e17;  // ps: a day
  require(parameters.pending >= 1, "--pending: expected 1 event or more");
  require(parameters.lps >= 2 && parameters.lps < 1U << 28U, "--lps: expected 2 LPs or more, below 2^28");
  require(parameters.remote >= 0 && parameters.remote <= 1, "--remote: expected a share, 0 to 1");
  require(parameters.lookahead >= 1 && static_cast<double>(parameters.lookahead) <= longest,
          "--lookahead: expected 1 ps or more, 10^17 at most");
  require(parameters.mean >= 0 && parameters.mean <= longest, "--mean: expected 0 ps or more, 10^17 at most");
  require(parameters.end >= 0 && static_cast<double>(parameters.end) <= longest,
          "--end: expected 0 ps or more, 10^17 at most");
  if (parameters.end == 0)
    parameters.end = static_cast<std::int64_t>(
        std::min(longest, 1e7 / parameters.pending * (static_cast<double>(parameters.lookahead) + parameters.mean)));
  return true;
}

}  // namespace
}  // namespace orrery::pdes

int main(int argc, char** argv) {
  orrery::pdes::Parameters parameters;
  try {
    if (!orrery::pdes::parse(argc, argv, parameters)) return 0;
  } catch (const std::exception& error) {
    return fmt::print(stderr, "bench_phold: {}\n", error.what()), 2;
  }
  orrery::parallel::Environment environment;
  try {
    orrery::pdes::run(parameters, environment.world());
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_phold: {}\n", error.what());
    orrery::parallel::Environment::abort(1);
  }
}
