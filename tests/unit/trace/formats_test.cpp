// Which reader takes a file, what is said of a file that none takes, and how readers hand over traces.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "file_cache.hpp"
#include "fixture.hpp"
#include "orrery/trace/member_trace.hpp"
#include "registry.hpp"

namespace orrery::trace {
namespace {

class Formats : public TraceTest {
 protected:
  /// A small file of each layout, by the name of the reader that must take it.
  static std::vector<std::pair<std::string, std::string>> samples() {
    const auto v001 = et::File().add(et::Message().varint(1, 1).bytes(2, "c").varint(3, 3).varint(12, 9));
    const auto v003 = [](std::string_view version, std::uint64_t comp) {
      const auto attribute = et::Message().bytes(1, "runtime").varint(2, 3).varint(7, 30);
      const auto schema = et::Message().bytes(1, "schema").varint(2, 4).bytes(8, version);
      return et::File()
          .add(et::Message().message(1, schema))
          .add(et::Message().varint(1, 0).varint(3, comp).message(11, attribute));
    };
    return {{"chakra", file_of({et::compute(1, "a")}).text()},
            {"chakra", et::File().add(et::compute(1, "a")).text()},
            {"chakra", et::File().add(et::Message()).text()},
            {"chakra", et::File().metadata().text()},
            {"chakra-0.0.1", v001.text()},
            {"chakra-0.0.3", v003("0.0.3", 4).text()},
            {"chakra-0.0.3", v003("0.0.2", 3).text()},
            {"chakra-json", R"({"workload_graph": [{"Id": 1}]})"},
            {"goal", "# made\n\n num_ranks 1\nrank 0 {\n}\n"},
            {"kineto",
             R"({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": [
                 {"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": 2, "args": {"stream": 7}}]})"},
            {"pytorch",
             R"({"schema": "1.0.1", "nodes": [{"name": "[pytorch|profiler|execution_trace|thread]", "id": 2}]})"},
            {"text-workload", "MODEL\n1\nlayer -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"}};
  }
};

TEST_F(Formats, EachHasAPlainNameAndOneLineOfHelp) {
  // All readers of the registry: names are unique and made of lower case, digits, dots and hyphens; help is one line.
  std::set<std::string_view> names;
  for (const Reader& reader : readers()) {
    EXPECT_TRUE(names.insert(reader.name).second) << reader.name;
    EXPECT_EQ(reader.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-"), std::string_view::npos)
        << reader.name;
    EXPECT_FALSE(reader.help.empty()) << reader.name;
    EXPECT_EQ(reader.help.find('\n'), std::string_view::npos) << reader.name;
  }
}

TEST_F(Formats, TheDocumentListsAllOfThem) {
  // docs/traces.md has a table of formats: it must have one row for each reader, with the reader's name and help.
  std::ifstream in(std::filesystem::path(ORRERY_SOURCE_DIR) / "docs" / "traces.md");
  std::vector<std::string> listed, expected;
  bool is_table = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| format |")) is_table = true;
    if (!line.starts_with("|")) is_table = false;
    if (is_table && line.starts_with("| `")) listed.push_back(line);
  }
  for (const Reader& reader : readers()) expected.push_back(fmt::format("| `{}` | {} |", reader.name, reader.help));
  EXPECT_EQ(listed, expected);
}

TEST_F(Formats, ExactlyOneReaderRecognisesEachSample) {
  // Small files of every layout: the reader of that layout recognises the bytes, and no other reader does. Each reader
  // of the registry has a sample.
  std::set<std::string> with_sample, names;
  for (const auto& [name, bytes] : samples()) {
    with_sample.insert(name);
    for (const Reader& reader : readers())
      EXPECT_EQ(reader.recognises(bytes), reader.name == name) << name << " by " << reader.name;
  }
  for (const Reader& reader : readers()) names.emplace(reader.name);
  EXPECT_EQ(with_sample, names);
}

TEST_F(Formats, TheNameOfAFileDoesNotCount) {
  // Files of every layout, each called "groups.json": the store reads them and gives the name of the format.
  for (const auto& [name, bytes] : samples()) {
    Store store({.alone = true}, {});
    const auto path = write(bytes, "groups.json");
    EXPECT_EQ(store.format(store.read(path, NpuId(0))), name);
    std::filesystem::remove(path);
  }
}

TEST_F(Formats, AnUnknownFileIsRefusedWithWhatItHolds) {
  // Files of kinds that users give by mistake: the message names the kind, the first bytes and the known formats.
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\n  \"events\": [{\"ph\": \"X\"}]\n}\n",
       "the file is JSON and begins with '{ \"events\": [{\"ph\": \"X\"}] }'"},
      {"[1, 2]", "the file is JSON and begins with '[1, 2]'"},
      {"<rule name=\"a\">", "the file is XML and begins with '<rule name=\"a\">'"},
      {"Once upon a time there was no trace", "the file is text and begins with 'Once upon a time there was no trace'"},
      {std::string(100, 'x'), "the file is text and begins with '" + std::string(60, 'x') + "...'"},
      {"\x89HDF\r\n\x1a\n and more"s,
       "the file is an HDF5 file, perhaps the results of a run, which 'orrery show results' prints"},
      {"PK\x03\x04 and more"s, "the file is a zip archive"},
      {"\xfd"
       "7zXZ\0 and more"s,
       "the file is xz data"},
      {"\x28\xb5\x2f\xfd and more"s, "the file is zstd data"},
      {"BZh91AY&SY and more"s, "the file is bzip2 data"},
      {"SQLite format 3\0 and more"s, "the file is an SQLite database"},
      {"\x7f"
       "ELF and more"s,
       "the file is a program"},
      {std::string(257, '\x01') + "ustar and more", "the file is a tar archive"},
      {std::string(40, '\xff'), "the file begins with the bytes ff ff ff ff ff ff ff ff"},
      {"\x85"s, "the file begins with the bytes 85"},
  };
  for (const auto& [bytes, what] : cases) {
    const std::string text = refusal_of_bytes(bytes);
    EXPECT_HAS(text, "t.0.et: NPU 0 (byte 0): this is not a trace that Orrery can read: " + what + "; expected");
    for (const Reader& reader : readers()) EXPECT_HAS(text, std::string(reader.name));
  }
  EXPECT_HAS(refusal_of_bytes(""),
             "t.0.et: NPU 0: the file is empty; expected an execution trace in one of the formats");
}

TEST_F(Formats, NetworksOfOtherSimulatorsAreRefusedByName) {
  // Small files of ns-3, htsim and InfraGraph: the message names the kind, and where to describe the network.
  struct Case {
    std::string bytes, what, where;
  };
  const std::vector<Case> cases = {
      {"37 5 64\n32 33 34 35 36\n0 32 200Gbps 0.0005ms 0\n", "a topology of ASTRA-sim's ns-3 network",
       "system.network.graph"},
      {"{\"logical-dims\": [\"8\", \"4\"]}", "a logical topology of ASTRA-sim's ns-3 network",
       "--logical-topology-configuration"},
      {"ENABLE_QCN 0\nTOPOLOGY_FILE topology.txt\n", "a configuration of ASTRA-sim's ns-3 network",
       "--network-configuration"},
      {"Nodes 8\nTiers 3\nPodsize 4\n", "a topology of htsim", "system.network.dimensions"},
      {"devices:\n  - name: server\n    components:\n", "a description of InfraGraph", "system.network.graph"},
  };
  for (const auto& [bytes, what, where] : cases) {
    const std::string text = refusal_of_bytes(bytes);
    EXPECT_HAS(text, "this is not a trace that Orrery can read: the file is " + what);
    EXPECT_HAS(text, where);
  }
}

TEST_F(Formats, FilesThatBelongElsewhereAreRefusedByName) {
  // What is known but no trace: the message names it and says where it belongs.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"<!-- x --> <system version=\"2\"><cpu numaid=\"0\"/></system>", "a topology of NCCL or RCCL: 'orrery convert"},
      {"<graphs version=\"1\"></graphs>", "a graph of NCCL"},
      {"<?xml version=\"1.0\"?><topology><object type=\"Machine\"/></topology>", "a topology of hwloc"},
      {"<algo name=\"x\" proto=\"LL\"></algo>", "an algorithm of MSCCL (XML)"},
      {"{\"name\": \"x\", \"collective\": \"allreduce\", \"gpus\": []}", "an execution plan of MSCCL++"},
      {"{\"traceEvents\": []}", "a trace for Chrome's viewer without the events"},
      {"[{\"ph\": \"X\", \"name\": \"a\"}]", "a list of events for Chrome's viewer"},
      {"{ \"tp\" : [ 0, 1]}", "a list of process groups: it belongs to workload.groups"},
      {"{\"topology-name\": \"Hierarchical\"}", "a network of ASTRA-sim 1.0"},
      {"scheduling-policy: LIFO\nall-reduce-implementation: ring\n", "a system of ASTRA-sim 1.0"},
      {"# mine\ntopology: [Custom]\n", "a network of ASTRA-sim: it belongs to --network-configuration"},
      {"system:\n  base: x\n", "a configuration of Orrery"},
  };
  for (const auto& [bytes, what] : cases)
    EXPECT_HAS(refusal_of_bytes(bytes), "this is not a trace that Orrery can read: the file is " + what);
}

TEST_F(Formats, AMarkOfUtf8BeforeATextIsLeftOut) {
  // A GOAL program with the three bytes that some editors write first.
  const NpuTrace trace = read_bytes("\xef\xbb\xbfnum_ranks 1\nrank 0 {\nl1: calc 5\n}\n");
  EXPECT_EQ(store_.format(trace), "goal");
  EXPECT_EQ(trace.graph->num_nodes(), 1u);
}

TEST_F(Formats, GzipDataAreUnpackedOnce) {
  // A trace that was packed twice: the message says that there is gzip data within gzip data.
  const auto packed = [&](const std::string& bytes) {
    const gzFile file = gzopen((folder_ / "packed").c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    std::ifstream in(folder_ / "packed", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  };
  const std::string twice = packed(packed(file_of({et::compute(1, "a")}).text()));
  EXPECT_HAS(refusal_of_bytes(twice), "the file is gzip data within gzip data");
}

TEST_F(Formats, TheLayoutIsToldByTheFirstMessageThatTells) {
  // Nodes of 0.0.1, the first 1,000 of which have no field that tells the layout: the file is read as 0.0.1.
  et::File file;
  for (std::uint64_t id = 0; id < 1000; ++id) file.add(et::Message().varint(1, id).bytes(2, "n").varint(3, 0));
  file.add(et::Message().varint(1, 1000).bytes(2, "c").varint(3, 3).varint(12, 9));
  const NpuTrace trace = read_bytes(file.text());
  EXPECT_EQ(store_.format(trace), "chakra-0.0.1");
  EXPECT_EQ(trace.graph->nodes[1000].detail, 9u);
}

// A format of these tests: lines "npu 3", which begins the trace of an NPU, and "NAME FLOPS", which is a compute node
// that waits for the one before. Without an "npu" line the file does not say whose trace it holds.
bool recognises_lines(std::string_view beginning) {
  return beginning.starts_with("npu ") || beginning.starts_with("node");
}

void read_lines(TraceFile& file, TraceSink& sink) {
  std::string text(std::size_t{1} << 16, ' ');
  text.resize(file.read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  std::istringstream in(text);
  ParsedTrace* trace = text.starts_with("npu ") ? nullptr : &sink.begin();
  std::uint64_t line = 0, number = 0;
  for (std::string word; in >> word >> number;) {
    ++line;
    if (word == "npu") {
      trace = sink.begin(NpuId(static_cast<std::uint32_t>(number)));
    } else if (trace != nullptr) {
      trace->position_unit = PositionUnit::line;
      ParsedNode& node = trace->add_node(line);
      node.id = line;
      node.name = trace->names.intern(word);
      node.type = word == "node_type" ? static_cast<std::uint32_t>(number) : static_cast<std::uint32_t>(NodeType::comp);
      node.set(Attribute::num_ops, whole_number(number));
      if (trace->nodes.size() > 1) trace->data.push_back(trace->nodes[trace->nodes.size() - 2].id);
    }
  }
}

constexpr Reader lines_reader{.name = "lines", .help = "for tests", .recognises = recognises_lines, .read = read_lines};

/// A cache of files that knows the format of lines and Chakra's.
class ManyNpus : public Formats {
 protected:
  const LoadedTrace* load(std::uint32_t npu, const std::string& file = "t.0.et") {
    faults_ = {};
    return cache_.load(folder_ / file, NpuId(npu), faults_);
  }
  std::string fault() const {
    const auto texts = faults_.texts();
    return texts.size() == 1 ? texts[0] : fmt::format("{} faults", texts.size());
  }

  static constexpr std::array formats = {lines_reader};
  ReadContext context_{{.num_npus = 8}, {}};
  SharedParts parts_;
  std::vector<KnownFile> files_;
  FileCache cache_{context_, parts_, files_, formats};
  Faults faults_;
};

TEST_F(ManyNpus, AFileWithoutNumbersIsTheTraceOfEveryNpu) {
  // Two nodes and no "npu" line: NPUs 0 and 5 get the same loaded trace.
  write("node 10\nnode 20\n");
  const LoadedTrace* const first = load(0);
  ASSERT_NE(first, nullptr) << fault();
  EXPECT_EQ(first->parts.graph->num_nodes(), 2u);
  EXPECT_EQ(first->parts.graph->nodes[1].detail, 20u);
  EXPECT_EQ(load(5), first);
  EXPECT_EQ(files_.at(first->file).format, "lines");
}

TEST_F(ManyNpus, AFileWithNumbersIsReadOnceForAllHostedNpus) {
  // Traces of NPUs 1, 3 and 4 in one file, of which this rank hosts 1 and 4: both are read by one pass (the file is
  // removed after it), and only these two are kept.
  context_.options.hosts = [](NpuId npu) { return npu != NpuId(3); };
  write("npu 3\nnode 30\nnpu 1\nnode 10\nnode 11\nnpu 4\nnode 40\n");
  const LoadedTrace* const one = load(1);
  ASSERT_NE(one, nullptr) << fault();
  EXPECT_EQ(one->parts.graph->num_nodes(), 2u);
  std::filesystem::remove(folder_ / "t.0.et");
  const LoadedTrace* const four = load(4);
  ASSERT_NE(four, nullptr) << fault();
  EXPECT_EQ(four->parts.graph->nodes[0].detail, 40u);
  EXPECT_EQ(four->file, one->file);
  EXPECT_EQ(parts_.num_graphs(), 2u);
}

TEST_F(ManyNpus, AFileForOtherNpusIsRefused) {
  // A file that names NPUs 2 and 6 is read for NPU 0: the message gives the NPUs that it names.
  write("npu 2\nnode 1\nnpu 6\nnode 1\n");
  EXPECT_EQ(load(0), nullptr);
  EXPECT_HAS(fault(),
             "t.0.et: NPU 0: the file holds no trace of this NPU, but of NPUs 2, 6; expected the trace of this NPU");
  write("npu 2\nnode 1\n", "one");
  EXPECT_EQ(load(7, "one"), nullptr);
  EXPECT_HAS(fault(), "NPU 7: the file holds no trace of this NPU, but of NPU 2");
}

TEST_F(ManyNpus, NumbersAreChecked) {
  // Two traces of one NPU, and a trace of an NPU that the system of 8 does not have: each is refused.
  write("npu 2\nnode 1\nnpu 2\nnode 1\n");
  EXPECT_EQ(load(2), nullptr);
  EXPECT_HAS(fault(), "t.0.et: NPU 2: the file holds two traces of this NPU; expected one trace for each NPU");
  write("npu 8\nnode 1\n", "beyond");
  EXPECT_EQ(load(2, "beyond"), nullptr);
  EXPECT_HAS(fault(), "the file holds a trace of NPU 8, but the system has 8 NPUs; expected NPUs 0 to 7");
}

TEST_F(ManyNpus, AFaultHasTheNpuAndTheLineOfItsNode) {
  // The trace of NPU 4 has a node of an unknown type in line 4; the file is read for NPU 1: the message says NPU 4,
  // line 4.
  write("npu 1\nnode 1\nnpu 4\nnode_type 11\n");
  EXPECT_EQ(load(1), nullptr);
  EXPECT_HAS(fault(), "t.0.et:4: NPU 4, node 4 'node_type': node type 11 is not known");
}

TEST_F(ManyNpus, WithoutASystemTheFirstTraceIsShown) {
  // A trace that is looked at alone (orrery show trace) from a file of NPUs 9 and 2: the first one in the file is
  // taken.
  context_.options = {.alone = true};
  write("npu 9\nnode 90\nnpu 2\nnode 20\n");
  const LoadedTrace* const loaded = load(0);
  ASSERT_NE(loaded, nullptr) << fault();
  EXPECT_EQ(loaded->parts.graph->nodes[0].detail, 90u);
}

TEST_F(ManyNpus, AFileThatIsForgottenIsReadAgain) {
  // A file changes after it was read: it is read again only after `forget`.
  const auto path = write("node 10\n");
  const LoadedTrace* loaded = load(0);
  ASSERT_NE(loaded, nullptr);
  write("node 99\n");
  EXPECT_EQ(load(0)->parts.graph->nodes[0].detail, 10u);
  cache_.forget(path);
  EXPECT_EQ(load(0)->parts.graph->nodes[0].detail, 99u);
}

TEST_F(Formats, AFileThatBeginsWithALineWithoutAWordIsNoTrace) {
  // The first line holds form feeds and vertical tabs only, which separate words but are not taken off lines. Text is
  // no trace; bytes that begin as a Chakra message do may be a part of one.
  EXPECT_HAS(refusal_of_bytes("\v\f\n5\n"), "this is not a trace that Orrery can read");
  for (const std::string_view text : {"\f", "\f\nMICRO\n1\n"})
    EXPECT_HAS(refusal_of_bytes(std::string(text)), "the file may be no Chakra execution trace at all");
}

TEST_F(Formats, AMemberOfACustomCollectiveIsReadByTheSameReaders) {
  // One member's trace of version 0.0.3 (a send of 640 bytes to position 2 after a node that does nothing), and a file
  // of JSON: the first is read, the second is refused with what it holds.
  const auto number = [](std::string_view name, std::uint64_t value) {
    return et::Message().bytes(1, name).varint(2, 3).varint(7, value);
  };
  et::Message send = et::Message().varint(1, 4).bytes(2, "s").varint(3, 5).varint(4, 3);
  send.message(11, number("comm_dst", 2)).message(11, number("comm_size", 640)).message(11, number("comm_tag", 7));
  const auto path = write(et::File().add(et::Message().varint(1, 3).bytes(2, "m").varint(3, 1)).add(send));
  const MemberTrace member = read_member_trace(path);
  ASSERT_EQ(member.operations.size(), 2u);
  EXPECT_EQ(member.operations[0].kind, MemberTrace::Operation::Kind::nothing);
  EXPECT_EQ(member.operations[1].kind, MemberTrace::Operation::Kind::send);
  EXPECT_EQ(member.operations[1].peer, 2u);
  EXPECT_EQ(member.operations[1].size, Bytes(640));
  EXPECT_EQ(member.operations[1].dependencies, std::vector<std::uint32_t>{0});
  EXPECT_HAS(refusal_of([&] { read_member_trace(write("{}", "json")); }),
             "json: (byte 0): this is not a trace that Orrery can read");
}

}  // namespace
}  // namespace orrery::trace
