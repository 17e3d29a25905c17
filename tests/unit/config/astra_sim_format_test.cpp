#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "expect_error.hpp"
#include "options.hpp"
#include "orrery/cli/command_line.hpp"
#include "orrery/config/read.hpp"
#include "temporary_folder.hpp"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;

const std::string system_json = R"({
 "scheduling-policy": "LIFO",
 "endpoint-delay": 10,
 "active-chunks-per-dimension": 2,
 "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring", "direct"],
 "all-gather-implementation": ["ring", "direct"],
 "reduce-scatter-implementation": ["ring", "direct"],
 "all-to-all-implementation": ["ring", "direct"],
 "collective-optimization": "localBWAware",
 "local-mem-bw": 1600,
 "boost-mode": 0,
 "roofline-enabled": 1,
 "peak-perf": 900
})";
const std::string network_yml =
    "topology: [ Ring, Switch ]  # two\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 37.7 ]\nlatency: [ 500.0, 0 ]\n";
const std::string memory_json = R"({"memory-type": "NO_MEMORY_EXPANSION"})";

class AstraSim : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = {.workload = (folder_ / "workload").string(),
              .system = folder_ / "system.json",
              .network = folder_ / "network.yml",
              .remote_memory = folder_ / "memory.json",
              .groups = {}};
    write(files_.system, system_json);
    write(files_.network, network_yml);
    write(files_.remote_memory, memory_json);
  }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  /// `text` with `to` in place of `from`, which must be there.
  static std::string changed(std::string text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  }
  Configuration load() const { return read({.astra_sim = files_}); }
  Configuration with_system(const std::string& from, const std::string& to) {
    write(files_.system, changed(system_json, from, to));
    return load();
  }
  void refused(const std::string& from, const std::string& to, std::initializer_list<std::string_view> parts) {
    expect_error([&] { with_system(from, to); }, ErrorCode::bad_input, parts);
  }
  void refused_network(const std::string& from, const std::string& to, std::initializer_list<std::string_view> parts) {
    write(files_.network, changed(network_yml, from, to));
    expect_error([&] { load(); }, ErrorCode::bad_input, parts);
    write(files_.network, network_yml);
  }
  void refused_memory(const std::string& text, std::initializer_list<std::string_view> parts) {
    write(files_.remote_memory, text);
    expect_error([&] { load(); }, ErrorCode::bad_input, parts);
  }

  test::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
  AstraSimInputs files_;
};

// ASTRA-sim's four files describe a ring of 4 times a switch of 2. The configuration has their values in Orrery's units
// and keeps the texts, and its own format reads back equal.
TEST_F(AstraSim, FilesAsTheyAre) {
  const auto c = load();
  EXPECT_EQ(c.rule_set, RuleSet::astra_sim);
  ASSERT_EQ(c.dimensions.size(), 2U);
  EXPECT_EQ(c.dimensions[1].shape, topology::Shape("Switch"));
  EXPECT_EQ(c.dimensions[0].bandwidth.bytes_per_ns(), 50.0 * 1073741824.0 / 1e9);
  EXPECT_EQ(c.dimensions[1].bandwidth.bytes_per_ns(), 37.7 * 1073741824.0 / 1e9);
  EXPECT_EQ(c.dimensions[1].latency_ns, 0);
  EXPECT_EQ(c.collectives.chunks.splits, 4U);
  EXPECT_EQ(c.collectives.chunks.active_chunks, 2U);
  EXPECT_EQ(c.collectives.chunks.queues, 1U);
  EXPECT_EQ(name(c.collectives.all_to_all[1]), "direct");
  EXPECT_EQ(c.collectives.local_memory.bytes_per_ns(), 1600);
  EXPECT_EQ(c.execution.compute.peak_flops, 900e12);
  EXPECT_TRUE(c.execution.compute.model->uses_operations);
  EXPECT_EQ(c.workload.trace_of(NpuId(5)), folder_ / "workload.5.et");
  EXPECT_TRUE(c.warnings.empty()) << c.warnings.front();
  ASSERT_EQ(c.inputs.size(), 3U);
  EXPECT_EQ(c.inputs[0].second, network_yml);
  EXPECT_EQ(c.inputs[1], (std::pair<std::string, std::string>("system.json", system_json)));
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml") == c) << c.to_yaml();
}

// ASTRA-sim's command-line flags stand beside the files. Each sets what it means there, and one warning names those
// without an effect.
TEST_F(AstraSim, FlagsHaveTheirMeaning) {
  files_.injection_scale = 3;
  files_.num_queues_per_dim = 4;
  files_.rendezvous = true;
  files_.comm_scale = 2;
  files_.ignored = {"logging-folder"};
  const auto c = load();
  EXPECT_EQ(c.collectives.endpoint_delay, Time::from_ns(30));
  EXPECT_EQ(c.collectives.chunks.queues, 4U);
  EXPECT_TRUE(c.collectives.rendezvous && c.execution.rendezvous);
  ASSERT_EQ(c.warnings.size(), 1U);
  EXPECT_NE(c.warnings[0].find("--logging-folder, --comm-scale"), std::string::npos) << c.warnings[0];
}

// The system file has keys that ASTRA-sim reads and does not use, and one misspelt key. One warning names them all,
// with the nearest known key.
TEST_F(AstraSim, KeysWithoutMeaningAreNamedInOneWarning) {
  const auto c = with_system("\"boost-mode\": 0",
                             R"("boost-mode": 1, "L": 100, "G": 0.01,
                                "local-reduction-delay": 5, "intra-dimension-scheduling": "FIFO", "model-shared-bus": 0,
                                "trace-enabled": 1, "active-chunks-per-dimnesion": 3, "replay-only": 1)");
  ASSERT_EQ(c.warnings.size(), 1U);
  for (const std::string_view part :
       {"system.json", "'boost-mode'", "'L'", "'G'", "'local-reduction-delay'", "'intra-dimension-scheduling'",
        "'active-chunks-per-dimnesion' (did you mean 'active-chunks-per-dimension'?)"})
    EXPECT_NE(c.warnings[0].find(part), std::string::npos) << part << " in " << c.warnings[0];
  EXPECT_EQ(c.warnings[0].find("trace-enabled'"), std::string::npos);
  EXPECT_TRUE(c.execution.replay_only);
}

// The system file asks for the tracking of local memory. Orrery always tracks it, so there is no warning, but values of
// the wrong type are refused.
TEST_F(AstraSim, TensorsAreFollowedWhetherItIsAskedForOrNot) {
  const std::string both = R"("track-local-mem": 1, "local-mem-trace-filename": )";
  EXPECT_TRUE(with_system("\"boost-mode\": 0", both + "\"x\"").warnings.empty());
  refused("\"boost-mode\": 0", both + "[]", {"local-mem-trace-filename", "the name of a file"});
  refused("\"boost-mode\": 0", R"("track-local-mem": 2)", {"track-local-mem", "found '2'"});
}

// The system file has only the keys that it must have. The others get ASTRA-sim's defaults.
TEST_F(AstraSim, DefaultsOfAbsentKeys) {
  write(files_.system, R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring", "ring"],
    "all-gather-implementation": ["ring", "ring"], "reduce-scatter-implementation": ["ring", "ring"],
    "all-to-all-implementation": ["ring", "oneDirect4"]})");
  const auto c = load();
  EXPECT_EQ(c.collectives.endpoint_delay, Time::from_ns(10));
  EXPECT_EQ(c.collectives.chunks.active_chunks, 1U);
  EXPECT_EQ(c.collectives.local_memory.bytes_per_ns(), 0);
  EXPECT_FALSE(c.execution.compute.model->uses_operations);
}

// The system file has one fault at a time: a missing key, a wrong value, a wrong number of algorithms, no JSON, or no
// file. The error names the file, the line, the key and what is expected.
TEST_F(AstraSim, SystemRefusals) {
  refused("\"preferred-dataset-splits\": 4,", "",
          {"system.json:1", "'preferred-dataset-splits'", "missing", "1 or more"});
  refused("splits\": 4", "splits\": 0",
          {"system.json:5", "'preferred-dataset-splits'", "found 0", "Write \"preferred-dataset-splits\": 1"});
  refused("[\"ring\", \"direct\"]", "[\"ring\", \"dierct\"]", {"found 'dierct'", "Did you mean 'direct'?"});
  refused("[\"ring\", \"direct\"]", "\"ring\"", {"the text 'ring'", "a list of 2 algorithms"});
  refused(",\n \"peak-perf\": 900", "", {"'peak-perf'", "missing", "'roofline-enabled' is 1"});
  refused("\"local-mem-bw\": 1600,", "", {"'local-mem-bw'", "missing", "'roofline-enabled' is 1"});
  refused("\"boost-mode\": 0", "\"model-shared-bus\": 1",
          {"system.json:12", "'model-shared-bus'", "shared bus", "Set it to 0"});
  refused("\"boost-mode\": 0", "\"all-reduce-implementation-chakra\": [\"x\"]",
          {"all-reduce-implementation-chakra", "not given by this key"});
  refused("LIFO", "LILO", {"system.json:2", "'scheduling-policy'", "LIFO, FIFO or EXPLICIT", "Did you mean 'LIFO'?"});
  refused("localBWAware", "localBW", {"'collective-optimization'", "localBWAware or baseline"});
  refused("roofline-enabled\": 1", "roofline-enabled\": 2", {"'roofline-enabled'", "0 to 1"});
  refused("endpoint-delay\": 10", "endpoint-delay\": -1", {"system.json:3", "'endpoint-delay'", "negative"});
  refused("endpoint-delay\": 10", "endpoint-delay\": \"10\"", {"'endpoint-delay'", "the text '10'"});
  refused("\"boost-mode\": 0", "\"boost-mode\": 0, \"endpoint-delay\": 5",
          {"system.json:12", "'endpoint-delay'", "first in line 3"});
  refused("\"peak-perf\": 900\n}", "\"peak-perf\": 900,\n", {"system.json", "not well-formed JSON"});
  write(files_.system, "");
  expect_error([&] { load(); }, ErrorCode::bad_input, {"system.json", "not well-formed JSON"});
  write(files_.system, "[1]");
  expect_error([&] { load(); }, ErrorCode::bad_input, {"system.json:1", "a list of 1", "mapping"});
  fs::remove(files_.system);
  expect_error([&] { load(); }, ErrorCode::bad_input, {"system.json", "no such file"});
}

// The system file names too few or too many algorithms for a kind, or none. The kind then has no algorithms, which only
// a trace with such a collective needs; a list of the wrong length gives a warning.
TEST_F(AstraSim, ListsOfAlgorithmsMayBeLeftOut) {
  for (const std::string_view list : {"[\"ring\"]", "[\"ring\", \"direct\", \"ring\"]"}) {
    const auto c = with_system("all-reduce-implementation\": [\"ring\", \"direct\"]",
                               fmt::format("all-reduce-implementation\": {}", list));
    EXPECT_TRUE(c.collectives.all_reduce.empty());
    ASSERT_EQ(c.warnings.size(), 1U);
    EXPECT_NE(c.warnings[0].find("named, but 'topology' of the network has 2"), std::string::npos) << c.warnings[0];
  }
  const auto c = with_system("\"all-to-all-implementation\": [\"ring\", \"direct\"],", "");
  EXPECT_TRUE(c.collectives.all_to_all.empty());
  EXPECT_TRUE(c.warnings.empty());
}

// The system file gives a key twice with the same value. One warning says so with both lines.
TEST_F(AstraSim, AKeyMayStandTwiceWithTheSameValue) {
  const auto c = with_system("\"boost-mode\": 0", "\"boost-mode\": 0, \"endpoint-delay\": 10");
  ASSERT_EQ(c.warnings.size(), 1U);
  EXPECT_NE(c.warnings[0].find("system.json:12: key 'endpoint-delay': the key stands here again, first in line 3"),
            std::string::npos)
      << c.warnings[0];
}

// The network file lists links that failed, as a fork of ASTRA-sim does. The warning says where CONFIG.yaml has them.
TEST_F(AstraSim, FailedLinksAreWrittenInConfigYaml) {
  std::ofstream(files_.network, std::ios::app) << "\nfaulty_links: [[0, 1, 0.0]]\n";
  const auto c = load();
  ASSERT_EQ(c.warnings.size(), 1U);
  EXPECT_NE(c.warnings[0].find("perturbation.links"), std::string::npos) << c.warnings[0];
}

// The system file has a value of 100,000 characters. The message quotes 200 of them.
TEST_F(AstraSim, MessagesQuoteLittleOfAFile) {
  try {
    with_system("LIFO", std::string(100'000, 'x'));
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 1000U);
    EXPECT_NE(std::string_view(error.what()).find(std::string(200, 'x') + "..."), std::string::npos) << error.what();
  }
}

// The network file sets a latency of 0 and the system file an endpoint delay of 0. The configuration accepts both.
TEST_F(AstraSim, EndpointDelayAndLatencyZeroAreLegal) {
  const auto c = with_system("endpoint-delay\": 10", "endpoint-delay\": 0");
  EXPECT_EQ(c.collectives.endpoint_delay, Time::zero());
}

// The system file names one `oneRing` for two dimensions. The configuration has one algorithm and reads back equal.
TEST_F(AstraSim, OneAlgorithmForTheWholeCommunicator) {
  const auto c = with_system("[\"ring\", \"direct\"]", "[\"oneRing\"]");
  ASSERT_EQ(c.collectives.all_reduce.size(), 1U);
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml") == c);
}

// The network file has one fault at a time: lists of different lengths, a wrong number, an unknown topology, or a
// missing key. The error names the file and the entry.
TEST_F(AstraSim, NetworkRefusals) {
  refused_network("[ 4, 2 ]", "[ 4 ]", {"network.yml:2", "'npus_count'", "a list of 1", "a list of 2"});
  refused_network("[ 4, 2 ]", "[ 4, 0 ]", {"'npus_count[1]'", "found '0'"});
  refused_network("[ 4, 2 ]", "[ 010, 2 ]", {"'npus_count[0]'", "leading zero"});
  refused_network("[ Ring, Switch ]", "[ Ring, Mesh ]",
                  {"network.yml:1", "'topology[1]'", "found 'Mesh'", "Ring, FullyConnected or Switch",
                   "no Mesh, but CONFIG.yaml has"});
  refused_network("[ Ring, Switch ]", "[]", {"'topology'", "a list of 0"});
  refused_network("50.0", "0", {"'bandwidth[0]'", "more than 0"});
  refused_network("500.0", "-1", {"'latency[0]'", "negative"});
  refused_network("latency: [ 500.0, 0 ]", "", {"'latency'", "missing"});
}

// The memory file describes a memory per node. The configuration has its values, and files with missing or wrong keys
// are refused by key.
TEST_F(AstraSim, RemoteMemory) {
  write(files_.remote_memory,
        R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-latency": 1000, "remote-mem-bw": 64,
                                  "num-nodes": 2, "num-npus-per-node": 4})");
  const auto c = load();
  EXPECT_EQ(c.remote_memory.kind, memory::RemoteMemoryKind("per-node"));
  EXPECT_EQ(c.remote_memory.bandwidth.bytes_per_ns(), 64);
  EXPECT_EQ(c.remote_memory.latency_ns, 1000);
  EXPECT_EQ(c.remote_memory.npus_per_node, 4U);
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml") == c);
  write(files_.remote_memory, "{}");
  EXPECT_FALSE(load().remote_memory.kind->has_memory) << "{} is no memory";
  refused_memory(R"({"a": 1})", {"memory.json:1", "'memory-type'", "missing"});
  refused_memory(R"({"memory-type": "POOL"})", {"'memory-type'", "found the text 'POOL'", "MEMORY_POOL"});
  refused_memory(R"({"memory-type": "MEMORY_POOL"})", {"'remote-mem-latency'", "missing"});
  refused_memory(R"({"memory-type": "MEMORY_POOL", "remote-mem-latency": 1, "remote-mem-bw": 0})",
                 {"'remote-mem-bw'", "more than 0"});
  refused_memory(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-latency": 1, "remote-mem-bw": 1,
                     "num-nodes": 1, "num-npus-per-node": 4})",
                 {"'num-nodes'", "fewer than the 8 NPUs"});
  refused_memory(
      R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-latency": 1, "remote-mem-bw": 1, "num-npus-per-node": 3})",
      {"num-npus-per-node", "divisor of the 8 NPUs"});
}

// The memory file describes a hierarchical pool. The configuration has its values, and numbers that do not fit the
// groups, or are missing, are refused by key.
TEST_F(AstraSim, HierarchicalPool) {
  const std::string json = R"({"memory-type": "HIERARCHICAL_POOL", "remote-mem-latency": 1000, "remote-mem-bw": 64,
    "num-npus-per-node": 4, "num-memory-groups": 6, "num-out-node-switches": 3, "out-node-link-bw": 25,
    "out-node-link-latency": 100, "in-node-fabric-bw": 256, "in-node-fabric-latency": 5, "chunk-size": 65536})";
  write(files_.remote_memory, json);
  const auto c = load();
  const auto& hierarchy = c.remote_memory.hierarchy;
  EXPECT_EQ(c.remote_memory.kind, memory::RemoteMemoryKind("hierarchical-pool"));
  EXPECT_EQ(c.remote_memory.npus_per_node, 4U);
  EXPECT_EQ(hierarchy.groups, 6U);
  EXPECT_EQ(hierarchy.switches, 3U);
  EXPECT_EQ(hierarchy.link.bytes_per_ns(), 25);
  EXPECT_EQ(hierarchy.link_latency_ns, 100);
  EXPECT_EQ(hierarchy.fabric.bytes_per_ns(), 256);
  EXPECT_EQ(hierarchy.fabric_latency_ns, 5);
  EXPECT_EQ(hierarchy.chunk, Bytes(65536));
  EXPECT_TRUE(parse(c.to_yaml(), "resolved.yaml") == c);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    return text.replace(text.find(from), from.size(), to);
  };
  refused_memory(changed("switches\": 3", "switches\": 4"),
                 {"'num-out-node-switches'", "divisor of the 6 memory groups"});
  refused_memory(changed("\"num-memory-groups\": 6, ", ""), {"'num-memory-groups'", "missing"});
  refused_memory(changed("out-node-link-bw\": 25", "out-node-link-bw\": 0"), {"'out-node-link-bw'", "more than 0"});
}

// The flags name a file of communicators. A missing file is refused, and the text of one that is there is kept.
TEST_F(AstraSim, AMissingCommunicatorFile) {
  files_.groups = folder_ / "groups.json";
  expect_error([&] { load(); }, ErrorCode::bad_input, {"groups.json", "no such file"});
  write(files_.groups, "{}");
  EXPECT_EQ(load().workload.groups_text, InputText("comm_group.json", "{}"));
}

// ---- the reference cases ----

fs::path cases_folder() {
  for (const fs::path& candidate : {fs::path(ORRERY_SOURCE_DIR) / "tests/reference/cases",
                                    fs::path(ORRERY_SOURCE_DIR) / "../shared/reference/astra-sim/cases"})
    if (fs::is_directory(candidate)) return candidate;
  return {};
}

/// The texts of the list "flags" of an expected.json, whose values hold no quotes.
std::vector<std::string> flags_of(const fs::path& expected) {
  std::ostringstream text;
  text << std::ifstream(expected).rdbuf();
  const std::string all = text.str();
  const auto first = all.find('[', all.find("\"flags\""));
  std::istringstream list(all.substr(first + 1, all.find(']', first) - first - 1));
  std::vector<std::string> flags;
  for (std::string part; std::getline(list, part, '"');)
    if (part.starts_with("--")) flags.push_back(part);
  return flags;
}

Inputs inputs_of(const fs::path& folder) {
  std::vector<std::string> words = {"orrery",
                                    "run",
                                    "--workload-configuration=" + (folder / "workload").string(),
                                    "--system-configuration=" + (folder / "system.json").string(),
                                    "--network-configuration=" + (folder / "network.yml").string(),
                                    "--remote-memory-configuration=" + (folder / "remote_memory.json").string()};
  if (fs::exists(folder / "comm_group.json"))
    words.push_back("--comm-group-configuration=" + (folder / "comm_group.json").string());
  for (const auto& flag : flags_of(folder / "expected.json")) words.push_back(flag);
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  return cli::parse_command_line(argv).options<cli::RunCommand>()->inputs;
}

// Every reference case of ASTRA-sim is loaded with its flags. Six of them, on which ASTRA-sim fails or which Orrery
// does not model, are refused with their key; all others load without a fault and read back equal.
TEST(ReferenceCases, LoadOrAreRefusedByName) {
  const auto folder = cases_folder();
  if (folder.empty()) GTEST_SKIP() << "the reference cases are not here";
  const std::map<std::string, std::string> refusals = {{"J_R8_ar_1MB_sharedbus", "model-shared-bus"},
                                                       {"K_splits0", "preferred-dataset-splits"},
                                                       {"K_no_splits_key", "preferred-dataset-splits"},
                                                       {"K_no_localmembw_roofline", "local-mem-bw"},
                                                       {"K_roofline_key_before", "peak-perf"}};
  int loaded = 0, refused = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const auto refusal = refusals.find(name);
    const auto findings = examine(inputs_of(entry.path()));
    if (refusal == refusals.end()) {
      ASSERT_TRUE(findings.faults.empty()) << name << ": " << findings.faults.texts().front();
      // A kind whose list is left out has no algorithm, and reads back with the default, which no trace uses.
      if (name != "K_impl_too_short") {
        EXPECT_TRUE(parse(findings.configuration->to_yaml(), name) == *findings.configuration) << name;
      }
      ++loaded;
    } else {
      ASSERT_FALSE(findings.faults.empty()) << name;
      EXPECT_EQ(findings.faults.code(), ErrorCode::bad_input);
      EXPECT_NE(findings.faults.texts().front().find(refusal->second), std::string::npos)
          << findings.faults.texts().front();
      ++refused;
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LE(refused, static_cast<int>(refusals.size()));
}

}  // namespace
}  // namespace orrery::config
