#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/serving/options.hpp"
#include "orrery/serving/pipeline.hpp"
#include "orrery/serving/record.hpp"
#include "orrery/serving/request.hpp"
#include "orrery/serving/step_model.hpp"

namespace orrery::model {
class RankModel;
}
namespace orrery::network {
class DelayModel;
}

/// Serving: requests, a router, and instances that batch continuously (docs/serving.md).
namespace orrery::serving {

/// An instance as the simulation needs it: an entry of Options::instances, spelled out.
struct InstanceSpec {
  std::string name;
  Role role = Role::both;
  std::uint32_t members = 1;    ///< data-parallel ranks, which have a scheduler each
  std::uint32_t kv_blocks = 0;  ///< blocks of each instance
  SchedulerOptions scheduler;
  Pipeline pipeline;
  std::shared_ptr<StepModel> cost;
  std::shared_ptr<CollectivePrograms> programs;  ///< null: collectives are alone on their links, and part of `cost`
  std::vector<NpuId> npus = {};  ///< NPUs of the members, one after the other; empty: transfers do not pass the network

  /// Returns the NPUs of a member.
  std::span<const NpuId> npus_of(std::uint32_t member) const {
    const std::size_t each = npus.size() / members;
    return std::span(npus).subspan(member * each, each);
  }
};

/// The network of the system, which KV transfers take if it is given.
struct SystemNetwork {
  const network::DelayModel* delays = nullptr;  ///< messages take their own time only, if there is no `rank`
  model::RankModel* rank = nullptr;             ///< links, and NPUs with jobs of their own; those of instances are idle
};

/// What is simulated.
struct Scenario {
  Options options;
  Requests requests;
  std::vector<InstanceSpec> instances;
  std::uint64_t kv_bytes_per_token = 0;  ///< bytes that a transfer sends for a token
  std::uint32_t layers = 0;              ///< layers of the model; 0: not known

  /// Throws all faults as one Error: requests that no instance can hold, delays that are too short, ...
  void validate() const;
  /// Returns the role of each scheduler, in the order of their numbers.
  std::vector<Role> roles() const;
};

/// How the kernel of a run is watched.
struct Control {
  double watchdog_seconds = 300;
  std::function<bool()> stop_requested;
  std::function<void(std::uint64_t events, Time now)> progress;
};

/// The end of a job that runs next to the requests.
struct JobEnd {
  std::string name;
  Time start, finish;
  std::uint32_t npus = 0;
};

/// What a run leaves behind, whole on rank 0. All of it is a function of the scenario alone.
struct Results {
  std::vector<RequestRecord> requests;    ///< requests by id
  std::vector<InstanceRecord> instances;  ///< instances by number
  std::vector<StepRecord> steps;          ///< steps by instance and number, if they are recorded
  std::vector<StepItem> items;            ///< those of step 0, then those of step 1, ...
  std::vector<std::uint32_t> preempted;   ///< likewise
  TokenGaps gaps;
  std::vector<JobEnd> jobs;  ///< jobs that shared the network
  Time end;                  ///< end of the last request
  std::uint64_t events = 0;  ///< events of the kernels of all ranks
  double wall_seconds = 0;
};

/// Simulates a scenario on all ranks of `world`. Collective: all ranks give equal scenarios. Throws Error (stuck) if
/// requests are left that nothing wakes, and (interrupted) if a stop was requested. O(tokens) time. The NPUs of an
/// instance live on the rank that `ranks_of_instances` says.
Results simulate(const Scenario& scenario, parallel::Communicator& world, const Control& control = {},
                 const SystemNetwork& network = {});

/// Returns the rank of each instance: neighbours are together.
std::vector<Rank> ranks_of_instances(const Scenario& scenario, int num_ranks);

}  // namespace orrery::serving
