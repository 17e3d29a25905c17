#pragma once

#include <array>
#include <cstdint>

#include "orrery/base/ids.hpp"
#include "orrery/base/last_arrival.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/npu/cause.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// What is known of one NPU when the run ends. compute + cpu + exposed_communication() + exposed_memory + idle =
/// finish, exactly: a moment with several resources busy counts for compute first, then CPU, communication, memory.
struct NpuRecord {
  NpuId npu;
  Time finish;
  Time compute;
  Time cpu;                              ///< CPU busy and compute not
  Time communication;                    ///< a collective, send or receive in progress, overlapped or not
  std::array<Time, num_causes> waits{};  ///< exposed communication by its cause
  Time exposed_receive;                  ///< exposed communication in which nothing but receives was in progress
  Time memory;                           ///< a remote memory access in progress, overlapped or not
  Time exposed_memory;
  Time idle;
  std::uint64_t nodes_completed = 0;
  Bytes bytes_sent;
  Bytes peak_memory;            ///< largest operand footprint (tensor_size) of the compute nodes in service at one time
  Bytes peak_local_memory;      ///< largest size of the tensors in the local memory at one time
  Time peak_local_memory_time;  ///< the first time at which it was as large

  /// Returns the time in which communication was in progress and neither the compute resource nor the CPU was busy.
  Time exposed_communication() const {
    Time sum;
    for (const Time wait : waits) sum += wait;
    return sum;
  }
};

/// One node in the timeline; 80 bytes.
struct TimelineRecord {
  static constexpr std::uint32_t no_group = ~0U;
  static constexpr std::uint32_t no_peer = ~0U;
  static constexpr std::int8_t no_operation = -1;

  NpuId npu;
  std::uint32_t group = no_group;  ///< GroupId of a collective
  std::uint64_t node = 0;          ///< the trace's own id
  Time start, finish;
  trace::NodeKind kind = trace::NodeKind::instant;
  std::uint32_t name = 0;                ///< index into the rank's names
  std::uint64_t bytes = 0;               ///< bytes of communication and accesses
  std::uint64_t tag = 0;                 ///< tag of a send or receive
  std::uint32_t peer = no_peer;          ///< NPU at the other end of a send or receive
  std::int8_t operation = no_operation;  ///< trace::CollectiveKind of a node of a group
  Cause cause = Cause::other;            ///< cause of a collective, a send or a receive
  LastArrival last = {};                 ///< for whom the node waited; that NPU was ready at this time
};

}  // namespace orrery::npu
