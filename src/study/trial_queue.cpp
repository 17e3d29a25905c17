#include "trial_queue.hpp"

#include <algorithm>
#include <chrono>

#include "orrery/parallel/packing.hpp"

namespace orrery::study {
namespace {

constexpr double seconds_of_batch = 0.2;
constexpr std::uint64_t most_of_batch = 64;

template <class T>
TaskPool::Message packed(const T& value) {
  parallel::Packer packer;
  packer.put(value);
  return packer.take();
}

}  // namespace

TrialQueue::TrialQueue(std::size_t num_trials, parallel::Communicator& world)
    : pool_(world), num_trials_(num_trials), workers_(static_cast<std::uint64_t>(TaskPool::num_workers(world))) {}

bool TrialQueue::run(const std::function<bool(std::size_t)>& work) {
  return pool_.run(this, [&](std::span<const std::byte> task) -> std::optional<TaskPool::Message> {
    const auto spent = work_on(parallel::Unpacker(task).get<Batch>(), work);
    if (!spent) return {};
    return packed(*spent);
  });
}

std::optional<TaskPool::Message> TrialQueue::next() {
  const std::uint64_t left = num_trials_ - next_;
  if (left == 0) return {};
  const double of_one = spent_.trials == 0 ? seconds_of_batch : spent_.seconds / static_cast<double>(spent_.trials);
  const auto wanted = static_cast<std::uint64_t>(
      std::min(seconds_of_batch / std::max(of_one, 1e-9), static_cast<double>(most_of_batch)));
  const Batch batch{next_, std::max<std::uint64_t>(std::min(wanted, left / (2 * workers_)), 1)};
  next_ += batch.count;
  return packed(batch);
}

void TrialQueue::take(std::span<const std::byte> result) {
  const auto spent = parallel::Unpacker(result).get<Spent>();
  spent_.seconds += spent.seconds;
  spent_.trials += spent.trials;
}

std::optional<TrialQueue::Spent> TrialQueue::work_on(Batch batch, const std::function<bool(std::size_t)>& work) {
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    serve();
    if (i + 1 == batch.count) pool_.ask_early();
    if (!work(batch.first + i)) return {};
  }
  return Spent{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), batch.count};
}

}  // namespace orrery::study
