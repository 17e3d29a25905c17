// Collectives of libraries as flows over links.
#include "library_flows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "message_program_parts.hpp"
#include "position_program.hpp"

namespace orrery::collective {
namespace {

/// Returns the resource of a kind that the bytes pass; null if they pass none.
const Resource* resource_of(const LibraryTime& time, ResourceKind kind) {
  const auto found = std::ranges::find(time.resources, kind, &Resource::kind);
  return found == time.resources.end() ? nullptr : &*found;
}

/// Returns which part of what leaves a node differs in the dimension and in no higher one.
double part_of(const LibraryGroup& group, const OuterLink& outer, bool is_direct) {
  const double n = group.ranks, p = group.of_node();
  if (is_direct) return (outer.above - outer.below) / (n - p);
  // Of the hops of a ring, those that leave a unit are few. The last dimension closes the ring.
  const bool is_last = &outer == &group.outer.back();
  return p / outer.below - (is_last ? 0 : p / outer.above);
}

/// The positions to which one sends along an axis.
class Peers {
 public:
  Peers(const topology::Topology& topology, const LibraryFlow& flow) : axis_(*flow.axis) {
    const topology::Shape shape = topology.dimension(axis_.dimensions.front()).shape;
    const bool is_one = axis_.dimensions.size() == 1;
    to_all_ = flow.to_all || (is_one && shape->pattern == topology::TrafficPattern::all_pairs);
    both_ways_ = is_one && !flow.one_way && axis_.size > 2 && shape->pattern == topology::TrafficPattern::neighbours;
  }

  std::uint32_t count() const { return to_all_ ? axis_.size - 1 : both_ways_ ? 2 : 1; }
  /// Returns the k-th position to which a position sends.
  std::uint32_t to(std::uint32_t position, std::uint32_t k) const {
    return (position + (to_all_ || k == 0 ? k + 1 : axis_.size - 1)) % axis_.size;
  }
  /// Returns the k-th position from which a position receives.
  std::uint32_t from(std::uint32_t position, std::uint32_t k) const {
    return (position + axis_.size - (to_all_ || k == 0 ? k + 1 : axis_.size - 1)) % axis_.size;
  }

 private:
  const Axis& axis_;
  bool to_all_ = false, both_ways_ = false;
};

/// Returns the number of rounds after which each of so many members has heard, over others, of all.
std::uint32_t num_rounds(std::uint32_t members) { return static_cast<std::uint32_t>(std::bit_width(members - 1)); }

/// Each member sends its share of a flow. Then it tells others that it is done, twice as far with each round, so that
/// nobody ends before all have.
class FlowProgram final : public PositionProgram {
 public:
  FlowProgram(Time opening, const topology::Topology& topology, const LibraryFlow& flow, double bytes)
      : PositionProgram(opening), axis_(*flow.axis), peers_(topology, flow), cells_(axis_.places()) {
    of_message_ = Bytes(static_cast<std::uint64_t>(std::llround(bytes / peers_.count())));
  }

  std::uint32_t num_steps(std::uint32_t) const override { return 1 + num_rounds(num_members()); }

  void step(std::uint32_t member, std::uint32_t k, MemberStep& out) const override {
    out.step.reset();
    out.cost = out.reduction = Time::zero();
    out.is_clear_to_send = false;
    if (k == 0) return flow_step(member, out.step);
    const std::uint32_t n = num_members(), distance = 1U << (k - 1);
    out.step.sends.push_back({(member + distance) % n, k});
    out.step.receives.push_back((member + n - distance) % n);
  }

  std::size_t memory() const override { return sizeof(*this) + cells_.size() * sizeof(std::uint32_t); }

 private:
  std::uint32_t num_members() const { return static_cast<std::uint32_t>(cells_.size()); }

  void flow_step(std::uint32_t member, Step& step) const {
    const std::uint32_t position = cells_[member] % axis_.size;
    const std::uint32_t* const members = axis_.members.data() + (cells_[member] - position);
    step.bytes = of_message_;
    for (std::uint32_t k = 0; k < peers_.count(); ++k) {
      step.sends.push_back({members[peers_.to(position, k)], 0});
      step.receives.push_back(members[peers_.from(position, k)]);
    }
  }

  const Axis& axis_;
  Peers peers_;
  std::vector<std::uint32_t> cells_;  ///< [members] of the axis
  Bytes of_message_;
};

/// What a collective without any bytes takes in the links, of members that begin together.
class Latencies {
 public:
  Latencies(const network::DelayModel& delays, const GroupLayout& layout) : delays_(delays), layout_(layout) {
    for (const Axis& axis : layout.axes) add_axis(axis);
    if (layout.axes.empty()) add_axis(*layout.whole);
  }

  /// Returns the longest way along an axis.
  Ps along(const LibraryFlow& flow) const {
    const Peers peers(delays_.topology(), flow);
    Ps longest = 0;
    for (std::uint32_t position = 0; position < flow.axis->size; ++position)
      for (std::uint32_t k = 0; k < peers.count(); ++k)
        longest = std::max(longest, of_positions(*flow.axis, position, peers.to(position, k)));
    return longest;
  }

  /// Returns the time of the rounds in which members tell each other that they are done.
  Ps rounds() const {
    const std::uint32_t n = layout_.num_members;
    std::vector<Ps> times(n, 0), next(n);
    for (std::uint32_t k = 0; k < num_rounds(n); ++k) {
      for (std::uint32_t member = 0; member < n; ++member) {
        const std::uint32_t from = (member + n - (1U << k)) % n;
        next[member] = std::max(times[member], times[from] + of_members(from, member));
      }
      times.swap(next);
    }
    return std::ranges::max(times);
  }

 private:
  void add_axis(const Axis& axis) {
    axes_.push_back(&axis);
    cells_.push_back(axis.places());
  }
  Ps of_positions(const Axis& axis, std::uint32_t from, std::uint32_t to) const {
    Ps sum = 0;
    for (std::size_t k = 0; k < axis.dimensions.size(); ++k) {
      const std::uint32_t d = axis.dimensions[k],
                          hops = delays_.topology().hops(d, axis.coordinate(k, from), axis.coordinate(k, to));
      if (hops > 0) sum += delays_.link_delay(d, hops, Bytes(0)).ps();
    }
    return sum;
  }
  Ps of_members(std::uint32_t from, std::uint32_t to) const {
    Ps sum = 0;
    for (std::size_t a = 0; a < axes_.size(); ++a)
      sum += of_positions(*axes_[a], cells_[a][from] % axes_[a]->size, cells_[a][to] % axes_[a]->size);
    return sum;
  }

  const network::DelayModel& delays_;
  const GroupLayout& layout_;
  std::vector<const Axis*> axes_;
  std::vector<std::vector<std::uint32_t>> cells_;  ///< [axes][members]
};

/// Returns the seconds that the flows take where nothing else is under way.
double body_of(const std::vector<LibraryFlow>& flows, const LibraryGroup& group) {
  double longest = 0;
  std::vector<double> through_ports(1 + group.further_ports.size(), 0);
  for (const LibraryFlow& flow : flows) {
    longest = std::max(longest, flow.bytes / (flow.share * flow.rate));
    if (flow.is_outer) through_ports[flow.port] += flow.bytes / (flow.share * group.port(flow.port));
  }
  return std::max(longest, std::ranges::max(through_ports));
}

}  // namespace

std::vector<LibraryFlow> library_flows(const GroupLayout& layout, const Options& of, const LibraryGroup& group,
                                       const LibraryTime& time) {
  const LibraryOptions& options = of.library;
  const Resource* const links = resource_of(time, ResourceKind::links);
  const Resource* const nic = resource_of(time, ResourceKind::nic);
  const bool is_direct = time.algorithm == "direct";
  std::vector<LibraryFlow> flows;
  if (layout.axes.empty()) {
    const Resource* const slowest = nic != nullptr ? nic : links;
    if (slowest == nullptr) return flows;
    LibraryFlow& flow = flows.emplace_back(LibraryFlow{&*layout.whole, nic != nullptr ? time.leaving : slowest->bytes,
                                                       slowest->share, slowest->capacity, nic != nullptr, false});
    // Where packets are not simulated, a message over several dimensions is stored whole between them.
    const bool is_stored = nic != nullptr && links != nullptr && options.goodput >= 1;
    if (is_stored) flow.rate = 1 / (1 / nic->capacity + 1 / links->capacity);
    return flows;
  }
  auto outer = group.outer.begin();
  for (const Axis& axis : layout.axes) {
    if (axis.dimensions.front() < options.node_dimensions) {
      if (links != nullptr) flows.push_back({&axis, links->bytes, links->share, links->capacity, false, is_direct});
      continue;
    }
    if (nic != nullptr)
      flows.push_back({.axis = &axis,
                       .bytes = time.leaving * part_of(group, *outer, is_direct),
                       .share = nic->share,
                       .rate = outer->direct,
                       .is_outer = true,
                       .to_all = is_direct,
                       .port = outer->port});
    ++outer;
  }
  for (LibraryFlow& flow : flows) flow.one_way = of.chunks.directions == Directions::one;
  return flows;
}

MessageProgram::Parts::Parts(std::shared_ptr<const GroupLayout> of, std::vector<std::unique_ptr<PositionProgram>> made)
    : layout(std::move(of)), num_chunks(made.size()) {
  everyone = std::make_unique<Axis>();
  everyone->size = layout->num_members;
  everyone->members.resize(everyone->size);
  std::iota(everyone->members.begin(), everyone->members.end(), 0U);
  everyone->in_order = true;
  for (std::uint32_t k = 0; k < made.size(); ++k) {
    services.push_back({k, 0, k});
    queue_of.push_back(k);
    ProgramPhase& phase = phases.emplace_back();
    phase.axis = everyone.get();
    phase.programs.even = std::move(made[k]);
  }
}

std::shared_ptr<const MessageProgram> library_program(const network::DelayModel& delays,
                                                      std::shared_ptr<const GroupLayout> layout, const Options& options,
                                                      const LibraryGroup& group, const LibraryTime& time) {
  std::vector<LibraryFlow> flows = library_flows(*layout, options, group, time);
  if (flows.empty()) {  // a barrier
    const Axis& any = layout->axes.empty() ? *layout->whole : layout->axes.front();
    flows.push_back({.axis = &any, .rate = 1});
  }
  const Latencies latencies(delays, *layout);
  Ps longest = 0;
  for (const LibraryFlow& flow : flows) longest = std::max(longest, latencies.along(flow));
  const double body = body_of(flows, group), of_links = static_cast<double>(longest + latencies.rounds()) * 1e-12;
  // A measured file may say less than the links take.
  const double left = std::max(time.seconds - of_links, 0.0), scale = body > left ? left / body : 1;
  const Time opening = Time::from_ps(std::llround(std::max(left - body, 0.0) * 1e12));
  std::vector<std::unique_ptr<PositionProgram>> programs;
  for (const LibraryFlow& flow : flows) {
    const double share = std::min(1.0, flow.share / options.library.goodput);
    const double nics = flow.is_outer ? std::min(group.nics, 1.0) : 1;
    programs.push_back(
        std::make_unique<FlowProgram>(opening, delays.topology(), flow, scale * flow.bytes / (share * nics)));
  }
  return std::make_shared<const MessageProgram>(
      std::make_unique<const MessageProgram::Parts>(std::move(layout), std::move(programs)));
}

}  // namespace orrery::collective
