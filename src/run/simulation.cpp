#include "orrery/run/simulation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/check/capacity.hpp"
#include "orrery/check/overrun.hpp"
#include "orrery/check/stuck.hpp"
#include "orrery/model/load_places.hpp"
#include "orrery/model/saved_rank.hpp"
#include "orrery/results/load.hpp"
#include "orrery/run/checkpoints.hpp"
#include "orrery/run/progress.hpp"
#include "split_classes.hpp"

namespace orrery::run {
namespace {

/// Returns the divergences of all ranks. Collective.
std::vector<communicator::Divergence> all_divergences(const model::RankModel& model, parallel::Communicator& world) {
  std::vector<std::int64_t> mine;  // group, times, number of labels, labels
  for (const auto& divergence : model.communicators().divergences()) {
    mine.insert(mine.end(), {std::int64_t{divergence.group.value()}, divergence.last_arrival.ps(),
                             divergence.first_completion.ps(), static_cast<std::int64_t>(divergence.labels.size())});
    mine.insert(mine.end(), divergence.labels.begin(), divergence.labels.end());
  }
  const auto all = world.all_gather(std::span<const std::int64_t>(mine));
  std::vector<communicator::Divergence> result;
  for (auto next = all.begin(); next != all.end();) {
    auto& divergence = result.emplace_back();
    divergence.group = GroupId(static_cast<std::uint32_t>(next[0]));
    divergence.last_arrival = Time::from_ps(next[1]);
    divergence.first_completion = Time::from_ps(next[2]);
    const auto first = next + 4;
    next = first + next[3];
    for (auto label = first; label != next; ++label) divergence.labels.push_back(static_cast<std::uint32_t>(*label));
  }
  return result;
}

}  // namespace

Simulation::Simulation(Preparation& preparation, const config::RunOptions& options,
                       std::function<bool()> stop_requested, parallel::Communicator& world, Checkpoints* checkpoints,
                       Span span)
    : preparation_(preparation),
      world_(world),
      model_(preparation.run_context()),
      excess_is_error_(options.memory == config::ExcessPolicy::error),
      checkpoints_(checkpoints),
      span_(span),
      stop_requested_(std::move(stop_requested)) {
  pdes::Options kernel_options = model_.kernel_options(world);
  kernel_options.watchdog_seconds = options.watchdog_s;
  if (checkpoints_ || stop_requested_ || preparation.folding())
    kernel_options.stop_mode = [this] {
      if (are_npus_done_) return pdes::StopMode::none;
      if (has_diverged()) return pdes::StopMode::caught_up;
      const bool is_wanted = (stop_requested_ && stop_requested_()) || (checkpoints_ && checkpoints_->is_due());
      return is_wanted && !is_diverging_ ? pdes::StopMode::now : pdes::StopMode::none;
    };
  if (options.shows_progress()) {
    std::uint64_t num_nodes = 0;
    for (const npu::NpuSpec& npu : preparation.simulated_npus())
      num_nodes += std::uint64_t{npu.trace->graph->num_nodes()} * model_.run().options.iterations_of(npu.id);
    progress_ = std::make_unique<ProgressLine>(options, model_, num_nodes, world);
    kernel_options.progress = [this](std::uint64_t events, Time now) { progress_->update(events, now); };
  }
  kernel_ = std::make_unique<pdes::Kernel>(world, model_, std::move(kernel_options));
  kernel_->stop_at(span.limit);
  if (options.record_load) record_load();
}

Simulation::~Simulation() = default;

void Simulation::record_load() {
  const std::uint32_t num_blocks = std::min(preparation_.num_npus(), results::most_load_blocks);
  load_ = std::make_unique<pdes::LoadRecorder>(model::load_places(model_.run(), num_blocks, *kernel_));
  kernel_->record_load(load_.get());
}

/// Returns whether a collective of this rank has diverged and all divergences that count are known at the time of the
/// kernel: those whose arrivals come before the first completion of any.
bool Simulation::has_diverged() const {
  return std::ranges::any_of(model_.communicators().divergences(), [&](const communicator::Divergence& divergence) {
    return divergence.first_completion <= kernel_->now();
  });
}

/// Runs the kernel to its end, or to a stop for good. It also stops for each checkpoint. Which divergences count is
/// known only if all ranks have come to the same time, so no other stop is made between the first one and that.
void Simulation::simulate() {
  if (span_.from != nullptr)
    model::SavedRank(model_).restore(*kernel_, *span_.from);
  else if (checkpoints_)
    checkpoints_->begin(model_, *kernel_);
  else
    model_.start(*kernel_, load_.get());
  if (stop_requested_) {
    // The kernel asks after some events only, and a repetition may have fewer.
    std::array<std::int64_t, 2> stop{stop_requested_() ? 1 : 0, kernel_->now().ps()};
    world_.maximum(stop);
    if (stop[0] != 0) kernel_->stop_at(std::min(span_.limit, Time::from_ps(stop[1])));
  }
  for (kernel_->run(); kernel_->stopped_at(); kernel_->run()) {
    const bool is_for_good = checkpoints_ == nullptr || (stop_requested_ && stop_requested_());
    std::array<std::int64_t, 3> flags{static_cast<std::int64_t>(model_.npus().num_unfinished() > 0),
                                      static_cast<std::int64_t>(is_for_good),
                                      static_cast<std::int64_t>(!model_.communicators().divergences().empty())};
    world_.maximum(flags);
    are_npus_done_ = flags[0] == 0;
    if (!are_npus_done_) {
      is_diverging_ = flags[2] != 0;
      if (is_diverging_ && kernel_->has_caught_up()) return;
      if (!is_diverging_) {
        if (checkpoints_) save();
        if (flags[1] != 0) return;
      }
    }
  }
  if (checkpoints_) checkpoints_->note_end(model_, *kernel_);
}

void Simulation::save() {
  enter_phase(JobPhase::saving);
  checkpoints_->write(model_, *kernel_);
  const auto& written = checkpoints_->written();
  if (JobContext* const job = JobContext::current(); job && !written.empty()) job->set_checkpoint(written.string());
  enter_phase(JobPhase::simulating);
}

std::vector<checkpoint::Piece> Simulation::state_at_limit() {
  simulate();
  ensure(model_.communicators().divergences().empty(), "a divergence before the first one");
  return model::SavedRank(model_).save(kernel_->state());
}

std::vector<communicator::Divergence> Simulation::run() {
  world_.barrier();
  const auto start = std::chrono::steady_clock::now();
  enter_phase(JobPhase::simulating);
  simulate();
  enter_phase(JobPhase::preparing);
  if (progress_) progress_->finish();
  wall_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (auto divergences = all_divergences(model_, world_); !divergences.empty()) return divergences;
  check::require_no_overrun(model_, preparation_.store(), world_);
  if (excess_is_error_) check::require_capacity(model_, preparation_.store(), world_);
  auto unfinished = static_cast<std::int64_t>(model_.npus().num_unfinished());
  world_.sum(std::span(&unfinished, 1));
  if (!kernel_->stopped_at()) check::require_no_credit_circle(model_, world_);
  if (unfinished == 0) return {};
  if (kernel_->stopped_at()) {
    stopped_at_ = kernel_->stopped_at();
    model_.stop(*stopped_at_);
    return {};
  }
  const std::string report = check::report_stuck(model_, preparation_.store(), world_);
  world_.agree([&] {
    if (!world_.is_root()) return;
    throw Error(ErrorCode::stuck,
                fmt::format("the simulated system is stuck: {} of {} {} not finish\n{}", unfinished,
                            preparation_.num_npus(), preparation_.num_npus() == 1 ? "NPU does" : "NPUs do", report));
  });
  ensure_failed("a run that is stuck ends with an error", std::source_location::current());
}

std::unique_ptr<Simulation> simulate(Preparation& preparation, const config::RunOptions& options,
                                     const std::function<bool()>& stop_requested, parallel::Communicator& world,
                                     Checkpoints* checkpoints) {
  std::optional<model::ResumedState> resumed;
  for (;;) {
    const Span span{.from = resumed ? &*resumed : nullptr};
    auto simulation = std::make_unique<Simulation>(preparation, options, stop_requested, world, checkpoints, span);
    const auto divergences = simulation->run();
    if (divergences.empty()) return simulation;
    simulation.reset();
    if (checkpoints) checkpoints->note_folding(divergences);
    resumed = split_classes(preparation, divergences, span.from, options, world);
  }
}

}  // namespace orrery::run
