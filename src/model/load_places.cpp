#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/communicator/spec.hpp"
#include "orrery/model/load_places.hpp"
#include "orrery/network/model.hpp"

namespace orrery::model {

std::vector<Rank> blocks_of_npus(std::uint32_t num_npus, std::uint32_t num_blocks) {
  std::vector<Rank> blocks;
  for (std::uint64_t npu = 0; npu < num_npus; ++npu) blocks.emplace_back(static_cast<int>(npu * num_blocks / num_npus));
  return blocks;
}

// The network knows on which rank each of its processes lives. So it is asked as if each block were a rank.
pdes::LoadPlaces load_places(const npu::RunContext& run, std::uint32_t num_blocks, pdes::Scheduler& kernel) {
  pdes::LoadPlaces places{.num_blocks = num_blocks, .block_of = {}, .is_spread = {}};
  const std::vector<Rank> as_ranks = blocks_of_npus(run.hosting.num_npus(), num_blocks);
  for (const Rank block : as_ranks) places.block_of.push_back(static_cast<std::uint32_t>(block.value()));
  for (const communicator::CommunicatorSpec& spec : run.communicators) {
    const auto blocks = communicator::ranks_of(spec, as_ranks);
    places.is_spread.push_back(static_cast<char>(blocks.size() > 1));
    places.block_of.push_back(static_cast<std::uint32_t>(blocks.front().value()));
  }
  for (std::uint32_t server = 0; server < run.memory.num_servers(); ++server)
    places.block_of.push_back(places.block_of[run.memory.host_of(server).index()]);
  if (!run.options.goes_over_links()) return places;
  const auto network = network::make_network(run.topology(), run.options.network);
  std::optional<Overrun> overrun;
  const Hosting hosting{Rank(static_cast<int>(num_blocks)), as_ranks, run.hosting.of_server};
  const auto links = network->on_rank({kernel, {}, hosting, run.first_link(), overrun});
  for (std::uint32_t link = 0; link < network->num_processes(); ++link)
    places.block_of.push_back(
        static_cast<std::uint32_t>(links->host_of(LpId(run.first_link().value() + link)).value()));
  return places;
}

}  // namespace orrery::model
