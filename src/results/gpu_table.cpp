#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "columns.hpp"
#include "orrery/gpu/record.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using GpuKernel = gpu::KernelRecord;
using gpu::RequestKind;
using gpu::RequestRecord;
using gpu::Stall;

const std::array<Column<GpuKernel>, 6> kernel_columns{{
    {"npu", {"1", "npu", "NPU whose thread blocks the kernel has"}, [](const GpuKernel& k) { return k.npu.value(); }},
    {"group", {"1", "group", "index into /groups"}, [](const GpuKernel& k) { return k.group.value(); }},
    {"ordinal",
     {"1", "ordinal", "number of the collective among those of its group, from 0"},
     [](const GpuKernel& k) { return k.ordinal; }},
    {"blocks", {"1", "blocks", "number of thread blocks"}, [](const GpuKernel& k) { return k.blocks; }},
    {"start", {"ps", "start", "time at which the NPU joined"}, [](const GpuKernel& k) { return k.start.ps(); }},
    {"end", {"ps", "end", "time at which the kernel was over"}, [](const GpuKernel& k) { return k.end.ps(); }},
}};

template <Stall stall>
std::int64_t time_of(const GpuKernel& kernel) {
  return kernel.stalls[static_cast<std::size_t>(stall)].ps();
}

const std::array<Column<GpuKernel>, gpu::num_stalls> stall_columns{{
    {"launch", {"ps", "launch", "launch, load of the plan, and waiting for an SM"}, time_of<Stall::launch>},
    {"issue", {"ps", "issue", "fixed costs of operations"}, time_of<Stall::issue>},
    {"memory", {"ps", "memory", "loads from the own memory"}, time_of<Stall::memory>},
    {"poll", {"ps", "poll", "polls of flags that are there"}, time_of<Stall::poll>},
    {"words", {"ps", "words", "waiting for words, semaphores and packets"}, time_of<Stall::words>},
    {"link", {"ps", "link", "waiting until stores have left for the first link"}, time_of<Stall::link>},
    {"load", {"ps", "load", "loads from other GPUs"}, time_of<Stall::load>},
    {"acks", {"ps", "acknowledgements", "waiting for acknowledgements of stores"}, time_of<Stall::acks>},
    {"barrier", {"ps", "barrier", "waiting for other blocks at barriers"}, time_of<Stall::barrier>},
    {"proxy", {"ps", "proxy", "waiting for the proxy"}, time_of<Stall::proxy>},
}};

std::uint64_t sum_of(const std::array<std::uint64_t, gpu::num_request_kinds>& counts,
                     std::initializer_list<RequestKind> kinds) {
  std::uint64_t sum = 0;
  for (const RequestKind kind : kinds) sum += counts[static_cast<std::size_t>(kind)];
  return sum;
}

const std::array<Column<RequestRecord>, 7> request_columns{{
    {"npu", {"1", "npu", "NPU that sent them"}, [](const RequestRecord& r) { return r.npu.value(); }},
    {"peer",
     {"1", "peer", "NPU that they were for; -1: a switch that adds up or multiplies data"},
     [](const RequestRecord& r) { return r.peer; }},
    {"data",
     {"1", "data", "lines of data: stores, and answers to loads"},
     [](const RequestRecord& r) {
       using enum RequestKind;
       return sum_of(r.counts.requests, {store, answer, switch_part, switch_store});
     }},
    {"requests",
     {"1", "requests", "lines that were asked for"},
     [](const RequestRecord& r) {
       return sum_of(r.counts.requests, {RequestKind::load, RequestKind::switch_load});
     }},
    {"acknowledgements",
     {"1", "acknowledgements", "messages that acknowledge stores"},
     [](const RequestRecord& r) { return sum_of(r.counts.requests, {RequestKind::ack}); }},
    {"words",
     {"1", "words", "signals"},
     [](const RequestRecord& r) { return sum_of(r.counts.requests, {RequestKind::word}); }},
    {"bytes",
     {"byte", "bytes", "bytes of all of these on the first link, with headers"},
     [](const RequestRecord& r) {
       std::uint64_t sum = 0;
       for (const std::uint64_t wire : r.counts.wire) sum += wire;
       return sum;
     }},
}};

}  // namespace

void write_gpu(Output& output, const RankResults& mine, std::span<const std::uint32_t> group_position) {
  std::vector<GpuKernel> kernels = mine.gpu_kernels;
  output.world().agree([&] {
    for (GpuKernel& kernel : kernels) kernel.group = GroupId(group_position[kernel.group.index()]);
  });
  kernels = output.world().gather(std::span<const GpuKernel>(kernels), Rank(0));
  auto requests = output.world().gather(std::span<const RequestRecord>(mine.gpu_requests), Rank(0));
  output.on_root([&](File& file) {
    if (requests.empty()) return;
    std::ranges::sort(kernels, {}, [](const GpuKernel& k) { return std::tuple(k.npu, k.start, k.group, k.ordinal); });
    std::ranges::sort(requests, {}, [](const RequestRecord& r) { return std::tuple(r.npu, r.peer); });
    const Label rows{"1", "kernel", "row of the columns"};
    file.group("/gpu", "GPUs whose thread blocks carried out collectives");
    file.group("/gpu/kernels", "one row per kernel of a recorded iteration, by NPU and start");
    write_table(file, "/gpu/kernels", kernel_columns, "kernel", rows, std::span<const GpuKernel>(kernels));
    file.group("/gpu/stalls", "time of the thread blocks of each kernel by reason, summed over blocks");
    write_table(file, "/gpu/stalls", stall_columns, "kernel", rows, std::span<const GpuKernel>(kernels));
    file.group("/gpu/requests", "what GPUs sent, one row per GPU and peer");
    write_table(file, "/gpu/requests", request_columns, "row", {"1", "row", "row of the columns"},
                std::span<const RequestRecord>(requests));
  });
}

}  // namespace orrery::results
