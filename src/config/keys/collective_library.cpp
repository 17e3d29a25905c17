#include <algorithm>

#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

using collective::Kind;
using collective::LibraryName;

bool has_library(const Configuration& c) { return c.collectives.library.library.has_value(); }

std::vector<std::filesystem::path> measured_files(const Configuration& c, Kind kind) {
  const auto found = c.collectives.library.files.find(kind);
  if (found == c.collectives.library.files.end()) return {};
  return found->second;
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
      Handling<Configuration>{
          [](const Value& value, const std::string& at, Configuration& target, Reading& reading) {
            auto& library = target.collectives.library;
            const auto read = [&](const Value& name) {
              const auto file = as_path(name, at);
              library.measured[kind].push_back(collective::read_nccl_tests(file));
              library.files[kind].push_back(file);
              target.inputs.emplace_back(fmt::format("{}-{}.txt", collective::name(kind), library.files[kind].size()),
                                         read_text(file));
            };
            if (value.kind != Value::Kind::sequence) return read(value);
            for (const Value& item : value.items) reading.faults.attempt([&] { read(item); });
          },
          [](const Configuration& c, std::string_view at, Writer& writer) {
            std::vector<std::string> names;
            for (const auto& file : measured_files(c, kind)) names.push_back(in_quotes(normal_path(file)));
            if (!names.empty()) writer.put(at, fmt::format("[{}]", fmt::join(names, ", ")));
          },
          [](const Configuration& a, const Configuration& b) {
            return std::ranges::equal(measured_files(a, kind), measured_files(b, kind), {}, normal_path, normal_path);
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

constexpr Row<Configuration> collective_library_rows[] = {
    {"system.collectives.library.name", "library whose measured times collectives take in place of those of algorithms",
     "nccl-h100", Default::none(), word<collective_libraries>(), library_name(), see("collectives.md, *Libraries*")},
    {"system.collectives.library.fabric", "network between nodes", "efa", Default::built_in(), word<fabrics>(),
     [](auto& c) { return &c.collectives.library.fabric; }, written_if(has_library)},
    {"system.collectives.library.collnet", "switches between nodes reduce (SHARP), which NCCL may use", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.collectives.library.collnet; }, written_if(has_library)},
    {"system.collectives.library.node-dimensions", "dimensions of the network within a node, from the first on", "1",
     Default::built_in(), count(), [](auto& c) { return &c.collectives.library.node_dimensions; },
     written_if(has_library)},
    measured_row<Kind::all_reduce>(
        "system.collectives.library.all-reduce",
        "what all_reduce_perf of nccl-tests printed on the machine: it corrects the library's times", "all-reduce.txt"),
    measured_row<Kind::all_gather>("system.collectives.library.all-gather", "the same of all_gather_perf",
                                   "all-gather.txt"),
    measured_row<Kind::reduce_scatter>("system.collectives.library.reduce-scatter", "the same of reduce_scatter_perf",
                                       "reduce-scatter.txt"),
    measured_row<Kind::all_to_all>("system.collectives.library.all-to-all", "the same of alltoall_perf",
                                   "all-to-all.txt"),
};

}  // namespace

const Keys<Configuration>& collective_library_keys() {
  static const Keys<Configuration> all("system.collectives.library", collective_library_rows);
  return all;
}

}  // namespace orrery::config
