#include <algorithm>
#include <span>

#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

using collective::Kind;
using collective::LibraryName;
using collective::MeasuredFile;

bool has_library(const Configuration& c) { return c.collectives.library.library.has_value(); }

std::span<const MeasuredFile> measured_files(const Configuration& c, Kind kind) {
  const auto found = c.collectives.library.measured.find(kind);
  if (found == c.collectives.library.measured.end()) return {};
  return found->second;
}

/// Returns the file that a name, or a mapping with more about its machine, stands for.
MeasuredFile measured_file(const Value& value, const std::string& at, Reading& reading) {
  MeasuredFile measured;
  if (value.kind == Value::Kind::mapping) {
    Section section(&value, at, value, reading.faults);
    const Value* const file = section.need("file", "the output of nccl-tests");
    if (const Value* const node = section.find("node")) measured.node = as_count(*node, section.path("node"), 1);
    if (const Value* const bandwidths = section.find("bandwidths"))
      for (const Value& item :
           as_list(*bandwidths, section.path("bandwidths"), "a list of bandwidths, one for each dimension"))
        measured.bandwidths.push_back(as_bandwidth(item, section.path("bandwidths")));
    section.refuse_unknown();
    if (file == nullptr) return measured;  // a fault already
    measured.file = as_path(*file, section.path("file"));
  } else {
    measured.file = as_path(value, at);
  }
  measured.series = collective::read_nccl_tests(measured.file);
  return measured;
}

std::string text_of_measured(const MeasuredFile& measured) {
  std::string text = in_quotes(normal_path(measured.file));
  if (!measured.node && measured.bandwidths.empty()) return text;
  text = fmt::format("{{file: {}", text);
  if (measured.node) text += fmt::format(", node: {}", *measured.node);
  std::vector<std::string> bandwidths;
  for (const Bandwidth link : measured.bandwidths) bandwidths.push_back(bandwidth().text(link).value_or(""));
  if (!bandwidths.empty()) text += fmt::format(", bandwidths: [{}]", fmt::join(bandwidths, ", "));
  return text + "}";
}

/// Returns the row of a measured table of a kind of collectives.
template <Kind kind>
consteval Row<Configuration> measured_row(Text path, Text help, Text example) {
  return {
      path,
      help,
      example,
      Default::none(),
      ValueInfo("files", "the output of nccl-tests, or a list of them", "-", "one for each group that was measured"),
      Handling<Configuration>{[](const Value& value, const std::string& at, Configuration& target, Reading& reading) {
                                const auto read = [&](const Value& item) {
                                  MeasuredFile measured = measured_file(item, at, reading);
                                  if (measured.series.points.empty()) return;
                                  auto& files = target.collectives.library.measured[kind];
                                  target.inputs.emplace_back(
                                      fmt::format("{}-{}.txt", collective::name(kind), files.size() + 1),
                                      read_text(measured.file));
                                  files.push_back(std::move(measured));
                                };
                                if (value.kind != Value::Kind::sequence) return read(value);
                                for (const Value& item : value.items) reading.faults.attempt([&] { read(item); });
                              },
                              [](const Configuration& c, std::string_view at, Writer& writer) {
                                std::vector<std::string> texts;
                                for (const MeasuredFile& measured : measured_files(c, kind))
                                  texts.push_back(text_of_measured(measured));
                                if (!texts.empty()) writer.put(at, fmt::format("[{}]", fmt::join(texts, ", ")));
                              },
                              [](const Configuration& a, const Configuration& b) {
                                return std::ranges::equal(measured_files(a, kind), measured_files(b, kind), {},
                                                          text_of_measured, text_of_measured);
                              }}};
}

constexpr Handling<Configuration> library_name() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.collectives.library.library = word<collective_libraries>().read(value, path, reading);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (has_library(c)) writer.put(path, std::string(c.collectives.library.library->name()));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.collectives.library.library == b.collectives.library.library;
          }};
}

constexpr Type<Bytes> ramp_size() { return size(1, "21 MB"); }

constexpr Row<Configuration> collective_library_rows[] = {
    {"system.collectives.library.name", "library whose measured times collectives take in place of those of algorithms",
     "nccl-h100", Default::none(), word<collective_libraries>(), library_name(), see("collectives.md, *Libraries*")},
    {"system.collectives.library.fabric", "network between nodes", "efa", Default::built_in(), word<fabrics>(),
     [](auto& c) { return &c.collectives.library.fabric; }, written_if(has_library)},
    {"system.collectives.library.fabric-figures.step", "latency that the software adds to a step between nodes",
     "24 us", Default::described("that of the fabric"), optional_of<duration>(),
     [](auto& c) { return &c.collectives.library.fabric_figures.step; }, written_if(has_library),
     see("collectives.md, *Libraries*")},
    {"system.collectives.library.fabric-figures.ramp",
     "time that large collectives take longer for each doubling of the nodes, until links are filled", "320 us",
     Default::described("that of the fabric"), optional_of<duration>(),
     [](auto& c) { return &c.collectives.library.fabric_figures.ramp; }, written_if(has_library)},
    {"system.collectives.library.fabric-figures.ramp-size", "size of collectives that pay half of `ramp`", "21 MB",
     Default::described("that of the fabric"), optional_of<ramp_size>(),
     [](auto& c) { return &c.collectives.library.fabric_figures.ramp_bytes; }, written_if(has_library)},
    {"system.collectives.library.fabric-figures.nic", "bandwidth of the NICs on which these figures were measured",
     "400 Gb/s", Default::described("that of the fabric"), optional_of<bandwidth>(),
     [](auto& c) { return &c.collectives.library.fabric_figures.nic; }, written_if(has_library)},
    {"system.collectives.library.collnet", "switches between nodes reduce (SHARP), which NCCL may use", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.collectives.library.collnet; }, written_if(has_library)},
    {"system.collectives.library.node-dimensions", "dimensions of the network within a node, from the first on", "1",
     Default::built_in(), count(0), [](auto& c) { return &c.collectives.library.node_dimensions; },
     written_if(has_library)},
    {"system.collectives.library.nics-per-node", "number of NICs that the NPUs of a node share", "4",
     Default::described("one for each NPU"), factor(), [](auto& c) { return &c.collectives.library.nics_per_node; },
     written_if([](const Configuration& c) { return c.collectives.library.nics_per_node > 0; })},
    {"system.collectives.library.launch", "least time of a collective: that of its launch by the host", "12.5 us",
     Default::built_in(), duration(), [](auto& c) { return &c.collectives.library.launch; }, written_if(has_library)},
    {"system.collectives.library.rates", "meaning of the bandwidths of the network", "reached", Default::built_in(),
     word<link_rates>(), [](auto& c) { return &c.collectives.library.rates; }, written_if(has_library)},
    {"system.collectives.library.relative",
     "let the library reach shares of the described links; `false`: the bandwidths of the machine that was measured",
     "false", Default::built_in(), boolean(), [](auto& c) { return &c.collectives.library.relative; },
     written_if(has_library)},
    {"system.collectives.library.shares.ring", "share of the bandwidth of links within a node that rings reach", "0.8",
     Default::described("that of the library"), efficiency(),
     [](auto& c) { return &c.collectives.library.shares.ring; },
     written_if([](const Configuration& c) { return c.collectives.library.shares.ring > 0; })},
    {"system.collectives.library.shares.nvls",
     "share of the bandwidth of links within a node that all-reduces in the switch (NVLS) reach", "0.6",
     Default::described("that of the library"), efficiency(),
     [](auto& c) { return &c.collectives.library.shares.nvls; },
     written_if([](const Configuration& c) { return c.collectives.library.shares.nvls > 0; })},
    {"system.collectives.library.shares.nvls-tree",
     "share of the bandwidth of links within a node that trees with reductions in the switch (NVLSTree) reach", "0.55",
     Default::described("that of the library"), efficiency(),
     [](auto& c) { return &c.collectives.library.shares.nvls_tree; },
     written_if([](const Configuration& c) { return c.collectives.library.shares.nvls_tree > 0; })},
    {"system.collectives.library.shares.tree", "share of the bandwidth of links within a node that other trees reach",
     "0.46", Default::described("that of the library"), efficiency(),
     [](auto& c) { return &c.collectives.library.shares.tree; },
     written_if([](const Configuration& c) { return c.collectives.library.shares.tree > 0; })},
    {"system.collectives.library.shares.all-to-all",
     "share of the bandwidth of links within a node that all-to-alls reach", "0.75",
     Default::described("that of the library"), efficiency(),
     [](auto& c) { return &c.collectives.library.shares.all_to_all; },
     written_if([](const Configuration& c) { return c.collectives.library.shares.all_to_all > 0; })},
    {"system.collectives.library.shares.nic-ring", "share of the bandwidth of NICs that rings over nodes reach", "0.9",
     Default::described("that of the fabric"), efficiency(),
     [](auto& c) { return &c.collectives.library.nic_shares.ring; },
     written_if([](const Configuration& c) { return c.collectives.library.nic_shares.ring > 0; })},
    {"system.collectives.library.shares.nic-tree", "share of the bandwidth of NICs that trees over nodes reach", "0.85",
     Default::described("that of the fabric"), efficiency(),
     [](auto& c) { return &c.collectives.library.nic_shares.tree; },
     written_if([](const Configuration& c) { return c.collectives.library.nic_shares.tree > 0; })},
    {"system.collectives.library.shares.nic-all-to-all",
     "share of the bandwidth of NICs that all-to-alls over nodes reach", "0.8",
     Default::described("that of the fabric"), efficiency(),
     [](auto& c) { return &c.collectives.library.nic_shares.all_to_all; },
     written_if([](const Configuration& c) { return c.collectives.library.nic_shares.all_to_all > 0; })},
    measured_row<Kind::all_reduce>(
        "system.collectives.library.all-reduce",
        "output of all_reduce_perf of nccl-tests on the machine, which corrects the library's times", "all-reduce.txt"),
    measured_row<Kind::all_gather>("system.collectives.library.all-gather",
                                   "output of all_gather_perf, used in the same way", "all-gather.txt"),
    measured_row<Kind::reduce_scatter>("system.collectives.library.reduce-scatter",
                                       "output of reduce_scatter_perf, used in the same way", "reduce-scatter.txt"),
    measured_row<Kind::all_to_all>("system.collectives.library.all-to-all",
                                   "output of alltoall_perf, used in the same way", "all-to-all.txt"),
};

}  // namespace

const Keys<Configuration>& collective_library_keys() {
  static const Keys<Configuration> all("system.collectives.library", collective_library_rows);
  return all;
}

/// A library's times are of whole collectives, whatever goes over which link.
void Validation::validate_library() {
  const auto& library = c_.collectives.library;
  if (!library.library) return;
  const std::string_view key = "system.collectives.library.name";
  require(c_.rule_set == RuleSet::physical, key, "found a library with ASTRA-sim's rules, which know algorithms only",
          "no library, or rules: physical");
  require(c_.collectives.custom.of_kind.empty() && c_.collectives.custom.of_nodes.empty(), key,
          "found a library beside custom collectives, which it would replace", "one of the two");
  require(library.node_dimensions <= topology_.num_dimensions(), "system.collectives.library.node-dimensions",
          fmt::format("found {}", library.node_dimensions),
          fmt::format("at most the {} of the network", counted(topology_.num_dimensions(), "dimension")));
}

}  // namespace orrery::config
