#include <algorithm>
#include <limits>
#include <map>

#include "algorithm.hpp"
#include "orrery/base/error.hpp"

namespace orrery::collective {
namespace {

// The switch adds up what all positions send, or copies it to all of them, while it passes. Nothing leaves it before
// the last position's data have come:
//
//   finish[i] = max over j of (max(s[j], c) + L(j, i)) + e        c = max over k of s[k] + D, with rendezvous only
//
// over all j, i itself too: a position's own data go through the switch as well. L(j, i) is the longer of what j sends
// at the rate of its port and of what i receives at its own, after two hops: bytes flow through, they are not stored.
// Positions with equal ports have equal delays, so that O(positions) does.

class InSwitchEvaluator final : public GroupEvaluator {
 public:
  InSwitchEvaluator(Ps endpoint_delay, std::vector<std::uint16_t> ports, std::vector<Ps> data,
                    std::vector<Ps> clear_to_send)
      : endpoint_delay_(endpoint_delay),
        ports_(std::move(ports)),
        data_(std::move(data)),
        clear_to_send_(std::move(clear_to_send)) {
    num_ports_ = std::size_t{*std::ranges::max_element(ports_)} + 1;
    // `run` adds without looking: this throws if the longest sum does not fit.
    const Ps slowest = plus(times(endpoint_delay_, 2), *std::ranges::max_element(data_));
    if (!clear_to_send_.empty()) plus(slowest, *std::ranges::max_element(clear_to_send_));
    const std::vector<Ps> finishes = finishes_from_zero(*this, static_cast<std::uint32_t>(ports_.size()));
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + ports_.size() * sizeof(std::uint16_t) + (data_.size() + clear_to_send_.size()) * sizeof(Ps);
  }

  void run(std::span<Ps> times, Scratch& scratch) const override {
    const std::size_t n = ports_.size();
    scratch.first.resize(num_ports_);
    scratch.second.resize(num_ports_);
    for (std::size_t at = 0; at < times.size(); at += n) {
      Ps* group = times.data() + at;
      std::ranges::fill(scratch.first, std::numeric_limits<Ps>::min());
      for (std::size_t i = 0; i < n; ++i) scratch.first[ports_[i]] = std::max(scratch.first[ports_[i]], group[i]);
      for (Ps& sent : scratch.first) sent += endpoint_delay_;
      if (!clear_to_send_.empty()) {
        for (std::size_t to = 0; to < num_ports_; ++to)
          scratch.second[to] = std::max(scratch.first[to], latest(scratch.first, clear_to_send_, to));
        std::swap(scratch.first, scratch.second);
      }
      for (std::size_t to = 0; to < num_ports_; ++to)
        scratch.second[to] = latest(scratch.first, data_, to) + endpoint_delay_;
      for (std::size_t i = 0; i < n; ++i) group[i] = scratch.second[ports_[i]];
    }
  }

 private:
  /// Returns when what all kinds of ports sent has reached those of one kind.
  Ps latest(const std::vector<Ps>& sent, const std::vector<Ps>& delays, std::size_t to) const {
    Ps last = std::numeric_limits<Ps>::min();
    for (std::size_t from = 0; from < num_ports_; ++from)
      last = std::max(last, sent[from] + delays[from * num_ports_ + to]);
    return last;
  }

  Ps endpoint_delay_;
  std::vector<std::uint16_t> ports_;  ///< [positions] kind of port, from 0
  std::size_t num_ports_ = 1;         ///< kinds
  std::vector<Ps> data_;              ///< [from][to] kinds of ports
  std::vector<Ps> clear_to_send_;     ///< the same of the clear to send; empty without rendezvous
  bool finishes_together_ = true;
  Ps duration_ = 0;
};

/// The kinds of ports in a group.
struct PortsOfGroup {
  explicit PortsOfGroup(const GroupContext& context) : kind_of(context.axis.size, 0) {
    const Axis& axis = context.axis;
    std::map<std::uint16_t, std::uint16_t> known;
    for (std::uint32_t position = 0; position < axis.size; ++position) {
      const std::uint16_t kind = axis.ports.empty() ? std::uint16_t{0} : axis.port(0, context.group, position);
      const auto [found, is_new] = known.try_emplace(kind, static_cast<std::uint16_t>(ports.size()));
      if (is_new)
        ports.push_back(axis.ports.empty() ? topology::Port{}
                                           : context.delays.topology().links().port(axis.dimensions[0], kind));
      kind_of[position] = found->second;
    }
  }

  std::vector<topology::Port> ports;
  std::vector<std::uint16_t> kind_of;  ///< [positions]
};

/// Returns the delays from each kind of ports to each: [from][to].
std::vector<Ps> delays_of(const GroupContext& context, const std::vector<topology::Port>& ports,
                          const SwitchLoad& load) {
  const std::uint32_t d = context.axis.dimensions[0];
  const std::uint32_t hops = context.delays.topology().hops(d, 0, 1);
  const auto delay = [&](double bandwidth, double latency, Bytes size) {
    return in_range(context.delays.link_delay(d, hops, times(size, context.share), {bandwidth, latency}));
  };
  std::vector<Ps> delays;
  for (const topology::Port& from : ports)
    for (const topology::Port& to : ports) {
      const double latency = std::max(from.latency, to.latency);
      delays.push_back(std::max(delay(from.bandwidth, latency, load.up), delay(to.bandwidth, latency, load.down)));
    }
  return delays;
}

/// One operation of the switch: every position sends its contribution to the switch, its own block of the result too,
/// and gets the result. A position does not get back what it multicast itself. Of a broadcast and a scatter position 0
/// alone sends. Sources: Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", COMHPC 2016; Klenk et
/// al., "An in-network architecture for accelerating shared-memory multiprocessor collectives", ISCA 2020.
class InSwitch final : public SteppedAlgorithm {
 public:
  explicit InSwitch(const GroupTask& task) : SteppedAlgorithm(task) {}

  std::uint64_t num_steps(std::uint32_t) const override { return 1; }
  /// The way up and the way down.
  std::uint64_t depth() const override { return 2; }
  /// One before the operation and one after it.
  std::uint64_t fewest_endpoint_delays() const override { return 2; }

  BlocksOfMessage blocks(std::uint32_t position, std::uint64_t, std::uint32_t message) const override {
    const std::uint32_t n = task().size;
    const bool is_root = one_sends() && position == 0;
    const bool goes_up = message == 0;
    if (goes_up && !sends(position)) return {{}, true};
    if (task().kind == Kind::all_gather) return goes_up ? BlocksOfMessage{{position}, true} : all_but(position);
    if (task().kind == Kind::reduce_scatter && !goes_up)
      return is_root ? BlocksOfMessage{} : BlocksOfMessage{{position}, false};
    if (task().kind == Kind::reduce_scatter && is_root) return all_but(position);
    const bool gets_nothing = task().kind == Kind::reduce ? position != 0 : task().kind == Kind::broadcast && is_root;
    return !goes_up && gets_nothing ? BlocksOfMessage{} : all_blocks(n, goes_up);
  }

  std::unique_ptr<GroupEvaluator> closed_form(const GroupContext& context) const override {
    ensure(context.axis.dimensions.size() == 1, "no single switch joins the members");
    PortsOfGroup group(context);
    std::vector<Ps> clear_to_send;
    if (context.rendezvous) clear_to_send = delays_of(context, group.ports, {clear_to_send_bytes, clear_to_send_bytes});
    return std::make_unique<InSwitchEvaluator>(context.endpoint_delay, std::move(group.kind_of),
                                               delays_of(context, group.ports, load()), std::move(clear_to_send));
  }

 private:
  bool one_sends() const { return task().kind == Kind::broadcast || (!task().reduces && task().scatters()); }
  bool sends(std::uint32_t position) const { return !one_sends() || position == 0; }
  BlocksOfMessage all_but(std::uint32_t position) const {
    BlocksOfMessage message = all_blocks(task().size, false);
    std::erase(message.blocks, position);
    return message;
  }

  SwitchLoad load() const {
    const Bytes bytes = task().bytes, block = task().block();
    const std::uint32_t others = task().size - 1;
    if (task().kind == Kind::all_gather) return {block, times(block, others)};
    if (task().kind != Kind::reduce_scatter) return {bytes, bytes};
    return {task().reduces ? bytes : block * others, block};
  }

  void fill(std::uint32_t position, std::uint64_t, Step& out) const override {
    out.through_switch = load();
    out.bytes = sends(position) ? out.through_switch->up : Bytes(0);
  }
};

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_in_switch(const GroupTask& task) {
  return std::make_unique<InSwitch>(task);
}

}  // namespace orrery::collective
