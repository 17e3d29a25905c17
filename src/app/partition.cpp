#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "orrery/app/commands.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/partition/partitioning.hpp"
#include "preparation.hpp"

namespace orrery::app {
namespace {

void write_map(const partition::Partition& partition, std::uint32_t num_npus, const std::filesystem::path& path) {
  std::string map;
  for (std::uint32_t i = 0; i < num_npus; ++i) map += fmt::format("{}\n", partition.rank_of(NpuId(i)).value());
  PartialFile file(path);
  file.write(map);
  file.commit();
}

/// The traces that the configuration names are there. Only METIS cannot do without.
bool has_workload(const config::Configuration& configuration) {
  const bool needed = configuration.run.partition.strategy == partition::Strategy::metis;
  const auto& workload = configuration.workload;
  if (workload.generated) return true;
  if (workload.traces.empty()) {
    if (needed)
      throw Error(ErrorCode::bad_input, {.key = "workload.traces"}, "none", "traces",
                  "METIS cuts the graph of who talks to whom, which is in the traces.");
    return false;
  }
  std::error_code failure;
  return needed || std::filesystem::exists(workload.trace_of(NpuId(0)), failure);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void print(const partition::Cut& cut) {
  fmt::print("cut: {} of {} bytes ({:.1f} %), {} of {} communicators, {} of {} messages\n", cut.bytes, cut.total_bytes,
             share(cut.bytes, cut.total_bytes), cut.groups, cut.total_groups, cut.messages, cut.total_messages);
  fmt::print("balance: {:.3f} (largest load of a rank over the mean; loads are nodes of traces)\n", cut.balance);
  fmt::print("lookahead: {}\n", cut.lookahead ? readable(*cut.lookahead) : "no limit, as nothing crosses the cut");
}

}  // namespace

void partition(const config::PartitionCommand& command) {
  auto configuration = config::read(command.inputs);
  check_output(command.output, command.force);
  const auto options = configuration.run.partition;
  const bool with_workload = has_workload(configuration);
  configuration.run.partition = {};  // of this command itself, which is one rank
  const auto topology = configuration.topology();
  const auto num_npus = topology.num_npus();
  const auto world = parallel::make_serial();
  std::optional<Preparation> preparation;
  partition::Conversation conversation;
  if (with_workload)
    conversation = partition::converse(preparation.emplace(configuration, *world).run_context(), *world);
  const auto dealt = options.strategy == partition::Strategy::metis
                         ? partition::cut(conversation, command.ranks)
                         : partition::Partition::make(options, topology, command.ranks);
  write_map(dealt, num_npus, command.output);
  fmt::print("{} on {} by {}: {}\n", counted(num_npus, "NPU"),
             counted(static_cast<std::uint64_t>(command.ranks), "rank"), name(options), command.output.string());
  if (with_workload) {
    print(partition::measure(preparation->run_context(), conversation, dealt));
    return;
  }
  const std::vector<std::uint64_t> alike(num_npus, 1);
  fmt::print("balance: {:.3f} (largest load of a rank over the mean; loads are NPUs)\n",
             partition::balance(alike, dealt));
  fmt::print("cut and lookahead: unknown without the traces of the workload\n");
}

}  // namespace orrery::app
