// Tasks that rank 0 gives to ranks that ask, on 1, 2, 3 and 5 ranks: with fewer than four, rank 0 works too.
#include "task_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <stdexcept>

#include "mpi_world.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::study {
namespace {

using orrery::test::me;
using orrery::test::world;

TaskPool::Message packed(std::int64_t number) {
  parallel::Packer packer;
  packer.put(number);
  return packer.take();
}

std::int64_t unpacked(std::span<const std::byte> bytes) { return parallel::Unpacker(bytes).get<std::int64_t>(); }

/// Numbers from 1 to `first`; the result of each of them but 1 brings the number below its half, once more.
class Numbers final : public TaskPool::Tasks {
 public:
  explicit Numbers(std::int64_t first) {
    for (std::int64_t number = first; number > 0; --number) left_.push_back(number);
  }
  std::optional<TaskPool::Message> next() override {
    if (left_.empty()) return {};
    const std::int64_t number = left_.back();
    left_.pop_back();
    ++given;
    return packed(number);
  }
  void take(std::span<const std::byte> result) override {
    const std::int64_t number = unpacked(result);
    ++results[number];
    if (number > 1) left_.push_back(number / 2);
  }

  std::map<std::int64_t, int> results;
  std::int64_t given = 0;

 private:
  std::vector<std::int64_t> left_;
};

/// Numbers from 1 on, without an end.
class Endless final : public TaskPool::Tasks {
 public:
  std::optional<TaskPool::Message> next() override { return packed(++last_); }
  void take(std::span<const std::byte>) override {}

 private:
  std::int64_t last_ = 0;
};

/// How often each number up to `first` has to be done.
std::map<std::int64_t, int> expected(std::int64_t first) {
  std::map<std::int64_t, int> times;
  for (std::int64_t number = first; number > 0; --number)
    for (std::int64_t one = number; one > 0; one /= 2) ++times[one];
  return times;
}

std::int64_t sum_over_ranks(std::int64_t value) {
  world().sum(std::span(&value, 1));
  return value;
}

// 200 numbers, whose results bring others. Every one is done as often as it is given, by one rank each, whether a rank
// asks early or late, and rank 0 gets all results.
TEST(TaskPool, DoesAllTasksAndThoseThatTheyBring) {
  for (const bool is_early : {false, true}) {
    Numbers numbers(200);
    TaskPool pool(world());
    std::int64_t done = 0;
    bool is_complete = false;
    world().agree([&] {
      is_complete = pool.run(me() == 0 ? &numbers : nullptr, [&](std::span<const std::byte> task) {
        if (is_early) pool.ask_early();
        pool.serve();
        ++done;
        return std::optional(packed(unpacked(task)));
      });
    });
    EXPECT_TRUE(is_complete);
    const std::int64_t given = sum_over_ranks(numbers.given);
    EXPECT_EQ(sum_over_ranks(done), given);
    EXPECT_EQ(numbers.results, me() == 0 ? expected(200) : expected(0));
    if (me() == 0 && world().size() >= 4) {
      EXPECT_EQ(done, 0);
    }
  }
}

// Without tasks all ranks end at once.
TEST(TaskPool, EndsWithoutTasks) {
  Numbers none(0);
  TaskPool pool(world());
  world().agree(
      [&] { EXPECT_TRUE(pool.run(me() == 0 ? &none : nullptr, [](auto) { return std::optional(packed(0)); })); });
}

// A stop on request in the 20th task, on whichever rank has it, while there are always more. This rank says so, and all
// ranks end.
TEST(TaskPool, IsEndedByARankThatIsStopped) {
  for (const bool is_early : {false, true}) {
    Endless numbers;
    TaskPool pool(world());
    bool is_complete = false;
    world().agree([&] {
      is_complete = pool.run(me() == 0 ? &numbers : nullptr,
                             [&](std::span<const std::byte> task) -> std::optional<TaskPool::Message> {
                               if (is_early) pool.ask_early();
                               if (unpacked(task) == 20) return {};
                               return packed(1);
                             });
    });
    EXPECT_EQ(sum_over_ranks(is_complete ? 0 : 1), 1);
  }
}

// The 20th task throws, on whichever rank has it, while there are always more. All ranks end with an error.
TEST(TaskPool, IsEndedByARankThatFails) {
  for (const bool is_early : {false, true}) {
    Endless numbers;
    TaskPool pool(world());
    bool has_failed = false;
    try {
      world().agree([&] {
        pool.run(me() == 0 ? &numbers : nullptr, [&](std::span<const std::byte> task) {
          if (is_early) pool.ask_early();
          if (unpacked(task) == 20) throw std::runtime_error("the 20th task");
          return std::optional(packed(1));
        });
      });
    } catch (const std::runtime_error&) {
      has_failed = true;
    } catch (const parallel::FailedElsewhere&) {
      has_failed = true;
    }
    EXPECT_TRUE(has_failed);
  }
}

}  // namespace
}  // namespace orrery::study
