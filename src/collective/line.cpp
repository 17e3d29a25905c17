#include "line.hpp"

#include <algorithm>
#include <bit>

namespace orrery::collective {
Ps LineContext::hop_delay(std::size_t k, std::uint32_t difference, Bytes size) const {
  const std::uint32_t d = axis.dimensions[k];
  return in_range(topology.link_delay(d, topology.hops(d, difference), times(size, share)));
}

Ps LineContext::link(std::uint32_t i, std::uint32_t j, Bytes size) const {
  Ps total = 0;
  for (std::size_t k = 0; k < axis.dimensions.size(); ++k) {
    const std::uint32_t a = axis.coordinate(k, i);
    const std::uint32_t b = axis.coordinate(k, j);
    if (a == b) continue;
    total = plus(total, hop_delay(k, a > b ? a - b : b - a, size));
    if (!topology.rules().charge_every_dimension) break;
  }
  return total;
}

Ps LineContext::reduction(Bytes size) const {
  if (!(local_memory.bytes_per_ns() > 0)) return 0;
  return times(in_range(orrery::delay(0, size, local_memory, topology.rules().rounding)), 3);
}

Ps LineContext::control(std::uint32_t i, std::uint32_t j) const { return rendezvous ? link(j, i, control_message) : 0; }

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
    case AlgorithmKind::double_binary_tree:
      return 1;
  }
  fail_check("an algorithm that does not exist", std::source_location::current());
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
  }
  fail_check("an algorithm that does not exist", std::source_location::current());
}

Ps last_finish(const LineProgram& program, std::uint64_t chunk, std::uint32_t size) {
  std::vector<Ps> times(size, 0);
  Scratch scratch;
  program.run(chunk, times, scratch);
  return *std::ranges::max_element(times);
}

}  // namespace orrery::collective
