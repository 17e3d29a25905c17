#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "orrery/parallel/communicator.hpp"
#include "task_pool.hpp"

namespace orrery::study {

/// Hands trials out to ranks in batches of 1 to 64, fewer the longer they take.
class TrialQueue : private TaskPool::Tasks {
 public:
  /// Collective.
  TrialQueue(std::size_t num_trials, parallel::Communicator& world);

  /// Calls `work` for all trials 0, 1, ..., each on one rank. It returns false if a stop on request has ended it; then
  /// no more trials are handed out. Returns on all ranks whether none of their own was stopped. To be called within
  /// Communicator::agree: what `work` throws is thrown on its rank, after all others have ended.
  bool run(const std::function<bool(std::size_t)>& work);
  /// Answers ranks that ask. Call it now and then while `work` runs.
  void serve() { pool_.serve(); }

 private:
  struct Batch {
    std::uint64_t first = 0, count = 0;
  };
  /// What trials have taken.
  struct Spent {
    double seconds = 0;
    std::uint64_t trials = 0;
  };

  std::optional<TaskPool::Message> next() override;
  void take(std::span<const std::byte> result) override;
  std::optional<Spent> work_on(Batch batch, const std::function<bool(std::size_t)>& work);

  TaskPool pool_;
  std::uint64_t num_trials_, workers_;
  std::uint64_t next_ = 0;  ///< first trial that is not handed out; on rank 0
  Spent spent_;             ///< total so far; on rank 0
};

}  // namespace orrery::study
