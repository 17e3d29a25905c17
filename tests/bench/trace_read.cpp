// Reading of traces: nodes (of GOAL: messages) and bytes per second, and bytes kept per node. The files are made here
// and resemble what STAGE (about 300 bytes a node), the PyTorch converter (about 600), Chakra's jsonizer, PyTorch's
// profiler and schedgen write.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "et_writer.hpp"
#include "orrery/trace/store.hpp"
#include "temporary_folder.hpp"

namespace orrery::trace {
namespace {

std::string stage_name(std::uint64_t at, std::uint64_t id) {
  return fmt::format("mb{}_transformer_{}_mha_q_proj_{}", at % 16, at / 16 % 32, id);
}

et::Node stage_node(std::uint64_t at, std::uint64_t id, std::uint64_t before) {
  const auto name = stage_name(at, id);
  const auto input = stage_name(at - 1, before) + "@0MicroBatch/dp,Seq,Dmodel/tp";
  if (at % 4 == 3) {
    et::Node node = et::collective(id, name + "_COMM", at % 8 == 3 ? 2 : 7, 4194304);
    node.data({before}).int32("is_cpu_op", 0).text("pg_name", at % 8 == 3 ? "17" : "18");
    node.inputs({input, "8388608.0"});
    node.outputs({});
    return node;
  }
  et::Node node = et::compute(id, name, 2199023255552, 8388608);
  node.data({before}).text("op_type", "matmul");
  node.inputs({input, "8388608.0", name + "_w@0Dmodel,Dmodel/tp", "2097152.0"});
  node.outputs({name + "@0MicroBatch/dp,Seq,Dmodel/tp", "8388608.0"});
  return node;
}

et::Node pytorch_node(std::uint64_t at, std::uint64_t id, std::uint64_t before) {
  et::Node node(id, fmt::format("aten::operation_{}", at % 300), et::comp);
  node.data({before}).ctrl({id > 5 ? id - 5 : before}).micros(at % 97);
  const std::string tensors = "[[723, 724, 0, 6144, 4, 'cuda:0'], [718, 715, 0, 6144, 4, 'cuda:0'], '<Object>', -1]";
  const std::string types = "['Tensor(float)', 'Tensor(float)', 'Object', 'GenericList[Int,Int,Int,Int]', 'Int']";
  const auto io = et::Message().bytes(1, tensors).bytes(2, "[[6144], [6144], [], []]").bytes(3, types);
  node.message(8, io).message(9, io);
  node.int64("rf_id", static_cast<std::int64_t>(at)).int64("fw_parent", 0).int64("seq_id", -1).int64("scope", 7);
  node.int64("tid", 1).int64("fw_tid", 0).text("op_schema", "aten::add.Tensor(Tensor self, Tensor other) -> Tensor");
  node.boolean("is_cpu_op", at % 6 != 0).int64("stream", 7).int64("ts", 1699999999 + static_cast<std::int64_t>(at));
  return node;
}

using MakeNode = et::Node (*)(std::uint64_t, std::uint64_t, std::uint64_t);

/// Ids with gaps, and every third pair of nodes the other way round, as real files have it.
std::string make_file(std::uint64_t num_nodes, MakeNode make) {
  et::File file;
  file.metadata();
  for (std::uint64_t position = 0; position < num_nodes; ++position) {
    std::uint64_t at = position;
    if (position % 6 == 0 && position + 1 < num_nodes) at = position + 1;
    if (position % 6 == 1) at = position - 1;
    const std::uint64_t id = 100 + 3 * at;
    file.add(make(at, id, at == 0 ? id + 1 : id - 3));
  }
  return file.text();
}

void read_trace(benchmark::State& state, MakeNode make) {
  const auto num_nodes = static_cast<std::uint64_t>(state.range(0));
  const std::string bytes = make_file(num_nodes, make);
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "t.0.et";
  et::write(path, bytes);
  std::size_t kept = 0;
  for (auto _ : state) {
    Store store({.num_npus = 64}, {{"17", {NpuId(0), NpuId(1)}}, {"18", {NpuId(0), NpuId(2)}}});
    benchmark::DoNotOptimize(store.read(path, NpuId(0)));
    kept = store.bytes();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
  state.counters["file_bytes_per_node"] = static_cast<double>(bytes.size()) / static_cast<double>(num_nodes);
  state.counters["kept_bytes_per_node"] = static_cast<double>(kept) / static_cast<double>(num_nodes);
}

void stage(benchmark::State& state) { read_trace(state, stage_node); }
void pytorch(benchmark::State& state) { read_trace(state, pytorch_node); }

/// An operator, its call of the runtime and its kernel, as PyTorch's profiler writes them.
std::string recorded_events(std::uint64_t at) {
  const std::uint64_t ts = 1706850122825785 + 20 * at;
  constexpr std::string_view events =
      R"json({{"ph": "X", "cat": "cpu_op", "name": "aten::add_{0}", "pid": 9, "tid": 9, "ts": {1}, "dur": 15,
 "args": {{"External id": {2}, "Concrete Inputs": ["", "4"], "Input type": ["c10::Half", "Scalar"],
 "Input Dims": [[4, 2048, 4096], []], "Ev Idx": {2}}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": {3}, "dur": 6,
 "args": {{"External id": {2}, "cbid": 211, "correlation": {2}}}}},
{{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, add_{0}>(int)", "pid": 0,
 "tid": 7, "ts": {4}, "dur": 12, "args": {{"External id": {2}, "queued": 0, "device": 0, "context": 1, "stream": 7,
 "correlation": {2}, "registers per thread": 91, "grid": [2048, 8, 1], "block": [32, 4, 1]}}}}
)json";
  return fmt::format(events, at % 300, ts, at + 1, ts + 4, ts + 8);
}

/// A node of PyTorch as Chakra's jsonizer prints it.
std::string printed_node(std::uint64_t at) {
  constexpr std::string_view node = R"json({{
  "id": "{0}", "name": "aten::operation_{1}", "type": "COMP_NODE", "ctrlDeps": ["{2}"], "dataDeps": ["{2}"],
  "durationMicros": "{3}",
  "inputs": {{"values": "[[723, 724, 0, 6144, 4, 'cuda:0'], '<Object>', -1]", "shapes": "[[6144], [], []]",
    "types": "['Tensor(float)', 'Object', 'Int']"}},
  "attr": [{{"name": "rf_id", "int64Val": "{0}"}}, {{"name": "fw_parent", "int64Val": "0"}},
    {{"name": "op_schema", "stringVal": "aten::add.Tensor(Tensor self, Tensor other) -> Tensor"}},
    {{"name": "is_cpu_op", "boolVal": true}}, {{"name": "stream", "int64Val": "7"}}]
}}
)json";
  return fmt::format(node, at + 2, at % 300, at + 1, at % 97);
}

void read_json_text(benchmark::State& state, const std::string& bytes) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "t.0.json";
  et::write(path, bytes);
  for (auto _ : state) {
    Store store({.num_npus = 64}, {});
    benchmark::DoNotOptimize(store.read(path, NpuId(0)));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

void kineto(benchmark::State& state) {
  std::string bytes = R"({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 64}, "traceEvents": [)";
  for (std::int64_t at = 0; at < state.range(0); ++at) {
    if (at > 0) bytes += ',';
    bytes += recorded_events(static_cast<std::uint64_t>(at));
  }
  read_json_text(state, bytes + "]}");
}

void chakra_json(benchmark::State& state) {
  std::string bytes = R"({"version": "0.0.4"})"
                      "\n";
  for (std::int64_t at = 0; at < state.range(0); ++at) bytes += printed_node(static_cast<std::uint64_t>(at));
  read_json_text(state, bytes);
}

/// A ring of ranks as schedgen writes it: each passes messages on, one after the other.
void goal(benchmark::State& state) {
  const auto num_ranks = static_cast<std::uint32_t>(state.range(0));
  const std::uint32_t num_rounds = 2 * (num_ranks - 1);
  std::string bytes = fmt::format("num_ranks {}\n", num_ranks);
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    bytes += fmt::format("\nrank {} {{\n", rank);
    const std::uint32_t next = (rank + 1) % num_ranks, before = (rank + num_ranks - 1) % num_ranks;
    for (std::uint32_t i = 0; i < num_rounds; ++i) {
      bytes += fmt::format("l{}: send 2048b to {} tag {}\n", 2 * i + 1, next, i);
      if (i > 0) bytes += fmt::format("l{} requires l{}\n", 2 * i + 1, 2 * i);
      bytes += fmt::format("l{}: recv 2048b from {} tag {}\n", 2 * i + 2, before, i);
    }
    bytes += "}\n";
  }
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "ring.goal";
  et::write(path, bytes);
  for (auto _ : state) {
    Store store({.num_npus = num_ranks}, {});
    benchmark::DoNotOptimize(store.read(path, NpuId(0)));
  }
  const std::int64_t messages = std::int64_t{num_ranks} * num_rounds;
  state.SetItemsProcessed(state.iterations() * messages);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}

BENCHMARK(goal)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(kineto)->Arg(5'000)->Arg(200'000)->Unit(benchmark::kMillisecond);
BENCHMARK(chakra_json)->Arg(5'000)->Arg(200'000)->Unit(benchmark::kMillisecond);
BENCHMARK(stage)->Arg(5'000)->Arg(500'000)->Unit(benchmark::kMillisecond);
BENCHMARK(pytorch)->Arg(5'000)->Arg(500'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::trace

BENCHMARK_MAIN();
