#include "dry_run.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/parallel/packing.hpp"
#include "study_table.hpp"

namespace orrery::study {
namespace {

const std::string to_simulate = "to be simulated";  // the verdict of a point that bounds say nothing of

/// What is known of a point without a simulation.
struct Bounds {
  double step_time = 0, peak_memory = 0, capex = 0;
  std::string verdict;  ///< why it need not be simulated; empty: it has to be
};

Bounds bounds_of(const explore::Study& study, const explore::Point& point, config::Variants& variants,
                 TrialEstimator& estimator) {
  auto found = estimator.estimate(variants, settings_of(point));
  const bool is_refused = found.settled && found.settled->status == TrialStatus::refused;
  Bounds bounds{found.estimate.bound("step_time"),
                is_refused ? std::nan("") : found.estimate.bound("peak_memory"),
                found.estimate.bound("capex"),
                {}};
  if (found.settled)
    bounds.verdict = fmt::format("{}: {}", name(found.settled->status), found.settled->text);
  else if (const auto* const broken = broken_limit(study, point, found.estimate))
    bounds.verdict = fmt::format("excluded by {}", broken->text());
  return bounds;
}

/// Returns the bounds of all points on rank 0. Collective.
std::vector<Bounds> gather_bounds(const explore::Study& study, const explore::Points& points,
                                  config::Variants& variants, parallel::Communicator& world) {
  parallel::Packer packer;
  TrialEstimator estimator(needs_flops(study));
  world.agree([&] {
    const auto step = static_cast<std::size_t>(world.size());
    for (auto i = static_cast<std::size_t>(world.rank().value()); i < points.size(); i += step) {
      const Bounds bounds = bounds_of(study, points[i], variants, estimator);
      packer.put(static_cast<std::uint64_t>(i));
      for (const double bound : {bounds.step_time, bounds.peak_memory, bounds.capex}) packer.put(bound);
      packer.put_text(bounds.verdict);
    }
  });
  const auto bytes = packer.take();
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  std::vector<Bounds> bounds(world.is_root() ? points.size() : 0);
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    Bounds& one = bounds[unpacker.get<std::uint64_t>()];
    one.step_time = unpacker.get<double>();
    one.peak_memory = unpacker.get<double>();
    one.capex = unpacker.get<double>();
    one.verdict = unpacker.get_text();
  }
  return bounds;
}

}  // namespace

bool needs_flops(const explore::Study& study) {
  const auto is_of_flops = [](std::string_view name) { return name == "mfu" || name == "hfu"; };
  return std::ranges::any_of(study.objectives, is_of_flops, &explore::Objective::metric) ||
         std::ranges::any_of(study.constraints, [&](const explore::Expression& constraint) {
           return std::ranges::any_of(constraint.names(), is_of_flops);
         });
}

const explore::Expression* broken_limit(const explore::Study& study, const explore::Point& point,
                                        const TrialEstimate& estimate) {
  for (const explore::Expression& constraint : study.constraints) {
    if (std::ranges::count_if(constraint.names(), explore::is_metric) != 1) continue;
    for (const auto& [name, is_most] :
         {std::pair(constraint.limited_name(), false), std::pair(constraint.demanded_name(), true)}) {
      if (!name || !explore::is_metric(*name) || TrialEstimate::is_most(*name) != is_most) continue;
      if (std::isnan(estimate.bound(*name))) continue;
      explore::Names names = point.names;
      names[*name] = estimate.bound(*name);
      if (!constraint.holds(names)) return &constraint;
    }
  }
  return nullptr;
}

void dry_run(const explore::Study& study, const ExploreCommand& command, const explore::Points& points,
             const explore::Funnel& funnel, parallel::Communicator& world) {
  config::Variants variants(common_inputs(study, command));
  const auto bounds = gather_bounds(study, points, variants, world);
  if (!world.is_root()) return;
  const auto names = all_names(study);
  std::vector<std::vector<std::string>> lines(1, {"trial"});
  for (const auto& one : names) lines[0].push_back(cited(one, 40));
  lines[0].insert(lines[0].end(), {"step_time >=", "peak_memory >=", "capex >=", "verdict"});
  std::map<std::string, std::uint64_t> counts;
  const auto text = [](double bound) { return std::isnan(bound) ? "-" : fmt::format("{:.5g}", bound); };
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const explore::Point point = points[i];
    auto& line = lines.emplace_back(1, fmt::format("{}", point.number));
    for (const auto& one : names) line.push_back(cited(text_of(points.space(), point, one), 40));
    for (const double bound : {bounds[i].step_time, bounds[i].peak_memory, bounds[i].capex})
      line.push_back(text(bound));
    line.push_back(bounds[i].verdict.empty() ? to_simulate : cited(bounds[i].verdict, 80));
    ++counts[bounds[i].verdict.empty() ? to_simulate : bounds[i].verdict.substr(0, bounds[i].verdict.find(':'))];
  }
  print_columns(lines);
  print_funnel(study, funnel);
  for (const auto& [verdict, count] : counts) fmt::print("{:>12}  {}\n", count, cited(verdict));
  if (counts.contains(to_simulate) || command.parts.shard) return;  // another shard may have one
  throw Error(ErrorCode::bad_input, {.file = command.file.string()},
              fmt::format("no configuration of {} is left, for the reasons that stand above", bounds.size()),
              "one that fits and keeps all constraints");
}

}  // namespace orrery::study
