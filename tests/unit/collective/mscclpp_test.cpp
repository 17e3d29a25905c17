// Execution plans of MSCCL++: an all-gather of two ranks, each of which puts its chunk to the other one, and
// all-reduces through the switch.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "temporary_folder.hpp"

namespace orrery::collective {
namespace {

using OperationKind = CustomCollective::OperationKind;

/// A rank that puts its chunk to the other one. Ops of its one thread block stand in `ops`.
std::string gpu(int rank, const std::string& ops) {
  const std::string self = std::to_string(rank), peer = std::to_string(1 - rank);
  return R"({"id": )" + self + R"(, "input_chunks": 1, "output_chunks": 2, "scratch_chunks": 2,
    "channels": [{"channel_type": "memory", "connected_to": [)" +
         peer + R"(]}],
    "remote_buffers": [{"rank": )" +
         peer + R"(, "type": "o", "access_channel_types": ["memory"]},
                       {"rank": )" +
         peer + R"(, "type": "s", "access_channel_types": ["memory"]}],
    "threadblocks": [{"id": 0, "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                      "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0, 1]}],
                      "ops": [)" +
         ops + "]}]}";
}
std::string plan(const std::string& ops_of_0, const std::string& ops_of_1) {
  return R"({"name": "pair", "collective": "allgather", "protocol": "Simple", "inplace": true, "gpus": [)" +
         gpu(0, ops_of_0) + ", " + gpu(1, ops_of_1) + "]}";
}
std::string put(int rank) {
  return R"({"name": "put", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}],
             "dst_buff": [{"buffer_id": 0, "index": )" +
         std::to_string(rank) + R"(, "size": 1}]})";
}
const std::string signal_peer = R"({"name": "signal", "channel_type": "memory", "channel_ids": [0]})";
const std::string wait_for_peer = R"({"name": "wait", "channel_type": "memory", "channel_ids": [0]})";
std::string put_packets(int rank) {
  return R"({"name": "ppkt", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}],
             "dst_buff": [{"buffer_id": 1, "index": )" +
         std::to_string(rank) + R"(, "size": 1}]})";
}
std::string unpack(int peer) {
  const std::string chunk = std::to_string(peer);
  return R"({"name": "upkt", "src_buff": [{"type": "s", "index": )" + chunk + R"(, "size": 1}],
             "dst_buff": [{"type": "o", "index": )" +
         chunk + R"(, "size": 1}]})";
}

class MscclppFile : public ::testing::Test {
 protected:
  std::shared_ptr<const CustomCollective> read(const std::string& text) {
    const auto file = folder_.path() / "plan.json";
    std::ofstream(file) << text;
    return read_custom_collective(file, Kind::all_gather, {.key = "the key"});
  }
  std::string refusal(const std::string& text) {
    try {
      (void)read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "accepted";
  }
  /// The bytes of all messages, if the whole has this many.
  static std::uint64_t sent(const CustomCollective& collective, std::uint64_t whole) {
    std::uint64_t sum = 0;
    for (std::uint32_t o = 0; o < collective.operations().size(); ++o)
      if (collective[o].kind == OperationKind::send) sum += collective.bytes(o, Bytes(whole)).count();
    return sum;
  }

  test::TemporaryFolder folder_;
};

// Two ranks put their half of the whole to each other: the messages have the bytes of the whole.
TEST_F(MscclppFile, PutsSendTheirBytesAndSignalsNone) {
  const auto read_plan =
      read(plan(put(0) + "," + signal_peer + "," + wait_for_peer, put(1) + "," + signal_peer + "," + wait_for_peer));
  EXPECT_EQ(read_plan->num_positions(), 2U);
  EXPECT_EQ(sent(*read_plan, 2000), 2000U);
}

// The same with packets takes twice the bytes.
TEST_F(MscclppFile, PacketsSendTwiceTheBytes) {
  const auto read_plan = read(plan(put_packets(0) + "," + unpack(1), put_packets(1) + "," + unpack(0)));
  EXPECT_EQ(sent(*read_plan, 2000), 4000U);
}

// Both ranks wait before they signal: the plan has no end.
TEST_F(MscclppFile, RanksThatWaitForEachOtherAreRefused) {
  const std::string ops = wait_for_peer + "," + signal_peer + ",";
  EXPECT_NE(refusal(plan(ops + put(0), ops + put(1))).find("it waits for itself"), std::string::npos);
}

// A rank that nobody puts data to does not get its result.
TEST_F(MscclppFile, DataThatDoNotArriveAreRefused) {
  const std::string found = refusal(plan(put(0), signal_peer + "," + wait_for_peer));
  EXPECT_NE(found, "accepted");
  EXPECT_NE(refusal(plan(put(0), "")).find("rank 0 does not get its result"), std::string::npos);
}

// A rank that reads packets needs another one that puts them there.
TEST_F(MscclppFile, PacketsThatNobodyPutsAreRefused) {
  EXPECT_NE(refusal(plan(unpack(1), put(1))).find("it waits for packets that nobody puts there"), std::string::npos);
}

// What the format does not know, and text that is no plan, is refused; the message names the operation.
TEST_F(MscclppFile, OtherOperationsAreRefused) {
  const std::string unknown = refusal(plan(R"({"name": "glre"})", ""));
  EXPECT_NE(unknown.find("GPU 0, thread block 0, operation 0 (glre): "), std::string::npos) << unknown;
  EXPECT_NE(refusal(plan(R"({"name": "glres", "src_buff": [], "dst_buff": []})", "")).find("src_buff has 0 entries"),
            std::string::npos);
  EXPECT_NE(refusal("{").find("this is no JSON"), std::string::npos);
  EXPECT_NE(refusal("{\"gpus\": 8e2888}").find("a number that no double can hold"), std::string::npos);
  const std::string itself = R"({"name": "signal", "channel_type": "memory", "channel_ids": [1]})";
  EXPECT_NE(refusal(plan(itself, "")).find("GPU 0, thread block 0, operation 0 (signal): channel_ids is 1"),
            std::string::npos);
}

/// An all-reduce of `ranks` ranks through the switch: each adds up its chunk of all and stores the sum at all, after
/// all have signalled that their data are there. `wrap` makes of the operation what stands in the plan.
std::string in_switch(int ranks, const std::function<std::string(std::string)>& wrap) {
  std::string gpus;
  for (int rank = 0; rank < ranks; ++rank) {
    std::string all, peers, ids;
    for (int other = 0; other < ranks; ++other) {
      all += std::string(other > 0 ? ", " : "") + std::to_string(other);
      if (other == rank) continue;
      peers += std::string(peers.empty() ? "" : ", ") + std::to_string(other);
      ids += std::string(ids.empty() ? "" : ", ") + std::to_string(other - (other > rank ? 1 : 0));
    }
    const auto with_all = [&](const char* name) {
      return R"({"name": ")" + std::string(name) + R"(", "channel_type": "memory", "channel_ids": [)" + ids + "]}, ";
    };
    const std::string buffer = R"([{"switch_channel_id": 0, "index": )" + std::to_string(rank) + R"(, "size": 1}])";
    const std::string sum = R"({"name": "glres", "src_buff": )" + buffer + R"(, "dst_buff": )" + buffer + "}";
    gpus += std::string(rank > 0 ? ", " : "") + R"({"id": )" + std::to_string(rank) + R"(, "input_chunks": )" +
            std::to_string(ranks) + R"(, "output_chunks": )" + std::to_string(ranks) +
            R"(, "semaphores": [{"init_value": 0}], "channels": [{"channel_type": "memory", "connected_to": [)" +
            peers + R"(]}, {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 1, "ranks": [)" +
            all +
            R"(]}]}], "remote_buffers": [], "threadblocks": [{"id": 0, "channels": [
                {"channel_type": "memory", "channel_ids": [)" +
            ids + R"(]}, {"channel_type": "switch", "channel_ids": [0]}], "ops": [)" + with_all("signal") +
            with_all("wait") + wrap(sum) + ", " + with_all("signal") + with_all("wait") + R"({"name": "nop"}]}]})";
  }
  return R"({"name": "nvls", "collective": "allreduce", "protocol": "Simple", "inplace": true, "gpus": [)" + gpus +
         "]}";
}

std::string alone(std::string operation) { return operation; }
std::string in_pipeline(std::string operation) {
  return R"({"name": "pipeline", "iter_context": {"unit_size": 1024, "num_chunks": 1}, "ops": [)" + operation + "]}";
}

/// The messages with data that hold a link: of senders or of receivers.
std::uint64_t held(const CustomCollective& collective, OperationKind end, std::uint64_t whole) {
  std::uint64_t sum = 0;
  for (std::uint32_t o = 0; o < collective.operations().size(); ++o)
    if (collective[o].kind == end && !collective[o].in_switch) sum += collective.bytes(o, Bytes(whole)).count();
  return sum;
}

class MscclppSwitch : public MscclppFile {
 protected:
  std::shared_ptr<const CustomCollective> read_sum(const std::string& text) {
    const auto file = folder_.path() / "nvls.json";
    std::ofstream(file) << text;
    return read_custom_collective(file, Kind::all_reduce, {.key = "the key"});
  }
};

// Four ranks add up chunks of 1000 bytes in the switch. Each sends its part of three sums and stores one sum: 4000
// bytes leave by each of four links, and as many come: one sum, and the three of the others.
TEST_F(MscclppSwitch, ALinkHoldsWhatTheSwitchLeavesToIt) {
  const auto read_plan = read_sum(in_switch(4, alone));
  EXPECT_TRUE(read_plan->uses_switch());
  EXPECT_EQ(held(*read_plan, OperationKind::send, 4000), 4U * 4000);
  EXPECT_EQ(held(*read_plan, OperationKind::receive, 4000), 4U * 4000);
  EXPECT_FALSE(
      read(plan(put(0) + "," + signal_peer + "," + wait_for_peer, put(1) + "," + signal_peer + "," + wait_for_peer))
          ->uses_switch());
}

// A pipeline over chunks of 1024 bytes in units of 1024 has one iteration, over chunks of 4 KiB four, and over large
// ones 64, the most. Whatever their number, all of them move the same bytes.
TEST_F(MscclppSwitch, APipelineHasAsManyIterationsAsUnits) {
  const auto read_plan = read_sum(in_switch(4, in_pipeline));
  const auto sums = [&](std::uint64_t whole) {
    const CustomCollective& of_size = read_plan->for_whole(Bytes(whole));
    EXPECT_EQ(held(of_size, OperationKind::send, whole), 4 * whole) << whole;
    std::uint64_t count = 0;
    for (const auto& operation : of_size.operations()) count += operation.kind == OperationKind::reduce;
    return count;
  };
  EXPECT_EQ(sums(4 * 1024), 4U * 3);
  EXPECT_EQ(sums(4 * 4096), 4U * 3 * 4);
  EXPECT_EQ(sums(std::uint64_t{4} << 24), 4U * 3 * 64);
  EXPECT_EQ(&read_plan->for_whole(Bytes(16384)), &read_plan->for_whole(Bytes(16384)));
}

// The units of a pipeline are counted in chunks of the whole data: two ranks gather 2 x 4 KiB, each by a pipeline over
// its chunk of 4 KiB in units of 1 KiB, which puts four times.
TEST_F(MscclppFile, APipelineOfAnAllGatherCountsTheChunksOfItsOutput) {
  const auto read_plan = read(plan(in_pipeline(put(0)) + "," + signal_peer + "," + wait_for_peer,
                                   in_pipeline(put(1)) + "," + signal_peer + "," + wait_for_peer));
  std::uint64_t puts = 0;
  const CustomCollective& of_size = read_plan->for_whole(Bytes(8192));
  for (std::uint32_t o = 0; o < of_size.operations().size(); ++o)
    puts += of_size[o].kind == OperationKind::send && of_size.bytes(o, Bytes(8192)) == Bytes(1024);
  EXPECT_EQ(puts, 2U * 4);
}

// A semaphore that nobody releases would never let its acquirer pass: the message says so.
TEST_F(MscclppSwitch, SemaphoresNeedReleases) {
  const auto acquire = [](std::string operation) {
    return R"({"name": "sem_acquire", "semaphore_ids": [0]}, )" + operation;
  };
  try {
    (void)read_sum(in_switch(2, acquire));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("semaphore 0 is acquired 1 time, and released 0 times"), std::string::npos)
        << error.what();
  }
  const auto both = [&](std::string operation) {
    return R"({"name": "sem_release", "semaphore_ids": [0]}, )" + acquire(std::move(operation));
  };
  EXPECT_NO_THROW((void)read_sum(in_switch(2, both)));
}

}  // namespace
}  // namespace orrery::collective
