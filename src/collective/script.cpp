#include "orrery/collective/script.hpp"

#include <algorithm>
#include <map>

#include "script_parts.hpp"

namespace orrery::collective {
namespace {

bool is_tree(const ScriptPhase& phase) { return phase.shape.algorithm.kind == AlgorithmKind::double_binary_tree; }

/// Where a member stands in a phase.
struct Standing {
  Standing(const ScriptPhase& phase, std::uint32_t member)
      : size(phase.axis->size),
        place(phase.stand(member) % size),
        line(phase.axis->members.data() + (phase.stand(member) - place)) {}

  std::uint32_t size = 0;
  std::uint32_t place = 0;              ///< in its line
  const std::uint32_t* line = nullptr;  ///< [size] the members that stand there
};

/// Steps of a member in a tree: its children send to it; it sends to its parent and waits for it; it sends to its
/// children. The root has nobody to send to or wait for in the second.
enum TreeStep : std::uint32_t { from_children, with_parent, to_children, num_tree_steps };

}  // namespace

Tree::Tree(std::uint32_t tree, std::uint32_t size) : parent(size), first(size + 1, 0) {
  for (std::uint32_t position = 0; position < size; ++position) {
    const std::uint32_t above = position == 0 ? 0 : tree_parent(position, size);
    const std::uint32_t up = tree_place(above, tree, size);
    parent[tree_place(position, tree, size)] = up;
    if (position != 0) ++first[up + 1];
  }
  for (std::uint32_t place = 0; place < size; ++place) first[place + 1] += first[place];
  children.resize(first[size]);
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t place = 0; place < size; ++place)
    if (!is_root(place)) children[next[parent[place]]++] = place;
}

Script::Parts::Parts(const topology::Topology& topology, const Options& options, std::shared_ptr<const Layout> of,
                     Kind kind, Bytes size, const Schedule& schedule)
    : layout(std::move(of)), rules(topology.rules()), places(in_service(options)) {
  const Chunks chunks = cut(options, kind, size, topology.num_npus(), layout->num_members);
  num_chunks = chunks.count;
  const Routes routes = routes_of(topology, options, *layout, kind, chunks);
  std::vector<std::uint32_t> first;  // [routes] of its stages
  for (const Route& route : routes.routes) {
    first.push_back(static_cast<std::uint32_t>(phases.size()));
    for (const Phase& phase : route) {
      const LineContext context = line_context(topology, options, *layout, *phase.axis);
      endpoint_delay = Time::from_ps(context.endpoint_delay);
      add_phase(phase, context);
    }
  }
  for (const collective::Service& service : schedule.services) {
    services.push_back({service.chunk, service.stage - first[routes.of(service.chunk)], service.stage});
    queue_of.push_back(service.queue);
  }
}

void Script::Parts::add_phase(const Phase& phase, const LineContext& context) {
  const Axis& axis = *phase.axis;
  ScriptPhase made{&axis, phase.shape, nullptr, {}, {}};
  if (!axis.in_order) {
    std::vector<std::uint32_t>& of_members = stands[&axis];
    of_members.resize(layout->num_members);
    for (std::uint32_t stand = 0; stand < axis.members.size(); ++stand) of_members[axis.members[stand]] = stand;
    made.stands = of_members.data();
  }
  const auto add_cost = [&](Bytes reduced) {
    if (std::ranges::find(made.costs, reduced, &std::pair<Bytes, Time>::first) == made.costs.end())
      made.costs.emplace_back(reduced, Time::from_ps(context.reduction(reduced)));
  };
  if (is_tree(made)) {
    for (const std::uint32_t tree : {0U, 1U}) made.trees.emplace_back(tree, axis.size);
    add_cost(made.shape.size);
  } else {
    const Steps steps(made.shape, axis.size, rules);
    // A ring's steps after n - 1 are alike.
    const bool is_ring = made.shape.algorithm.kind == AlgorithmKind::ring;
    const std::uint64_t distinct = is_ring ? std::min<std::uint64_t>(steps.count(), axis.size) : steps.count();
    for (std::uint64_t k = 0; k < distinct; ++k) add_cost(steps.at(k).reduced);
  }
  phases.push_back(std::move(made));
}

Time Script::Parts::reduction(const ScriptPhase& phase, Bytes reduced) const {
  for (const auto& [size, cost] : phase.costs)
    if (size == reduced) return cost;
  fail_check("a reduction that no step of the phase has", std::source_location::current());
}

Script::Script(std::unique_ptr<const Parts> parts)
    : parts_(std::move(parts)),
      num_chunks_(static_cast<std::uint32_t>(parts_->num_chunks)),
      places_(static_cast<std::uint32_t>(std::min<std::uint64_t>(parts_->places, parts_->services.size()))),
      services_(parts_->services) {
  std::map<std::uint32_t, std::uint32_t> number;
  for (std::uint32_t service = 0; service < services_.size(); ++service) {
    const auto [found, is_new] =
        number.try_emplace(parts_->queue_of[service], static_cast<std::uint32_t>(queues_.size()));
    if (is_new) queues_.emplace_back();
    queues_[found->second].push_back(service);
    queue_of_.push_back(found->second);
  }
}

Script::~Script() = default;

Time Script::opening(std::uint32_t service) const {
  return is_tree(parts_->phases[services_[service].stage]) ? Time::zero() : parts_->endpoint_delay;
}

std::uint32_t Script::num_steps(std::uint32_t service) const {
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  if (is_tree(phase)) return num_tree_steps;
  return static_cast<std::uint32_t>(collective::num_steps(phase.shape, phase.axis->size));
}

Script::Move Script::move(std::uint32_t service, std::uint32_t step, std::uint32_t member) const {
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  const Time e = parts_->endpoint_delay;
  if (!is_tree(phase)) {
    const Step what = Steps(phase.shape, phase.axis->size, parts_->rules).at(step);
    return {what.message, what.count(), e + parts_->reduction(phase, what.reduced)};
  }
  const std::uint32_t place = Standing(phase, member).place;
  const Tree& tree = phase.trees[services_[service].chunk % 2];
  const TreeReductions pays = tree_reductions(phase.shape, tree.num_children(place), parts_->rules);
  const Time each = parts_->reduction(phase, phase.shape.size);
  const auto cost = [&](std::uint64_t times) { return e + each * static_cast<std::int64_t>(times); };
  if (step == from_children) return {phase.shape.size, tree.num_children(place), cost(pays.up)};
  if (step == to_children || tree.is_root(place)) return {phase.shape.size, 0, Time::zero()};
  return {phase.shape.size, 1, cost(pays.down)};
}

void Script::receivers(std::uint32_t service, std::uint32_t step, std::uint32_t member,
                       std::vector<Receiver>& out) const {
  out.clear();
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  const auto [n, place, line] = Standing(phase, member);
  if (is_tree(phase)) {
    const Tree& tree = phase.trees[services_[service].chunk % 2];
    if (step == with_parent && !tree.is_root(place)) out.push_back({line[tree.parent[place]], from_children});
    for (std::uint32_t c = tree.first[place]; step == to_children && c < tree.first[place + 1]; ++c)
      out.push_back({line[tree.children[c]], with_parent});
    return;
  }
  const Step what = Steps(phase.shape, n, parts_->rules).at(step);
  for (std::uint32_t d = what.first; d <= what.last; ++d)
    out.push_back({line[what.by_xor ? place ^ d : (place + d < n ? place + d : place + d - n)], step});
}

void Script::senders(std::uint32_t service, std::uint32_t step, std::uint32_t member,
                     std::vector<std::uint32_t>& out) const {
  out.clear();
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  const auto [n, place, line] = Standing(phase, member);
  if (is_tree(phase)) {
    const Tree& tree = phase.trees[services_[service].chunk % 2];
    if (step == with_parent && !tree.is_root(place)) out.push_back(line[tree.parent[place]]);
    for (std::uint32_t c = tree.first[place]; step == from_children && c < tree.first[place + 1]; ++c)
      out.push_back(line[tree.children[c]]);
    return;
  }
  const Step what = Steps(phase.shape, n, parts_->rules).at(step);
  for (std::uint32_t d = what.first; d <= what.last; ++d)
    out.push_back(line[what.by_xor ? place ^ d : (place >= d ? place - d : place + n - d)]);
}

std::size_t Script::memory() const {
  std::size_t bytes = sizeof(*this) + services_.size() * 2 * (sizeof(Service) + 2 * sizeof(std::uint32_t));
  for (const auto& [axis, of_members] : parts_->stands) bytes += of_members.size() * sizeof(std::uint32_t);
  for (const ScriptPhase& phase : parts_->phases)
    bytes += sizeof(phase) + phase.trees.size() * 3 * phase.axis->size * sizeof(std::uint32_t);
  return bytes;
}

Bytes rendezvous_word() { return control_message; }

}  // namespace orrery::collective
