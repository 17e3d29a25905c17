#include "orrery/workload/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "orrery/base/error.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

/// Switches on the path carry out collectives, so something must be moved by one.
void require_collective_for_path(const Sharding& sharding) {
  const Offload& offload = sharding.offload;
  if (!offload.on_path || offload.gradients || (offload.parameters && sharding.zero == 3)) return;
  throw Error(ErrorCode::bad_input, {.key = "workload.parallel.offload-collectives"},
              offload.any() ? "found path, but what is offloaded is moved without a collective"
                            : "found path, but nothing is offloaded",
              "network, or workload.parallel.offload with gradients, or with parameters and zero: 3");
}

/// Several replicas need states that ZeRO divides, and links between them.
void require_room_for_replicas(const Parallel& parallel) {
  const Sharding& sharding = parallel.sharding;
  require_positive("workload.parallel.replicas", sharding.replicas);
  if (sharding.replicas == 1) return;
  require_multiple("workload.parallel.dp", parallel[Axis::dp], "replicas", sharding.replicas);
  if (sharding.zero == 0)
    refuse("workload.parallel.replicas", sharding.replicas,
           "1, or workload.parallel.zero: 1 to 3: without ZeRO each NPU has all states");
  if (sharding.offload.on_path)
    refuse("workload.parallel.replicas", sharding.replicas, "1 with workload.parallel.offload-collectives: path");
  if (parallel.is_mirrored())
    refuse("workload.parallel.replicas", sharding.replicas, "1 with workload.parallel.schedule: dualpipe");
}

}  // namespace

std::uint32_t Parallel::num_npus() const {
  unsigned __int128 product = 1;
  for (const std::uint32_t size : sizes) {
    product *= size;
    if (product > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::bad_input, {.key = "workload.parallel"},
                  "tp * cp * ep * dp * pp is more than 2^32 - 1 NPUs");
  }
  return static_cast<std::uint32_t>(product);
}

std::uint32_t Parallel::virtual_stage(std::uint32_t stage, std::uint32_t chunk) const {
  const std::uint32_t pp = (*this)[Axis::pp];
  if (is_folded()) return chunk == 0 ? stage : 2 * pp - 1 - stage;
  if (is_mirrored()) return chunk == 0 ? stage : pp - 1 - stage;
  return chunk * pp + stage;
}

std::uint32_t Parallel::stage_of(std::uint32_t virtual_stage, std::uint32_t chunk) const {
  const std::uint32_t pp = (*this)[Axis::pp];
  if (is_folded()) return virtual_stage < pp ? virtual_stage : 2 * pp - 1 - virtual_stage;
  if (is_mirrored()) return chunk == 0 ? virtual_stage : pp - 1 - virtual_stage;
  return virtual_stage % pp;
}

double Parallel::ideal_bubble() const {
  const double stages = (*this)[Axis::pp], waits = stages - 1, batches = micro_batches;
  const auto share = [](double idle, double work) { return idle / (work + idle); };
  switch (pipeline.schedule) {
    case Schedule::zb_h1:
      return share(waits, 3 * batches);
    case Schedule::zb_v:
      return share(waits, 6 * batches);
    case Schedule::dual_pipe:
      return share(stages - 2, 3 * batches);
    case Schedule::one_forward_one_backward:
    case Schedule::gpipe:
      break;
  }
  return share(waits, interleaving * batches);
}

std::vector<std::uint64_t> Parallel::made_tokens() const {
  if (pipeline.phase != Phase::request) return {};
  const auto& [tokens, samples] = pipeline.request;
  const std::uint64_t decoded = tokens - 1, count = samples == 0 ? decoded : std::min(samples, decoded);
  std::vector<std::uint64_t> made = {1};
  for (std::uint64_t i = 0; i < count; ++i)
    made.push_back(2 + (count == 1 ? 0 : (i * (decoded - 1) + (count - 1) / 2) / (count - 1)));
  return made;
}

std::optional<std::string> Parallel::pipeline_warning() const {
  const std::uint32_t stages = (*this)[Axis::pp];
  if (stages == 1 || micro_batches > 1) return {};
  // Narayanan et al., 2021, section 2.2: (p - 1) / (m + p - 1). Interleaving needs more micro-batches.
  const auto bubble = [stages](double count) { return 100.0 * (stages - 1) / (count + stages - 1); };
  const std::uint64_t more = 4 * std::uint64_t{stages};
  return fmt::format(
      "workload.parallel.micro-batches is 1 for {} stages, which take turns: the ideal pipeline bubble is {:.0f} %. "
      "With "
      "micro-batches: {} it is {:.0f} %",
      stages, bubble(1), more, bubble(static_cast<double>(more)));
}

void Parallel::validate() const {
  for (std::size_t i = 0; i < num_axes; ++i)
    require_positive(fmt::format("workload.parallel.{}", axis_names[i]), sizes[i]);
  num_npus();
  auto axes = placement;
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end())
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.placement"}, "an axis stands here twice",
                "tp, cp, ep, dp and pp once each");
  require_positive("workload.parallel.interleaving", interleaving);
  require_positive("workload.parallel.micro-batch", micro_batch);
  require_positive("workload.parallel.micro-batches", micro_batches);
  if (pipeline.recompute_layers && recompute != Recompute::full)
    refuse("workload.parallel.recompute-layers", *pipeline.recompute_layers,
           "no number, or workload.parallel.recompute: full");
  const std::uint32_t tp = (*this)[Axis::tp];
  if (experts.tp > 1 && experts.tp != tp)
    refuse("workload.parallel.expert-tp", experts.tp, fmt::format("0, 1 or {}, which is tp", tp));
  if (expert_tp() < tp && (!sequence_parallel || is_inference()))
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.expert-tp"},
                fmt::format("found 1 with tp {}, but the NPUs of a tp group have the same tokens", tp),
                "workload.parallel.sp: true, in training", "Sequence parallelism divides the tokens among them.");
  if (!(experts.imbalance >= 0 && experts.imbalance <= 4))
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.expert-imbalance"},
                fmt::format("found {}", experts.imbalance), "0 to 4");
  if (experts.imbalance > 0 && experts.capacity != 1)
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.expert-imbalance"},
                fmt::format("found {}, but with workload.parallel.expert-capacity all experts compute the same",
                            experts.imbalance),
                "one of the two");
  if (sharding.zero > 3) refuse("workload.parallel.zero", sharding.zero, "0 to 3");
  require_positive("workload.parallel.calls-of-layer", sharding.calls.of_layer);
  require_collective_for_path(sharding);
  require_room_for_replicas(*this);
  if (is_below_bf16(gradients))
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.gradients"}, "found a precision below bf16",
                "bf16 or fp32");
}

}  // namespace orrery::workload
