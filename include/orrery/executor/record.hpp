#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/link_server.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::executor {

/// What is known of one NPU when the run ends. compute + cpu + exposed_communication + exposed_memory + idle = finish,
/// exactly: a moment with several resources busy counts for compute first, then CPU, communication, memory.
struct NpuRecord {
  NpuId npu;
  Time finish;
  Time compute;
  Time cpu;            ///< CPU busy and compute not
  Time communication;  ///< a collective, send or receive in progress, overlapped or not
  Time exposed_communication;
  Time exposed_receive;  ///< the part of it in which nothing but receives was in progress
  Time memory;           ///< a remote memory access in progress, overlapped or not
  Time exposed_memory;
  Time idle;
  std::uint64_t nodes_completed = 0;
  Bytes bytes_sent;
  Bytes peak_memory;            ///< largest operand footprint (tensor_size) of the compute nodes in service at one time
  Bytes peak_local_memory;      ///< largest size of the tensors in the local memory at one time
  Time peak_local_memory_time;  ///< the first time of that
};

struct CollectiveRecord {
  GroupId group;
  std::uint32_t ordinal = 0;  ///< which of the group's collectives, from 0
  std::uint8_t kind = 0;      ///< collective::Kind
  std::uint32_t members = 0;
  Bytes size;
  Time first_arrival, last_arrival, finish;
};

/// What all collectives of one kind and number of members come to, whether they are recorded or not.
struct CollectiveSum {
  std::uint8_t kind = 0;  ///< collective::Kind
  std::uint32_t members = 0;
  std::uint64_t count = 0;
  unsigned __int128 bytes = 0;  ///< of CollectiveRecord::size
  SumOfTimes time = 0;          ///< from the last arrival to the finish
};

/// A link of the congestion-aware network.
struct LinkRecord {
  std::uint32_t link = 0;  ///< network::LinkId
  std::uint32_t dimension = 0;
  std::int64_t from = 0, to = 0;  ///< as network::Fabric::Ends
  network::LinkStatistics statistics;
};

/// A stage of a hierarchical pool of memory.
struct MemoryStageRecord {
  std::uint32_t stage = 0;    ///< 0 is at the memory
  std::uint32_t servers = 0;  ///< side by side
  Bytes bytes;                ///< that have passed
  Time busy;                  ///< of the servers, added up

  std::string_view name() const {
    constexpr std::string_view names[] = {"groups", "links", "fabrics"};
    return names[stage];
  }
};

/// What the tensors in the local memory of an NPU take from a time on.
struct UsageRecord {
  NpuId npu;
  Time since;
  Bytes usage;
};

struct TimelineRecord {
  static constexpr std::uint32_t no_group = ~0U;

  NpuId npu;
  std::uint32_t group = no_group;  ///< of a collective: its GroupId
  std::uint64_t node = 0;          ///< the trace's own id
  Time start, finish;
  trace::NodeKind kind = trace::NodeKind::instant;
  std::uint32_t name = 0;  ///< index into the rank's names
};

}  // namespace orrery::executor
