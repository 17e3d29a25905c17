#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/sim/commands.hpp"
#include "orrery/topology/partition.hpp"

namespace orrery::sim {

void partition(const config::PartitionCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto num_npus = configuration.topology().num_npus();
  const auto partition = topology::Partition::blocks(num_npus, command.ranks);
  if (!command.force && std::filesystem::exists(command.output))
    throw Error(ErrorCode::output, {.file = command.output.string()}, "the file exists", {}, "Give --force to replace it.");
  const auto beside = std::filesystem::path(command.output).concat(".partial");
  {
    std::ofstream file(beside);
    for (std::uint32_t i = 0; i < num_npus; ++i) file << partition.rank_of(NpuId(i)).value() << '\n';
    file.close();
    if (!file) throw Error(ErrorCode::output, {.file = beside.string()}, "the rank map could not be written");
  }
  std::error_code failure;
  std::filesystem::rename(beside, command.output, failure);
  if (failure) throw Error(ErrorCode::output, {.file = command.output.string()}, failure.message());
  fmt::print("{} NPUs on {} ranks in contiguous blocks: {}\n", num_npus, command.ranks, command.output.string());
}

}  // namespace orrery::sim
