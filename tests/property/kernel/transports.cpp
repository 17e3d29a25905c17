#include "transports.hpp"

#include <algorithm>
#include <thread>

#include "random_model.hpp"

namespace orrery::pdes::test {

DelayingTransport::DelayingTransport(std::unique_ptr<parallel::Transport> inner, int num_ranks, std::uint64_t seed,
                                     std::uint32_t most_polls)
    : inner_(std::move(inner)), held_(static_cast<std::size_t>(num_ranks)), seed_(seed), most_polls_(most_polls) {}

std::uint64_t DelayingTransport::random() { return mix(seed_, draws_++) % (most_polls_ + 1); }

int DelayingTransport::poll(const Receiver& receiver) {
  inner_->poll([this](Rank from, std::span<const std::byte> message) {
    held_[from.index()].push_back({{message.begin(), message.end()}, random() % 3 == 0 ? random() : 0});
  });
  int messages = 0;
  const auto first = mix(seed_, draws_++);  // another channel goes first each time
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const auto source = (first + i) % held_.size();
    auto& queue = held_[source];
    for (; !queue.empty(); ++messages) {
      if (queue.front().polls > 0) {
        --queue.front().polls;
        break;
      }
      const auto bytes = std::move(queue.front().bytes);
      queue.pop_front();
      receiver(Rank(static_cast<int>(source)), bytes);
    }
  }
  return messages;
}

void DelayingTransport::start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) {
  reduction_wait_ = random() / 2;
  inner_->start_reduction(minima, sums);
}

std::optional<parallel::Transport::Reduced> DelayingTransport::finish_reduction() {
  if (reduction_wait_ > 0) {
    --reduction_wait_;
    return std::nullopt;
  }
  return inner_->finish_reduction();
}

class ThreadTransport final : public parallel::Transport {
 public:
  ThreadTransport(Hub& hub, Rank rank) : hub_(hub), rank_(rank) {}

  void send(Rank to, std::span<const std::byte> message) override {
    const std::lock_guard lock(hub_.mutex_);
    hub_.inboxes_[to.index()].emplace_back(rank_, std::vector<std::byte>(message.begin(), message.end()));
  }
  std::uint64_t bytes_under_way(std::uint64_t most) override {
    const std::lock_guard lock(hub_.mutex_);
    std::uint64_t bytes = 0;
    for (const auto& inbox : hub_.inboxes_)
      for (const auto& [from, message] : inbox) bytes += from == rank_ ? message.size() : 0;
    return bytes > most ? bytes : 0;
  }
  int poll(const Receiver& receiver) override {
    std::deque<std::pair<Rank, std::vector<std::byte>>> arrived;
    {
      const std::lock_guard lock(hub_.mutex_);
      if (hub_.ended_) throw Hub::Ended{};
      arrived.swap(hub_.inboxes_[rank_.index()]);
    }
    if (arrived.empty()) std::this_thread::yield();
    for (const auto& [from, bytes] : arrived) receiver(from, bytes);
    return static_cast<int>(arrived.size());
  }
  void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) override {
    const std::lock_guard lock(hub_.mutex_);
    if (hub_.rounds_.size() == round_)
      hub_.rounds_.push_back({{minima.begin(), minima.end()}, std::vector<std::int64_t>(sums.size()), 0});
    auto& round = hub_.rounds_[round_];
    std::transform(minima.begin(), minima.end(), round.minima.begin(), round.minima.begin(),
                   [](auto a, auto b) { return std::min(a, b); });
    std::transform(sums.begin(), sums.end(), round.sums.begin(), round.sums.begin(), std::plus<>());
    ++round.joined;
  }
  std::optional<Reduced> finish_reduction() override {
    const std::lock_guard lock(hub_.mutex_);
    auto& round = hub_.rounds_[round_];
    if (round.joined < static_cast<int>(hub_.inboxes_.size())) return std::nullopt;
    ++round_;
    return Reduced{round.minima, round.sums};
  }

 private:
  Hub& hub_;
  Rank rank_;
  std::size_t round_ = 0;
};

Hub::Hub(int num_ranks) : inboxes_(static_cast<std::size_t>(num_ranks)) {}

std::unique_ptr<parallel::Transport> Hub::transport(Rank rank) {
  return std::make_unique<ThreadTransport>(*this, rank);
}

void Hub::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

bool Hub::has_ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace orrery::pdes::test
