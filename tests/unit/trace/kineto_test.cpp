// Traces of PyTorch's profiler: what becomes of calls, launches, streams, events, synchronisations, communication
// kernels, steps and ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fixture.hpp"
#include "kineto_recording.hpp"
#include "kineto_schedule.hpp"

namespace orrery::trace {
namespace {

/// An event of a recording. Times are in microseconds.
std::string event(std::string_view category, std::string_view name, double ts, double dur, std::string_view args = "",
                  int thread = 1) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 9, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})", category,
      name, thread, ts, dur, args);
}
std::string call(std::string_view name, double ts, double dur, int correlation, int thread = 1) {
  return event("cuda_runtime", name, ts, dur, fmt::format(R"("correlation": {})", correlation), thread);
}
std::string launch(double ts, double dur, int correlation, int thread = 1) {
  return call("cudaLaunchKernel", ts, dur, correlation, thread);
}
std::string kernel(std::string_view name, double ts, double dur, int stream, int correlation,
                   std::string_view more = "") {
  return event("kernel", name, ts, dur, fmt::format(R"("stream": {}, "correlation": {}{})", stream, correlation, more));
}
std::string step(int number, double ts, double dur) {
  return event("user_annotation", fmt::format("ProfilerStep#{}", number), ts, dur);
}

class Kineto : public TraceTest {
 protected:
  static std::string file_with(const std::vector<std::string>& events, int rank = 0, int world = 8,
                               std::string_view more = "") {
    return fmt::format(
        R"({{"schemaVersion": 1, "distributedInfo": {{"rank": {}, "world_size": {}{}}}, "traceEvents": [{}]}})", rank,
        world, more, fmt::join(events, ",\n"));
  }

  NpuTrace read(const std::vector<std::string>& events, RecordingOptions recording = {}, std::uint32_t npu = 0) {
    store_ = Store({.streams = Streams::by_name, .recording = recording, .num_npus = 8}, {});
    return store_.read(write(file_with(events, 0, 8), "t.json"), NpuId(npu));
  }

  /// Returns "KIND NAME DURATION < NAMES OF DEPENDENCIES" of each node, in the order of ids; durations in ns.
  std::vector<std::string> nodes(const NpuTrace& trace) const {
    std::map<std::uint32_t, std::vector<std::string>> before;
    const auto label = [&](std::uint32_t i) { return fmt::format("{}:{}", i, store_.name_of(trace, NodeId(i))); };
    for (std::uint32_t i = 0; i < trace.graph->num_nodes(); ++i)
      for (const std::uint32_t next : trace.graph->successors_of(NodeId(i))) before[next].push_back(label(i));
    std::vector<std::string> all;
    for (std::uint32_t i = 0; i < trace.graph->num_nodes(); ++i)
      all.push_back(fmt::format("{} {} < {}", label(i), trace.graph->duration_of(NodeId(i)).ps() / 1000,
                                fmt::join(before[i], " ")));
    return all;
  }
  std::vector<std::string> nodes_of(const std::vector<std::string>& events) { return nodes(read(events)); }

  /// Returns the only collective of a step with one kernel, which this says.
  Node collective_of(std::string_view name, std::string_view args, const std::vector<std::string>& more = {}) {
    std::vector<std::string> events = {step(1, 0, 100), launch(10, 20, 5), kernel(name, 40, 30, 7, 5, args)};
    events.insert(events.end(), more.begin(), more.end());
    trace_ = read(events);
    for (const Node& node : trace_.graph->nodes)
      if (node.kind == NodeKind::collective) return node;
    return {};
  }
  std::string first_notice(std::string_view kind) const {
    const auto found = store_.notices().entries().find(kind);
    return found == store_.notices().entries().end() ? "" : found->second.text;
  }

  NpuTrace trace_;
};

using Lines = std::vector<std::string>;

TEST_F(Kineto, HostWorkAndLaunchesMakeAChain) {
  // A step of 100 us that launches two kernels on one stream, at 10 and 35 us: the host works up to each launch and to
  // the end of the step; the second kernel also waits for the first.
  EXPECT_EQ(
      nodes_of({step(3, 1000, 100), launch(1010, 5, 1), launch(1035, 5, 2), kernel("a", 1020, 40, 7, 1),
                kernel("b", 1060.5, 7.25, 7, 2)}),
      (Lines{"0:later than the first rank 0 < ", "1:host 10000 < 0:later than the first rank", "2:a 40000 < 1:host",
             "3:host 25000 < 1:host", "4:b 7250 < 2:a 3:host", "5:ProfilerStep#3 ends 65000 < 3:host"}));
}

TEST_F(Kineto, ASynchronisationTakesTheWaitingOutOfTheHost) {
  // The host synchronises a stream from 20 to 70 us; the kernel ends at 66 us. The host waits for the kernel and then
  // takes the remaining 4 us.
  EXPECT_EQ(
      nodes_of(
          {step(3, 0, 100), launch(10, 5, 1), kernel("a", 16, 50, 7, 1), call("cudaStreamSynchronize", 20, 50, 2)}),
      (Lines{"0:later than the first rank 0 < ", "1:host 10000 < 0:later than the first rank", "2:a 50000 < 1:host",
             "3:host 10000 < 1:host", "4:host 4000 < 2:a 3:host", "5:ProfilerStep#3 ends 30000 < 4:host"}));
}

TEST_F(Kineto, ACopyThatTheHostWaitsForIsASynchronisation) {
  // A copy to the host runs from 15 to 25 us within a call from 10 to 30 us: the call waits. A call that ends before
  // its copy does not.
  const auto copy = [](double end) {
    return Lines{step(3, 0, 100), call("cudaMemcpyAsync", 10, end - 10, 1),
                 event("gpu_memcpy", "c", 15, 10, R"("stream": 7, "correlation": 1)")};
  };
  EXPECT_EQ(nodes_of(copy(30))[4], "4:host 5000 < 2:c 3:host");
  EXPECT_EQ(nodes_of(copy(20)).size(), 4u);
}

TEST_F(Kineto, WhatComesAfterTheStepDoesNotCount) {
  // The profiler synchronises the device after the step, and a kernel of the step runs on: the step ends when the host
  // does, and the kernel is all there.
  EXPECT_EQ(nodes_of({step(3, 0, 100), launch(10, 5, 1), kernel("a", 16, 500, 7, 1),
                      call("cudaDeviceSynchronize", 110, 410, 2)}),
            (Lines{"0:later than the first rank 0 < ", "1:host 10000 < 0:later than the first rank",
                   "2:a 500000 < 1:host", "3:ProfilerStep#3 ends 90000 < 1:host"}));
}

TEST_F(Kineto, AnEventOrdersTwoStreams) {
  // Stream 20 waits for an event after kernel a of stream 7. The recording does not name the streams: the next kernel
  // waits for what the other streams hold. A kernel that began before that had ended did not wait.
  const auto with = [](double start) {
    return Lines{step(3, 0, 100),
                 launch(10, 2, 1),
                 kernel("a", 15, 20, 7, 1),
                 call("cudaEventRecord", 13, 1, 2),
                 call("cudaStreamWaitEvent", 15, 1, 3),
                 launch(20, 2, 4),
                 kernel("b", start, 20, 20, 4)};
  };
  EXPECT_EQ(nodes_of(with(36))[4], "4:b 20000 < 2:a 3:host");
  EXPECT_EQ(nodes_of(with(22))[4], "4:b 20000 < 3:host");
}

TEST_F(Kineto, SyncEventsNameTheStreams) {
  // Stream 20 waits for what stream 7 held when the event was recorded (a, not b), as the event of category cuda_sync
  // says; the next kernel of stream 9 does not wait.
  const std::string sync = event("cuda_sync", "Stream Wait Event", 25, 0,
                                 R"("correlation": 5, "stream": 20, "wait_on_stream": 7,
                                    "wait_on_cuda_event_record_corr_id": 2)");
  const auto all =
      nodes_of({step(3, 0, 100), launch(10, 1, 1), kernel("a", 12, 8, 7, 1), call("cudaEventRecord", 12, 1, 2),
                launch(14, 1, 3), kernel("b", 20, 50, 7, 3), call("cudaStreamWaitEvent", 25, 1, 5), sync,
                launch(30, 1, 6), kernel("c", 32, 9, 9, 6), launch(40, 1, 7), kernel("d", 42, 9, 20, 7)});
  EXPECT_EQ(all[6], "6:c 9000 < 5:host");
  EXPECT_EQ(all[8], "8:d 9000 < 2:a 7:host");
}

TEST_F(Kineto, ThreadsThatOnlyPollDoNotCount) {
  // The autograd thread launches while the main thread waits; a watchdog queries events: one chain of the first two.
  const auto all = nodes_of({step(3, 0, 100), launch(10, 1, 1), kernel("a", 15, 5, 7, 1), launch(50, 1, 2, 2),
                             kernel("b", 55, 5, 7, 2), call("cudaEventQuery", 60, 20, 3, 3)});
  EXPECT_EQ(
      all, (Lines{"0:later than the first rank 0 < ", "1:host 10000 < 0:later than the first rank", "2:a 5000 < 1:host",
                  "3:host 40000 < 1:host", "4:b 5000 < 2:a 3:host", "5:ProfilerStep#3 ends 50000 < 3:host"}));
}

TEST_F(Kineto, AStepIsChosen) {
  // Two steps with a kernel each. By default the last one counts; --step 1 takes the first, all takes both; step 7 is
  // not there. The GPU works on step 1 for 15 us of step 2. This step begins when it is done, and the host, which works
  // 100 us in each step, has launched b by then. It launches in the same way ahead of step 1.
  const Lines events = {step(1, 0, 100),   launch(10, 1, 1),  kernel("a", 15, 100, 7, 1),
                        step(2, 100, 100), launch(110, 1, 2), kernel("b", 120, 5, 7, 2)};
  EXPECT_EQ(nodes(read(events)), (Lines{"0:later than the first rank 0 < ", "1:host 0 < 0:later than the first rank",
                                        "2:b 5000 < 1:host", "3:ProfilerStep#2 ends 100000 < 1:host"}));
  using Kind = StepChoice::Kind;
  EXPECT_EQ(nodes(read(events, {.step = {Kind::numbered, 1}})),
            (Lines{"0:later than the first rank 0 < ", "1:host 0 < 0:later than the first rank", "2:a 100000 < 1:host",
                   "3:ProfilerStep#1 ends 100000 < 1:host"}));
  EXPECT_EQ(nodes(read(events, {.step = {Kind::all, 0}})).size(), 6u);
  EXPECT_HAS(refusal_of([&] {
               read(events, {.step = {Kind::numbered, 7}});
             }),
             "this is the Kineto trace of rank 0 of 8, and it holds no ProfilerStep#7; expected one of the steps 1, 2");
}

TEST_F(Kineto, TheHostMayRunAhead) {
  // Step 1 leaves 300 us of work, for which the host waits 290 us of step 2. What it did before, 5 us, and the kernel
  // that it launches afterwards, do not wait; the other one of stream 20 had ended before and is part of the step.
  const Lines events = {step(1, 0, 100),
                        launch(10, 1, 1),
                        kernel("a", 15, 385, 7, 1),
                        step(2, 100, 400),
                        launch(105, 1, 2),
                        kernel("c", 107, 3, 20, 2),
                        call("cudaStreamSynchronize", 110, 292, 3),
                        launch(412, 1, 4),
                        kernel("b", 415, 5, 7, 4)};
  EXPECT_EQ(nodes(read(events)),
            (Lines{"0:later than the first rank 0 < ", "1:host 0 < 0:later than the first rank", "2:c 3000 < 1:host",
                   "3:host 0 < 1:host", "4:host 2000 < 2:c 3:host", "5:host 10000 < 4:host", "6:b 5000 < 5:host",
                   "7:ProfilerStep#2 ends 98000 < 5:host"}));
}

TEST_F(Kineto, WithoutStepsTheWholeRecordingCounts) {
  // No ProfilerStep: from the first call to the end of the last kernel.
  const auto all = nodes_of({launch(10, 1, 1), kernel("a", 15, 5, 7, 1)});
  EXPECT_EQ(all.back().substr(0, 19), "3:the recording end");
}

TEST_F(Kineto, OperationsWithoutALaunchFollowTheirStream) {
  // Of two kernels the second has no launch: it waits for the first and for the host's work up to its beginning, and a
  // notice counts it. Annotations on GPU streams are no kernels.
  const auto all = nodes_of({step(3, 0, 100), launch(10, 1, 1), kernel("a", 15, 5, 7, 1), kernel("b", 20, 5, 7, 99),
                             event("gpu_user_annotation", "ProfilerStep#3", 15, 10, R"("stream": 7)")});
  EXPECT_EQ(all[3], "3:host 10000 < 1:host");
  EXPECT_EQ(all[4], "4:b 5000 < 2:a 3:host");
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(store_.notices().entries().at("kineto-launch").count, 1u);
}

TEST_F(Kineto, KernelsSayWhatTheyCommunicate) {
  // The attributes of newer recordings: kind, elements, type and group. An all-gather counts the shard, a
  // reduce-scatter all bytes of a member, and a kernel whose name says nothing (RCCL) is what its attribute says.
  const auto args = [](std::string_view name, int in, int out) {
    return fmt::format(R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "BFloat16",
                          "Group size": 2, "Process Group Name": "5", "Process Group Ranks": "[0, 4]")",
                       name, in, out);
  };
  const Node reduce = collective_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", args("allreduce", 100, 100));
  EXPECT_EQ(reduce.size, 200u);
  EXPECT_EQ(reduce.collective, CollectiveKind::all_reduce);
  EXPECT_EQ(store_.groups().at(trace_.groups[0].index()), (Group{"5", npus({0, 4})}));
  const Node gather = collective_of("ncclDevKernel_AllGather_RING_LL(x)", args("_allgather_base", 100, 200));
  EXPECT_EQ(gather.size, 200u);
  EXPECT_EQ(gather.collective, CollectiveKind::all_gather);
  EXPECT_EQ(collective_of("ncclDevKernel_ReduceScatter_Sum_bf16(x)", args("_reduce_scatter_base", 200, 100)).size,
            400u);
  const Node generic = collective_of("ncclDevKernel_Generic_4(x)", args("reduce_scatter_tensor_coalesced", 200, 100));
  EXPECT_EQ(generic.collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(collective_of("ncclDevKernel_SendRecv(x)", args("all_to_allv", 8, 8)).collective,
            CollectiveKind::all_to_all);
}

TEST_F(Kineto, OperatorsSayWhatOldKernelsCommunicate) {
  // Kernels of older recordings say nothing: the operators around the launch, of the same thread, list the dimensions
  // and the type of the tensors. One of another thread does not count.
  const std::string args = R"("Input Dims": [[4, 2048, 4096]], "Input type": ["c10::Half"])";
  const std::string other = R"("Input Dims": [[7]], "Input type": ["float"])";
  const Lines operators = {event("user_annotation", "nccl:all_reduce", 5, 30, args),
                           event("user_annotation", "nccl:all_reduce", 9, 30, other, 2)};
  const Node node = collective_of("ncclKernel_AllReduce_RING_LL_Sum_half(x)", "", operators);
  EXPECT_EQ(node.size, 67108864u);
  EXPECT_EQ(store_.groups().at(trace_.groups[0].index()), Group{});
  // Several tensors, an all-to-all by sends and receives.
  const std::string lists = R"("Input Dims": [[[4], [2, 3]]], "Input type": ["TensorList"])";
  const Node exchange = collective_of(
      "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", "",
      {event("user_annotation", "nccl:all_to_all", 9, 15, R"("Input Dims": [[10]], "Input type": ["int"])"),
       event("cpu_op", "record_param_comms", 8, 17, lists)});
  EXPECT_EQ(exchange.collective, CollectiveKind::all_to_all);
  EXPECT_EQ(exchange.size, 40u);
}

TEST_F(Kineto, WhatIsNotSaidIsCounted) {
  // A collective without a size has one byte, and a kernel that does not say what it does stays a kernel; each has a
  // notice that counts it.
  EXPECT_EQ(collective_of("ncclDevKernel_AllReduce_Sum_f32(x)", "").size, 1u);
  EXPECT_HAS(first_notice("kineto-size"), "do not tell their bytes: 1 is assumed");
  EXPECT_EQ(collective_of("ncclDevKernel_Generic_4(x)", "").kind, NodeKind::instant);
  EXPECT_HAS(first_notice("kineto-kernel"), "do not tell what they do");
}

TEST_F(Kineto, ListsOfMembersMayBeCut) {
  // "[0, 2, ..., 6]" of 4 is regular; "[0, 1, ..., 6]" of 4 is not and is refused, unless the file lists the group.
  const auto args = [](std::string_view ranks) {
    return fmt::format(R"(, "Collective name": "allreduce", "In msg nelems": 4, "Out msg nelems": 4, "dtype": "Float",
                          "Group size": 4, "Process Group Name": "g", "Process Group Ranks": "{}")",
                       ranks);
  };
  collective_of("ncclDevKernel_AllReduce(x)", args("[0, 2, ..., 6]"));
  EXPECT_EQ(store_.groups().at(trace_.groups[0].index()), (Group{"g", npus({0, 2, 4, 6})}));
  EXPECT_HAS(refusal_of([&] { collective_of("ncclDevKernel_AllReduce(x)", args("[0, 1, ..., 6]")); }),
             "lists only some of the members of its process group; expected all of them");
  const std::string strided = args("[0, 1, ..., 6]") + R"(, "Global rank start": 0, "Global rank stride": 1)";
  collective_of("ncclDevKernel_AllReduce(x)", strided);
  EXPECT_EQ(store_.groups().at(trace_.groups[0].index()), (Group{"g", npus({0, 1, 2, 3})}));
}

TEST_F(Kineto, RanksMustBeThoseOfTheSystem) {
  // A file of rank 0 of 128 in a system of 8 NPUs is refused. With replicate 2, NPU 5 of 8 is a copy of rank 1: its
  // group of neighbours is its own.
  const Lines events = {step(1, 0, 100), launch(10, 20, 5),
                        kernel("ncclDevKernel_AllReduce(x)", 40, 30, 7, 5,
                               R"(, "Collective name": "allreduce", "In msg nelems": 4, "Out msg nelems": 4,
                                  "dtype": "Float", "Group size": 2, "Process Group Name": "g",
                                  "Process Group Ranks": "[0, 1]")")};
  EXPECT_HAS(refusal_of([&] { store_.read(write(file_with(events, 0, 128), "w.json"), NpuId(0)); }),
             "this is the Kineto trace of rank 0 of 128, but the system has 8 NPUs; expected a system of 128 NPUs, and "
             "traces of all ranks");
  store_ = Store({.streams = Streams::by_name, .recording = {.replicate = 2}, .num_npus = 8}, {});
  const NpuTrace copy = store_.read(write(file_with(events, 1, 8), "1.json"), NpuId(5));
  EXPECT_EQ(store_.groups().at(copy.groups[0].index()), (Group{"g", npus({4, 5})}));
  EXPECT_HAS(refusal_of([&] { store_.read(write(file_with(events, 2, 8), "2.json"), NpuId(2)); }),
             "rank 2 of 8, but workload.replicate is 2; expected traces of ranks 0 to 1, whose number divides 8");
}

TEST_F(Kineto, RefusesWhatIsNoRecording) {
  // Recordings without operations, with a time that is none, a kernel without a stream, and a rank beyond the world.
  EXPECT_HAS(refusal_of([&] { read({step(1, 0, 100)}); }), "holds neither calls of CUDA or HIP nor GPU operations");
  EXPECT_HAS(refusal_of([&] { read({R"({"ph": "X", "cat": "kernel", "name": "k", "ts": "x"})"}); }),
             "the event 'k' has no ts that is a time");
  EXPECT_HAS(refusal_of([&] { read({event("kernel", "k", 1, -1, R"("stream": 7)")}); }), "has a negative duration");
  EXPECT_HAS(refusal_of([&] { read({R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1})"}); }),
             "the GPU operation 'k' names no stream");
  EXPECT_HAS(refusal_of([&] { store_.read(write(file_with({launch(1, 1, 1)}, 9, 8), "t.json"), NpuId(0)); }),
             "distributedInfo does not say of how many this is rank 9");
  EXPECT_HAS(refusal_of([&] { read({"3"}); }), "an event of traceEvents is no object");
}

TEST_F(Kineto, MembersAreReadFromText) {
  // Lists as the profiler prints them.
  EXPECT_EQ(members_in("[0, 8, ..., 120]"), std::pair(std::vector<std::uint64_t>({0, 8, 120}), true));
  EXPECT_EQ(members_in("[]"), std::pair(std::vector<std::uint64_t>(), false));
  EXPECT_EQ(members_in("\"[3]\""), std::pair(std::vector<std::uint64_t>({3}), false));
  EXPECT_EQ(members_in("0, 1"), std::nullopt);
  EXPECT_EQ(members_in("[a]"), std::nullopt);
}

}  // namespace
}  // namespace orrery::trace
