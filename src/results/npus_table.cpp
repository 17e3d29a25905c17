#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "columns.hpp"
#include "gather.hpp"
#include "orrery/base/error.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using npu::NpuRecord;

constexpr std::size_t block_rows = 1 << 18;  // of a folded run that are written together

std::int64_t bytes_in(Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); }

const std::array<Column<NpuRecord>, 14> npu_columns{{
    {"finish_time",
     {"ps", "finish time", "time at which the last node of the NPU completed"},
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
     [](const NpuRecord& npu) { return npu.exposed_communication().ps(); }},
    {"exposed_receive_time",
     {"ps", "exposed receive time",
      "the part of the exposed communication time in which only receives were in progress"},
     [](const NpuRecord& npu) { return npu.exposed_receive.ps(); }},
    {"memory_time",
     {"ps", "remote memory time", "time in which a remote memory access was in progress, overlapped or not"},
     [](const NpuRecord& npu) { return npu.memory.ps(); }},
    {"exposed_memory_time",
     {"ps", "exposed remote memory time", "time in which only remote memory accesses were in progress"},
     [](const NpuRecord& npu) { return npu.exposed_memory.ps(); }},
    {"idle_time",
     {"ps", "idle time",
      "time up to the finish time in which nothing was in progress; compute + cpu + exposed_communication + "
      "exposed_memory + idle = finish, exactly"},
     [](const NpuRecord& npu) { return npu.idle.ps(); }},
    {"nodes_completed",
     {"1", "nodes completed", "nodes of the execution trace that completed"},
     [](const NpuRecord& npu) { return static_cast<std::int64_t>(npu.nodes_completed); }},
    {"bytes_sent",
     {"byte", "bytes sent", "bytes that the NPU sent into the network"},
     [](const NpuRecord& npu) { return bytes_in(npu.bytes_sent); }},
    {"peak_memory",
     {"byte", "peak memory", "largest operand footprint of the compute nodes in service at one time"},
     [](const NpuRecord& npu) { return bytes_in(npu.peak_memory); }},
    {"peak_local_memory",
     {"byte", "peak local memory",
      "largest size of the tensors in the local memory at one time; 0: no node lists tensors"},
     [](const NpuRecord& npu) { return bytes_in(npu.peak_local_memory); }},
    {"peak_local_memory_time",
     {"ps", "peak local memory time", "first time at which the tensors in the local memory had this size"},
     [](const NpuRecord& npu) { return npu.peak_local_memory_time.ps(); }},
}};

bool times_add_up(const NpuRecord& npu) {
  return npu.compute + npu.cpu + npu.exposed_communication() + npu.exposed_memory + npu.idle == npu.finish;
}

void check_times(const RunDescription& run, const NpuRecord& npu) {
  ensure(run.status != Status::complete || times_add_up(npu), "the times of an NPU add up to its finish time");
}

/// Returns the records of all NPUs on rank 0, once they are written. Collective.
std::vector<NpuRecord> write_npus_of_ranks(Output& output, const RunDescription& run, std::span<const NpuRecord> mine) {
  const std::vector<std::int64_t> one_each(run.num_npus, 1);
  std::vector<NpuRecord> all;
  if (output.world().is_root()) all.reserve(run.num_npus);
  auto consume = [&](std::uint64_t first, std::span<const NpuRecord> records) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      ensure(records[i].npu.value() == first + i, "every NPU has one record");
      check_times(run, records[i]);
    }
    write_columns(output.file(), "/npus", npu_columns, first, records);
    all.insert(all.end(), records.begin(), records.end());
  };
  gather_in_order<NpuRecord>(
      output.world(), mine, one_each, [](const NpuRecord& npu) { return npu.npu.index(); },
      [](const NpuRecord&, const NpuRecord&) { return false; }, consume);
  return all;
}

/// Does the same for a folded run, from the records of the representatives, which rank 0 has all of.
NpuRecords write_npus_of_classes(Output& output, const RunDescription& run, std::span<const NpuRecord> mine) {
  std::vector<NpuRecord> of_classes = output.world().gather(mine, Rank(0));
  std::ranges::sort(of_classes, {}, &NpuRecord::npu);
  NpuRecords all;
  output.on_root([&](File& file) {
    for (const NpuRecord& record : of_classes) check_times(run, record);
    all = NpuRecords(std::move(of_classes), run.class_of_npu);
    ensure(all.size() == run.num_npus, "every NPU has a class");
    for (std::size_t first = 0; first < all.size(); first += block_rows)
      for (const auto& column : npu_columns)
        std::visit(
            [&]<class T>(T (*value)(const NpuRecord&)) {
              const auto rows = all.column<T>(first, std::min(block_rows, all.size() - first), value);
              file.write<T>(std::string("/npus/") + column.name, first, rows);
            },
            column.value);
  });
  return all;
}

}  // namespace

NpuRecords write_npus(Output& output, const RunDescription& run, std::span<const NpuRecord> mine) {
  output.on_root([&](File& file) {
    file.group("/npus", "one row per NPU");
    file.scale("/npus/npu", run.num_npus,
               {"1", "NPU", "number of the NPU; the coordinate in dimension 0 of the topology varies fastest"});
    create_columns(file, "/npus", npu_columns, run.num_npus, "npu", File::Layout::plain);
  });
  if (run.class_of_npu.empty()) return write_npus_of_ranks(output, run, mine);
  return write_npus_of_classes(output, run, mine);
}

}  // namespace orrery::results
