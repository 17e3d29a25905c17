#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/text.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/read.hpp"
#include "print_figures.hpp"
#include "subcommands.hpp"

namespace orrery::app {
namespace {

/// Throws Error (bad_input) for a shape that the congestion-unaware network does not have, as its rules give the times.
void require_delays(const topology::Topology& topology) {
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (const auto shape = topology.dimension(d).shape; topology::is_of_links_only(shape))
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): what is shown of collectives is computed as in the "
                              "congestion-unaware network, which does not have this shape; expected Ring, Mesh, "
                              "FullyConnected or Switch, or a simulation by orrery run",
                              d, topology::name(shape)));
}

/// Returns the first NPUs of the topology, as many as the command asks for; empty: all of them.
std::vector<NpuId> members_of(const config::ShowCollectiveCommand& command, std::uint32_t num_npus) {
  const auto count = command.npus.value_or(num_npus);
  if (count == 0 || count > num_npus)
    throw Error(ErrorCode::usage, {.key = "--npus"}, fmt::format("found {}", count), fmt::format("1 to {}", num_npus));
  std::vector<NpuId> members;
  for (std::uint32_t i = 0; count < num_npus && i < count; ++i) members.emplace_back(i);
  return members;
}

}  // namespace

void show_collective(const config::ShowCollectiveCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto topology = configuration.topology();
  require_delays(topology);
  const auto members = members_of(command, topology.num_npus());
  const auto count = members.empty() ? topology.num_npus() : static_cast<std::uint32_t>(members.size());
  collective::Engine engine(configuration.delays(), configuration.collectives);
  const auto layout = engine.layout(members, trace::all_dimensions);
  engine.validate(*layout, command.kind);
  if (!engine.fits(*layout, command.kind, command.bytes))
    throw Error(ErrorCode::usage, {.key = "--bytes"},
                fmt::format("found {}, for which the collective does not fit the range of time (106 days) or of bytes",
                            command.bytes.count()),
                "fewer bytes");
  const std::vector<Time> arrivals(count);
  std::vector<Time> completions(count);
  engine.finish(*layout, command.kind, command.bytes, arrivals, completions);
  const auto [first, last] = std::ranges::minmax(completions);
  nlohmann::ordered_json figures;
  figures["kind"] = collective::name(command.kind);
  figures["bytes"] = command.bytes.count();
  figures["members"] = count;
  figures["first_done_ps"] = first.ps();
  figures["last_done_ps"] = last.ps();
  figures["time"] = readable(last);
  figures["algorithm_bandwidth_bytes_per_s"] =
      static_cast<double>(command.bytes.count()) / std::max(last.seconds(), 1e-12);
  for (const Bytes bytes : engine.traffic(*layout, command.kind, command.bytes))
    figures["bytes_sent_per_member_and_dimension"].push_back(bytes.count());
  print_figures(figures, command.json);
}

}  // namespace orrery::app
