#include <algorithm>

#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

using collective::Kind;
using collective::LibraryName;

bool has_library(const Configuration& c) { return c.collectives.library.library.has_value(); }

/// The kinds of collectives that measured tables may correct.
struct MeasuredKind {
  Kind kind;
  Text path, help, example;
};
constexpr MeasuredKind measured_kinds[] = {
    {Kind::all_reduce, "system.collectives.library.all-reduce",
     "what all_reduce_perf of nccl-tests printed on the machine: it corrects the library's times", "all-reduce.txt"},
    {Kind::all_gather, "system.collectives.library.all-gather", "the same of all_gather_perf", "all-gather.txt"},
    {Kind::reduce_scatter, "system.collectives.library.reduce-scatter", "the same of reduce_scatter_perf",
     "reduce-scatter.txt"},
    {Kind::all_to_all, "system.collectives.library.all-to-all", "the same of alltoall_perf", "all-to-all.txt"},
};

std::vector<std::filesystem::path> measured_files(const Configuration& c, Kind kind) {
  const auto found = c.collectives.library.files.find(kind);
  if (found == c.collectives.library.files.end()) return {};
  return found->second;
}

Handling<Configuration> measured(Kind kind, const std::string& path) {
  return {[=](const Value& value, const std::string& at, Configuration& target, Reading& reading) {
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
          [=](const Configuration& c, Writer& writer) {
            std::vector<std::string> names;
            for (const auto& file : measured_files(c, kind)) names.push_back(in_quotes(normal_path(file)));
            if (!names.empty()) writer.put(path, fmt::format("[{}]", fmt::join(names, ", ")));
          },
          [=](const Configuration& a, const Configuration& b) {
            return std::ranges::equal(measured_files(a, kind), measured_files(b, kind), {}, normal_path, normal_path);
          }};
}

Handling<Configuration> library_name() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.collectives.library.library = word(collective_libraries()).read(value, path, reading);
          },
          [](const Configuration& c, Writer& writer) {
            if (has_library(c))
              writer.put("system.collectives.library.name", std::string(c.collectives.library.library->name()));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.collectives.library.library == b.collectives.library.library;
          }};
}

}  // namespace

const Keys<Configuration>& collective_library_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.collectives.library");
    keys.add({.path = "system.collectives.library.name",
              .help = "library whose measured times collectives take in place of those of algorithms",
              .example = "nccl-h100",
              .otherwise = Default::none(),
              .see = "collectives.md, *Libraries*"},
             word(collective_libraries()).info, library_name());
    keys.add(
            {.path = "system.collectives.library.fabric",
             .help = "network between nodes",
             .example = "efa",
             .otherwise = Default::built_in()},
            word(fabrics()), [](auto& c) -> auto& { return c.collectives.library.fabric; })
        .written_if(has_library);
    keys.add(
            {.path = "system.collectives.library.collnet",
             .help = "switches between nodes reduce (SHARP), which NCCL may use",
             .example = "true",
             .otherwise = Default::built_in()},
            boolean(), [](auto& c) -> auto& { return c.collectives.library.collnet; })
        .written_if(has_library);
    keys.add(
            {.path = "system.collectives.library.node-dimensions",
             .help = "dimensions of the network within a node, from the first on",
             .example = "1",
             .otherwise = Default::built_in()},
            count(), [](auto& c) -> auto& { return c.collectives.library.node_dimensions; })
        .written_if(has_library);
    for (const auto& [kind, path, help, example] : measured_kinds)
      keys.add({.path = path, .help = help, .example = example, .otherwise = Default::none()},
               {"files", "the output of nccl-tests, or a list of them", "-", "one for each group that was measured"},
               measured(kind, path.string()));
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
