#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view custom_example =
    "an MSCCL XML (FILE.xml), PREFIX of Chakra traces (PREFIX.0.et, ...), or a list of them for groups of several "
    "sizes";

}  // namespace

std::span<const collective::Kind> custom_kinds() {
  using collective::Kind;
  static constexpr Kind kinds[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all,
                                   Kind::broadcast,  Kind::reduce,     Kind::gather,         Kind::scatter};
  return kinds;
}

void read_custom(Section& section, std::string_view key, collective::Kind kind, PathOf path_of, Configuration& result) {
  const Value* const value = section.find(key);
  if (value == nullptr) return;
  const std::string path = section.path(key);
  auto& known = result.collectives.custom.of_kind[kind];
  const auto read = [&](const Value& name) {
    const std::filesystem::path file = path_of(name, path);
    const auto made = collective::read_custom_collective(file, kind, name.place(path));
    const auto same = std::ranges::find(known, made->num_positions(), [](const auto& p) { return p->num_positions(); });
    if (same != known.end())
      throw Error(ErrorCode::bad_input, name.place(path),
                  fmt::format("{} and {} are both for {} members", (*same)->file().string(), file.string(),
                              made->num_positions()),
                  "one file for each size of groups");
    known.push_back(made);
    if (file.extension() == ".xml")
      result.inputs.emplace_back(fmt::format("{}-{}.xml", collective::name(kind), made->num_positions()),
                                 read_text(file));
  };
  if (value->kind != Value::Kind::sequence) {
    section.faults().attempt([&] { read(*value); });
    return;
  }
  section.faults().attempt([&] {
    if (value->items.empty())
      throw Error(ErrorCode::bad_input, value->place(path), "found an empty list", custom_example);
  });
  for (const Value& item : value->items) section.faults().attempt([&] { read(item); });
}

void read_custom_nodes(Section& section, PathOf path_of, Configuration& result) {
  std::map<std::uint64_t, const Value*> prefixes;
  for (const Value::Entry* const entry : section.unknown())
    section.faults().attempt([&] {
      const Place place = entry->value.place(section.path(entry->key));
      if (!prefixes.emplace(parse_count(entry->key, 0, ~std::uint64_t{0}, place), &entry->value).second)
        throw Error(ErrorCode::bad_input, place, "the id is there twice", "one file for each node");
    });
  auto& known = result.collectives.custom.of_nodes;
  for (const auto& [id, value] : prefixes)
    section.faults().attempt([&] {
      const std::string path = section.path(std::to_string(id));
      const std::filesystem::path prefix = path_of(*value, path);
      if (prefix.extension() == ".xml")
        throw Error(ErrorCode::bad_input, value->place(path), "found an MSCCL XML, which spells out one kind only",
                    "PREFIX of Chakra traces (PREFIX.0.et, ...), or the XML for all collectives of its kind");
      auto same = std::ranges::find(known, prefix, [](const auto& custom) { return custom->file(); });
      if (same == known.end())
        same = known.insert(
            same, collective::read_custom_collective(prefix, collective::Kind::all_reduce, value->place(path)));
      result.workload.custom_nodes[id] = static_cast<std::uint32_t>(same - known.begin()) + 1;
    });
}

}  // namespace orrery::config
