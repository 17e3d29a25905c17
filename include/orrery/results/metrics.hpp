#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/breakdown.hpp"
#include "orrery/results/npu_records.hpp"

namespace orrery::results {

/// How a request makes the tokens of its sequences.
struct Generation {
  std::uint64_t tokens = 1;         ///< tokens of each sequence
  std::vector<std::uint64_t> made;  ///< numbers of those whose steps were simulated, from 1, ascending
  std::vector<Time> ends;           ///< [made] when the last sequence had the token
};

/// How far a predicted time may be off.
struct Certainty {
  double deviation = 0;  ///< standard deviation of the logarithm of the measured time over the predicted one
  std::string basis;     ///< text that says what the prediction rests on

  /// Returns the factor by which the time may be longer or shorter, with a probability of 80 %.
  double factor() const;
  void serialize(Archive& archive) { archive(deviation, basis); }
};

/// What is known of a training step if the workload was generated.
struct TrainingStep {
  double samples = 0;         ///< samples of all replicas
  double tokens = 0;          ///< 0: the model has no sequence
  double model_flops = 0;     ///< forward and backward, nothing computed again; 0: not known
  bool masks_scores = false;  ///< attention is causal, of which the masked scores are no FLOPs of the model
  double executed_flops = 0;  ///< FLOPs of all compute nodes of all NPUs
  double peak_flops = 0;      ///< FLOPs of one NPU, per second; 0: not known
  std::uint32_t stages = 1;   ///< stages of the pipeline
  double ideal_bubble = 0;    ///< share of the time of the passes in which NPUs wait, of the schedule alone
  std::uint32_t micro_batches = 1;
  enum class Phase : std::uint8_t { training, prefill, decode, request };
  Phase phase = Phase::training;
  std::optional<Generation> generation = {};  ///< token times of a request
  std::optional<Certainty> certainty = {};    ///< none: nothing is predicted
};

/// All collectives of one kind and number of members, and the bus bandwidth that they reached.
struct CollectiveTotal {
  std::uint8_t kind = 0;  ///< collective::Kind
  std::uint32_t members = 0;
  std::uint64_t count = 0;
  SumOfTimes time = 0;       ///< ps from the last arrival to the finish, summed over them
  double bus_bandwidth = 0;  ///< byte/s: of all bytes in all that time
};

/// Adds up the sums of all ranks, which may come in any order. Returns rows by kind, then members; without barriers and
/// without kinds that took no time.
std::vector<CollectiveTotal> totals_of(std::span<const communicator::CollectiveSum> sums);

/// A sum over recorded collectives that a library carried out and whose members wait for one cause.
struct LibrarySum {
  /// What is added up: the time, its standard error, the time that more bandwidth saves in a dimension, and the time of
  /// the collectives that a resource binds.
  enum class What : std::uint8_t { time, error, saved, bound };

  npu::Cause cause = npu::Cause::other;
  What what = What::time;
  std::uint32_t index = 0;  ///< dimension, or bound_number of the resource
  SumOfTimes time = 0;      ///< time in 1e-9 ps, summed over the members
};

/// How far the times of a library decide the time of a step.
struct LibraryEffects {
  double error = 0;                    ///< relative standard error of the step
  std::vector<double> more_bandwidth;  ///< [num_dimensions] share of the step that collective::bandwidth_step saves
  std::vector<std::pair<std::string, double>> bounds;  ///< resources that bind exposed collectives, with their shares

  void serialize(Archive& archive) { archive(error, more_bandwidth, bounds); }
};
/// Returns the number of a resource in LibrarySum: that of its collective::ResourceKind, or one for each dimension.
std::uint32_t bound_number(std::uint8_t kind, std::uint32_t dimension);

/// Returns these figures from the sums of all ranks, which may come in any order. Exposed time of a cause is taken to
/// consist of the time of its collectives. Errors of collectives with one cause add up, those of several causes in
/// squares. Returns nothing without sums.
std::optional<LibraryEffects> library_effects(std::span<const LibrarySum> sums, const BreakdownOf<double>& breakdown,
                                              std::size_t num_dimensions);

/// Shares of the NPUs' time from 0 to the end of the simulation. They add up to 1.
struct TimeShares {
  double compute = 0, cpu = 0, exposed_communication = 0, exposed_memory = 0;
  double idle = 0;  ///< with the time after an NPU's own end
};

/// What a generated training step reaches. What is not known is empty.
struct TrainingRates {
  std::optional<double> samples_per_second, tokens_per_second, tokens_per_second_per_npu;
  std::optional<double> model_flops_utilisation, hardware_flops_utilisation;
  bool masks_scores = false;                                         ///< as TrainingStep::masks_scores
  std::optional<double> time_to_first_token, time_per_output_token;  ///< seconds, of inference
  std::optional<double> first_output_token, last_output_token;       ///< the same of the second and the last token
  std::optional<double> request_time;                                ///< seconds, of a request with all its tokens

  void serialize(Archive& archive) {
    archive(masks_scores, samples_per_second, tokens_per_second, tokens_per_second_per_npu, model_flops_utilisation,
            hardware_flops_utilisation, time_to_first_token, time_per_output_token, first_output_token,
            last_output_token, request_time);
  }
};

/// Shares of time that the NPUs of a pipeline wait; for two stages or more.
struct PipelineBubble {
  double measured = 0;  ///< share of the NPUs' time
  double ideal = 0;     ///< share of the time of the passes alone
};

/// What a step costs, and what is had for it. Nothing stands for what has no price.
struct CostFigures {
  cost::StepCost step;
  std::optional<double> tokens_per_usd, tokens_per_joule;  ///< samples where the workload has no tokens

  void serialize(Archive& archive) {
    archive(step.capex, step.power, step.energy, step.price, tokens_per_usd, tokens_per_joule);
  }
};

/// What users of a cluster ask about a training step (docs/results.md, /metrics).
struct Metrics {
  std::uint32_t iterations = 1;
  Time step_time;  ///< simulated time over iterations, nearest ps
  TimeShares shares;
  BreakdownOf<double> breakdown{};  ///< the same time by parts; they add up to 1
  Time exposed_communication_time;  ///< time of an NPU in a step: the mean, nearest ps
  TrainingRates training;
  std::optional<PipelineBubble> bubble;
  std::vector<std::int64_t> bytes_per_step;  ///< [num_dimensions] sent by all NPUs
  std::vector<double> utilisation;           ///< [num_dimensions] as in /network
  std::vector<CollectiveTotal> collectives;
  std::vector<std::string> hints;         ///< result of hints_of
  CostFigures cost;                       ///< result of add_cost
  std::optional<LibraryEffects> library;  ///< if a library carried out collectives that were recorded
  std::optional<Certainty> certainty;

  void serialize(Archive& archive) {
    archive(iterations, step_time, shares, breakdown, exposed_communication_time, training, bubble, bytes_per_step,
            utilisation, collectives, hints, cost, library, certainty);
  }
};

/// What all NPUs did with the network, over all iterations.
struct NetworkFigures {
  std::vector<std::int64_t> bytes;  ///< [num_dimensions] sent
  std::vector<double> utilisation;  ///< [num_dimensions] share of the time in which a link is busy, the mean over links
};

/// Computes the metrics of a run that is complete, from the records of all NPUs and the figures of the network. Returns
/// nothing if no time has passed. O(NPUs). Formulas and sources: docs/results.md.
std::optional<Metrics> metrics_of(const NpuRecords& npus, const NetworkFigures& network, std::uint32_t iterations,
                                  const std::optional<TrainingStep>& step,
                                  std::span<const communicator::CollectiveSum> collectives);
/// Adds what the step costs on a system with prices (docs/cost.md). A request counts as the step.
void add_cost(const cost::Hardware& hardware, Metrics& metrics);

}  // namespace orrery::results
