#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/run/requests.hpp"
#include "orrery/run/system.hpp"

namespace orrery::run {
namespace {

/// Evaluates collectives of the groups of an instance in the congestion-unaware network, where each group has its links
/// for itself. All groups have as many NPUs and begin together, so a collective takes the time of the slowest group.
class InstanceCollectives final : public serving::CollectiveTimes {
 public:
  InstanceCollectives(std::shared_ptr<System> system, std::span<const std::vector<NpuId>> groups)
      : system_(std::move(system)), arrivals_(groups.front().size()), ends_(arrivals_.size()) {
    for (const std::vector<NpuId>& group : groups)
      layouts_.push_back(system_->engine.layout(group, trace::all_dimensions));
  }

  Time duration(trace::CollectiveKind kind, Bytes bytes) override {
    const auto [known, is_new] = known_.try_emplace({kind, bytes.count()});
    if (!is_new) return known->second;
    const collective::Kind each = collective::kind_of(kind);
    for (const auto& layout : layouts_) {
      system_->engine.validate(*layout, each);
      system_->engine.finish(*layout, each, bytes, arrivals_, ends_);
      known->second = std::max(known->second, *std::ranges::max_element(ends_));
    }
    return known->second;
  }

 private:
  std::shared_ptr<System> system_;
  std::vector<std::shared_ptr<const collective::GroupLayout>> layouts_;  ///< layouts of groups
  std::vector<Time> arrivals_, ends_;                                    ///< [NPUs of a group]
  std::map<std::pair<trace::CollectiveKind, std::uint64_t>, Time> known_;
};

/// Makes the messages of collectives by the algorithms of the system.
class SystemPrograms final : public serving::CollectivePrograms {
 public:
  explicit SystemPrograms(std::shared_ptr<System> system) : system_(std::move(system)) {}

  std::shared_ptr<const collective::MessageProgram> program(std::span<const NpuId> members, trace::CollectiveKind kind,
                                                            Bytes bytes) override {
    auto& layout = layouts_[{members.begin(), members.end()}];
    if (!layout) layout = system_->engine.layout(members, trace::all_dimensions);
    const collective::Kind each = collective::kind_of(kind);
    system_->engine.validate(*layout, each);
    return system_->engine.message_program(*layout, each, bytes);
  }

 private:
  std::shared_ptr<System> system_;
  std::map<std::vector<NpuId>, std::shared_ptr<const collective::GroupLayout>> layouts_;
};

}  // namespace

serving::Scenario make_scenario(const config::ServingConfiguration& configuration) {
  serving::Description description = configuration.serving;
  std::shared_ptr<System> system;  // made when an instance needs it
  // Returns the NPUs of the first data-parallel rank of an instance that has no NPUs, or all of those that it has.
  const auto members_of = [&](std::span<const NpuId> npus, const serving::InstanceParallel& parallel,
                              const std::string& entry) {
    if (!system) system = std::make_shared<System>(configuration.system);
    const std::uint32_t num_npus = system->topology().num_npus(), needed = parallel.tp * parallel.pp;
    if (needed > num_npus)
      throw Error(ErrorCode::bad_input, {.key = entry + ".parallel." + (parallel.tp > num_npus ? "tp" : "pp")},
                  parallel.tp > num_npus ? fmt::format("found {}, and the system has {} NPUs", parallel.tp, num_npus)
                                         : fmt::format("found {} stages of {}, and the system has {} NPUs", parallel.pp,
                                                       counted(parallel.tp, "NPU"), num_npus),
                  "a larger system.network");
    std::vector<NpuId> members(npus.begin(), npus.end());
    for (std::uint32_t i = 0; npus.empty() && i < needed; ++i) members.emplace_back(i);
    return members;
  };
  description.step.collectives = [&](std::span<const NpuId> npus, const serving::InstanceParallel& parallel,
                                     const std::string& entry) {
    const std::uint32_t tp = parallel.tp;
    const std::vector<NpuId> members = members_of(npus, parallel, entry);
    std::vector<std::vector<NpuId>> groups;
    for (auto first = members.begin(); first != members.end(); first += tp) {
      groups.emplace_back(first, first + tp);
      std::ranges::sort(groups.back());
    }
    return std::make_shared<InstanceCollectives>(system, groups);
  };
  description.step.hops = [&](std::span<const NpuId> npus, const serving::InstanceParallel& parallel,
                              const std::string& entry) -> std::function<Time(Bytes)> {
    const std::vector<NpuId> members = members_of(npus, parallel, entry);
    std::vector<std::pair<NpuId, NpuId>> ways;
    const std::size_t each = std::size_t{parallel.tp} * parallel.pp;  // NPUs of a data-parallel rank
    for (std::size_t i = 0; i + parallel.tp < members.size(); ++i)
      if (i % each + parallel.tp < each) ways.emplace_back(members[i], members[i + parallel.tp]);
    return [system, ways](Bytes size) {
      Time longest;
      for (const auto& [from, to] : ways) longest = std::max(longest, system->delays.delay(from, to, size));
      return longest;
    };
  };
  description.step.programs = [&]() -> std::shared_ptr<serving::CollectivePrograms> {
    if (!system) system = std::make_shared<System>(configuration.system);
    return std::make_shared<SystemPrograms>(system);
  };
  return serving::make_scenario(description);
}

}  // namespace orrery::run
