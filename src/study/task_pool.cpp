#include "task_pool.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace orrery::study {
namespace {

constexpr std::chrono::microseconds pause{100};

}  // namespace

TaskPool::TaskPool(parallel::Communicator& world)
    : world_(world),
      has_ended_(static_cast<std::size_t>(world.size())),
      others_(world.is_root() ? world.size() - 1 : 0) {
  if (world.size() > 1) transport_ = parallel::make_transport(world);
}

bool TaskPool::run(Tasks* tasks, const Work& work) {
  tasks_ = tasks;
  return world_.is_root() ? work_as_root(work) : work_as_other(work);
}

void TaskPool::serve() {
  if (!transport_) return;
  transport_->poll([&](Rank from, std::span<const std::byte> message) { receive(from, message); });
  if (world_.is_root()) answer_all();
}

void TaskPool::ask_early() {
  if (world_.is_root() || is_asking_) return;
  send(Rank(0), Kind::question);
  is_asking_ = true;
  is_answered_ = false;
}

void TaskPool::send(Rank to, Kind kind, std::span<const std::byte> rest) {
  Message message{static_cast<std::byte>(kind)};
  message.insert(message.end(), rest.begin(), rest.end());
  transport_->send(to, message);
}

std::optional<TaskPool::Message> TaskPool::next() {
  if (is_ending_) return {};
  auto task = tasks_->next();
  under_way_ += task ? 1 : 0;
  return task;
}

void TaskPool::receive(Rank from, std::span<const std::byte> message) {
  const auto rest = message.subspan(1);
  switch (static_cast<Kind>(message.front())) {
    case Kind::question:
      asking_.push_back(from);
      break;
    case Kind::result:
      --under_way_;
      if (!is_ending_) tasks_->take(rest);
      break;
    case Kind::departure:
      is_ending_ = true;
      if (std::ranges::find(asking_, from) == asking_.end()) asking_.push_back(from);
      break;
    case Kind::farewell:
      --others_;
      break;
    case Kind::task:
    case Kind::end:
      is_answered_ = true;
      answer_.reset();
      if (static_cast<Kind>(message.front()) == Kind::task) answer_.emplace(rest.begin(), rest.end());
      break;
  }
}

/// Answers the ranks that ask, as far as there is an answer now.
void TaskPool::answer_all() {
  std::size_t answered = 0;
  for (; answered < asking_.size(); ++answered) {
    const Rank rank = asking_[answered];
    if (has_ended_[static_cast<std::size_t>(rank.value())]) continue;  // its departure has met the end
    if (const auto task = next()) {
      send(rank, Kind::task, *task);
    } else if (is_ending_ || under_way_ == 0) {
      send(rank, Kind::end);
      has_ended_[static_cast<std::size_t>(rank.value())] = true;
    } else {
      break;
    }
  }
  asking_.erase(asking_.begin(), asking_.begin() + static_cast<std::ptrdiff_t>(answered));
}

bool TaskPool::work_as_root(const Work& work) {
  bool is_complete = true;
  std::exception_ptr failure;
  while (true) {
    try {
      serve();
      if (others_ == 0 && (is_ending_ || under_way_ == 0) && world_.size() > 1) break;
      const auto task = num_workers(world_) == world_.size() ? next() : std::nullopt;
      if (task) {
        const auto result = work(*task);
        --under_way_;
        is_complete = result.has_value();
        if (!is_complete) is_ending_ = true;
        if (result && !is_ending_) tasks_->take(*result);
        continue;
      }
      if (world_.size() == 1) break;
    } catch (...) {
      if (!failure) failure = std::current_exception();
      is_ending_ = true;
    }
    if (world_.size() == 1) break;
    std::this_thread::sleep_for(pause);
  }
  if (failure) std::rethrow_exception(failure);
  return is_complete;
}

bool TaskPool::work_as_other(const Work& work) {
  try {
    while (const auto task = answer()) {
      const auto result = work(*task);
      if (!result) {
        leave();
        return false;
      }
      send(Rank(0), Kind::result, *result);
    }
  } catch (...) {
    leave();
    throw;
  }
  send(Rank(0), Kind::farewell);
  return true;
}

std::optional<TaskPool::Message> TaskPool::answer() {
  ask_early();
  for (serve(); !is_answered_; serve()) std::this_thread::sleep_for(pause);
  is_asking_ = false;
  return std::exchange(answer_, {});
}

/// Says that no more tasks are wanted, and waits for the end.
void TaskPool::leave() {
  send(Rank(0), Kind::departure);
  // A task may be on its way; the end follows it.
  bool has_ended = is_asking_ && is_answered_ && !answer_;
  while (!has_ended) {
    is_answered_ = false;
    for (serve(); !is_answered_; serve()) std::this_thread::sleep_for(pause);
    has_ended = !answer_;
  }
  send(Rank(0), Kind::farewell);
}

}  // namespace orrery::study
