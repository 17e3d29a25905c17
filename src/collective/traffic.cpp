#include "traffic.hpp"

#include <bit>
#include <map>

#include "in_switch.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {
namespace {

using Wide = unsigned __int128;

/// Counts, for one line, the bytes that all its places send in each of the axis' dimensions.
class Counter {
 public:
  Counter(const Axis& axis, bool every_dimension)
      : axis_(axis), every_dimension_(every_dimension), sent_(axis.dimensions.size()) {}

  const std::vector<Wide>& sent() const { return sent_; }

  /// `count` messages from place i to place j.
  void add(std::uint32_t i, std::uint32_t j, Wide count, Bytes message) {
    for (std::size_t k = 0; k < sent_.size(); ++k) {
      if (axis_.coordinate(k, i) == axis_.coordinate(k, j)) continue;
      sent_[k] += count * message.count();
      if (!every_dimension_) return;
    }
  }

  /// `count` messages from each place to each other.
  void add_all_pairs(Wide count, Bytes message) {
    const Wide n = axis_.size;
    std::vector<std::uint32_t> group(axis_.size, 0);  // places alike in the dimensions that were charged before
    Wide before = n * n;
    for (std::size_t k = 0; k < sent_.size(); ++k) {
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> number;
      std::vector<std::uint64_t> members;
      for (std::uint32_t i = 0; i < axis_.size; ++i) {
        const auto found =
            number.try_emplace({group[i], axis_.coordinate(k, i)}, static_cast<std::uint32_t>(number.size()));
        if (found.second) members.push_back(0);
        ++members[found.first->second];
        if (!every_dimension_) group[i] = found.first->second;
      }
      Wide alike = 0;
      for (const std::uint64_t m : members) alike += static_cast<Wide>(m) * m;
      sent_[k] += (before - alike) * count * message.count();
      if (!every_dimension_) before = alike;
    }
  }

 private:
  const Axis& axis_;
  bool every_dimension_;
  std::vector<Wide> sent_;
};

void count_halving_doubling(const PhaseShape& shape, std::uint32_t n, std::uint64_t chunks, Counter& counter) {
  const auto levels = static_cast<std::uint32_t>(std::bit_width(n) - 1);
  const auto exchange = [&](std::uint32_t j, Bytes message) {
    for (std::uint32_t i = 0; i < n; ++i) counter.add(i, i ^ (1U << j), chunks, message);
  };
  if (shape.kind != Kind::all_gather)
    for (std::uint32_t j = 0; j < levels; ++j) exchange(j, shape.size / (std::uint64_t{2} << j));
  if (shape.kind != Kind::reduce_scatter)
    for (std::uint32_t j = 0; j < levels; ++j)
      exchange(j, times(message_size(shape, n), std::uint64_t{1} << (levels - 1 - j)));
}

void count_procedure(const PhaseShape& shape, std::uint32_t n, std::uint64_t chunks, Counter& counter) {
  const CustomCollective& procedure = *shape.procedure;
  for (std::uint32_t o = 0; o < procedure.operations().size(); ++o)
    if (procedure[o].kind == CustomCollective::OperationKind::send)
      counter.add(procedure[o].position, procedure[procedure[o].partner].position, chunks,
                  procedure.bytes(o, shape.whole(n)));
}

/// `even` and `odd`: how many chunks there are of each; only trees tell them apart.
void count_phase(const PhaseShape& shape, std::uint32_t n, std::uint64_t even, std::uint64_t odd, Counter& counter) {
  const std::uint64_t chunks = even + odd;
  switch (shape.algorithm.kind) {
    case AlgorithmKind::ring:
      for (std::uint32_t i = 0; i < n; ++i)
        counter.add(i, i + 1 == n ? 0 : i + 1, static_cast<Wide>(num_steps(shape, n)) * chunks, message_size(shape, n));
      return;
    case AlgorithmKind::direct:
      counter.add_all_pairs((shape.kind == Kind::all_reduce ? Wide{2} : Wide{1}) * chunks, message_size(shape, n));
      return;
    case AlgorithmKind::halving_doubling:
      count_halving_doubling(shape, n, chunks, counter);
      return;
    case AlgorithmKind::double_binary_tree:
      for (std::uint32_t position = 1; position < n; ++position)
        for (std::uint32_t tree = 0; tree < 2; ++tree)
          counter.add(tree_place(position, tree, n), tree_place(tree_parent(position, n), tree, n),
                      Wide{2} * (tree == 0 ? even : odd), shape.size);
      return;
    case AlgorithmKind::binomial_tree:
      for (std::uint32_t place = 1; place < n; ++place)
        counter.add(place, place & (place - 1), (shape.kind == Kind::all_reduce ? Wide{2} : Wide{1}) * chunks,
                    shape.size);
      return;
    case AlgorithmKind::in_switch:
      counter.add(0, 1, Wide{in_switch_load(shape, n).senders} * chunks, in_switch_load(shape, n).up);
      return;
    case AlgorithmKind::custom:
      count_procedure(shape, n, chunks, counter);
      return;
  }
}

/// Lines of a phase that move anything. What goes whole from one member, or to one, is in few of them: of a broadcast
/// in those that the phases before have reached, of a reduce in those that the phases before have not left out. `done`:
/// the product of the sizes of the phases before.
std::uint64_t lines_with_data(const Options& options, const GroupLayout& layout, Kind kind, const Phase& phase,
                              std::uint64_t done) {
  const std::uint64_t lines = layout.num_members / phase.axis->size;
  if (!goes_whole(options, kind)) return lines;
  return kind == Kind::broadcast ? done : lines / done;
}

}  // namespace

Traffic traffic_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
                   Bytes size) {
  Traffic traffic(delays.topology().num_dimensions());
  if (layout.num_members == 1) return traffic;
  const Chunks chunks = cut(options, kind, size, delays.topology().num_npus(), layout.num_members);
  const Routes routes = routes_of(delays, options, layout, kind, chunks);
  std::vector<std::uint64_t> even(routes.routes.size(), 0), odd = even;
  if (routes.of_chunk.empty()) {
    even[0] = (chunks.count + 1) / 2;
    odd[0] = chunks.count / 2;
  }
  for (std::size_t chunk = 0; chunk < routes.of_chunk.size(); ++chunk)
    ++(chunk % 2 == 0 ? even : odd)[routes.of_chunk[chunk]];
  std::vector<Wide> sent(delays.topology().num_dimensions());
  for (std::size_t r = 0; r < routes.routes.size(); ++r)
    for (std::uint64_t done = 1; const Phase& phase : routes.routes[r]) {
      Counter counter(*phase.axis, delays.rules().charge_every_dimension);
      count_phase(phase.shape, phase.axis->size, even[r], odd[r], counter);
      const std::uint64_t lines = lines_with_data(options, layout, kind, phase, done);
      done *= phase.axis->size;
      for (std::size_t k = 0; k < phase.axis->dimensions.size(); ++k)
        sent[phase.axis->dimensions[k]] += counter.sent()[k] * lines;
    }
  for (std::size_t d = 0; d < sent.size(); ++d) {
    const Wide mean = sent[d] / layout.num_members;
    if (mean > Bytes::most().count()) throw OutOfRange();
    traffic[d] = Bytes(static_cast<std::uint64_t>(mean));
  }
  return traffic;
}

}  // namespace orrery::collective
