#include <algorithm>
#include <cstddef>
#include <vector>

#include "hierarchical_pool.hpp"
#include "orrery/memory/remote_memory.hpp"

namespace orrery::memory {
namespace {

/// Gathers the accesses of one moment, and hands them to the pool when the moment is over.
class PoolServer final : public SharedServer {
 public:
  explicit PoolServer(const HierarchicalPool& idle) : pool_(idle) {}

  std::optional<Time> access(const ServerAccess& access, const Answer&) override {
    const bool opens_a_moment = waiting_.empty() || waiting_.back().since < access.since;
    waiting_.push_back({access.since, access.size, access.collective, access.requesters.size()});
    requesters_.insert(requesters_.end(), access.requesters.begin(), access.requesters.end());
    if (!opens_a_moment) return {};
    return access.since + gathering_time;
  }

  std::optional<Time> close(Time now, const Answer& answer) override {
    const auto end = std::ranges::lower_bound(waiting_, now, {}, &Waiting::since);
    npus_.clear();
    for (const Requester& requester : requesters_) npus_.push_back(requester.npu);
    done_.resize(npus_.size());
    accesses_.clear();
    std::size_t first = 0;
    for (auto access = waiting_.begin(); access != end; ++access) {
      accesses_.push_back({std::span(npus_).subspan(first, access->num_requesters), access->size, access->collective,
                           std::span(done_).subspan(first, access->num_requesters)});
      first += access->num_requesters;
    }
    const Time since = waiting_.front().since;
    pool_.serve(since, accesses_);
    for (std::size_t i = 0; i < first; ++i) answer(requesters_[i], since, done_[i], {});
    waiting_.erase(waiting_.begin(), end);
    requesters_.erase(requesters_.begin(), requesters_.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  }

  std::vector<MemoryStageRecord> stages() const override {
    std::vector<MemoryStageRecord> records;
    for (const auto& stage : pool_.stages())
      records.push_back({static_cast<std::uint32_t>(records.size()), stage.servers, stage.bytes, stage.busy});
    return records;
  }

  void serialize(Archive& archive) override { archive(waiting_, requesters_, pool_); }

 private:
  /// An access that begins.
  struct Waiting {
    Time since;
    Bytes size;
    PathCollective collective = PathCollective::none;
    std::size_t num_requesters = 1;
  };

  HierarchicalPool pool_;
  std::vector<Waiting> waiting_;       // in the order of their times
  std::vector<Requester> requesters_;  // of waiting_, one after the other
  // Kept for the next moment: the accesses of the one that is over.
  std::vector<HierarchicalPool::Access> accesses_;
  std::vector<NpuId> npus_;
  std::vector<Time> done_;
};

/// All NPUs share one server, the pool.
class HierarchicalPoolMemory final : public RemoteMemoryModel {
 public:
  HierarchicalPoolMemory(const RemoteMemoryOptions& options, std::uint32_t num_npus)
      : num_npus_(num_npus), idle_(options, num_npus, options.rounding) {}

  std::uint32_t npus_per_server() const override { return num_npus_; }
  Time access_time(Bytes size) const override { return idle_.alone(size); }
  /// From the end of the gathering time on.
  Time service_delay() const override { return access_time(Bytes(1)) - gathering_time; }
  std::unique_ptr<SharedServer> make_server() const override { return std::make_unique<PoolServer>(idle_); }

 private:
  std::uint32_t num_npus_;
  HierarchicalPool idle_;
};

}  // namespace

extern const RemoteMemoryType hierarchical_pool_memory;
constinit const RemoteMemoryType hierarchical_pool_memory{
    .name = "hierarchical-pool",
    .help = "all NPUs share memory groups behind switches, which may gather and add up what NPUs access together",
    .has_nodes = true,
    .has_hierarchy = true,
    .combines_on_path = true,
    .make = [](const RemoteMemoryOptions& options, std::uint32_t num_npus) -> std::unique_ptr<const RemoteMemoryModel> {
      return std::make_unique<HierarchicalPoolMemory>(options, num_npus);
    },
};

}  // namespace orrery::memory
