#include "orrery/results/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "orrery/base/text.hpp"
#include "orrery/results/breakdown.hpp"
#include "orrery/results/metric_text.hpp"

namespace orrery::results {
namespace {

constexpr std::size_t most_hints = 3;
constexpr double worth_telling = 0.1;  // share of the NPUs' time
constexpr double busy_dimension = 0.8;
constexpr double worth_more_bandwidth = 0.005;     ///< share of the step that 10 % more bandwidth saves
constexpr std::uint32_t enough_micro_batches = 4;  // for each stage: the ideal bubble is a fifth then

struct Hint {
  double share = 0;  ///< share of the NPUs' time that it concerns
  std::string text;
};

double share_of(const Metrics& metrics, npu::Cause cause) {
  return metrics.breakdown[first_cause_part + static_cast<std::size_t>(cause)];
}

/// Tells of a pipeline that has too few micro-batches.
void look_at_bubble(const Metrics& metrics, const RunDescription& run, std::vector<Hint>& hints) {
  if (!metrics.bubble || !run.step) return;
  const auto& step = *run.step;
  const std::uint32_t enough = enough_micro_batches * step.stages;
  if (metrics.bubble->measured < worth_telling || step.micro_batches >= enough) return;
  hints.push_back({metrics.bubble->measured, fmt::format("{} of the NPUs' time is pipeline bubble, with {} for {}: try "
                                                         "workload.parallel.micro-batches: {}.",
                                                         percent(metrics.bubble->measured, 0),
                                                         counted(step.micro_batches, "micro-batch", "micro-batches"),
                                                         counted(step.stages, "stage"), enough)});
}

/// Tells what to do about exposed communication and memory of one kind, if there is much of it. Only a generated
/// workload has keys that say how it is divided.
void look_at_waits(const Metrics& metrics, const RunDescription& run, std::vector<Hint>& hints) {
  const auto tell = [&](double share, std::string_view what) {
    if (share >= worth_telling)
      hints.push_back({share, fmt::format("{} of the NPUs' time is {}", percent(share, 0), what)});
  };
  const auto tell_of = [&](double share, std::string_view kind, std::string_view generated) {
    tell(share,
         fmt::format("exposed communication of {} parallelism: try {}more bandwidth in the dimensions of its groups.",
                     kind, run.step ? generated : ""));
  };
  using npu::Cause;
  const double sequence = share_of(metrics, Cause::sequence);
  tell_of(share_of(metrics, Cause::tensor) + sequence, sequence > 0 ? "tensor and sequence" : "tensor",
          "a smaller workload.parallel.tp, or ");
  tell_of(share_of(metrics, Cause::context), "context", "a smaller workload.parallel.cp, or ");
  tell_of(share_of(metrics, Cause::expert), "expert", "a smaller workload.parallel.ep, another placement, or ");
  tell(share_of(metrics, Cause::data),
       "exposed communication of data parallelism: try more bandwidth in its dimensions, or more "
       "micro-batches.");
  tell(share_of(metrics, Cause::pipeline),
       "exposed time of messages between stages: try more bandwidth in their dimension, or other neighbours "
       "(workload.parallel.placement).");
  tell(metrics.shares.exposed_memory,
       "exposed access to remote memory: try more of its bandwidth (system.remote-memory), or a larger "
       "workload.parallel.prefetch.");
}

/// What a late member does while others wait for it.
struct Delay {
  std::string_view what, remedy;
  double own = 0, others = 0;  ///< seconds, of the member and of the mean of the others

  double excess() const { return own - others; }
};

/// Returns a time with four digits.
std::string short_time(double seconds) {
  return seconds >= 1      ? fmt::format("{:.4g} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.4g} ms", 1e3 * seconds)
         : seconds >= 1e-6 ? fmt::format("{:.4g} µs", 1e6 * seconds)
                           : fmt::format("{:.4g} ns", 1e9 * seconds);
}

/// Returns why a member is late: the activity of which it has most beyond the mean of the others.
Delay delay_of(const npu::NpuRecord& late, const NpuRecords& npus) {
  Delay compute{"it computes", "give it less work, or find out why it is slow."};
  Delay host{"its host (cpu) works", "launch less from the host: CUDA graphs, fewer and larger kernels."};
  Delay memory{"it accesses remote memory", "raise its bandwidth (system.remote-memory), or prefetch more."};
  Delay communication{"it is in other communication", "look at the groups that only it is in."};
  Delay idle{"it has nothing to do", "look at what its nodes depend on, and at when it starts."};
  const auto other_waits = [](const npu::NpuRecord& npu) {
    return npu.exposed_communication() - npu.waits[static_cast<std::size_t>(npu::Cause::stragglers)];
  };
  const auto fill = [&](Delay& delay, auto figure) {
    double sum = 0;
    npus.for_each([&](const npu::NpuRecord& npu, std::uint64_t count) {
      sum += std::invoke(figure, npu).seconds() * static_cast<double>(count);
    });
    delay.own = std::invoke(figure, late).seconds();
    delay.others = (sum - delay.own) / static_cast<double>(std::max<std::size_t>(npus.size() - 1, 1));
  };
  fill(compute, &npu::NpuRecord::compute);
  fill(host, &npu::NpuRecord::cpu);
  fill(memory, &npu::NpuRecord::exposed_memory);
  fill(communication, other_waits);
  fill(idle, &npu::NpuRecord::idle);
  return std::ranges::max({compute, host, memory, communication, idle}, {}, &Delay::excess);
}

}  // namespace

std::optional<std::string> hint_of_late_members(const Metrics& metrics, const NpuRecords& npus) {
  const double share = share_of(metrics, npu::Cause::stragglers);
  if (share < worth_telling || npus.size() < 2) return {};
  // The member that joins last waits for nobody.
  const auto wait = [](const npu::NpuRecord& npu) {
    return npu.waits[static_cast<std::size_t>(npu::Cause::stragglers)];
  };
  const auto [late, number] = npus.least(wait);
  const Delay delay = delay_of(late, npus);
  return fmt::format(
      "NPU {} is late: {} for {}, {} in the mean of the others. {} of the NPUs' time is waiting for members "
      "that join collectives late, and NPU {} is last most often. Try to {}",
      number.value(), delay.what, short_time(delay.own), short_time(delay.others), percent(share, 0), number.value(),
      delay.remedy);
}

namespace {

/// Tells who is late if others wait for it.
void look_at_stragglers(const Metrics& metrics, const NpuRecords& npus, std::vector<Hint>& hints) {
  if (auto text = hint_of_late_members(metrics, npus))
    hints.push_back({share_of(metrics, npu::Cause::stragglers), std::move(*text)});
}

/// Tells of dimensions that are nearly always busy, and of bandwidth that is divided all the time.
void look_at_dimensions(const Metrics& metrics, const RunDescription& run, std::vector<Hint>& hints) {
  const double exposed = metrics.shares.exposed_communication;
  for (std::size_t d = 0; d < metrics.utilisation.size(); ++d) {
    const bool gains = !metrics.library || metrics.library->more_bandwidth[d] >= worth_more_bandwidth;
    if (metrics.utilisation[d] >= busy_dimension && !run.network.lies_on_graph && gains)
      hints.push_back({exposed, fmt::format("Dimension {} is {} busy: more bandwidth there "
                                            "(system.network.dimensions.{}.bandwidth) would shorten the step.",
                                            d, percent(metrics.utilisation[d], 0), d)});
    if (d < run.network.sharers.size() && run.network.sharers[d] > 1)
      hints.push_back({exposed, fmt::format("Collectives have 1/{} of the bandwidth of dimension {} each, also while "
                                            "they are alone: leave out system.communication.streams, or take "
                                            "--network=congestion-aware, where they share it when they meet.",
                                            run.network.sharers[d], d)});
  }
}

}  // namespace

std::vector<std::string> hints_of(const Metrics& metrics, const RunDescription& run, const NpuRecords& npus) {
  std::vector<Hint> hints;
  look_at_bubble(metrics, run, hints);
  look_at_waits(metrics, run, hints);
  look_at_stragglers(metrics, npus, hints);
  look_at_dimensions(metrics, run, hints);
  std::ranges::stable_sort(hints, std::greater(), &Hint::share);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(hints.size(), most_hints); ++i) texts.push_back(std::move(hints[i].text));
  return texts;
}

}  // namespace orrery::results
