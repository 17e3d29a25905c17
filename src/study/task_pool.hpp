#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/transport.hpp"

namespace orrery::study {

/// Shares tasks among ranks, so that all of them stay busy: rank 0 has the tasks, and gives one to each rank that asks.
/// With fewer than four ranks it works too, and answers in between.
class TaskPool {
  static constexpr int least_with_idle_root = 4;  // ranks

 public:
  using Message = std::vector<std::byte>;

  /// The tasks, on rank 0.
  class Tasks {
   public:
    virtual ~Tasks() = default;
    /// Returns the next task; nothing if there is none now. What ranks make of tasks under way may bring others.
    virtual std::optional<Message> next() = 0;
    /// Takes what a rank has made of a task.
    virtual void take(std::span<const std::byte> result) = 0;
  };
  /// Returns what a rank makes of a task; nothing if a stop on request has ended it.
  using Work = std::function<std::optional<Message>(std::span<const std::byte> task)>;

  /// Collective.
  explicit TaskPool(parallel::Communicator& world);
  /// Returns how many ranks work on tasks.
  static int num_workers(const parallel::Communicator& world) {
    return world.size() < least_with_idle_root ? world.size() : world.size() - 1;
  }

  /// Has all tasks done, each by one rank, until there are no more and none is under way. A rank that is stopped ends
  /// all: no more tasks are given out. Returns on all ranks whether none of their own was stopped. Other ranks than 0
  /// need no tasks. To be called within Communicator::agree: what `work` throws is thrown on its rank, after all others
  /// have ended.
  bool run(Tasks* tasks, const Work& work);
  /// Answers ranks that ask. Call it now and then while `work` runs.
  void serve();
  /// Asks for the next task, so that it is there when the present one is done. Call it while `work` runs, not long
  /// before the end of what a task takes.
  void ask_early();

 private:
  enum class Kind : std::uint8_t {
    question,   ///< a rank asks for a task
    result,     ///< result of a task
    departure,  ///< a rank was stopped or has failed; no more tasks are to be given out
    farewell,   ///< the last message of a rank
    task,       ///< from rank 0
    end,        ///< from rank 0: there are no more tasks. Each other rank gets it once
  };

  std::optional<Message> next();
  void receive(Rank from, std::span<const std::byte> message);
  void answer_all();
  bool work_as_root(const Work& work);
  bool work_as_other(const Work& work);
  std::optional<Message> answer();
  void leave();
  void send(Rank to, Kind kind, std::span<const std::byte> rest = {});

  parallel::Communicator& world_;
  std::unique_ptr<parallel::Transport> transport_;  ///< none with one rank
  Tasks* tasks_ = nullptr;                          ///< tasks to give out; on rank 0
  std::vector<Rank> asking_;                        ///< ranks without an answer; on rank 0
  std::vector<bool> has_ended_;                     ///< [ranks] has been sent the end; on rank 0
  std::uint64_t under_way_ = 0;                     ///< tasks that have no result yet; on rank 0
  int others_ = 0;                                  ///< ranks that have not said farewell; on rank 0
  bool is_ending_ = false;                          ///< no more tasks are given out; on rank 0
  bool is_asking_ = false;                          ///< question has no answer yet; on other ranks
  bool is_answered_ = false;                        ///< question has its answer; on other ranks
  std::optional<Message> answer_;                   ///< task, or nothing after the end; on other ranks
};

}  // namespace orrery::study
