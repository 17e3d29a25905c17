#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect_error.hpp"
#include "orrery/config/read.hpp"
#include "temporary_folder.hpp"

namespace orrery::config {
namespace {

/// 4 x 2 NPUs.
const std::string system_of_eight = R"(system:
  network:
    dimensions:
      - {shape: Ring, size: 4, bandwidth: 100 GB/s, latency: 100 ns}
      - {shape: FullyConnected, size: 2, bandwidth: 50 GB/s, latency: 1 us}
workload: {traces: data/workload}
)";

Configuration with_perturbation(const std::string& perturbation, const std::filesystem::path& folder = "/base") {
  return parse(system_of_eight + "perturbation: " + perturbation + "\n", "c.yaml", folder);
}

void refused_perturbation(const std::string& perturbation, std::initializer_list<std::string_view> parts) {
  expect_error([&] { with_perturbation(perturbation); }, ErrorCode::bad_input, parts);
}

// Eight NPUs are slowed down by two entries, which both name NPU 4. Its factors multiply, and NPUs that no entry names
// keep their speed.
TEST(Perturbation, FactorsOfAnNpuMultiply) {
  const auto c = with_perturbation("{slow-npus: [{npus: \"0,2-4\", compute: 0.5}, {npus: 4, compute: 0.8}]}");
  EXPECT_EQ(c.execution.compute_speed, (std::vector<double>{0.5, 1, 0.5, 0.5, 0.4, 1, 1, 1}));
  EXPECT_TRUE(c.topology().links().empty());
  EXPECT_TRUE(parse(system_of_eight, "c.yaml").execution.compute_speed.empty());
}

// The compute speeds of all NPUs come as a list or from a file. Both give the same configuration, which reads back
// equal, and a faulty line is refused by file and line.
TEST(Perturbation, SpeedsOfAllNpusAsAListOrAFile) {
  const std::string slow = ", slow-npus: [{npus: 7, compute: 0.5}]}";
  const auto listed = with_perturbation("{compute-speed: [1, 0.9, 1.25, 1, 1, 1, 1, 0.6]" + slow);
  EXPECT_EQ(listed.execution.compute_speed, (std::vector<double>{1, 0.9, 1.25, 1, 1, 1, 1, 0.3}));
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "speeds.txt") << "# measured\n1\n0.9\n\n1.25\r\n1\n1\n1\n1\n0.6";
  const auto read = with_perturbation("{compute-speed: speeds.txt" + slow, folder.path());
  EXPECT_EQ(read.execution.compute_speed, listed.execution.compute_speed);
  EXPECT_EQ(read.inputs.back().first, "compute-speed.txt");
  const auto again = parse(read.to_yaml(), "resolved.yaml", "/elsewhere");
  EXPECT_TRUE(again == read) << read.to_yaml();
  std::ofstream(folder.path() / "speeds.txt") << "1\nfast\n";
  expect_error([&] { with_perturbation("{compute-speed: speeds.txt}", folder.path()); }, ErrorCode::bad_input,
               {"speeds.txt:2", "fast"});
}

// Entries slow links down or let them fail. The delays between NPUs follow from them, and the configuration reads back
// equal.
TEST(Perturbation, LinksReachTheTopology) {
  const auto c = with_perturbation(R"({links: [{dimension: 0, npus: "1-2", bandwidth: 0.5, latency: 3},
                          {dimension: 1, npus: 3, bandwidth: 0.25}, {dimension: 0, npus: "4,7", failed: true}]})");
  const auto delays = c.delays();
  const auto delay = [&](std::uint32_t a, std::uint32_t b) { return delays.delay(NpuId(a), NpuId(b), Bytes(10'000)); };
  EXPECT_EQ(delay(0, 3), Time::from_ns(100 + 100));
  EXPECT_EQ(delay(0, 1), Time::from_ns(300 + 200));
  EXPECT_EQ(delay(3, 7), Time::from_ns(1000 + 800));
  EXPECT_EQ(delay(4, 7), Time::from_ns(300 + 100));
  const auto again = parse(c.to_yaml(), "resolved.yaml", "/elsewhere");
  EXPECT_TRUE(again == c) << c.to_yaml();
  EXPECT_EQ(again.to_yaml(), c.to_yaml());
  EXPECT_FALSE(parse(system_of_eight, "c.yaml", "/base") == c);
}

// A workload replays recorded times, and an NPU is slowed down. A warning says that this has no effect.
TEST(Perturbation, HasNoEffectWithRecordedTimes) {
  auto text = system_of_eight + "perturbation: {slow-npus: [{npus: 0, compute: 0.5}]}\n";
  text.replace(text.find("data/workload"), 13, "data/workload, replay-only: true");
  EXPECT_EQ(parse(text, "c.yaml").warnings.size(), 1U);
}

// A perturbation has one fault at a time. The error names the line, the key and what is expected.
TEST(Perturbation, SaysWhatIsWrongAndWhere) {
  refused_perturbation("{slow: []}", {"c.yaml:7", "perturbation.slow", "unknown key", "slow-npus"});
  refused_perturbation("{slow-npus: [{npus: 8, compute: 0.5}]}",
                       {"c.yaml:7", "perturbation.slow-npus.0.npus", "NPUs, 8"});
  refused_perturbation("{slow-npus: [{npus: \"3,1\", compute: 0.5}]}", {"slow-npus.0.npus", "ascending order"});
  refused_perturbation("{slow-npus: [{npus: 0, compute: 0}]}", {"slow-npus.0.compute", "1e-6 to 1e6"});
  refused_perturbation("{slow-npus: [{npus: 0}]}",
                       {"slow-npus.0.compute", "missing", "Meaning: factor of their compute speed"});
  refused_perturbation("{slow-npus: [{npus: 0, compute: 0.5, speed: 1}]}", {"slow-npus.0.speed", "unknown key"});
  refused_perturbation("{compute-speed: [1, 1]}",
                       {"perturbation.compute-speed", "found 2 factors", "each of the 8 NPUs"});
  refused_perturbation("{compute-speed: [1, 1, 1, 1, 1, 1, 1, -1]}", {"compute-speed.7", "negative"});
  refused_perturbation("{compute-speed: none.txt}", {"none.txt"});
  refused_perturbation("{links: [{dimension: 0, npus: 0}]}", {"links.0", "changes nothing", "failed: true"});
  refused_perturbation("{links: [{dimension: 0, npus: \"0,1\", failed: true, latency: 2}]}",
                       {"links.0", "neither bandwidth nor"});
  refused_perturbation("{links: [{dimension: 2, npus: 0, bandwidth: 0.5}]}",
                       {"c.yaml:7", "links.0.dimension", "found dimension 2"});
  refused_perturbation("{links: [{dimension: 0, npus: \"0,2\", failed: true}]}",
                       {"links.0.npus", "no neighbours on the Ring"});
  refused_perturbation("{links: [{dimension: 1, npus: \"0,4\", failed: true}]}", {"links.0.npus", "no third NPU"});
  refused_perturbation("{links: [{npus: 0, bandwidth: 0.5}]}", {"links.0.dimension", "missing"});
  refused_perturbation("3", {"perturbation", "the name of a file or of a preset"});
}

}  // namespace
}  // namespace orrery::config
