// Requests: the four formats, what is refused with its line, generators whose draws do not depend on rates, and keys.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "exact_time.hpp"
#include "orrery/base/error.hpp"
#include "orrery/serving/request_source.hpp"
#include "temporary_folder.hpp"

namespace orrery::serving {
namespace {

class RequestFiles : public ::testing::Test {
 protected:
  Requests read(const std::string& text, const std::string& format = {}, std::uint32_t block = 16) {
    const auto path = folder_.path() / "requests";
    std::ofstream(path) << text;
    RequestSource source;
    source.file = path;
    source.format = format;
    return make_requests(source, block, 1);
  }
  std::string fault_of(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no fault";
  }

  test::TemporaryFolder folder_;
};

// Two rows around the end of a year, 200 ns apart: the first is time 0.
TEST_F(RequestFiles, ReadsTracesOfAzureFromTheTimeOfTheFirstRow) {
  const auto requests = read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-12-31 23:59:59.9999999,4808,10\n"
      "2024-01-01 00:00:00.0000001,3180,8\n");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].arrival, Time::zero());
  EXPECT_EQ(requests[1].arrival, Time::from_ns(200));
  EXPECT_EQ(requests[1].prompt, 3180U);
  EXPECT_EQ(requests[1].output, 8U);
}

// Two prompts whose first 512 tokens are equal: their first 32 blocks of 16 tokens have equal keys.
TEST_F(RequestFiles, ReadsIdsOfMooncakeAsKeysOfSmallerBlocks) {
  const auto requests = read(R"({"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [7, 8]})"
                             "\n"
                             R"({"timestamp": 27, "input_length": 600, "output_length": 5, "hash_ids": [7, 9]})"
                             "\n");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].arrival, Time::from_ns(27'000'000));
  EXPECT_EQ(requests.key(0, 31, 16), requests.key(1, 31, 16));
  EXPECT_NE(requests.key(0, 32, 16), requests.key(1, 32, 16));
  EXPECT_NE(requests.key(0, 0, 16), requests.key(0, 1, 16));
  EXPECT_FALSE(requests.key(1, 37, 16)) << "the last block is not full";
  EXPECT_EQ(figures_of(requests).unlimited_hit, 512U);
}

// A request and a session of two calls: the second call follows the first one after 3 us.
TEST_F(RequestFiles, ReadsSessionsOfLlmServingSimAsCallsThatFollowEachOther) {
  const auto requests =
      read(R"({"input_toks": 40, "output_toks": 3, "arrival_time_ns": 0})"
           "\n"
           R"({"session_id": "a", "arrival_time_ns": 1000, "sub_requests": [)"
           R"({"input_toks": 20, "output_toks": 2, "tool_duration_ns": 3000}, {"input_toks": 25, "output_toks": 1}]})"
           "\n");
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_TRUE(requests.is_closed);
  EXPECT_EQ(requests[1].session, 0);
  EXPECT_EQ(requests[2].after, 1U);
  EXPECT_EQ(requests[2].think, Time::from_ns(3000));
}

// Three prompts of four tokens in blocks of two: equal tokens after other beginnings have other keys.
TEST_F(RequestFiles, ChainsTheTokensOfLlmServingSim) {
  const std::string head = R"({"input_toks": 4, "output_toks": 1, "arrival_time_ns": 0, "input_tok_ids": )";
  const auto requests = read(head + "[1, 2, 3, 4]}\n" + head + "[1, 2, 9, 9]}\n" + head + "[5, 5, 3, 4]}\n", {}, 2);
  EXPECT_EQ(requests.key(0, 0, 2), requests.key(1, 0, 2));
  EXPECT_NE(requests.key(0, 1, 2), requests.key(1, 1, 2));
  EXPECT_NE(requests.key(0, 1, 2), requests.key(2, 1, 2)) << "equal tokens after another beginning";
}

// Files with one fault each: the message has the line, what was found, and what is expected.
TEST_F(RequestFiles, NamesTheLineOfWhatIsWrong) {
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,480,10\n";
  EXPECT_NE(
      fault_of(azure + "2023-11-16 18:17:04.0,abc,8\n").find("3: 'ContextTokens' is 'abc'; expected a whole number"),
      std::string::npos);
  EXPECT_NE(fault_of(azure + "2023-11-16 18:17:03.0,1,8\n").find("3: it arrives at"), std::string::npos);
  EXPECT_NE(fault_of(azure + "2023-11-16 18:17:03.0,1,8\n").find("before line 2"), std::string::npos);
  EXPECT_NE(fault_of(azure + "2023-11-16 18:17:04.0,0,8\n").find("a prompt of 0 tokens"), std::string::npos);
  EXPECT_NE(fault_of(R"({"timestamp": 0, "input_length": 2000, "output_length": 5, "hash_ids": [7, 8, 9]})")
                .find("hash_ids has 3 ids for 2000 tokens, 4 are expected"),
            std::string::npos);
  EXPECT_NE(fault_of("arrival,prompt,output\n3,1,1\n").find("2: 'arrival' is '3'; expected a time with its unit"),
            std::string::npos);
  EXPECT_NE(fault_of("arrival,prompt,output,sesion\n0 s,1,1,4\n").find("the column 'sesion' is not known"),
            std::string::npos);
  EXPECT_NE(fault_of("when,how\n").find("a format that is known"), std::string::npos);
}

RequestSource generated(Arrivals arrivals, double rate) {
  RequestSource source;
  source.count = 20000;
  source.arrivals = arrivals;
  source.rate = rate;
  source.prompt.kind = Lengths::Kind::log_normal;
  source.output.kind = Lengths::Kind::uniform;
  source.output.most = 300;
  return source;
}

// Poisson arrivals of two rates with one seed: the lengths are equal, and the times are in the ratio of the rates.
TEST(Generators, DrawLengthsThatDoNotDependOnRates) {
  const auto slow = make_requests(generated(Arrivals::poisson, 1), 16, 5);
  const auto fast = make_requests(generated(Arrivals::poisson, 8), 16, 5);
  for (std::uint32_t i = 0; i < slow.size(); ++i) {
    ASSERT_EQ(slow[i].prompt, fast[i].prompt);
    ASSERT_EQ(slow[i].output, fast[i].output);
  }
  EXPECT_NEAR(slow.list.back().arrival.seconds(), 8 * fast.list.back().arrival.seconds(), 1e-6);
}

// 20,000 arrivals of each process: the mean gap and its coefficient of variation are as given.
TEST(Generators, HaveTheirRatesAndVariations) {
  for (const auto& [arrivals, rate, cv, expected_cv] :
       {std::tuple(Arrivals::poisson, 5.0, 1.0, 1.0), std::tuple(Arrivals::gamma, 5.0, 2.0, 2.0),
        std::tuple(Arrivals::gamma, 5.0, 0.5, 0.5), std::tuple(Arrivals::constant, 5.0, 1.0, 0.0)}) {
    auto source = generated(arrivals, rate);
    source.cv = cv;
    const auto requests = make_requests(source, 16, 3);
    double sum = 0, squares = 0;
    for (std::uint32_t i = 1; i < requests.size(); ++i) {
      const double gap = (requests[i].arrival - requests[i - 1].arrival).seconds();
      sum += gap;
      squares += gap * gap;
    }
    const double n = requests.size() - 1.0, mean = sum / n;
    EXPECT_NEAR(mean, 1 / rate, 0.05 / rate);
    EXPECT_NEAR(std::sqrt(std::max(0.0, squares / n - mean * mean)) / mean, expected_cv, 0.08 * (1 + expected_cv));
  }
}

// Bursts of 1 s in periods of 4 s at 100 and 10 requests/s: 100 of 130 requests come in bursts.
TEST(Generators, AlternateRatesInBursts) {
  auto source = generated(Arrivals::bursts, 10);
  source.burst_rate = 100;
  source.burst = Time::from_ps(1'000'000'000'000);
  source.period = Time::from_ps(4'000'000'000'000);
  const auto requests = make_requests(source, 16, 3);
  std::uint64_t in_bursts = 0;
  for (const Request& request : requests.list) in_bursts += std::fmod(request.arrival.seconds(), 4) < 1 ? 1U : 0U;
  EXPECT_NEAR(static_cast<double>(in_bursts) / requests.size(), 100.0 / 130, 0.01);
}

// A burst that is longer than its period, whichever of the two is given: refused.
TEST(Generators, RefuseBurstsThatDoNotEnd) {
  auto source = generated(Arrivals::bursts, 10);
  source.burst = source.period;
  EXPECT_THROW(make_requests(source, 16, 3), Error);
  source.arrivals = Arrivals::poisson;
  EXPECT_NO_THROW(make_requests(source, 16, 3));
}

// Texts of times: the result is exact to the ps, and none for what is no time.
TEST(ExactTime, ReadsPicosecondsThatADoubleCannotHold) {
  EXPECT_EQ(exact_time("123456789123456789 ps")->ps(), 123456789123456789);
  EXPECT_EQ(exact_time("1.5 ms")->ps(), 1'500'000'000);
  EXPECT_EQ(exact_time("0.0001 ps")->ps(), 1);
  EXPECT_FALSE(exact_time("3"));
  EXPECT_FALSE(exact_time("ps"));
  EXPECT_FALSE(exact_time("-3 s"));
}

}  // namespace
}  // namespace orrery::serving
