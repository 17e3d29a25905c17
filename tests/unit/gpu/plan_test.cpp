// Execution plans of MSCCL++: what is read, how chunks become bytes, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "plan_text.hpp"

namespace orrery::gpu {
namespace {

using test::chunks;
using test::Json;
using test::operation;
using test::parse;
using test::plan_of;
using test::refusal;
using test::remote;
using test::words;

/// Two GPUs: GPU 0 has these operations in its one block, GPU 1 has none.
Json lone(const std::vector<Json>& operations, const test::Sizes& sizes = {}) {
  const std::vector<Json> blocks = {Json(operations)}, none = {Json::array()};
  return plan_of({blocks, none}, sizes);
}
const Operation& first_operation(const Program& program, std::size_t k = 0) {
  return program.gpus[0].blocks[0].operations[k];
}

// A put and a signal, with the keys of the head: all of it is in the plan.
TEST(Plan, KeepsWhatTheFileSays) {
  Json json = lone({operation("put", {chunks("i", 1)}, {remote(2, 0)}), words("signal", {0})});
  json["num_threads_per_block"] = 512;
  json["min_message_size"] = 64;
  json["max_message_size"] = 4096;
  json["unknown"] = "ignored";
  const Plan plan = parse(json);
  EXPECT_EQ(plan.threads, 512U);
  EXPECT_EQ(plan.least, Bytes(64));
  EXPECT_EQ(plan.most, Bytes(4096));
  EXPECT_EQ(plan.kind, collective::Kind::all_reduce);
  EXPECT_FALSE(plan.uses_packets);
  ASSERT_EQ(plan.gpus.size(), 2U);
  ASSERT_EQ(plan.gpus[0].blocks[0].steps.size(), 2U);
  const Plan::Step& put = plan.gpus[0].blocks[0].steps[0];
  EXPECT_EQ(put.sources[0].index, 1U);
  EXPECT_EQ(put.destinations[0].gpu, 1U);
  EXPECT_EQ(put.destinations[0].buffer, Buffer::scratch);
  EXPECT_EQ(put.destinations[0].access, Access::remote);
  EXPECT_EQ(plan.counts().at("put"), 1U);
  EXPECT_EQ(plan.counts().at("signal"), 1U);
}

// GPU 0 declares three channels to GPU 1, which declares one back: two are made.
TEST(Plan, PairsChannelsAndMakesMissingOnes) {
  Json json = lone({});
  json["gpus"][0]["channels"][0]["connected_to"] = {1, 1, 1};
  const Plan plan = parse(json);
  ASSERT_EQ(plan.gpus[1].channels.size(), 3U);
  for (std::uint32_t k = 0; k < 3; ++k) {
    EXPECT_EQ(plan.gpus[0].channels[k].paired, k);
    EXPECT_EQ(plan.gpus[1].channels[k].paired, k);
    EXPECT_EQ(plan.gpus[1].channels[k].peer, 0U);
  }
}

// A chunk of 1,000 units of 16 bytes is cut among 64 blocks: 15 units each, and one more for the first 40.
TEST(Plan, CutsChunksAmongBlocksInWholeUnits) {
  Json put = operation("copy", {chunks("i", 0)}, {chunks("s", 0)});
  put["tbg_info"] = {{"tb_id", 41}, {"tbg_size", 64}};
  const Program program = make_program(parse(lone({put})), Bytes(2 * 16000));
  const Operand source = program.gpus[0].sources(first_operation(program))[0];
  EXPECT_EQ(source.offset, 10480U);
  EXPECT_EQ(source.bytes, Bytes(240));
}

// Two chunks of 2,048 bytes: a put of the second one to the sixth chunk of scratch.
TEST(Plan, PlacesChunksByTheSizeOfTheMessage) {
  const Json put = operation("put", {chunks("i", 1)}, {remote(2, 5, 1)});
  const Plan plan = parse(lone({put}, {.scratch = 7}));
  const Program program = make_program(plan, Bytes(4096));
  EXPECT_EQ(program.gpus[0].input, Bytes(4096));
  EXPECT_EQ(program.gpus[0].scratch, Bytes(7 * 2048));
  EXPECT_EQ(program.gpus[0].sources(first_operation(program))[0].offset, 2048U);
  EXPECT_EQ(program.gpus[0].destinations(first_operation(program))[0].offset, 5U * 2048);
  EXPECT_EQ(next_size(plan, Bytes(1)), Bytes(32));
  EXPECT_EQ(next_size(plan, Bytes(33)), Bytes(64));
  EXPECT_NE(refusal([&] { (void)make_program(plan, Bytes(40)); }).find("a multiple of 32"), std::string::npos);
}

// The message of an all-gather is its output.
TEST(Plan, CountsTheOutputOfAnAllGather) {
  const Json put = operation("put", {chunks("i", 0)}, {remote(1, 0)});
  const Program program = make_program(parse(lone({put}, {.collective = "allgather", .input = 1})), Bytes(64));
  EXPECT_EQ(program.gpus[0].input, Bytes(32));
  EXPECT_EQ(program.gpus[0].output, Bytes(64));
}

// Two chunks of 1,024 bytes in units of 600: two iterations over each, and 424 bytes in the last one.
TEST(Plan, UnrollsPipelines) {
  Json json = lone({{{"name", "pipeline"},
                     {"iter_context", {{"unit_size", 600}, {"num_chunks", 1}}},
                     {"ops", {operation("copy", {chunks("i", 1)}, {chunks("s", 0)}), test::nop}}}});
  const Plan plan = parse(json);
  EXPECT_EQ(plan.counts().at("pipeline"), 1U);
  EXPECT_EQ(plan.counts().at("copy"), 1U);
  const Program program = make_program(plan, Bytes(2048));
  ASSERT_EQ(program.gpus[0].blocks[0].operations.size(), 4U);
  const Operand first = program.gpus[0].sources(first_operation(program, 0))[0],
                last = program.gpus[0].sources(first_operation(program, 2))[0];
  EXPECT_EQ(first.offset, 1024U);
  EXPECT_EQ(first.bytes, Bytes(600));
  EXPECT_EQ(last.offset, 1624U);
  EXPECT_EQ(last.bytes, Bytes(424));
}

// Chunks of 64 MiB, of which reused scratch holds 32 MiB each: the third unit of 16 MiB takes the place of the first.
TEST(Plan, ReusesScratch) {
  Json json = lone({{{"name", "pipeline"},
                     {"iter_context", {{"unit_size", 16 << 20}, {"num_chunks", 1}}},
                     {"ops", {operation("copy", {chunks("i", 1)}, {chunks("s", 1)})}}}});
  json["reuse_resources"] = true;
  const Program program = make_program(parse(json), Bytes(128 << 20));
  EXPECT_EQ(program.gpus[0].scratch, Bytes(64 << 20));
  ASSERT_EQ(program.gpus[0].blocks[0].operations.size(), 4U);
  const auto target = [&](std::size_t k) {
    return program.gpus[0].destinations(first_operation(program, k))[0].offset;
  };
  EXPECT_EQ(target(0), 32U << 20);
  EXPECT_EQ(target(1), 48U << 20);
  EXPECT_EQ(target(2), 32U << 20);
  // Without a pipeline the chunk does not fit.
  json = lone({operation("copy", {chunks("i", 1)}, {chunks("s", 1)})});
  json["reuse_resources"] = true;
  EXPECT_NE(refusal([&] {
              (void)make_program(parse(json), Bytes(128 << 20));
            }).find("GPU 0, thread block 0, operation 0 (copy)"),
            std::string::npos);
}

// A thread block of 65 operations, one more than the executor has room for.
TEST(Plan, WarnsOfWhatTheExecutorHasNoRoomFor) {
  std::vector<Json> many;
  for (int k = 0; k < 65; ++k) many.push_back(test::nop);
  const Plan plan = parse(lone(many));
  ASSERT_EQ(plan.warnings.size(), 1U);
  EXPECT_EQ(plan.warnings[0], "GPU 0, thread block 0: it has 65 operations; MSCCL++'s executor has room for 64");
}

// A plan with one put is spoilt in 23 ways. Each is told, with GPU, thread block and operation where there is one.
TEST(Plan, RefusesWithThePlace) {
  const Json put = operation("put", {chunks("i", 1)}, {remote(2, 0)});
  struct Case {
    std::function<void(Json&)> change;  ///< of a plan with one put
    const char* found;
  };
  const auto of_put = [](Json& json) -> Json& { return json["gpus"][0]["threadblocks"][0]["ops"][0]; };
  const std::string where = "GPU 0, thread block 0, operation 0 (put): ";
  const Case cases[] = {
      {[](Json& json) { json.erase("collective"); }, "there is no collective"},
      {[](Json& json) { json["collective"] = "sort"; }, "collective is 'sort'"},
      {[](Json& json) { json["inplace"] = 3; }, "inplace is neither true nor false"},
      {[](Json& json) { json["gpus"].erase(1); }, "the plan has 1 GPU"},
      {[](Json& json) { json["gpus"][1]["id"] = 5; }, "entry 1 of gpus has id 5"},
      {[](Json& json) { json["gpus"][1]["input_chunks"] = 3; }, "input_chunks of GPU 1 is 3; expected 2"},
      {[](Json& json) { json["gpus"][0]["channels"][0]["connected_to"][0] = 0; }, "names the GPU itself"},
      {[](Json& json) { json["max_message_size"] = -1; }, "max_message_size is -1"},
      {[&](Json& json) { of_put(json)["name"] = "pull"; }, "the operation is not known"},
      {[&](Json& json) { of_put(json)["name"] = "glre"; }, "MSCCL++'s own executor does not know it"},
      {[&](Json& json) { of_put(json)["src_buff"][0]["index"] = 2; },
       "src_buff 0 ends at chunk 3 of a buffer of GPU 0"},
      {[&](Json& json) { of_put(json)["src_buff"][0]["size"] = 2; }, "src_buff 0 ends at chunk 3"},
      {[&](Json& json) { of_put(json)["dst_buff"][0]["size"] = 2; }, "it moves 1 chunk to 2"},
      {[&](Json& json) { of_put(json)["src_buff"][0]["type"] = "x"; }, "a buffer has type 'x'"},
      {[&](Json& json) { of_put(json)["dst_buff"][0] = chunks("o", 0); }, "dst_buff 0 has no buffer_id"},
      {[&](Json& json) { of_put(json)["dst_buff"][0]["buffer_id"] = 3; }, "buffer_id is 3"},
      {[&](Json& json) { of_put(json).erase("dst_buff"); }, "dst_buff has 0 entries"},
      {[&](Json& json) { of_put(json)["channel_type"] = "smoke"; }, "a channel has type 'smoke'"},
      {[&](Json& json) { of_put(json) = words("wait", {1}); }, "channel_ids is 1; expected a whole number, 0 to 0"},
      {[&](Json& json) { of_put(json) = words("wait", {}); }, "it names no channel"},
      {[&](Json& json) {
         of_put(json) = {{"name", "sem_acquire"}, {"semaphore_ids", {0}}};
       },
       "names what is not there"},
      {[&](Json& json) { of_put(json)["name"] = "ppkt", of_put(json)["dst_buff"][0]["buffer_id"] = 1; },
       "dst_buff 0 holds packets and is no scratch"},
      {[&](Json& json) {
         of_put(json)["tbg_info"] = {{"tb_id", 2}, {"tbg_size", 2}};
       },
       "tb_id is 2"},
  };
  EXPECT_EQ(refusal([&] { (void)parse(lone({put})); }), "accepted");
  for (const Case& one : cases) {
    Json json = lone({put});
    one.change(json);
    EXPECT_NE(refusal([&] { (void)parse(json); }).find(one.found), std::string::npos)
        << one.found << "\n  is not in\n"
        << refusal([&] { (void)parse(json); });
  }
  Json json = lone({put});
  of_put(json)["src_buff"][0]["index"] = 2;
  EXPECT_NE(refusal([&] { (void)parse(json); }).find("plan.json: " + where), std::string::npos);
  EXPECT_NE(refusal([] { (void)parse_plan("{", "plan.json"); }).find("this is no JSON"), std::string::npos);
  EXPECT_NE(refusal([] { (void)parse_plan("[1]", "plan.json"); }).find("expected"), std::string::npos);
}

/// Plans of MSCCL++ itself, in shared/.
struct Counted {
  const char* file;
  std::vector<std::pair<const char*, std::uint64_t>> operations;
  std::vector<std::size_t> blocks;
};
class PlanOfMscclpp : public ::testing::TestWithParam<Counted> {};

// The operations and thread blocks are those that the files have, counted by another program.
TEST_P(PlanOfMscclpp, HasTheOperationsThatItsFileHas) {
  const auto file = std::filesystem::path(ORRERY_SOURCE_DIR).parent_path() / "shared" / GetParam().file;
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no " << file;
  const Plan plan = read_plan(file);
  const auto counts = plan.counts();
  EXPECT_EQ(counts.size(), GetParam().operations.size());
  for (const auto& [name, count] : GetParam().operations) EXPECT_EQ(counts.at(name), count) << name;
  std::vector<std::size_t> blocks;
  for (const Plan::Gpu& gpu : plan.gpus) blocks.push_back(gpu.blocks.size());
  EXPECT_EQ(blocks, GetParam().blocks);
}

INSTANTIATE_TEST_SUITE_P(
    Files, PlanOfMscclpp,
    ::testing::Values(
        Counted{"inputs/mscclpp/allreduce.json",
                {{"rlxsignal", 16}, {"rlxwait", 16}, {"nop", 32}, {"rres", 16}, {"signal", 16}, {"wait", 16}},
                {8, 8}},
        Counted{"inputs/mscclpp/allreduce_packet.json", {{"ppkt", 2}, {"respkt", 4}, {"upkt", 2}}, {2, 2}},
        Counted{"inputs/mscclpp/allreduce_pipeline.json",
                {{"pipeline", 12},
                 {"sem_acquire", 12},
                 {"nop", 32},
                 {"copy", 32},
                 {"signal", 8},
                 {"wait", 8},
                 {"sem_release", 12},
                 {"glres", 4}},
                {3, 3, 3, 3}},
        Counted{"reference/gpu/plan_allreduce_pkt.json",
                {{"ppkt", 56}, {"respkt", 64}, {"upkt", 56}},
                {8, 8, 8, 8, 8, 8, 8, 8}}));

}  // namespace
}  // namespace orrery::gpu
