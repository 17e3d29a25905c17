// Execution plans of MSCCL++: an all-gather of two ranks, each of which puts its chunk to the other one.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

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

// What is not modelled is refused, and the message names the operation.
TEST_F(MscclppFile, SwitchesAndPipelinesAreRefusedWithTheOperation) {
  const std::string nvls = refusal(plan(R"({"name": "glres"})", ""));
  EXPECT_NE(nvls.find("rank 0, thread block 0, operation 0 (glres): "), std::string::npos) << nvls;
  EXPECT_NE(refusal(plan(R"({"name": "pipeline", "ops": []})", "")).find("size of the message"), std::string::npos);
  EXPECT_NE(refusal("{").find("this is no JSON"), std::string::npos);
}

}  // namespace
}  // namespace orrery::collective
