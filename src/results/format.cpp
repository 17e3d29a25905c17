#include "format.hpp"

#include <limits>

#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::results::format {
namespace {

using communicator::CollectiveRecord;
using memory::UsageRecord;
using npu::NpuRecord;
using npu::TimelineRecord;

std::int64_t signed_count(std::uint64_t count) { return static_cast<std::int64_t>(count); }

std::vector<std::string> node_kinds() {
  return {"instant", "cpu", "compute", "collective", "send", "receive", "mem-load", "mem-store"};
}

}  // namespace

std::vector<std::string> collective_kinds() {
  std::vector<std::string> names;
  for (std::uint8_t kind = 0; kind <= static_cast<std::uint8_t>(collective::Kind::barrier); ++kind) {
    names.emplace_back(collective::name(static_cast<collective::Kind>(kind)));
  }
  return names;
}

const std::array<Column<NpuRecord>, 14> npu_columns{{
    {"finish_time",
     {"ps", "finish time", "when the last node of the NPU completed"},
     [](const NpuRecord& npu) { return npu.finish.ps(); }},
    {"compute_time",
     {"ps", "compute time", "time in which the compute resource was busy"},
     [](const NpuRecord& npu) { return npu.compute.ps(); }},
    {"cpu_time",
     {"ps", "CPU time", "time in which the CPU was busy and the compute resource was not"},
     [](const NpuRecord& npu) { return npu.cpu.ps(); }},
    {"communication_time",
     {"ps", "communication time", "time in which a collective, a send or a receive was in progress, overlapped or not"},
     [](const NpuRecord& npu) { return npu.communication.ps(); }},
    {"exposed_communication_time",
     {"ps", "exposed communication time",
      "time in which communication was in progress and neither the compute resource nor the CPU was busy"},
     [](const NpuRecord& npu) { return npu.exposed_communication.ps(); }},
    {"exposed_receive_time",
     {"ps", "exposed receive time",
      "the part of the exposed communication time in which nothing but receives was in progress"},
     [](const NpuRecord& npu) { return npu.exposed_receive.ps(); }},
    {"memory_time",
     {"ps", "remote memory time", "time in which a remote memory access was in progress, overlapped or not"},
     [](const NpuRecord& npu) { return npu.memory.ps(); }},
    {"exposed_memory_time",
     {"ps", "exposed remote memory time", "time in which a remote memory access was in progress and nothing else"},
     [](const NpuRecord& npu) { return npu.exposed_memory.ps(); }},
    {"idle_time",
     {"ps", "idle time",
      "time up to the finish time in which nothing was in progress; compute + cpu + exposed_communication + "
      "exposed_memory + idle = finish, exactly"},
     [](const NpuRecord& npu) { return npu.idle.ps(); }},
    {"nodes_completed",
     {"1", "nodes completed", "nodes of the execution trace that completed"},
     [](const NpuRecord& npu) { return signed_count(npu.nodes_completed); }},
    {"bytes_sent",
     {"byte", "bytes sent", "bytes that the NPU sent into the network"},
     [](const NpuRecord& npu) { return signed_count(npu.bytes_sent.count()); }},
    {"peak_memory",
     {"byte", "peak memory", "largest operand footprint of the compute nodes in service at one time"},
     [](const NpuRecord& npu) { return signed_count(npu.peak_memory.count()); }},
    {"peak_local_memory",
     {"byte", "peak local memory", "largest size of the tensors in the local memory at one time; 0: no node lists any"},
     [](const NpuRecord& npu) { return signed_count(npu.peak_local_memory.count()); }},
    {"peak_local_memory_time",
     {"ps", "peak local memory time", "the first time at which the local memory holds so much"},
     [](const NpuRecord& npu) { return npu.peak_local_memory_time.ps(); }},
}};

const std::array<Column<CollectiveRecord>, 10> collective_columns{{
    {"group", {"1", "group", "index into /groups"}, [](const CollectiveRecord& c) { return c.group.value(); }},
    {"ordinal",
     {"1", "ordinal", "which of the group's collectives, from 0"},
     [](const CollectiveRecord& c) { return c.ordinal; }},
    {"kind",
     {"1", "kind", "index into the attribute values"},
     [](const CollectiveRecord& c) { return static_cast<std::int8_t>(c.kind); },
     collective_kinds},
    {"bytes",
     {"byte", "bytes", "all-gather, gather: the shard that each member brings; others: the whole buffer of a member"},
     [](const CollectiveRecord& c) { return signed_count(c.size.count()); }},
    {"members", {"1", "members", "number of members"}, [](const CollectiveRecord& c) { return c.members; }},
    {"first_arrival",
     {"ps", "first arrival", "when the first member joined"},
     [](const CollectiveRecord& c) { return c.first_arrival.ps(); }},
    {"last_arrival",
     {"ps", "last arrival", "when the last member joined"},
     [](const CollectiveRecord& c) { return c.last_arrival.ps(); }},
    {"finish",
     {"ps", "finish", "when the last member had completed it"},
     [](const CollectiveRecord& c) { return c.finish.ps(); }},
    {"algorithm_bandwidth",
     {"byte/s", "algorithm bandwidth",
      "bytes (all-gather, gather: times members) over finish - last_arrival; NaN if that is 0"},
     algorithm_bandwidth},
    {"bus_bandwidth",
     {"byte/s", "bus bandwidth",
      "algorithm bandwidth times the factor of the kind in nccl-tests, to compare with a link's bandwidth"},
     [](const CollectiveRecord& c) {
       return algorithm_bandwidth(c) * bus_factor(static_cast<collective::Kind>(c.kind), c.members);
     }},
}};

const std::array<Column<TimelineRecord>, 7> timeline_columns{{
    {"npu", {"1", "NPU", "number of the NPU"}, [](const TimelineRecord& r) { return r.npu.value(); }},
    {"node",
     {"1", "node", "id of the node in the NPU's execution trace"},
     [](const TimelineRecord& r) { return r.node; }},
    {"start", {"ps", "start", "when the node was issued"}, [](const TimelineRecord& r) { return r.start.ps(); }},
    {"finish", {"ps", "finish", "when the node completed"}, [](const TimelineRecord& r) { return r.finish.ps(); }},
    {"kind",
     {"1", "kind", "index into the attribute values"},
     [](const TimelineRecord& r) { return static_cast<std::int8_t>(r.kind); },
     node_kinds},
    {"name", {"1", "name", "index into names"}, [](const TimelineRecord& r) { return r.name; }},
    {"group",
     {"1", "group", "of a collective or an access of a group: index into /groups; -1 for other nodes"},
     [](const TimelineRecord& r) { return static_cast<std::int32_t>(r.group); }},
}};

const std::array<Column<UsageRecord>, 2> usage_columns{{
    {"time", {"ps", "time", "from which on the usage is this"}, [](const UsageRecord& r) { return r.since.ps(); }},
    {"usage",
     {"byte", "usage", "size of the tensors that are there; 0 at the end"},
     [](const UsageRecord& r) { return signed_count(r.usage.count()); }},
}};

const std::array<KernelQuantity, 12> kernel_quantities{{
    {"events", {"1", "events", "events handled"}, &KernelRecord::events, nullptr},
    {"data_messages", {"1", "data messages", "messages sent that carry events"}, &KernelRecord::data_messages, nullptr},
    {"null_messages",
     {"1", "null messages", "messages sent that carry a promise alone"},
     &KernelRecord::null_messages,
     nullptr},
    {"null_messages_received",
     {"1", "null messages received", "messages received that carry a promise alone"},
     &KernelRecord::null_messages_received,
     nullptr},
    {"promise_requests",
     {"1", "promise requests", "promises asked for when blocked"},
     &KernelRecord::promise_requests,
     nullptr},
    {"message_bytes", {"byte", "message bytes", "bytes of all messages sent"}, &KernelRecord::message_bytes, nullptr},
    {"reductions",
     {"1", "reductions", "reductions joined to find out whether anything can still happen"},
     &KernelRecord::reductions,
     nullptr},
    {"blocked_time",
     {"s", "blocked time", "wall-clock time without an event that could be handled"},
     nullptr,
     &KernelRecord::blocked_time},
    {"busy_time",
     {"s", "busy time", "wall-clock time in which events were handled"},
     nullptr,
     &KernelRecord::busy_time},
    {"peak_pending_events",
     {"1", "peak pending events", "largest number of events that waited to be handled"},
     &KernelRecord::peak_pending_events,
     nullptr},
    {"peak_memory",
     {"byte", "peak memory", "largest resident memory of the process"},
     &KernelRecord::peak_memory_bytes,
     nullptr},
    {"critical_path",
     {"1", "critical path", "events on the longest chain of dependent events that ends on the rank"},
     &KernelRecord::critical_path,
     nullptr},
}};

std::string_view status_name(Status status) {
  switch (status) {
    case Status::complete:
      return "complete";
    case Status::stuck:
      return "stuck";
    case Status::interrupted:
      return "interrupted";
  }
  ensure_failed("a status has a name", std::source_location::current());
}

unsigned __int128 worked_bytes(collective::Kind kind, std::uint32_t members, unsigned __int128 bytes) {
  const bool brings_shard = kind == collective::Kind::all_gather || kind == collective::Kind::gather;
  return brings_shard ? bytes * members : bytes;
}

double algorithm_bandwidth(const communicator::CollectiveRecord& collective) {
  const Time duration = collective.finish - collective.last_arrival;
  if (duration <= Time::zero()) return std::numeric_limits<double>::quiet_NaN();
  const auto kind = static_cast<collective::Kind>(collective.kind);
  return static_cast<double>(worked_bytes(kind, collective.members, collective.size.count())) / duration.seconds();
}

double bus_factor(collective::Kind kind, std::uint32_t members) {
  const double n = members;
  switch (kind) {
    case collective::Kind::all_reduce:
      return 2 * (n - 1) / n;
    case collective::Kind::broadcast:
    case collective::Kind::reduce:
    case collective::Kind::barrier:
      return 1;
    case collective::Kind::all_gather:
    case collective::Kind::reduce_scatter:
    case collective::Kind::all_to_all:
    case collective::Kind::gather:
    case collective::Kind::scatter:
      return (n - 1) / n;
  }
  return 1;
}

}  // namespace orrery::results::format
