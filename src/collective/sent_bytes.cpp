#include "sent_bytes.hpp"

#include <map>
#include <utility>

#include "orrery/base/error.hpp"
#include "routes.hpp"

namespace orrery::collective {
namespace {

/// Returns the dimension groups of a phase that move anything. What goes whole from one member, or to one, is in few of
/// them: of a broadcast in those that the phases before have reached, of a reduce in those that the phases before have
/// not left out. `done`: the product of the sizes of the phases before.
std::uint64_t groups_with_data(const Options& options, const GroupLayout& layout, Kind kind, const Phase& phase,
                               std::uint64_t done) {
  const std::uint64_t groups = layout.num_members / phase.axis->size;
  if (!goes_whole(options, kind)) return groups;
  return kind == Kind::broadcast ? done : groups / done;
}

}  // namespace

void SentBytes::add(std::uint32_t i, std::uint32_t j, Wide count, Bytes message) {
  for (std::size_t k = 0; k < sent_.size(); ++k) {
    if (axis_.coordinate(k, i) == axis_.coordinate(k, j)) continue;
    sent_[k] += count * message.count();
    if (!every_dimension_) return;
  }
}

void SentBytes::add_all_pairs(Wide count, Bytes message) {
  const Wide n = axis_.size;
  std::vector<std::uint32_t> cell(axis_.size, 0);  // positions alike in the dimensions that were charged before
  Wide before = n * n;
  for (std::size_t k = 0; k < sent_.size(); ++k) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> number;
    std::vector<std::uint64_t> positions;
    for (std::uint32_t i = 0; i < axis_.size; ++i) {
      const auto found =
          number.try_emplace({cell[i], axis_.coordinate(k, i)}, static_cast<std::uint32_t>(number.size()));
      if (found.second) positions.push_back(0);
      ++positions[found.first->second];
      if (!every_dimension_) cell[i] = found.first->second;
    }
    Wide alike = 0;
    for (const std::uint64_t m : positions) alike += static_cast<Wide>(m) * m;
    sent_[k] += (before - alike) * count * message.count();
    if (!every_dimension_) before = alike;
  }
}

CollectiveTraffic traffic_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout,
                             Kind kind, Bytes size) {
  CollectiveTraffic traffic(delays.topology().num_dimensions());
  if (layout.num_members == 1) return traffic;
  const Chunks chunks = cut(options, kind, size, delays.topology().num_npus(), layout.num_members);
  const Routes routes = routes_of(delays, options, layout, kind, chunks, {});
  std::vector<std::uint64_t> even(routes.routes.size(), 0), odd = even;
  if (routes.of_chunk.empty()) {
    even[0] = (chunks.count + 1) / 2;
    odd[0] = chunks.count / 2;
  }
  for (std::size_t chunk = 0; chunk < routes.of_chunk.size(); ++chunk)
    ++(chunk % 2 == 0 ? even : odd)[routes.of_chunk[chunk]];
  std::vector<SentBytes::Wide> sent(delays.topology().num_dimensions());
  for (std::size_t r = 0; r < routes.routes.size(); ++r)
    for (std::uint64_t done = 1; const Phase& phase : routes.routes[r]) {
      SentBytes of_group(*phase.axis, delays.rules().charge_every_dimension);
      const auto algorithms = make_algorithms(phase.shape, phase.axis->size, options.rules);
      algorithms.even->count_bytes(algorithms.odd ? even[r] : even[r] + odd[r], of_group);
      if (algorithms.odd) algorithms.odd->count_bytes(odd[r], of_group);
      const std::uint64_t groups = groups_with_data(options, layout, kind, phase, done);
      done *= phase.axis->size;
      for (std::size_t k = 0; k < phase.axis->dimensions.size(); ++k)
        sent[phase.axis->dimensions[k]] += of_group.in_dimensions()[k] * groups;
    }
  for (std::size_t d = 0; d < sent.size(); ++d) {
    const SentBytes::Wide mean = sent[d] / layout.num_members;
    if (mean > Bytes::most().count()) throw OutOfRange();
    traffic[d] = Bytes(static_cast<std::uint64_t>(mean));
  }
  return traffic;
}

}  // namespace orrery::collective
