// Evaluates a phase in all groups of an axis, of which those with equal links share an evaluator.
#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "algorithm.hpp"

namespace orrery::collective {
namespace {

/// Groups whose links differ: each has the evaluator of groups like it.
class DifferingGroups final : public GroupEvaluator {
 public:
  DifferingGroups(std::uint32_t size, std::vector<std::uint32_t> evaluator_of,
                  std::vector<std::unique_ptr<GroupEvaluator>> evaluators)
      : size_(size), evaluator_of_(std::move(evaluator_of)), evaluators_(std::move(evaluators)) {}

  bool finishes_together() const override { return false; }
  Ps duration() const override {
    Ps longest = 0;
    for (const auto& evaluator : evaluators_) longest = std::max(longest, evaluator->duration());
    return longest;
  }
  std::optional<Ps> shortest() const override {
    if (std::ranges::none_of(evaluators_, [](const auto& evaluator) { return evaluator->shortest().has_value(); }))
      return {};
    Ps least = std::numeric_limits<Ps>::max();
    for (const auto& evaluator : evaluators_) least = std::min(least, shortest_of(*evaluator, size_));
    return least;
  }
  std::size_t memory() const override {
    std::size_t bytes = sizeof(*this) + evaluator_of_.size() * sizeof(std::uint32_t);
    for (const auto& evaluator : evaluators_) bytes += evaluator->memory();
    return bytes;
  }
  void run(std::span<Ps> times, Scratch& scratch) const override {
    for (std::size_t group = 0; group < evaluator_of_.size(); ++group)
      evaluators_[evaluator_of_[group]]->run(times.subspan(group * size_, size_), scratch);
  }

 private:
  std::uint32_t size_;
  std::vector<std::uint32_t> evaluator_of_;  ///< [groups]
  std::vector<std::unique_ptr<GroupEvaluator>> evaluators_;
};

/// Returns whether a link that the group may use has failed. A message over several dimensions may pass any group of
/// them.
bool may_meet_detours(const GroupContext& context, std::uint32_t group) {
  const Axis& axis = context.axis;
  if (axis.npus.empty()) return false;
  const NpuId first = axis.npus[std::size_t{group} * axis.size];
  return axis.dimensions.size() > 1 || context.delays.topology().links().has_failed(axis.dimensions[0], first);
}

/// Returns what the delays of a group depend on: groups with equal profiles have equal delays.
std::vector<std::uint32_t> profile_of(const GroupContext& context) {
  const Axis& axis = context.axis;
  std::vector<std::uint32_t> profile;
  for (std::size_t k = 0; !axis.ports.empty() && k < axis.dimensions.size(); ++k)
    for (std::uint32_t position = 0; position < axis.size; ++position)
      profile.push_back(axis.port(k, context.group, position));
  for (std::uint32_t position = 0; context.has_detours && position < axis.size; ++position)
    profile.push_back(axis.npus[std::size_t{context.group} * axis.size + position].value());
  return profile;
}

}  // namespace

std::unique_ptr<GroupEvaluator> evaluate_groups(const PhaseAlgorithm& algorithm, const GroupContext& context) {
  const Axis& axis = context.axis;
  if (axis.ports.empty() && axis.npus.empty()) return algorithm.evaluator(context);
  std::vector<std::unique_ptr<GroupEvaluator>> evaluators;
  std::vector<std::uint32_t> evaluator_of;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (std::uint32_t group = 0; group < axis.num_groups(); ++group) {
    GroupContext own = context;
    own.group = group;
    own.has_detours = may_meet_detours(context, group);
    const auto [found, is_new] = known.try_emplace(profile_of(own), static_cast<std::uint32_t>(evaluators.size()));
    evaluator_of.push_back(found->second);
    if (is_new) evaluators.push_back(algorithm.evaluator(own));
  }
  if (evaluators.size() == 1) return std::move(evaluators.front());
  return std::make_unique<DifferingGroups>(axis.size, std::move(evaluator_of), std::move(evaluators));
}

}  // namespace orrery::collective
