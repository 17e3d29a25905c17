#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/run/requests.hpp"
#include "orrery/run/system.hpp"

namespace orrery::run {
namespace {

/// Evaluates collectives of some NPUs in the congestion-unaware network, where each has its links for itself.
class InstanceCollectives final : public serving::CollectiveTimes {
 public:
  InstanceCollectives(std::shared_ptr<System> system, const std::vector<NpuId>& npus)
      : system_(std::move(system)),
        layout_(system_->engine.layout(npus, trace::all_dimensions)),
        arrivals_(npus.size()),
        ends_(npus.size()) {}

  Time duration(trace::CollectiveKind kind, Bytes bytes) override {
    const auto [known, is_new] = known_.try_emplace({kind, bytes.count()});
    if (!is_new) return known->second;
    const collective::Kind each = collective::kind_of(kind);
    system_->engine.validate(*layout_, each);
    system_->engine.finish(*layout_, each, bytes, arrivals_, ends_);
    return known->second = *std::ranges::max_element(ends_);
  }

 private:
  std::shared_ptr<System> system_;
  std::shared_ptr<const collective::GroupLayout> layout_;
  std::vector<Time> arrivals_, ends_;
  std::map<std::pair<trace::CollectiveKind, std::uint64_t>, Time> known_;
};

}  // namespace

serving::Scenario make_scenario(const config::ServingConfiguration& configuration) {
  serving::Description description = configuration.serving;
  std::shared_ptr<System> system;  // made when an instance needs it
  description.step.collectives = [&](std::span<const NpuId> npus, std::uint32_t tp) {
    if (!system) system = std::make_shared<System>(configuration.system);
    const std::uint32_t num_npus = system->topology().num_npus();
    if (tp > num_npus)
      throw Error(ErrorCode::bad_input, {.key = "serving.instances.parallel.tp"},
                  fmt::format("found {}, and the system has {} NPUs", tp, num_npus), "a larger system.network");
    std::vector<NpuId> members(npus.begin(), npus.begin() + (npus.empty() ? 0 : tp));
    for (std::uint32_t i = 0; npus.empty() && i < tp; ++i) members.emplace_back(i);
    std::ranges::sort(members);
    return std::make_shared<InstanceCollectives>(system, members);
  };
  return serving::make_scenario(description);
}

}  // namespace orrery::run
