#include "study_trials.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "orrery/parallel/packing.hpp"
#include "stop_request.hpp"

namespace orrery::app {
namespace {

using explore::Point;
using explore::Study;

/// Returns the first metric that the study needs and the trial does not have; nothing if it has all of them.
std::optional<std::string> missing_metric(const Study& study, const Trial& trial) {
  const auto is_missing = [&](const std::string& name) {
    return explore::is_metric(name) && std::isnan(trial.metrics[index_of_metric(name)]);
  };
  for (const explore::Expression& constraint : study.constraints)
    for (const std::string& name : constraint.names())
      if (is_missing(name)) return name;
  for (const auto& objective : study.objectives)
    if (is_missing(objective.metric)) return objective.metric;
  return {};
}

/// Looks at the metrics of a trial that is done.
void apply_constraints(const Study& study, const Point& point, Trial& trial) {
  if (trial.status != TrialStatus::done) return;
  if (const auto missing = missing_metric(study, trial)) {
    trial.status = TrialStatus::excluded;
    trial.text = fmt::format("{}, which is not known{}", *missing,
                             explore::needs_prices(*missing) ? ": `cost` lacks the prices" : "");
    return;
  }
  explore::Names names = point.names;
  for (std::size_t i = 0; i < explore::metrics().size(); ++i)
    if (!std::isnan(trial.metrics[i])) names[std::string(explore::metrics()[i].name)] = trial.metrics[i];
  for (const explore::Expression& constraint : study.constraints) {
    if (std::ranges::none_of(constraint.names(), explore::is_metric) || constraint.holds(names)) continue;
    trial.status = TrialStatus::excluded;
    trial.text = constraint.text();
    return;
  }
}

std::vector<std::byte> pack(const Trials& trials) {
  parallel::Packer packer;
  for (const auto& [number, trial] : trials) {
    packer.put(number);
    packer.put(trial.status);
    packer.put_all(std::span<const double>(trial.metrics));
    packer.put_text(trial.text);
  }
  return packer.take();
}

Trials unpack(std::span<const std::byte> bytes) {
  Trials trials;
  for (parallel::Unpacker unpacker(bytes); !unpacker.empty();) {
    Trial& trial = trials[unpacker.get<std::uint64_t>()];
    trial.status = unpacker.get<TrialStatus>();
    trial.metrics = unpacker.get_all<double>();
    trial.text = unpacker.get_text();
  }
  return trials;
}

}  // namespace

std::size_t index_of_metric(std::string_view metric) {
  return static_cast<std::size_t>(std::ranges::find(explore::metrics(), metric, &explore::MetricInfo::name) -
                                  explore::metrics().begin());
}

config::Inputs common_inputs(const Study& study, const config::ExploreCommand& command) {
  config::Inputs inputs{.file = study.base, .overrides = command.overrides};
  if (!study.cost.empty()) inputs.overrides.push_back(fmt::format("cost=\"{}\"", study.cost));
  return inputs;
}

std::vector<std::string> settings_of(const Point& point) {
  std::vector<std::string> settings;
  for (const auto& [key, text] : point.settings) settings.push_back(fmt::format("{}={}", key, text));
  return settings;
}

config::Inputs inputs_of(const Study& study, const config::ExploreCommand& command, const Point& point) {
  config::Inputs inputs = common_inputs(study, command);
  for (std::string& setting : settings_of(point)) inputs.overrides.push_back(std::move(setting));
  return inputs;
}

bool simulate_point(const StudyRun& run, const Point& point, Trials& mine) {
  auto trial = run.stop_requested()
                   ? std::nullopt
                   : simulate_trial(*run.variants, settings_of(point), run.study.fold, run.stop_requested);
  if (!trial) return false;
  apply_constraints(run.study, point, *trial);
  if (point.number != unnumbered) run.journal.add(point.number, *trial);
  mine.emplace(point.number, std::move(*trial));
  return true;
}

std::vector<Trial> simulate_points(const StudyRun& run, const std::vector<Point>& points,
                                   parallel::Communicator& world) {
  parallel::Packer packer;
  for (const Point& point : points) {
    packer.put(point.number);
    packer.put_all(std::span<const std::uint32_t>(point.choice));
  }
  auto bytes = packer.take();
  world.broadcast_bytes(bytes, Rank(0));
  Trials mine;  // by position
  bool has_stopped = false;
  std::uint64_t position = 0;
  world.agree([&] {
    for (parallel::Unpacker unpacker(bytes); !unpacker.empty(); ++position) {
      const auto number = unpacker.get<std::uint64_t>();
      const auto choice = unpacker.get_all<std::uint32_t>();
      if (has_stopped ||
          position % static_cast<std::uint64_t>(world.size()) != static_cast<std::uint64_t>(world.rank().value()))
        continue;
      Point point = run.space.at(choice).value();
      point.number = number;
      Trials one;
      has_stopped = !simulate_point(run, point, one);
      if (!has_stopped) mine.emplace(position, std::move(one.begin()->second));
    }
  });
  end_if_stopped(run, has_stopped, 0, world);
  const auto packed = pack(mine);
  const auto all = world.all_gather(std::span<const std::byte>(packed));
  std::vector<Trial> trials(position);
  for (auto& [at, trial] : unpack(all)) trials[at] = std::move(trial);
  return trials;
}

Trials gather_trials(const StudyRun& run, const Trials& mine, parallel::Communicator& world) {
  const auto bytes = pack(mine);
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  if (!world.is_root()) return {};
  Trials trials = unpack(all);
  trials.insert(run.journal.known().begin(), run.journal.known().end());
  return trials;
}

void end_if_stopped(const StudyRun& run, bool has_stopped, std::size_t done, parallel::Communicator& world) {
  std::int64_t sums[] = {has_stopped ? 1 : 0, static_cast<std::int64_t>(done)};
  world.sum(sums);
  world.agree([&] {
    if (world.is_root() && sums[0] > 0)
      throw Error(ErrorCode::interrupted,
                  fmt::format("stopped by {}: {} of {} configurations are done, and {}.journal.* keep them. The same "
                              "command goes on from there",
                              *stop_reason() == '\0' ? "a request to another rank" : stop_reason(),
                              static_cast<std::size_t>(sums[1]) + run.journal.known().size(), run.points.size(),
                              run.command.output.string()));
  });
}

StudyTrials simulate_all(const StudyRun& run, parallel::Communicator& world) {
  Trials mine;
  bool has_stopped = false;
  world.agree([&] {
    std::size_t turn = 0;
    for (std::size_t i = 0; i < run.points.size(); ++i) {
      if (run.journal.known().contains(run.points.number(i))) continue;
      if (turn++ % static_cast<std::size_t>(world.size()) != static_cast<std::size_t>(world.rank().value())) continue;
      has_stopped = !simulate_point(run, run.points[i], mine);
      if (has_stopped) return;
    }
  });
  end_if_stopped(run, has_stopped, mine.size(), world);
  Trials trials = gather_trials(run, mine, world);
  StudyTrials result;
  if (!world.is_root()) return result;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const std::uint64_t number = run.points.number(i);
    result.rows.push_back({number, std::move(trials.at(number))});
  }
  return result;
}

}  // namespace orrery::app
