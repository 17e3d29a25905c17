// failing_rank RANK MANNER WATCHDOG: simulates without end; rank RANK fails after 1000 events, no rank if RANK is -1.
//
// The job runs as the program runs its own (cli::run_job). MANNER says what the rank throws: error, input, exception,
// memory or unknown; with silent it computes for ever within one event. Ranks wait for each other for at most WATCHDOG
// seconds, or without limit if that is 0. Each rank prints "simulating" when it has handled 1000 events.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "orrery/base/error.hpp"
#include "orrery/cli/job.hpp"
#include "orrery/pdes/kernel.hpp"

namespace orrery::pdes {
namespace {

constexpr Time step = Time::from_ns(1);
constexpr std::uint32_t events_before_failure = 1000;

[[noreturn]] void fail(std::string_view manner) {
  if (manner == "error") ensure(false, "a rank that fails on purpose");
  if (manner == "input") throw Error(ErrorCode::bad_input, {.file = "trace.et", .npu = 1}, "a bad node");
  if (manner == "exception") throw std::runtime_error("a library that fails on purpose");
  if (manner == "memory") throw std::bad_alloc();
  if (manner == "unknown") throw 1;
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// A model with one logical process for each rank. They hand an event around.
class Ring final : public Model {
 public:
  Ring(parallel::Communicator& world, int failing, std::string_view manner)
      : here_(world.rank().value()), size_(world.size()), fails_(here_ == failing), manner_(manner) {}

  Options options(double watchdog_seconds) const {
    Options options;
    options.num_lps = static_cast<std::uint32_t>(size_);
    options.least_event_delay = step;
    options.watchdog_seconds = watchdog_seconds;
    for (int r = 0; r < size_; ++r) {
      const bool to = r == (here_ + 1) % size_, from = here_ == (r + 1) % size_;
      if (r != here_ && (to || from))
        options.neighbours.push_back(
            {.rank = Rank(r), .outgoing = to, .incoming = from, .event_delay = to ? step : Time::max()});
    }
    return options;
  }
  void start(Kernel& kernel) {
    kernel_ = &kernel;
    if (here_ == 0) kernel.schedule(event(Time::zero(), here_));
  }

  void handle(const Event& from_before) override {
    if (sequence_ == events_before_failure) {
      if (fails_) fail(manner_);
      fmt::print(stderr, "simulating\n");
    }
    const int next = (here_ + 1) % size_;
    const Event made = event(from_before.time + step, next);
    if (next == here_)
      kernel_->schedule(made);
    else
      kernel_->send(Rank(next), made);
  }
  void settle(Time, Stage) override {}
  bool admit(Event&) override { return true; }
  Awaited awaits(LpId) const override { return {true, true, true}; }
  void proceed(LpId) override {}
  void receive(Rank, std::span<const std::byte>) override {}
  LookaheadBounds lookahead() override { return {{Time::zero(), Time::zero()}, {}}; }
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override { return fmt::format("the LP of rank {} has made {} events", here_, sequence_); }

 private:
  Event event(Time time, int to) {
    Event event;
    event.time = time;
    event.order = Event::make_order(Stage::client, LpId(static_cast<std::uint32_t>(here_)), sequence_++);
    event.target = LpId(static_cast<std::uint32_t>(to));
    return event;
  }

  int here_, size_;
  bool fails_;
  std::string manner_;
  std::uint32_t sequence_ = 0;
  Kernel* kernel_ = nullptr;
};

}  // namespace
}  // namespace orrery::pdes

int main(int argc, char** argv) {
  if (argc != 4) return fmt::print(stderr, "usage: {} RANK MANNER WATCHDOG\n", argv[0]), 2;
  return orrery::cli::run_job([&](orrery::parallel::Communicator& world, orrery::run::StopGuard&) {
    orrery::pdes::Ring model(world, std::atoi(argv[1]), argv[2]);
    orrery::pdes::Kernel kernel(world, model, model.options(std::atof(argv[3])));
    model.start(kernel);
    kernel.run();
  });
}
