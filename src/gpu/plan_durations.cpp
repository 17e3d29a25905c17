#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "orrery/base/error.hpp"
#include "orrery/gpu/alone.hpp"
#include "orrery/gpu/options.hpp"
#include "orrery/gpu/plan_programs.hpp"

namespace orrery::gpu {
namespace {

using collective::Kind;

class PlanDurations final : public collective::WholeDurations {
 public:
  explicit PlanDurations(const Options& options) : options_(options) {}

  std::optional<std::string> carrier(Kind kind, std::uint32_t members, Bytes whole) const override {
    const Plan* const plan = find_plan(options_, kind, members, whole);
    if (plan == nullptr) return {};
    return std::filesystem::path(plan->file).filename().string();
  }
  bool carries_some(std::uint32_t members) const override {
    return std::ranges::any_of(options_.plans, [&](const auto& of_kind) {
      return std::ranges::any_of(of_kind.second, [&](const auto& plan) { return plan->gpus.size() == members; });
    });
  }
  Time duration(const network::DelayModel& delays, std::span<const NpuId> members, Kind kind,
                Bytes whole) const override {
    const Plan* const plan = find_plan(options_, kind, static_cast<std::uint32_t>(members.size()), whole);
    ensure(plan != nullptr, "no plan carries out the collective");
    const Program program = make_program(*plan, next_size(*plan, whole));
    return simulate_alone(program, options_.parameters, options_.granularity(), delays, members).whole;
  }

 private:
  Options options_;
};

void require(bool holds, std::string_view key, std::string_view found, std::string_view expected) {
  if (!holds) throw Error(ErrorCode::bad_input, {.key = fmt::format("system.gpu.{}", key)}, found, expected);
}

}  // namespace

void Options::validate() const {
  if (!profile) return;
  const Parameters& p = parameters;
  require(p.sm_rate.bytes_per_ns() > 0, "sm-rate", "found 0", "a rate above 0");
  require(p.dma_rate.bytes_per_ns() > 0, "dma-rate", "found 0", "a rate above 0");
  require(p.memory_rate.bytes_per_ns() > 0, "memory-rate", "found 0", "a rate above 0");
  require(p.io_rate.bytes_per_ns() > 0, "io-rate", "found 0", "a rate above 0");
  require(p.load > Time::zero(), "load", "found 0", "a time above 0");
  require(p.l2 > Time::zero() && p.hit > Time::zero() && p.hbm > Time::zero(), "l2", "found l2, hit or hbm of 0",
          "times above 0, or blocks could work without end at one time");
}

const Plan* find_plan(const Options& options, Kind kind, std::uint32_t members, Bytes whole) {
  const auto of_kind = options.plans.find(kind);
  if (of_kind == options.plans.end() || whole == Bytes(0)) return nullptr;
  for (const auto& plan : of_kind->second) {
    if (plan->gpus.size() != members || whole < plan->least) continue;
    if (next_size(*plan, whole) <= plan->most) return plan.get();
  }
  return nullptr;
}

std::shared_ptr<const Program> PlanPrograms::find(Kind kind, std::uint32_t members, Bytes whole) {
  const Plan* const plan = find_plan(options_, kind, members, whole);
  if (plan == nullptr) return nullptr;
  const Bytes size = next_size(*plan, whole);
  auto& made = made_[{plan, size.count()}];
  if (!made) made = std::make_shared<const Program>(make_program(*plan, size));
  return made;
}

std::shared_ptr<const collective::WholeDurations> plan_durations(const Options& options) {
  return std::make_shared<const PlanDurations>(options);
}

}  // namespace orrery::gpu
