#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/transport.hpp"

namespace orrery::app {

/// Hands trials out to ranks, so that all of them stay busy: rank 0 gives a rank that asks a batch of 1 to 64 trials,
/// fewer the longer they take. With fewer than four ranks it simulates too, and answers in between.
class TrialQueue {
 public:
  /// Collective.
  TrialQueue(std::size_t num_trials, parallel::Communicator& world);

  /// Calls `work` for all trials 0, 1, ..., each on one rank. It returns false if a stop on request has ended it; then
  /// no more trials are handed out. Returns on all ranks whether none of their own was stopped. To be called within
  /// Communicator::agree: what `work` throws is thrown on its rank, after all others have ended.
  bool run(const std::function<bool(std::size_t)>& work);
  /// Answers ranks that ask. Call it now and then while `work` runs.
  void serve();

 private:
  struct Batch {
    std::uint64_t first = 0, count = 0;  ///< none: there are no more
  };
  struct Request {
    double seconds = 0;  ///< what trials have taken since the last request
    std::uint64_t trials = 0;
    bool is_leaving = false;  ///< the rank asks for nothing more: it was stopped, or has failed
  };

  bool is_working() const { return !world_.is_root() || world_.size() < 4; }
  Batch take();
  void note(const Request& request);
  bool work_on(Batch batch, const std::function<bool(std::size_t)>& work);
  bool work_as_root(const std::function<bool(std::size_t)>& work);
  bool work_as_other(const std::function<bool(std::size_t)>& work);
  void ask(bool is_leaving);
  Batch answer();

  parallel::Communicator& world_;
  std::unique_ptr<parallel::Transport> transport_;  ///< none with one rank
  std::size_t num_trials_, next_ = 0;               ///< of rank 0: the first one that is not handed out
  int others_ = 0;                                  ///< of rank 0: ranks that may still ask
  double seconds_ = 0;                              ///< of rank 0: what trials took
  std::uint64_t trials_ = 0;                        ///< of rank 0: so many of them
  Request since_;                                   ///< the last request of this rank
  bool is_asking_ = false;
  std::optional<Batch> answered_;
};

}  // namespace orrery::app
