#include "orrery/topology/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

constexpr double most_factor = 1e6;       // and its inverse the least
constexpr double least_bandwidth = 1e-9;  // bytes per ns: one byte per second
constexpr double most_bandwidth = 9e9;

[[noreturn]] void refuse(std::string_view found, std::string_view expected, std::string_view hint = {}) {
  throw Error(ErrorCode::bad_input, {}, found, expected, hint);
}

void require_factor(std::string_view what, double factor) {
  if (!(factor >= 1 / most_factor && factor <= most_factor))
    refuse(fmt::format("the factor of {} is {}", what, factor), "1e-6 to 1e6");
}

std::uint32_t coordinate(NpuId npu, std::uint32_t stride, std::uint32_t size) { return npu.value() / stride % size; }

/// In a line of FullyConnected: whether two NPUs have a third one between them, or their own link.
bool joined(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& failed, std::uint32_t a, std::uint32_t b,
            std::uint32_t size) {
  const auto works = [&](std::uint32_t i, std::uint32_t j) {
    return std::ranges::find(failed, std::pair(std::min(i, j), std::max(i, j))) == failed.end();
  };
  if (works(a, b)) return true;
  for (std::uint32_t between = 0; between < size; ++between)
    if (between != a && between != b && works(a, between) && works(between, b)) return true;
  return false;
}

}  // namespace

Port slower(const Port& a, const Port& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

Links::Links(std::span<const Dimension> dimensions) {
  for (const Dimension& dimension : dimensions) {
    dimensions_.push_back({dimension, num_npus_, {{}}, {}, {}});
    num_npus_ *= dimension.size;
  }
}

void Links::add(const LinkFault& fault) {
  if (fault.dimension >= dimensions_.size())
    refuse(fmt::format("found dimension {}", fault.dimension),
           dimensions_.size() == 1 ? std::string("0, the only dimension")
                                   : fmt::format("a dimension, 0 to {}", dimensions_.size() - 1));
  for (const NpuId npu : fault.npus)
    if (npu.value() >= num_npus_)
      refuse(fmt::format("found NPU {}", npu.value()), fmt::format("an NPU below {}", num_npus_));
  PerDimension& dimension = dimensions_[fault.dimension];
  if (fault.failed)
    add_failed(dimension, fault);
  else
    add_ports(dimension, fault);
  any_ = true;
}

void Links::add_ports(PerDimension& dimension, const LinkFault& fault) {
  require_factor("bandwidth", fault.port.bandwidth);
  require_factor("latency", fault.port.latency);
  if (dimension.kind_of.empty()) dimension.kind_of.resize(num_npus_);
  for (const NpuId npu : fault.npus) {
    std::uint16_t& kind = dimension.kind_of[npu.index()];
    const Port before = dimension.ports[kind];
    const Port port{before.bandwidth * fault.port.bandwidth, before.latency * fault.port.latency};
    const double bandwidth = dimension.dimension.bandwidth_of_links().bytes_per_ns() * port.bandwidth;
    if (!(bandwidth >= least_bandwidth && bandwidth <= most_bandwidth && std::isfinite(port.latency)))
      refuse(fmt::format("the bandwidth of NPU {} becomes {} bytes/ns", npu.value(), bandwidth),
             "1 byte/s to 9e18 bytes/s");
    const auto found = std::ranges::find(dimension.ports, port);
    if (found == dimension.ports.end() && dimension.ports.size() > std::numeric_limits<std::uint16_t>::max())
      refuse("there are more than 65536 kinds of ports in a dimension", "fewer");
    kind = static_cast<std::uint16_t>(found - dimension.ports.begin());
    if (found == dimension.ports.end()) dimension.ports.push_back(port);
  }
}

void Links::add_failed(PerDimension& of, const LinkFault& fault) {
  const Dimension& dimension = of.dimension;
  const std::uint32_t n = dimension.size;
  if (fault.npus.size() != 2)
    refuse(fmt::format("found {} NPUs of a failed link", fault.npus.size()), "the two NPUs that it joined");
  const NpuId a = fault.npus[0];
  const NpuId b = fault.npus[1];
  const std::uint32_t ca = coordinate(a, of.stride, n);
  const std::uint32_t cb = coordinate(b, of.stride, n);
  const NpuId line(a.value() - ca * of.stride);
  if (ca == cb || line != NpuId(b.value() - cb * of.stride))
    refuse(fmt::format("NPU {} and NPU {} are in no line of dimension {}", a.value(), b.value(), fault.dimension),
           "two NPUs that differ in this dimension alone");
  const Pair pair{std::min(ca, cb), std::max(ca, cb)};
  if (dimension.shape == Shape::switched || is_of_links_only(dimension.shape))
    refuse(fmt::format("in a {} each NPU has one link, and nothing leads around it", name(dimension.shape)),
           "a failed link of a Ring or FullyConnected", "Make the link slow, or leave the NPU out of the system.");
  if (dimension.shape == Shape::mesh)
    refuse(fmt::format("a failed link cuts the Mesh of NPU {} in two", line.value()),
           "a failed link of a Ring or FullyConnected");
  std::vector<Pair> failed;
  if (const auto found = of.failed.find(line); found != of.failed.end()) failed = found->second;
  if (std::ranges::find(failed, pair) != failed.end()) return;
  if (dimension.shape == Shape::ring) {
    if (pair.second - pair.first != 1 && pair.second - pair.first != n - 1)
      refuse(fmt::format("NPU {} and NPU {} are no neighbours on the Ring", a.value(), b.value()),
             "two neighbours, which a link joins");
    if (n == 2) refuse("a Ring of 2 has one link, and nothing leads around it", "a Ring of 3 or more");
    if (!failed.empty())
      refuse(fmt::format("two failed links cut the Ring of NPU {} in two", a.value()),
             "one failed link of a Ring at the most");
  }
  failed.push_back(pair);
  if (dimension.shape == Shape::fully_connected)
    for (const Pair& other : failed)
      if (!joined(failed, other.first, other.second, n))
        refuse(fmt::format("NPU {} and NPU {} have no link and no third NPU that both have a link to",
                           line.value() + other.first * of.stride, line.value() + other.second * of.stride),
               "a way by one other NPU");
  of.failed[line] = std::move(failed);
}

double Links::least_latency(std::uint32_t d) const {
  double least = 1;
  if (has_ports(d))
    for (const Port& port : dimensions_[d].ports) least = std::min(least, port.latency);
  return least;
}

const std::vector<Links::Pair>* Links::failed_around(std::uint32_t d, NpuId npu) const {
  if (!has_failed(d)) return nullptr;
  const PerDimension& of = dimensions_[d];
  const auto found = of.failed.find(NpuId(npu.value() - coordinate(npu, of.stride, of.dimension.size) * of.stride));
  return found == of.failed.end() ? nullptr : &found->second;
}

std::uint32_t Links::hops(std::uint32_t d, NpuId from, NpuId to, std::uint32_t regular) const {
  const auto* failed = failed_around(d, from);
  if (failed == nullptr || from == to) return regular;
  const PerDimension& of = dimensions_[d];
  const std::uint32_t n = of.dimension.size;
  const std::uint32_t a = coordinate(from, of.stride, n);
  const std::uint32_t b = coordinate(to, of.stride, n);
  if (of.dimension.shape == Shape::fully_connected)
    return std::ranges::find(*failed, Pair{std::min(a, b), std::max(a, b)}) == failed->end() ? regular : 2;
  const std::uint32_t place_a = place_in_row(failed->front(), n, a);
  const std::uint32_t place_b = place_in_row(failed->front(), n, b);
  return std::max(place_a, place_b) - std::min(place_a, place_b);
}

/// A ring without one of its links is a row of NPUs that begins behind it.
std::uint32_t Links::place_in_row(const Pair& cut, std::uint32_t size, std::uint32_t coordinate) {
  const std::uint32_t begin = cut.second - cut.first == 1 ? cut.second : 0;
  return (coordinate + size - begin) % size;
}

std::uint32_t Links::next_step(std::uint32_t d, NpuId from, NpuId to) const {
  const PerDimension& of = dimensions_[d];
  const std::uint32_t n = of.dimension.size;
  const std::uint32_t a = coordinate(from, of.stride, n);
  const std::uint32_t b = coordinate(to, of.stride, n);
  const auto* failed = failed_around(d, from);
  ensure(failed != nullptr && a != b, "a way around in a line without failed links");
  if (of.dimension.shape == Shape::ring) {
    const bool upwards = place_in_row(failed->front(), n, a) < place_in_row(failed->front(), n, b);
    return upwards ? (a + 1) % n : (a + n - 1) % n;
  }
  const auto works = [&](std::uint32_t i, std::uint32_t j) {
    return std::ranges::find(*failed, Pair{std::min(i, j), std::max(i, j)}) == failed->end();
  };
  if (works(a, b)) return b;
  for (std::uint32_t between = 0; between < n; ++between)
    if (between != a && between != b && works(a, between) && works(between, b)) return between;
  ensure_failed("two NPUs that nothing joins", std::source_location::current());
}

}  // namespace orrery::topology
