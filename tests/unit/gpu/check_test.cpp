// What is found wrong with programs of GPUs before they are simulated: data, words, waits for ever, and races.
#include <gtest/gtest.h>

#include "orrery/gpu/check.hpp"
#include "plan_text.hpp"

namespace orrery::gpu {
namespace {

using test::chunks;
using test::Json;
using test::nop;
using test::operation;
using test::parse;
using test::plan_of;
using test::refusal;
using test::remote;
using test::words;

Findings check(const Json& json) {
  const Plan plan = parse(json);
  return check_program(make_program(plan, test_message(plan)), plan.kind, test_message(plan));
}
std::string refusal_of(const Json& json) {
  return refusal([&] { (void)check(json); });
}

// Two GPUs add up their data: each puts its whole input to the scratch of the other one and tells it, and adds what
// comes to its own.
Json put_all() { return operation("put", {chunks("i", 0, 2)}, {remote(2, 0, 2)}); }
Json add_all() { return operation("re", {chunks("i", 0, 2), chunks("s", 0, 2)}, {chunks("o", 0, 2)}); }
std::vector<Json> exchange() { return {put_all(), nop, words("signal", {0}), words("wait", {0}), nop, add_all()}; }
Json plan_with(const std::vector<Json>& of_0, const std::vector<Json>& of_1) {
  return plan_of({{Json(of_0)}, {Json(of_1)}}, {.in_place = false});
}

// The exchange as it stands is right, and has no races.
TEST(Check, FindsNothingWrongWithAnExchange) {
  const Findings findings = check(plan_with(exchange(), exchange()));
  EXPECT_EQ(findings.num_races, 0U);
  EXPECT_TRUE(findings.has_race_search);
}

// GPU 1 copies its own data in place of the sum: it has one contribution, and the copy is named.
TEST(Check, RefusesAnAllReduceThatMissesAContribution) {
  std::vector<Json> lacks = exchange();
  lacks.back() = operation("copy", {chunks("i", 0, 2)}, {chunks("o", 0, 2)});
  const std::string message = refusal_of(plan_with(exchange(), lacks));
  EXPECT_NE(message.find("GPU 1 does not get its result: bytes 0 to 63 of the output of GPU 1 have 1 contribution"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("GPU 1, thread block 0, operation 5 (copy) wrote them"), std::string::npos) << message;
}

// GPU 0 adds what came from GPU 1 twice.
TEST(Check, RefusesAContributionThatCountsTwice) {
  std::vector<Json> twice = exchange();
  twice.back() = operation("re", {chunks("i", 0, 2), chunks("s", 0, 2), chunks("s", 0, 2)}, {chunks("o", 0, 2)});
  EXPECT_NE(refusal_of(plan_with(twice, exchange())).find("have 3 contributions in them"), std::string::npos);
}

// GPU 0 adds the second chunk of GPU 1 to its own first one.
TEST(Check, RefusesSumsOfDifferentData) {
  std::vector<Json> crossed = exchange();
  crossed.back() = operation("re", {chunks("i", 0), chunks("s", 1)}, {chunks("o", 0)});
  const std::string message = refusal_of(plan_with(crossed, exchange()));
  EXPECT_NE(message.find("GPU 0, thread block 0, operation 5 (re): it adds up byte 0 of the data and byte 32"),
            std::string::npos)
      << message;
}

// GPU 0 adds up at once, and GPU 1 sends nothing.
TEST(Check, RefusesDataThatNobodyHasWritten) {
  const std::string message = refusal_of(plan_with({add_all()}, {}));
  EXPECT_NE(message.find("GPU 0, thread block 0, operation 0 (re): it uses bytes 0 to 63 of the scratch of GPU 0, "
                         "which nobody has written yet"),
            std::string::npos)
      << message;
}

// A broadcast from GPU 0. Its second block uses what the first one copies, and nothing makes it wait: right in the
// first order of blocks, and wrong in the second.
TEST(Check, TriesTwoOrders) {
  const Json copy = operation("copy", {chunks("i", 0, 2)}, {chunks("s", 0, 2)});
  const Json use = operation("copy", {chunks("s", 0, 2)}, {chunks("o", 0, 2)});
  const Json load = operation("get", {remote(0, 0, 2)}, {chunks("o", 0, 2)});
  const test::Sizes sizes{.collective = "broadcast", .in_place = false};
  const auto plan = [&](const Json& first, const Json& second) {
    return plan_of({{Json::array({first}), Json::array({second})}, {Json::array({load})}}, sizes);
  };
  EXPECT_NE(refusal_of(plan(copy, use)).find("GPU 0, thread block 1, operation 0 (copy): it uses"), std::string::npos);
  EXPECT_NE(refusal_of(plan(use, copy)).find("GPU 0, thread block 0, operation 0 (copy): it uses"), std::string::npos);
}

// GPU 0 has one signal more than GPU 1 has waits, or one wait more than GPU 1 has signals.
TEST(Check, RefusesWordsThatDoNotMatch) {
  std::vector<Json> more = exchange();
  more.push_back(words("signal", {0}));
  EXPECT_NE(refusal_of(plan_with(more, exchange())).find("GPU 0 sends 1 word to GPU 1 on channel 0 that nobody awaits"),
            std::string::npos);
  std::vector<Json> waits = exchange();
  waits.push_back(words("wait", {0}));
  EXPECT_NE(
      refusal_of(plan_with(waits, exchange()))
          .find("GPU 0, thread block 0, operation 6 (wait): it waits for ever for a word from GPU 1 on channel 0"),
      std::string::npos);
}

// Each GPU waits for the other one before it sends: both wait for ever.
TEST(Check, RefusesBlocksThatWaitForEachOther) {
  std::vector<Json> late = {words("wait", {0}), nop, put_all(), nop, words("signal", {0}), nop, add_all()};
  EXPECT_NE(refusal_of(plan_with(late, late)).find("operation 0 (wait): it waits for ever"), std::string::npos);
}

// One block comes to a barrier of two, and one acquires a semaphore that nobody releases.
TEST(Check, RefusesBarriersAndSemaphoresThatStayClosed) {
  const Json barrier{{"name", "barrier"}, {"barrier_id", 3}, {"num_threadblocks", 2}};
  EXPECT_NE(refusal_of(plan_with({barrier}, {})).find("1 thread block of 2 come to barrier 3"), std::string::npos);
  Json json = plan_with({{{"name", "sem_acquire"}, {"semaphore_ids", {0}}}}, {});
  json["gpus"][0]["semaphores"] = {{{"init_value", 0}}};
  EXPECT_NE(refusal_of(json).find("it waits for ever for semaphore 0"), std::string::npos);
}

// GPU 0 unpacks packets, and GPU 1 puts none.
TEST(Check, RefusesPacketsThatNobodyPuts) {
  const Json unpack = operation("upkt", {chunks("s", 0)}, {chunks("o", 0)});
  const Json json = plan_of({{Json::array({unpack})}, {Json::array()}}, {.in_place = false, .packets = true});
  EXPECT_NE(refusal_of(json).find("GPU 0, thread block 0, operation 0 (upkt): it waits for ever for packets"),
            std::string::npos);
}

/// Returns the first race of a program of two GPUs that is otherwise right.
std::string race_of(const Json& json) {
  const Findings findings = check(json);
  return findings.warnings.empty() ? "none" : findings.warnings[0];
}

// GPU 0 lacks the nop before its signal, so GPU 1 may read too soon; or the one behind its wait, so it does itself.
TEST(Races, NeedANopBetweenDataAndWords) {
  std::vector<Json> no_nop = exchange();
  no_nop.erase(no_nop.begin() + 1);  // before the signal
  EXPECT_EQ(race_of(plan_with(no_nop, exchange())),
            "GPU 1, thread block 0, operation 5 (re) reads bytes 0 to 63 of the scratch of GPU 1, which GPU 0, thread "
            "block 0, operation 0 (put) writes, and nothing orders the two");
  no_nop = exchange();
  no_nop.erase(no_nop.begin() + 4);  // after the wait
  EXPECT_NE(race_of(plan_with(no_nop, exchange())).find("GPU 0, thread block 0, operation 4 (re) reads"),
            std::string::npos);
}

// The word that announces data is relaxed, or is awaited so: the data need not be seen yet.
TEST(Races, AreNotOrderedByRelaxedWordsIfDataWereWritten) {
  std::vector<Json> relaxed = exchange();
  relaxed[2]["name"] = "rlxsignal";
  EXPECT_NE(race_of(plan_with(relaxed, exchange())).find("GPU 1, thread block 0, operation 5 (re) reads"),
            std::string::npos);
  relaxed = exchange();
  relaxed[3]["name"] = "rlxwait";
  EXPECT_NE(race_of(plan_with(relaxed, exchange())).find("GPU 0, thread block 0, operation 5 (re) reads"),
            std::string::npos);
}

// A GPU overwrites what its peer loads: a relaxed word after the load is enough.
TEST(Races, OrdersWritesAfterReadsByRelaxedWords) {
  const Json load = operation("get", {remote(0, 0)}, {chunks("s", 0)}),
             store = operation("copy", {chunks("i", 1)}, {chunks("i", 0)});
  const Json keep = operation("copy", {chunks("i", 0, 2)}, {chunks("s", 0, 2)});
  const auto plan = [&](bool has_word) {
    std::vector<Json> of_0 = exchange(), of_1 = exchange();
    of_0.insert(of_0.end(), {nop, load, nop}), of_1.push_back(nop);
    if (has_word) of_0.push_back(words("rlxsignal", {0})), of_1.push_back(words("rlxwait", {0})), of_1.push_back(nop);
    of_1.push_back(store);
    return plan_with(of_0, of_1);
  };
  EXPECT_EQ(race_of(plan(true)), "none");
  EXPECT_NE(
      race_of(plan(false)).find("GPU 1, thread block 0, operation 7 (copy) writes bytes 0 to 31 of the input of GPU 1"),
      std::string::npos);
}

// Block 0 of each GPU does the exchange, and block 1 copies the sum once more.
TEST(Races, AreOrderedByBarriersAndSemaphores) {
  const auto plan = [](const std::vector<Json>& leaves, const std::vector<Json>& enters) {
    std::vector<Json> first = exchange(), second = enters;
    first.back() = operation("re", {chunks("i", 0, 2), chunks("s", 0, 2)}, {chunks("s", 2, 2)});
    first.insert(first.end(), leaves.begin(), leaves.end());
    second.push_back(operation("copy", {chunks("s", 2, 2)}, {chunks("o", 0, 2)}));
    const std::vector<Json> blocks = {Json(first), Json(second)};
    Json json = plan_of({blocks, blocks}, {.scratch = 4, .in_place = false});
    for (Json& gpu : json["gpus"]) gpu["semaphores"] = Json::array({{{"init_value", 0}}});
    return json;
  };
  const Json barrier{{"name", "barrier"}, {"barrier_id", 0}, {"num_threadblocks", 2}};
  const Json release{{"name", "sem_release"}, {"semaphore_ids", Json::array({0})}},
      acquire{{"name", "sem_acquire"}, {"semaphore_ids", Json::array({0})}};
  using Operations = std::vector<Json>;
  EXPECT_EQ(race_of(plan(Operations{barrier}, Operations{barrier})), "none");
  EXPECT_EQ(race_of(plan(Operations{nop, release}, Operations{acquire, nop})), "none");
  EXPECT_NE(race_of(plan(Operations{release}, Operations{acquire, nop})), "none");
  EXPECT_NE(race_of(plan(Operations{nop, release}, Operations{acquire})), "none");
}

// Each GPU stores its share at the other one. Without words the other one may end before.
TEST(Races, TellResultsThatComeAfterTheEnd) {
  const test::Sizes sizes{.collective = "allgather", .input = 1, .in_place = false};
  const auto gather = [](int gpu, bool waits) {
    std::vector<Json> operations = {operation("put", {chunks("i", 0)}, {remote(1, gpu)}),
                                    operation("copy", {chunks("i", 0)}, {chunks("o", gpu)})};
    if (waits) operations.insert(operations.end(), {nop, words("signal", {0}), words("wait", {0}), nop});
    return Json(operations);
  };
  EXPECT_EQ(race_of(plan_of({{gather(0, true)}, {gather(1, true)}}, sizes)), "none");
  EXPECT_NE(
      race_of(plan_of({{gather(0, false)}, {gather(1, false)}}, sizes))
          .find(
              "GPU 0 may end before GPU 1, thread block 0, operation 0 (put) has written bytes 32 to 63 of the output"),
      std::string::npos);
}

// GPU 0 sends the same packets to the same place twice.
TEST(Races, TellPacketsThatComeTwice) {
  const auto send = [](bool twice) {
    std::vector<Json> operations = {operation("ppkt", {chunks("i", 0, 2)}, {remote(2, 0, 2)})};
    if (twice) operations.push_back(operations[0]);
    operations.push_back(operation("repkt", {chunks("i", 0, 2), chunks("s", 0, 2)}, {chunks("o", 0, 2)}));
    return Json(operations);
  };
  const test::Sizes sizes{.in_place = false, .packets = true};
  EXPECT_EQ(race_of(plan_of({{send(false)}, {send(false)}}, sizes)), "none");
  EXPECT_NE(race_of(plan_of({{send(true)}, {send(false)}}, sizes)).find("who reads them cannot tell which they are"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::gpu
