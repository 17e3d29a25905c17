#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/compute/options.hpp"
#include "orrery/network/options.hpp"

namespace orrery::npu {

/// Which of the communication nodes that are ready begins when the resource falls free: the one with the lowest id; who
/// was ready first or last; the one with the highest comm_priority. Among equals, the lowest id.
enum class CommOrder : std::uint8_t { lowest_id, fifo, lifo, priority };

struct Options {
  compute::Options compute;
  bool replay_only = false;           ///< every node, communication too, takes its recorded duration
  bool rendezvous = false;            ///< point to point waits for the receiver's word
  std::uint32_t compute_streams = 1;  ///< nodes that the compute resource holds at a time
  std::uint32_t comm_streams = 1;     ///< the same of the communication resource
  CommOrder comm_order = CommOrder::lowest_id;
  Bytes local_memory_size;       ///< 0: it holds anything
  std::uint32_t iterations = 1;  ///< each NPU starts its trace again when its own last node is done
  /// Every compute node takes its time times 1 + noise * r, r in [-1, 1) drawn for each node, NPU and iteration from
  /// the seed alone. 0 = none, below 1.
  double compute_noise = 0;
  std::uint32_t noise_seed = 1;
  /// [num_npus] compute nodes take their time divided by this; positive. Empty: 1 for all.
  std::vector<double> compute_speed = {};
  network::Options network;
  bool timeline = false;                ///< keep start and finish of every node
  std::uint32_t record_iterations = 1;  ///< the first iterations of which collectives and the timeline are kept

  bool goes_over_links() const { return network.model->simulates_links() && !replay_only; }
  /// For tensors, of which an expanded memory takes its share; 0: for anything.
  Bytes room() const;
  double speed_of(NpuId npu) const { return compute_speed.empty() ? 1 : compute_speed[npu.index()]; }
  /// No NPU computes faster.
  double highest_speed() const;

  /// Throws Error (bad_input) that names the key.
  void validate() const;
};

}  // namespace orrery::npu
