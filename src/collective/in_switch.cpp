#include "in_switch.hpp"

#include <algorithm>
#include <map>

#include "line.hpp"

namespace orrery::collective {
namespace {

// The switch adds up what all places send, or copies it to all of them, while it passes. Nothing leaves it before the
// last place is there:
//
//   finish[i] = max over j of (max(s[j], word) + L(j, i)) + e        word = max over k of s[k] + D, rendezvous only
//
// over all j, i itself too: a place's own data go through the switch as well. L(j, i) is the longer of what j sends at
// the rate of its port and of what i receives at its own, after two hops: bytes flow through, they are not stored.
// Places with equal ports have equal delays, so that O(places) does.

class InSwitch final : public LineProgram {
 public:
  InSwitch(Ps endpoint_delay, std::vector<std::uint16_t> kinds, std::vector<Ps> data, std::vector<Ps> words)
      : endpoint_delay_(endpoint_delay), kinds_(std::move(kinds)), data_(std::move(data)), words_(std::move(words)) {
    num_kinds_ = std::size_t{*std::ranges::max_element(kinds_)} + 1;
    // `run` adds without looking: this throws if the longest sum does not fit.
    const Ps slowest = plus(times(endpoint_delay_, 2), *std::ranges::max_element(data_));
    if (!words_.empty()) plus(slowest, *std::ranges::max_element(words_));
    duration_ = last_finish(*this, 0, static_cast<std::uint32_t>(kinds_.size()));
  }

  bool alike() const override { return num_kinds_ == 1; }
  Ps duration(std::uint64_t) const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + kinds_.size() * sizeof(std::uint16_t) + (data_.size() + words_.size()) * sizeof(Ps);
  }

  void run(std::uint64_t, std::span<Ps> times, Scratch& scratch) const override {
    const std::size_t n = kinds_.size();
    scratch.first.resize(num_kinds_);
    scratch.second.resize(num_kinds_);
    for (std::size_t at = 0; at < times.size(); at += n) {
      Ps* line = times.data() + at;
      std::ranges::fill(scratch.first, std::numeric_limits<Ps>::min());
      for (std::size_t i = 0; i < n; ++i) scratch.first[kinds_[i]] = std::max(scratch.first[kinds_[i]], line[i]);
      for (Ps& sent : scratch.first) sent += endpoint_delay_;
      if (!words_.empty()) {
        for (std::size_t to = 0; to < num_kinds_; ++to)
          scratch.second[to] = std::max(scratch.first[to], latest(scratch.first, words_, to));
        std::swap(scratch.first, scratch.second);
      }
      for (std::size_t to = 0; to < num_kinds_; ++to)
        scratch.second[to] = latest(scratch.first, data_, to) + endpoint_delay_;
      for (std::size_t i = 0; i < n; ++i) line[i] = scratch.second[kinds_[i]];
    }
  }

 private:
  /// When what all kinds of places sent is at those of one kind.
  Ps latest(const std::vector<Ps>& sent, const std::vector<Ps>& delays, std::size_t to) const {
    Ps last = std::numeric_limits<Ps>::min();
    for (std::size_t from = 0; from < num_kinds_; ++from)
      last = std::max(last, sent[from] + delays[from * num_kinds_ + to]);
    return last;
  }

  Ps endpoint_delay_;
  std::vector<std::uint16_t> kinds_;  ///< [places] by port, from 0
  std::size_t num_kinds_ = 1;
  std::vector<Ps> data_;   ///< [from][to] of kinds
  std::vector<Ps> words_;  ///< the same of the receivers' word; empty without rendezvous
  Ps duration_ = 0;
};

/// [from][to] delays between kinds of ports.
std::vector<Ps> delays_of(const LineContext& context, const std::vector<topology::Port>& ports, Bytes up, Bytes down) {
  const std::uint32_t d = context.axis.dimensions[0];
  const std::uint32_t hops = context.delays.topology().hops(d, 0, 1);
  const auto delay = [&](double bandwidth, double latency, Bytes size) {
    return in_range(context.delays.link_delay(d, hops, times(size, context.share), {bandwidth, latency}));
  };
  std::vector<Ps> delays;
  for (const topology::Port& from : ports)
    for (const topology::Port& to : ports) {
      const double latency = std::max(from.latency, to.latency);
      delays.push_back(std::max(delay(from.bandwidth, latency, up), delay(to.bandwidth, latency, down)));
    }
  return delays;
}

}  // namespace

InSwitchLoad in_switch_load(const PhaseShape& shape, std::uint32_t size) {
  switch (shape.kind) {
    case Kind::all_gather:
      return {size, shape.size, times(shape.size, size - 1)};
    case Kind::reduce_scatter:
      if (shape.reduces) return {size, shape.size, shape.size / size};
      return {1, shape.size / size * (size - 1), shape.size / size};
    case Kind::broadcast:
      return {1, shape.size, shape.size};
    default:
      return {shape.reduces ? size : 1, shape.size, shape.size};
  }
}

std::unique_ptr<LineProgram> make_in_switch(const PhaseShape& shape, const LineContext& context) {
  const Axis& axis = context.axis;
  ensure(axis.dimensions.size() == 1 && shape.kind != Kind::all_to_all, "in-switch where it has no rule");
  const std::uint32_t d = axis.dimensions[0];
  std::vector<topology::Port> ports;
  std::vector<std::uint16_t> kinds(axis.size, 0);
  std::map<std::uint16_t, std::uint16_t> known;
  for (std::uint32_t place = 0; place < axis.size; ++place) {
    const std::uint16_t kind = axis.ports.empty() ? std::uint16_t{0} : axis.port(0, context.line, place);
    const auto [found, is_new] = known.try_emplace(kind, static_cast<std::uint16_t>(ports.size()));
    if (is_new)
      ports.push_back(axis.ports.empty() ? topology::Port{} : context.delays.topology().links().port(d, kind));
    kinds[place] = found->second;
  }
  const InSwitchLoad load = in_switch_load(shape, axis.size);
  std::vector<Ps> words;
  if (context.rendezvous) words = delays_of(context, ports, control_message, control_message);
  return std::make_unique<InSwitch>(context.endpoint_delay, std::move(kinds),
                                    delays_of(context, ports, load.up, load.down), std::move(words));
}

}  // namespace orrery::collective
