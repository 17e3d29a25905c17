#include "trial_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <span>
#include <thread>
#include <utility>

namespace orrery::app {
namespace {

constexpr double seconds_of_batch = 0.2;
constexpr std::uint64_t most_of_batch = 64;
constexpr std::chrono::microseconds pause{100};

template <class T>
T unpacked(std::span<const std::byte> message) {
  T value;
  std::memcpy(&value, message.data(), sizeof value);
  return value;
}

}  // namespace

TrialQueue::TrialQueue(std::size_t num_trials, parallel::Communicator& world)
    : world_(world), num_trials_(num_trials), others_(world.is_root() ? world.size() - 1 : 0) {
  if (world.size() > 1) transport_ = parallel::make_transport(world);
}

bool TrialQueue::run(const std::function<bool(std::size_t)>& work) {
  return world_.is_root() ? work_as_root(work) : work_as_other(work);
}

void TrialQueue::serve() {
  if (!transport_ || !world_.is_root()) return;
  transport_->poll([&](Rank from, std::span<const std::byte> message) {
    const auto request = unpacked<Request>(message);
    note(request);
    if (request.is_leaving) {
      next_ = num_trials_;
      --others_;
      return;
    }
    const Batch batch = take();
    if (batch.count == 0) --others_;
    transport_->send(from, std::as_bytes(std::span(&batch, 1)));
  });
}

TrialQueue::Batch TrialQueue::take() {
  const std::uint64_t left = num_trials_ - next_;
  const auto workers = static_cast<std::uint64_t>(std::max(1, is_working() ? world_.size() : world_.size() - 1));
  const double of_one = trials_ == 0 ? seconds_of_batch : seconds_ / static_cast<double>(trials_);
  const auto wanted = static_cast<std::uint64_t>(std::min(seconds_of_batch / std::max(of_one, 1e-9), 64.0));
  const std::uint64_t share = left / (2 * workers);
  const Batch batch{next_, std::min({left, std::max<std::uint64_t>(std::min(wanted, share), 1), most_of_batch})};
  next_ += batch.count;
  return batch;
}

void TrialQueue::note(const Request& request) {
  seconds_ += request.seconds;
  trials_ += request.trials;
}

bool TrialQueue::work_on(Batch batch, const std::function<bool(std::size_t)>& work) {
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    serve();
    // The next batch is there when this one is done.
    if (i + 1 == batch.count && !world_.is_root()) ask(false);
    const auto start = std::chrono::steady_clock::now();
    if (!work(batch.first + i)) return false;
    since_.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++since_.trials;
  }
  return true;
}

bool TrialQueue::work_as_root(const std::function<bool(std::size_t)>& work) {
  bool is_complete = true;
  std::exception_ptr failure;
  try {
    while (is_complete && is_working()) {
      const Batch batch = take();
      if (batch.count == 0) break;
      is_complete = work_on(batch, work);
      note(std::exchange(since_, {}));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure || !is_complete) next_ = num_trials_;
  while (others_ > 0) {
    serve();
    std::this_thread::sleep_for(pause);
  }
  if (failure) std::rethrow_exception(failure);
  return is_complete;
}

bool TrialQueue::work_as_other(const std::function<bool(std::size_t)>& work) {
  try {
    ask(false);
    for (Batch batch = answer(); batch.count > 0; batch = answer()) {
      if (work_on(batch, work)) continue;
      ask(true);
      return false;
    }
  } catch (...) {
    ask(true);
    throw;
  }
  return true;
}

void TrialQueue::ask(bool is_leaving) {
  // Rank 0 has counted this rank out if its last answer was that there are no more trials.
  if (is_leaving && is_asking_ && answer().count == 0) return;
  since_.is_leaving = is_leaving;
  const Request request = std::exchange(since_, {});
  transport_->send(Rank(0), std::as_bytes(std::span(&request, 1)));
  is_asking_ = !is_leaving;
}

TrialQueue::Batch TrialQueue::answer() {
  answered_.reset();
  while (!answered_) {
    transport_->poll([&](Rank, std::span<const std::byte> message) { answered_ = unpacked<Batch>(message); });
    if (!answered_) std::this_thread::sleep_for(pause);
  }
  is_asking_ = false;
  return *answered_;
}

}  // namespace orrery::app
