#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "orrery/parallel/transport.hpp"

namespace orrery::pdes::test {

/// Holds every message back for a random number of polls, and with it those that follow it on its channel; messages of
/// different channels overtake each other. Now and then a finished reduction is noticed late.
class DelayingTransport final : public parallel::Transport {
 public:
  DelayingTransport(std::unique_ptr<parallel::Transport> inner, int num_ranks, std::uint64_t seed,
                    std::uint32_t most_polls);

  void send(Rank to, std::span<const std::byte> message) override { inner_->send(to, message); }
  std::uint64_t bytes_under_way(std::uint64_t most) override { return inner_->bytes_under_way(most); }
  int poll(const Receiver& receiver) override;
  void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) override;
  std::optional<Reduced> finish_reduction() override;

 private:
  struct Held {
    std::vector<std::byte> bytes;
    std::uint64_t polls;
  };

  std::uint64_t random();

  std::unique_ptr<parallel::Transport> inner_;
  std::vector<std::deque<Held>> held_;  // [source]
  std::uint64_t seed_, draws_ = 0;
  std::uint32_t most_polls_;
  std::uint64_t reduction_wait_ = 0;
};

/// Loses the first message that it should send, if it is told where to say so.
class LosingTransport final : public parallel::Transport {
 public:
  LosingTransport(std::unique_ptr<parallel::Transport> inner, std::atomic<bool>* is_lost)
      : inner_(std::move(inner)), is_lost_(is_lost) {}

  void send(Rank to, std::span<const std::byte> message) override {
    if (is_lost_ == nullptr || is_lost_->exchange(true)) inner_->send(to, message);
  }
  int poll(const Receiver& receiver) override { return inner_->poll(receiver); }
  void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) override {
    inner_->start_reduction(minima, sums);
  }
  std::optional<Reduced> finish_reduction() override { return inner_->finish_reduction(); }

 private:
  std::unique_ptr<parallel::Transport> inner_;
  std::atomic<bool>* is_lost_;
};

/// Ranks that are threads of one process.
class Hub {
 public:
  explicit Hub(int num_ranks);

  std::unique_ptr<parallel::Transport> transport(Rank rank);
  /// Makes every rank throw `Ended` when it next polls.
  void end();
  bool has_ended();

  struct Ended {};

 private:
  friend class ThreadTransport;
  struct Round {
    std::vector<std::int64_t> minima, sums;
    int joined = 0;
  };

  std::mutex mutex_;
  std::vector<std::deque<std::pair<Rank, std::vector<std::byte>>>> inboxes_;  // [rank]
  std::deque<Round> rounds_;
  bool ended_ = false;
};

}  // namespace orrery::pdes::test
