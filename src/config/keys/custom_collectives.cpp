#include <algorithm>
#include <map>

#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/gpu/check.hpp"

namespace orrery::config {
namespace {

using collective::Kind;
using Files = std::vector<std::shared_ptr<const collective::CustomCollective>>;

constexpr std::string_view custom_expected =
    "an MSCCL XML (FILE.xml), PREFIX of Chakra traces (PREFIX.0.et, ...), or a list of them for groups of several "
    "sizes";

bool same_files(const Files& a, const Files& b) {  // of nodes
  const auto file = [](const auto& collective) { return normal_path(collective->file()); };
  return std::ranges::equal(a, b, {}, file, file);
}

/// Returns the names of the files of a kind, those of plans that GPUs execute last.
std::vector<std::filesystem::path> files_of(const Configuration& configuration, Kind kind) {
  std::vector<std::filesystem::path> files;
  const auto found = configuration.collectives.custom.of_kind.find(kind);
  if (found != configuration.collectives.custom.of_kind.end())
    for (const auto& collective : found->second) files.push_back(normal_path(collective->file()));
  const auto plans = configuration.gpu.plans.find(kind);
  if (plans != configuration.gpu.plans.end())
    for (const auto& plan : plans->second) files.push_back(normal_path(plan->file));
  return files;
}

/// Reads a plan that GPUs execute, and checks it.
void read_gpu_plan(const std::filesystem::path& file, Kind kind, const Place& named_by, Configuration& result) {
  const auto plan = std::make_shared<const gpu::Plan>(gpu::read_plan(file, named_by));
  if (plan->kind != kind)
    throw Error(ErrorCode::bad_input, named_by,
                fmt::format("found {}, whose collective is that of {}", file.string(), collective::name(plan->kind)),
                fmt::format("a plan of {}", collective::name(kind)));
  gpu::Options::Plans& known = result.gpu.plans[kind];
  for (const auto& other : known)
    if (other->gpus.size() == plan->gpus.size() && other->least <= plan->most && plan->least <= other->most)
      throw Error(ErrorCode::bad_input, named_by,
                  fmt::format("{} and {} are both for {} GPUs and {} bytes", other->file, plan->file, plan->gpus.size(),
                              std::max(other->least, plan->least).count()),
                  "min_message_size and max_message_size that leave each size to one plan");
  const Bytes message = gpu::test_message(*plan);
  const gpu::Findings findings = gpu::check_program(gpu::make_program(*plan, message), kind, message);
  for (const auto* warnings : {&plan->warnings, &findings.warnings})
    for (const std::string& warning : *warnings)
      result.warnings.push_back(fmt::format("{}: {}", file.string(), warning));
  known.push_back(plan);
  result.inputs.emplace_back(fmt::format("{}-{}-{}.json", collective::name(kind), plan->gpus.size(), known.size()),
                             read_text(file));
}

/// Returns the row of the files that spell out a kind of collectives.
template <Kind kind>
consteval Row<Configuration> custom_row(Text path, Text help, Text example) {
  return {path,
          help,
          example,
          Default::none(),
          ValueInfo("files", custom_expected, "-", "one for each size of groups"),
          Handling<Configuration>{
              [](const Value& value, const std::string& at, Configuration& target, Reading& reading) {
                read_custom(value, at, kind, as_path, target, reading.faults);
              },
              [](const Configuration& target, std::string_view at, Writer& writer) {
                std::vector<std::string> files;
                for (const auto& file : files_of(target, kind)) files.push_back(in_quotes(file.string()));
                if (!files.empty()) writer.put(at, fmt::format("[{}]", fmt::join(files, ", ")));
              },
              [](const Configuration& a, const Configuration& b) { return files_of(a, kind) == files_of(b, kind); }}};
}

constexpr Handling<Configuration> files_of_nodes() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            read_custom_nodes(value, path, as_path, target, reading.faults);
          },
          [](const Configuration& target, std::string_view path, Writer& writer) {
            std::vector<std::string> entries;
            for (const auto& [id, number] : target.workload.custom_nodes)
              entries.push_back(fmt::format(
                  "{}: {}", id, in_quotes(normal_path(target.collectives.custom.of_nodes[number - 1]->file()))));
            if (!entries.empty()) writer.put_entries(path, std::move(entries));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.workload.custom_nodes == b.workload.custom_nodes &&
                   same_files(a.collectives.custom.of_nodes, b.collectives.custom.of_nodes);
          }};
}

constexpr Row<Configuration> custom_collective_rows[] = {
    custom_row<Kind::all_reduce>("system.collectives.custom.all-reduce",
                                 "files that spell out all-reduce: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                                 "custom/all-reduce-8.xml"),
    custom_row<Kind::all_gather>("system.collectives.custom.all-gather",
                                 "files that spell out all-gather: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                                 "custom/all-gather-8.xml"),
    custom_row<Kind::reduce_scatter>(
        "system.collectives.custom.reduce-scatter",
        "files that spell out reduce-scatter: MSCCL XML, or Chakra traces PREFIX.<position>.et",
        "custom/reduce-scatter-8.xml"),
    custom_row<Kind::all_to_all>("system.collectives.custom.all-to-all",
                                 "files that spell out all-to-all: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                                 "custom/all-to-all-8.xml"),
    custom_row<Kind::broadcast>("system.collectives.custom.broadcast",
                                "files that spell out broadcast: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                                "custom/broadcast-8.xml"),
    custom_row<Kind::reduce>("system.collectives.custom.reduce",
                             "files that spell out reduce: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                             "custom/reduce-8.xml"),
    custom_row<Kind::gather>("system.collectives.custom.gather",
                             "files that spell out gather: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                             "custom/gather-8.xml"),
    custom_row<Kind::scatter>("system.collectives.custom.scatter",
                              "files that spell out scatter: MSCCL XML, or Chakra traces PREFIX.<position>.et",
                              "custom/scatter-8.xml"),
    {"system.collectives.custom.nodes", "Chakra traces that the collectives of single nodes run, by the id of the node",
     "{7: custom/all-reduce}", Default::none(),
     ValueInfo("mapping to files", "a mapping of ids of nodes to PREFIX of Chakra traces", "-", "ID: PREFIX"),
     files_of_nodes()},
};

}  // namespace

const Keys<Configuration>& custom_collective_keys() {
  static const Keys<Configuration> all("system.collectives.custom", custom_collective_rows);
  return all;
}

void read_custom(const Value& value, const std::string& path, Kind kind, PathOf path_of, Configuration& result,
                 Faults& faults) {
  auto& known = result.collectives.custom.of_kind[kind];
  std::map<std::size_t, std::size_t> by_size;  // of a communicator, the index of its file
  const auto read = [&](const Value& name) {
    const std::filesystem::path file = path_of(name, path);
    if (result.gpu.profile && collective::is_execution_plan(file))
      return read_gpu_plan(file, kind, name.place(path), result);
    const auto made = collective::read_custom_collective(file, kind, name.place(path));
    const auto [found, is_new] = by_size.emplace(made->num_positions(), known.size());
    if (!is_new)
      throw Error(ErrorCode::bad_input, name.place(path),
                  fmt::format("{} and {} are both for {} members", known[found->second]->file().string(), file.string(),
                              made->num_positions()),
                  "one file for each size of groups");
    known.push_back(made);
    if (file.extension() == ".xml")
      result.inputs.emplace_back(fmt::format("{}-{}.xml", collective::name(kind), made->num_positions()),
                                 read_text(file));
    else if (collective::is_execution_plan(file))
      result.inputs.emplace_back(fmt::format("{}-{}.json", collective::name(kind), made->num_positions()),
                                 read_text(file));
  };
  const auto drop_if_empty = [&] {
    if (known.empty()) result.collectives.custom.of_kind.erase(kind);
  };
  if (value.kind != Value::Kind::sequence) {
    read(value);
    return drop_if_empty();
  }
  if (value.items.empty()) throw Error(ErrorCode::bad_input, value.place(path), "found an empty list", custom_expected);
  for (const Value& item : value.items) faults.attempt([&] { read(item); });
  drop_if_empty();
}

void read_custom_nodes(const Value& mapping, const std::string& path, PathOf path_of, Configuration& result,
                       Faults& faults) {
  if (mapping.kind != Value::Kind::mapping)
    throw Error(ErrorCode::bad_input, mapping.place(path), fmt::format("found {}", mapping.description()),
                "a mapping of keys to values");
  const auto path_to = [&](const std::string& key) { return path.empty() ? key : fmt::format("{}.{}", path, key); };
  std::map<std::uint64_t, const Value*> prefixes;
  for (const Value::Entry& entry : mapping.entries)
    faults.attempt([&] {
      const Place place = entry.value.place(path_to(entry.key));
      if (!prefixes.emplace(parse_count(entry.key, 0, ~std::uint64_t{0}, place), &entry.value).second)
        throw Error(ErrorCode::bad_input, place, "the id is there twice", "one file for each node");
    });
  auto& known = result.collectives.custom.of_nodes;
  std::map<std::filesystem::path, std::uint32_t> numbers;  // of the files, from 1 on
  for (const auto& [id, value] : prefixes)
    faults.attempt([&] {
      const std::string at = path_to(std::to_string(id));
      const std::filesystem::path prefix = path_of(*value, at);
      if (prefix.extension() == ".xml")
        throw Error(ErrorCode::bad_input, value->place(at), "found an MSCCL XML, which spells out one kind only",
                    "PREFIX of Chakra traces (PREFIX.0.et, ...), or the XML for all collectives of its kind");
      if (collective::is_execution_plan(prefix))
        throw Error(ErrorCode::bad_input, value->place(at), "found a plan of MSCCL++, which spells out one kind only",
                    "PREFIX of Chakra traces (PREFIX.0.et, ...), or the plan for all collectives of its kind");
      const auto known_before = numbers.find(prefix);
      if (known_before == numbers.end())
        known.push_back(collective::read_custom_collective(prefix, Kind::all_reduce, value->place(at)));
      result.workload.custom_nodes[id] =
          numbers.emplace(prefix, static_cast<std::uint32_t>(known.size())).first->second;
    });
}

}  // namespace orrery::config
