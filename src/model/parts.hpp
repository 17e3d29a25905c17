#pragma once

#include <memory>
#include <vector>

#include "orrery/communicator/communicators.hpp"
#include "orrery/memory/memory_servers.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/network/model.hpp"
#include "orrery/npu/npus.hpp"
#include "orrery/pdes/carried_places.hpp"

namespace orrery::model {

/// The logical processes of a rank, which are made once the kernel is known.
struct RankModel::Parts {
  Parts(RankModel& model, pdes::Scheduler& kernel);

  communicator::Communicators communicators;
  pdes::CarriedPlaces places;
  memory::MemoryServers servers;
  std::vector<NpuId> npu_ids;
  std::unique_ptr<network::MessageNetwork> links;  // none but where links are simulated
  npu::Npus npus;
  bool is_stopped = false;
};

}  // namespace orrery::model
