#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/config/configuration.hpp"

namespace orrery::config {

/// A workload among those of a configuration.
struct IdleSubject {
  const Configuration& all;
  const Workload& workload;

  const network::Options& network() const { return all.execution.network; }
  const network::PacketRules& packets() const { return network().packets; }
  bool is_uec() const { return packets().transport.name() == "uec"; }
  bool is_tcp() const { return packets().transport->has_connections; }
  bool shares_buffers() const { return packets().queues()->shares_buffers; }
  bool draws() const {
    return is_uec() || packets().queues()->has_queues || !packets().marks.empty() || packets().chooses_hops();
  }
  bool has_window() const { return !is_uec() && !is_tcp() && !packets().control->sets_window; }
  bool has_control(std::initializer_list<std::string_view> names) const {
    return std::ranges::find(names, name(packets().control)) != names.end();
  }
  /// Says whether the workload is generated and `holds` for its parallelism.
  template <class Holds>
  bool of_parallel(Holds holds) const {
    return workload.generated && holds(workload.generated->parallel);
  }
  const workload::Transformer* transformer() const {
    return workload.generated ? std::get_if<workload::Transformer>(&workload.generated->model) : nullptr;
  }
  const compute::Processor& processor() const {
    return *all.execution.compute.products.processor.value_or(compute::ProcessorName());
  }
  bool is_dlrm() const {
    return workload.generated && std::holds_alternative<workload::Dlrm>(workload.generated->model);
  }
};

/// Keys that have no effect where a setting is not as they need it. A key with a dot at its end stands for all below
/// it.
struct IdleCondition {
  std::vector<std::string_view> keys;  ///< without the numbers of items of lists
  std::string_view otherwise;          ///< where they have none: "without x: y", "with x: z"
  bool (*holds)(const IdleSubject& subject);
};

/// Returns the conditions of the keys of packets.
std::vector<IdleCondition> idle_conditions_of_packets();

}  // namespace orrery::config
