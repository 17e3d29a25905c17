#include "library_collectives.hpp"

#include <algorithm>
#include <utility>

#include "library_flows.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"
#include "ps.hpp"
#include "resources.hpp"

namespace orrery::collective {
namespace {

double buffer(Kind kind, std::uint32_t members, Bytes size) {
  return static_cast<double>(whole_buffer(kind, members, size).count());
}

}  // namespace

/// Returns the slowest ports of the members in each dimension; nothing if no port differs from its dimension.
std::vector<topology::Port> slowest_ports(const topology::Topology& topology, std::span<const NpuId> members) {
  const topology::Links& links = topology.links();
  std::vector<topology::Port> slowest(topology.num_dimensions());
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    if (!links.has_ports(d)) continue;
    slowest[d] = links.port(d, links.kind_of_port(d, members.front()));
    for (const NpuId npu : members) slowest[d] = slower(slowest[d], links.port(d, links.kind_of_port(d, npu)));
  }
  if (std::ranges::all_of(slowest, [](const topology::Port& port) { return port == topology::Port{}; })) return {};
  return slowest;
}

const LibraryGroup& LibraryCollectives::group(const GroupLayout& layout) {
  const auto known = groups_.find(&layout);
  if (known != groups_.end()) return known->second;
  return groups_.emplace(&layout, make_group(layout, {})).first->second;
}

LibraryGroup LibraryCollectives::make_group(const GroupLayout& layout, std::span<const Bandwidth> bandwidths) const {
  return library_group(delays_.topology(), options_.library, layout, sharers_of(options_, layout),
                       options_.chunks.directions, bandwidths);
}

LibraryTime LibraryCollectives::time(const GroupLayout& layout, Kind kind, Bytes size) {
  const LibraryGroup& described = group(layout);
  const double bytes = buffer(kind, layout.num_members, size);
  const MeasuredFile* const file = correction_of(options_.library, kind, described).file;
  if (file == nullptr) return library_time(options_.library, kind, described, bytes);
  return corrected_time(options_.library, kind, described, bytes, file->series,
                        file->bandwidths.empty() ? described : make_group(layout, file->bandwidths));
}

std::optional<LibraryChoice> LibraryCollectives::choice(const GroupLayout& layout, Kind kind, Bytes size) {
  return library_choice(options_.library, kind, group(layout), buffer(kind, layout.num_members, size));
}

LibraryFigures LibraryCollectives::figures(const GroupLayout& layout, Kind kind, Bytes size) {
  LibraryFigures figures;
  figures.time = time(layout, kind, size);
  const double bytes = buffer(kind, layout.num_members, size);
  figures.range = library_range(options_.library, group(layout), bytes, figures.time);
  figures.correction = correction_of(options_.library, kind, group(layout));
  if (figures.correction.file != nullptr)
    figures.ratio = figures.time.seconds / library_time(options_.library, kind, group(layout), bytes).seconds;
  return figures;
}

const LibraryEffect& LibraryCollectives::effect(const GroupLayout& layout, Kind kind, Bytes size) {
  const auto [known, is_new] = effects_.try_emplace({&layout, kind, size});
  LibraryEffect& effect = known->second;
  if (!is_new) return effect;
  const topology::Topology& topology = delays_.topology();
  const Library& library = **options_.library.library;
  const double bytes = buffer(kind, layout.num_members, size);
  const auto time_on = [&](const LibraryGroup& of) { return library_time(options_.library, kind, of, bytes); };
  const LibraryTime now = time_on(group(layout));
  effect.num_channels = (now.algorithm.starts_with("NVLS") ? library.nvls_channels : library.channels).count;
  effect.savings.resize(topology.num_dimensions());
  std::vector<Bandwidth> bandwidths;
  for (std::uint32_t d = 0; now.seconds > 0 && d < topology.num_dimensions(); ++d) {
    const Bandwidth own = topology.dimension(d).bandwidth;
    bandwidths.push_back(Bandwidth::from_bytes_per_ns(own.bytes_per_ns() * (1 + bandwidth_step)));
    effect.savings[d] = 1 - time_on(make_group(layout, bandwidths)).seconds / now.seconds;
    bandwidths.back() = own;
  }
  return effect;
}

CollectiveTraffic LibraryCollectives::traffic(const GroupLayout& layout, Kind kind, Bytes size) {
  CollectiveTraffic sent(delays_.topology().num_dimensions());
  if (layout.num_members == 1) return sent;
  for (const LibraryFlow& flow : library_flows(layout, options_, group(layout), time(layout, kind, size))) {
    if (flow.bytes > static_cast<double>(Bytes::most().count())) throw OutOfRange();
    for (const std::uint32_t d : flow.axis->dimensions)
      sent[d] = std::max(sent[d], Bytes(static_cast<std::uint64_t>(flow.bytes)));
  }
  return sent;
}

std::shared_ptr<const MessageProgram> LibraryCollectives::program(const GroupLayout& layout, Kind kind, Bytes size) {
  return library_program(delays_, layout.shared_from_this(), options_, group(layout), time(layout, kind, size));
}

}  // namespace orrery::collective
