#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/variations.hpp"
#include "orrery/compute/options.hpp"
#include "orrery/gpu/options.hpp"
#include "orrery/network/options.hpp"

namespace orrery::npu {

/// Which of the communication nodes that are ready begins when the resource falls free: the one with the lowest id, the
/// one that became ready first or last, or the one with the highest comm_priority. Among equals, the lowest id.
enum class CommOrder : std::uint8_t { lowest_id, fifo, lifo, priority };

/// What is drawn. Every compute node takes its time times 1 + amplitude * r, where r in [-1, 1) is drawn for each node,
/// NPU and iteration from the seed alone.
struct ComputeNoise {
  double amplitude = 0;  ///< below 1; 0 = none
  std::uint32_t seed = 1;
  Variations variations = {};  ///< with the same seed; those per machine and NPU are in Options::compute_speed
};

/// How much the local memory of an NPU holds.
struct LocalMemorySize {
  Bytes size;      ///< 0 = no limit
  Bytes reserved;  ///< part of it that drivers and libraries take, and that fragments leave unused

  friend bool operator==(const LocalMemorySize&, const LocalMemorySize&) = default;
};

/// What decides how long nodes take.
struct NodeOptions {
  compute::Options compute;
  bool replay_only = false;  ///< every node, communication too, takes its recorded duration
  bool rendezvous = false;   ///< the data of a send wait until the receiver is clear to receive
  /// Recorded durations decide what collectives and messages cost (recorded.hpp).
  bool recorded_communication = false;
};

struct Options : NodeOptions {
  std::uint32_t compute_streams = 1;  ///< nodes that the compute resource holds at a time
  std::uint32_t comm_streams = 1;     ///< nodes that the communication resource holds at a time
  /// Instead, collectives that use the same dimensions take turns, and sends do. Accesses to memory have comm_streams.
  bool dimension_streams = false;
  CommOrder comm_order = CommOrder::lowest_id;
  /// An NPU handles the events of one time one after the other (EventPlace), and nodes begin after each of them; else
  /// it handles all of them before nodes begin.
  bool one_by_one = false;
  LocalMemorySize local_memory = {};
  std::uint32_t iterations = 1;  ///< each NPU starts its trace again when its own last node is done
  /// [num_npus] the same where NPUs differ, of which `iterations` is the most; empty: they do not.
  std::vector<std::uint32_t> own_iterations = {};
  std::vector<Time> starts = {};  ///< [num_npus] when the first nodes of an NPU are ready; empty: at 0
  ComputeNoise noise;
  /// [num_npus] by what the time of compute nodes is divided; positive. Empty = 1 for all.
  std::vector<double> compute_speed = {};
  network::Options network;
  /// GPUs whose thread blocks carry out the plans of collectives over the links; null: there are none.
  std::shared_ptr<const gpu::Options> gpu = {};
  bool timeline = false;                ///< keep start and finish of every node
  std::uint32_t record_iterations = 1;  ///< iterations, from the first, of which collectives and the timeline are kept

  /// Says whether a sender waits until its receiver is ready.
  bool senders_wait() const { return rendezvous || recorded_communication; }
  bool goes_over_links() const { return network.model->simulates_links() && !replay_only; }
  /// Returns the bytes that tensors may take, with the share of an expanded memory; 0 = no limit.
  Bytes room() const;
  double speed_of(NpuId npu) const { return compute_speed.empty() ? 1 : compute_speed[npu.index()]; }
  std::uint32_t iterations_of(NpuId npu) const {
    return own_iterations.empty() ? iterations : own_iterations[npu.index()];
  }
  Time start_of(NpuId npu) const { return starts.empty() ? Time::zero() : starts[npu.index()]; }
  /// Returns the largest of `speed_of`.
  double highest_speed() const;

  /// Says whether factors of the time of compute nodes and of host work are drawn during the run.
  bool varies_compute() const {
    return noise.amplitude > 0 || noise.variations.has(DrawnPer::step) || noise.variations.has(DrawnPer::node);
  }
  /// Returns a bound that no such factor is below.
  double least_factor() const;

  /// Throws Error (bad_input) that names the key.
  void validate() const;
};

}  // namespace orrery::npu
