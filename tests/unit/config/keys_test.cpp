#include "keys/keys.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "astra_sim/astra_sim.hpp"
#include "expect_error.hpp"
#include "orrery/config/key_listing.hpp"

namespace orrery::config {
namespace {

/// Returns the value that a text of YAML stands for.
Value value_of(std::string_view text) {
  Faults faults;
  Value value = parse_yaml(text, std::make_shared<const Origin>(Origin{"example.yaml", "/base"}), faults);
  faults.raise();
  return value;
}

/// Returns a configuration in which the examples of all keys can stand: 2048 NPUs, a roofline, a hierarchical pool.
Configuration full_configuration() {
  return parse(R"(system:
  network:
    model: congestion-aware
    dimensions:
      - {shape: Switch, size: 8, bandwidth: 400 GB/s, latency: 500 ns}
      - {shape: Switch, size: 256, bandwidth: 400 GB/s, latency: 500 ns}
  compute: {roofline: true, peak: 1 PFLOPS, local-memory: {bandwidth: 1 TB/s}}
  remote-memory: {kind: hierarchical-pool, bandwidth: 100 GB/s, npus-per-node: 8, groups: 8, switches: 4,
                  link-bandwidth: 25 GB/s, fabric-bandwidth: 256 GB/s, chunk-size: 1 MiB}
)",
               "full.yaml", {}, true);
}

/// Calls look(keys, initial) for the keys of each Target, with a target to read values into.
template <class Look>
void for_all_keys(Look look) {
  for (const auto* const keys : configuration_keys()) look(*keys, full_configuration());
  look(dimension_keys(), DimensionEntry{});
  look(flit_keys(), FlitEntry{});
  look(model_keys(), ModelChoice{});
  look(transformer_keys(), workload::Transformer{});
  look(dlrm_keys(), workload::Dlrm{});
  look(table_keys(), workload::Dlrm::Table{});
  look(layer_list_keys(), workload::LayerList{});
  look(layer_keys(), LayerEntry{});
  look(late_keys(), workload::LayerList::Late{});
  look(parallel_keys(), workload::Parallel{});
  look(slow_npu_keys(), Perturbation::SlowNpus{});
  look(link_keys(), LinkEntry{});
  look(trace_keys(), TraceEntry{});
}

/// Returns whether the example is the name of a file, which is not there.
bool names_file(const KeyInfo& key) {
  return key.type.name.find("file") != std::string::npos && key.path.find("traces") == std::string::npos;
}

/// Reads a value into a target, and returns the faults.
template <class Target>
Faults read_value(const AnyKey& key, std::string_view text, Target& target) {
  Faults faults;
  Configuration configuration = full_configuration();
  Reading reading{configuration, faults, true};
  faults.attempt([&] { key.read(value_of(text), key.info().path, &target, reading); });
  return faults;
}

// Each key of a configuration has an example. The key reads it without a fault, and the value is not the default.
TEST(Keys, EveryExampleReadsAsAValueOtherThanTheDefault) {
  for_all_keys([]<class Target>(const Keys<Target>& keys, const Target& initial) {
    for (const auto& held_key : keys) {
      const AnyKey& key = *held_key;
      if (names_file(key.info())) continue;
      Target target = initial;
      const Faults faults = read_value(key, key.info().example, target);
      EXPECT_NO_THROW(faults.raise()) << key.info().path;
      // A key that only stands for another one, or is of no consequence, is not compared.
      Writer writer(keys.root());
      key.write(&target, writer);
      if (!writer.block().empty() && key.info().default_is_value) {
        const Target other{};
        EXPECT_FALSE(key.same(&target, &other)) << key.info().path << ": the example is the default";
      }
    }
  });
}

// Each key reads its example and writes the value as YAML. The written value reads back equal.
TEST(Keys, WhatIsWrittenReadsBackEqual) {
  std::size_t written = 0;
  for_all_keys([&]<class Target>(const Keys<Target>& keys, const Target& initial) {
    for (const auto& held_key : keys) {
      const AnyKey& key = *held_key;
      if (names_file(key.info())) continue;
      Target target = initial;
      read_value(key, key.info().example, target);
      Writer writer(keys.root());
      key.write(&target, writer);
      const Value held = value_of(writer.block());
      const Value* value = &held;
      std::istringstream names(key.info().path.substr(keys.root().empty() ? 0 : keys.root().size() + 1));
      for (std::string name; value != nullptr && std::getline(names, name, '.');) value = value->find(name);
      if (value == nullptr) continue;
      ++written;
      Target again = initial;
      Faults faults;
      Configuration configuration = full_configuration();
      Reading reading{configuration, faults, true};
      faults.attempt([&] { key.read(*value, key.info().path, &again, reading); });
      EXPECT_NO_THROW(faults.raise()) << key.info().path;
      EXPECT_TRUE(key.same(&again, &target)) << key.info().path << " in:\n" << writer.block();
    }
  });
  EXPECT_GT(written, 90U);
}

// Many keys document a default that is a value. The key reads this text as what an absent key gives.
TEST(Keys, EveryDefaultThatIsAValueReadsAsTheDefault) {
  std::size_t values = 0;
  for_all_keys([&]<class Target>(const Keys<Target>& keys, const Target&) {
    for (const auto& held_key : keys) {
      const AnyKey& key = *held_key;
      if (!key.info().default_is_value || key.info().default_text.empty()) continue;
      Target given{};
      const Target initial{};
      const Faults faults = read_value(key, key.info().default_text, given);
      EXPECT_NO_THROW(faults.raise()) << key.info().path;
      EXPECT_TRUE(key.same(&given, &initial)) << key.info().path << ": " << key.info().default_text;
      ++values;
    }
  });
  EXPECT_GT(values, 60U);
}

// Each command takes the flags of some keys. No two keys of a command have the same flag.
TEST(Keys, EachFlagOfACommandIsForOneKey) {
  for (const Taker command : {Taker::run, Taker::check, Taker::generate, Taker::partition, Taker::show_trace,
                              Taker::show_topology, Taker::show_collective}) {
    std::set<std::string> names = {"set", "help", "json"};
    for (const FlagKey& key : flag_keys(command))
      EXPECT_TRUE(names.insert(key.info->flag->name.string()).second) << key.info->path;
    for (const auto& key : astra_sim_flags()) EXPECT_TRUE(names.insert(key->info().path).second) << key->info().path;
  }
}

// Keys of ASTRA-sim's files name the keys of a configuration that they become. Each of these keys exists.
TEST(Keys, AstraSimsKeysBecomeKeysThatAreThere) {
  std::size_t translated = 0;
  for (const KeySection& section : key_sections())
    for (const KeyInfo* key : section.keys) {
      if (key->becomes.empty() || key->becomes == "-") continue;
      ++translated;
      EXPECT_NO_THROW(list_keys(KeyForm::text, key->becomes)) << key->path;
    }
  EXPECT_GT(translated, 30U);
}

// A key of a truth value and one of a number have a flag without a name for its argument. The first is accepted, the
// second is a fault of the program.
TEST(Keys, ADescriptorOfAFlagNamesItsValue) {
  const auto described = [](ValueInfo values) {
    return describe({.path = "run.example",
                     .becomes = {},
                     .help = "value of an example",
                     .example = "7",
                     .otherwise = Default::needed(),
                     .values = values,
                     .flag = Flag{.name = "example", .heading = Heading::model, .argument = {}, .commands = {}}});
  };
  EXPECT_NO_THROW(described(boolean()));
  EXPECT_THROW(described(count()), Error);
}

// The table of keys of a target. Its key is added again, or to a mapping that it is not below.
constexpr Row<LayerEntry> example_rows[] = {
    {"run.example", "value of an example", "7", Default::needed(), count(), [](auto& entry) { return &entry.repeat; }},
};

// A path is described twice in one section, or in a section that it is not below. Both are faults of the program.
TEST(Keys, EachPathHasOneDescriptor) {
  Keys<LayerEntry> keys("run", example_rows, "run");
  EXPECT_THROW(keys.add_rows(example_rows), Error);
  Keys<LayerEntry> others("other", "other");
  EXPECT_THROW(others.add_rows(example_rows), Error);
}

// One key is listed as text. The text has its meaning, type, range, default and example, and where there are any, its
// flag and choices.
TEST(KeyListing, OneKey) {
  EXPECT_EQ(list_keys(KeyForm::text, "system.collectives.chunks"),
            "system.collectives.chunks\n    pieces into which a collective is cut\n"
            "    whole number, 1 or more; default: 1; such as 8\n");
  const std::string model = list_keys(KeyForm::text, "system.network.model");
  EXPECT_NE(model.find("default: congestion-unaware"), std::string::npos) << model;
  EXPECT_NE(model.find("flag --network"), std::string::npos) << model;
  EXPECT_NE(model.find("      congestion-aware: every link"), std::string::npos) << model;
  EXPECT_NE(list_keys(KeyForm::text, "system.remote-memory.kind").find("default: none"), std::string::npos);
}

// A key is asked for that does not exist. The usage error names the nearest key that does.
TEST(KeyListing, AKeyThatIsNotThere) {
  expect_error([] { list_keys(KeyForm::text, "system.colectives.chunks"); }, ErrorCode::usage,
               {"no key 'system.colectives.chunks'", "Did you mean 'system.collectives.chunks'?"});
  expect_error([] { list_keys(KeyForm::json, "system.collectives.chunk"); }, ErrorCode::usage, {"chunks'?"});
}

// All keys are listed as JSON. Each key appears once in its section, and no field of it is empty.
TEST(KeyListing, JsonHasEveryKeyOnceInASection) {
  const auto json = nlohmann::json::parse(list_keys(KeyForm::json));
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& key : json) {
    EXPECT_TRUE(seen.emplace(key.at("section"), key.at("path")).second) << key;
    for (const char* const field : {"type", "unit", "range", "default", "meaning"})
      EXPECT_FALSE(key.at(field).get<std::string>().empty()) << field << " in " << key;
  }
  std::size_t keys = 0;
  for (const KeySection& section : key_sections()) keys += section.keys.size();
  EXPECT_EQ(json.size(), keys);
}

// All keys are listed as Markdown for the documents. Each section stands between marks, lines have at most 120
// characters, and code marks come in pairs.
TEST(KeyListing, MarkdownHasShortLinesBetweenMarks) {
  std::istringstream text(list_keys(KeyForm::markdown));
  std::size_t begins = 0, ends = 0;
  for (std::string line; std::getline(text, line);) {
    EXPECT_LE(line.size(), 120U) << line;
    begins += line.starts_with("<!-- keys: ");
    ends += line == "<!-- end of keys -->";
    if (!line.starts_with("<!--")) {
      EXPECT_EQ(std::ranges::count(line, '`') % 2, 0) << line;
    }
  }
  EXPECT_EQ(begins, key_sections().size() + 2);  // and the flags of run and of generate
  EXPECT_EQ(ends, begins);
}

}  // namespace
}  // namespace orrery::config
