#include "line.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace orrery::collective {
namespace {

/// Lines whose links differ: each has the program of lines like it.
class DifferingLines final : public LineProgram {
 public:
  DifferingLines(std::uint32_t size, std::vector<std::uint32_t> program_of,
                 std::vector<std::unique_ptr<LineProgram>> programs)
      : size_(size), program_of_(std::move(program_of)), programs_(std::move(programs)) {}

  bool alike() const override { return false; }
  Ps duration(std::uint64_t chunk) const override {
    Ps longest = 0;
    for (const auto& program : programs_) longest = std::max(longest, program->duration(chunk));
    return longest;
  }
  std::size_t memory() const override {
    std::size_t bytes = sizeof(*this) + program_of_.size() * sizeof(std::uint32_t);
    for (const auto& program : programs_) bytes += program->memory();
    return bytes;
  }
  void run(std::uint64_t chunk, std::span<Ps> times, Scratch& scratch) const override {
    for (std::size_t line = 0; line < program_of_.size(); ++line)
      programs_[program_of_[line]]->run(chunk, times.subspan(line * size_, size_), scratch);
  }

 private:
  std::uint32_t size_;
  std::vector<std::uint32_t> program_of_;  ///< [lines]
  std::vector<std::unique_ptr<LineProgram>> programs_;
};

/// Whether a link that the line may use has failed. A message over several dimensions may pass any line of them.
bool has_detours(const LineContext& context, std::uint32_t line) {
  const Axis& axis = context.axis;
  if (axis.npus.empty()) return false;
  const NpuId first = axis.npus[std::size_t{line} * axis.size];
  return axis.dimensions.size() > 1 || context.delays.topology().links().has_failed(axis.dimensions[0], first);
}

/// What the delays of a line depend on: lines with equal profiles have equal delays.
std::vector<std::uint32_t> profile_of(const LineContext& context) {
  const Axis& axis = context.axis;
  std::vector<std::uint32_t> profile;
  for (std::size_t k = 0; !axis.ports.empty() && k < axis.dimensions.size(); ++k)
    for (std::uint32_t place = 0; place < axis.size; ++place) profile.push_back(axis.port(k, context.line, place));
  for (std::uint32_t place = 0; context.detours && place < axis.size; ++place)
    profile.push_back(axis.npus[std::size_t{context.line} * axis.size + place].value());
  return profile;
}

std::unique_ptr<LineProgram> make_line(const PhaseShape& shape, const LineContext& context) {
  switch (shape.algorithm.kind) {
    case AlgorithmKind::ring:
      return make_ring(shape, context);
    case AlgorithmKind::direct:
      return make_direct(shape, context);
    case AlgorithmKind::halving_doubling:
      return make_halving_doubling(shape, context);
    case AlgorithmKind::double_binary_tree:
      return make_double_binary_tree(shape, context);
    case AlgorithmKind::binomial_tree:
      return make_binomial_tree(shape, context);
    case AlgorithmKind::in_switch:
      return make_in_switch(shape, context);
    case AlgorithmKind::custom:
      return make_procedure(shape, context);
  }
  ensure_failed("an algorithm that does not exist", std::source_location::current());
}

}  // namespace

bool LineContext::is_regular() const {
  if (detours) return false;
  for (std::size_t k = 0; !axis.ports.empty() && k < axis.dimensions.size(); ++k)
    for (std::uint32_t place = 1; place < axis.size; ++place)
      if (axis.port(k, line, place) != axis.port(k, line, 0)) return false;
  return true;
}

bool LineContext::hops_follow_distances() const {
  return std::ranges::none_of(axis.dimensions, [&](std::uint32_t d) {
    return delays.topology().dimension(d).shape->symmetry == topology::HopSymmetry::none;
  });
}

Bytes LineContext::beside_others(std::uint32_t d, Bytes size) const {
  const topology::ShapeType& shape = *delays.topology().dimension(d).shape;
  const bool one_link = shape.sends_over_one_link && !shape.is_of_links_only;
  return times(size, one_link ? share * at_once : share);
}

Ps LineContext::hop_delay(std::size_t k, std::uint32_t difference, Bytes size) const {
  const std::uint32_t d = axis.dimensions[k];
  const topology::Port port =
      axis.ports.empty() ? topology::Port{} : delays.topology().links().port(d, axis.port(k, line, 0));
  return in_range(delays.link_delay(d, delays.topology().hops(d, 0, difference), beside_others(d, size), port));
}

Ps LineContext::link(std::uint32_t i, std::uint32_t j, Bytes size) const {
  if (detours) {
    const NpuId* npus = axis.npus.data() + std::size_t{line} * axis.size;
    return in_range(delays.path_delay(npus[i], npus[j], times(size, share)));
  }
  Ps total = 0;
  for (std::size_t k = 0; k < axis.dimensions.size(); ++k) {
    const std::uint32_t a = axis.coordinate(k, i);
    const std::uint32_t b = axis.coordinate(k, j);
    if (a == b) continue;
    const std::uint32_t d = axis.dimensions[k];
    const std::uint32_t hops = delays.topology().hops(d, a, b);
    total = plus(total, in_range(delays.link_delay(d, hops, beside_others(d, size), port(k, i, j))));
    if (!delays.rules().charge_every_dimension) break;
  }
  return total;
}

topology::Port LineContext::port(std::size_t k, std::uint32_t i, std::uint32_t j) const {
  if (axis.ports.empty()) return {};
  const std::uint32_t d = axis.dimensions[k];
  return slower(delays.topology().links().port(d, axis.port(k, line, i)),
                delays.topology().links().port(d, axis.port(k, line, j)));
}

Ps LineContext::holds(std::size_t k, std::uint32_t i, std::uint32_t j, Bytes size) const {
  return in_range(delays.link_delay(axis.dimensions[k], 0, times(size, share), port(k, i, j)));
}

Ps LineContext::memory(Bytes size, std::uint64_t passes) const {
  if (!(local_memory.bytes_per_ns() > 0)) return 0;
  return times(in_range(orrery::delay(0, size, local_memory, delays.rounding())), passes);
}

Ps LineContext::control(std::uint32_t i, std::uint32_t j) const { return rendezvous ? link(j, i, control_message) : 0; }

Bytes PhaseShape::whole(std::uint32_t num_members) const {
  return kind == Kind::all_gather ? times(size, num_members) : size;
}

std::uint64_t num_steps(const PhaseShape& shape, std::uint32_t size) {
  const std::uint64_t n = size;
  const std::uint64_t halves = shape.kind == Kind::all_reduce ? 2 : 1;
  switch (shape.algorithm.kind) {
    case AlgorithmKind::ring:
      return shape.kind == Kind::all_to_all ? n * (n - 1) / 2 : halves * (n - 1);
    case AlgorithmKind::direct: {
      const std::uint64_t window = shape.algorithm.window == 0 ? n - 1 : shape.algorithm.window;
      return halves * ((n - 2) / window + 1);
    }
    case AlgorithmKind::halving_doubling:
      return halves * static_cast<std::uint64_t>(std::bit_width(size) - 1);
    case AlgorithmKind::binomial_tree:
      return halves;
    case AlgorithmKind::double_binary_tree:  // a root that comes last is done as soon as it has begun
    case AlgorithmKind::custom:
      return 0;
    case AlgorithmKind::in_switch:
      return 1;
  }
  ensure_failed("an algorithm that does not exist", std::source_location::current());
}

std::unique_ptr<LineProgram> make_lines(const PhaseShape& shape, const LineContext& context) {
  const Axis& axis = context.axis;
  if (axis.ports.empty() && axis.npus.empty()) return make_line(shape, context);
  std::vector<std::unique_ptr<LineProgram>> programs;
  std::vector<std::uint32_t> program_of;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (std::uint32_t line = 0; line < axis.num_lines(); ++line) {
    LineContext own = context;
    own.line = line;
    own.detours = has_detours(context, line);
    const auto [found, is_new] = known.try_emplace(profile_of(own), static_cast<std::uint32_t>(programs.size()));
    program_of.push_back(found->second);
    if (is_new) programs.push_back(make_line(shape, own));
  }
  if (programs.size() == 1) return std::move(programs.front());
  return std::make_unique<DifferingLines>(axis.size, std::move(program_of), std::move(programs));
}

Ps last_finish(const LineProgram& program, std::uint64_t chunk, std::uint32_t size) {
  std::vector<Ps> times(size, 0);
  Scratch scratch;
  program.run(chunk, times, scratch);
  return *std::ranges::max_element(times);
}

}  // namespace orrery::collective
