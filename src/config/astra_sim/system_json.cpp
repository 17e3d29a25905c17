#include <algorithm>
#include <cmath>

#include "astra_sim.hpp"
#include "keys/keys.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using collective::Kind;

using Algorithms = std::vector<Algorithm>;

/// The keys of the kinds of collectives that have algorithms.
struct Implementation {
  Kind kind;
  Algorithms collective::Options::*algorithms;
  Text name, becomes, custom_name, custom_becomes;
};
constexpr Implementation implementations[] = {
    {Kind::all_reduce, &collective::Options::all_reduce, "all-reduce-implementation", "system.collectives.all-reduce",
     "all-reduce-implementation-custom", "system.collectives.custom.all-reduce"},
    {Kind::all_gather, &collective::Options::all_gather, "all-gather-implementation", "system.collectives.all-gather",
     "all-gather-implementation-custom", "system.collectives.custom.all-gather"},
    {Kind::reduce_scatter, &collective::Options::reduce_scatter, "reduce-scatter-implementation",
     "system.collectives.reduce-scatter", "reduce-scatter-implementation-custom",
     "system.collectives.custom.reduce-scatter"},
    {Kind::all_to_all, &collective::Options::all_to_all, "all-to-all-implementation", "system.collectives.all-to-all",
     "all-to-all-implementation-custom", "system.collectives.custom.all-to-all"},
};

/// Returns the name of a file as ASTRA-sim takes it: from the working directory.
std::filesystem::path as_working_path(const Value& value, const std::string& key) {
  return as_text(value, key, "the name of a file");
}

/// Returns how the algorithms of a kind are read: one for each dimension of the network, or a single one for all.
Handling<Configuration> algorithms_of(Algorithms collective::Options::*member) {
  return {
      [=](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
        const std::size_t num_dimensions = target.dimensions.size();
        const std::string expected =
            fmt::format("a list of {}, one for each dimension of the network", counted(num_dimensions, "algorithm"));
        const auto& items = as_list(value, path, expected);
        auto& algorithms = target.collectives.*member;
        algorithms = parse_algorithms(items, path, expected, reading.faults);
        const bool is_whole = algorithms.size() == 1 && algorithms[0].whole_communicator;
        if (num_dimensions == 0 || items.size() == num_dimensions || is_whole) return;
        // Only a trace with such a collective needs the list, which check::algorithms sees.
        algorithms.clear();
        const Error unused(ErrorCode::bad_input, value.place(path),
                           fmt::format("{} named, but 'topology' of the network has {}", items.size(), num_dimensions),
                           expected, "The list is left out: a trace with such a collective is refused.");
        reading.configuration.warnings.emplace_back(unused.what());
      },
      {},
      {}};
}

void add_implementations(Keys<Configuration>& keys) {
  for (const auto& [kind, member, name, becomes, custom_name, custom_becomes] : implementations) {
    keys.add_astra_sim(
        {.name = custom_name,
         .becomes = custom_becomes,
         .help = "files that spell out the collective, as paths from the working directory",
         .otherwise = Default::none()},
        {"list", "a list of PREFIX of Chakra traces, or of MSCCL XML", "-", "one for each size of groups"},
        {[kind = kind](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
           read_custom(value, path, kind, as_working_path, target, reading.faults);
         },
         {},
         {}});
    keys.add_astra_sim({.name = name,
                        .becomes = becomes,
                        .help = "algorithm of each dimension; only a trace with such a collective needs it",
                        .otherwise = Default::none()},
                       {"list", "a list of algorithms, one for each dimension of the network", "-",
                        "one for each dimension", algorithm_words()},
                       algorithms_of(member));
  }
  keys.add_astra_sim(
      {.name = "per-node-custom-implementation",
       .becomes = "system.collectives.custom.nodes",
       .help = "YAML file of `ID: PREFIX`, from the working directory",
       .otherwise = Default::none()},
      file().info,
      {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
         with_file(as_working_path(value, path), "per-node-custom.yml", reading, parse_yaml,
                   [&](const Value& nodes) { read_custom_nodes(nodes, "", as_working_path, target, reading.faults); });
       },
       {},
       {}});
}

/// Returns how the endpoint delay is read: ASTRA-sim scales what is written only, and keeps whole ns.
Handling<Configuration> scaled_delay() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            const double scaled = std::trunc(as_number(value, path)) * reading.astra_sim->injection_scale;
            if (scaled > 1e12)
              throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {} ns", scaled),
                          "at most 1000 s");
            target.collectives.endpoint_delay = duration_from_ns(scaled, Rounding::down_to_ns);
          },
          {},
          {}};
}

void add_scheduling(Keys<Configuration>& keys) {
  constexpr std::string_view splits_hint = "Write \"preferred-dataset-splits\": 1 for collectives in one piece.";
  keys.add_astra_sim(
      {.name = "collective-optimization",
       .becomes = "system.collectives.optimization",
       .help = "phases of an all-reduce over several dimensions",
       .otherwise = Default::value("baseline")},
      word(collective_optimizations()), [](auto& c) -> auto& { return c.collectives.chunks.optimization; });
  // ASTRA-sim ends without a result where it is absent or 0.
  keys.add_astra_sim({.name = "preferred-dataset-splits",
                      .becomes = "system.collectives.chunks",
                      .help = "pieces into which a collective is cut",
                      .otherwise = Default::needed()},
                     {"whole number", "the number of chunks of a collective, 1 or more", "-", "1 or more"},
                     {[=](const Value& value, const std::string& path, Configuration& target, Reading&) {
                        const std::uint32_t splits = as_count(value, path, 0);
                        if (splits == 0)
                          throw Error(ErrorCode::bad_input, value.place(path), "found 0",
                                      "the number of chunks of a collective, 1 or more", splits_hint);
                        target.collectives.chunks.splits = splits;
                      },
                      {},
                      {}})
      .hint("Write \"preferred-dataset-splits\": 1 for collectives in one piece.");
  keys.add_astra_sim(
      {.name = "active-chunks-per-dimension",
       .becomes = "system.collectives.active-chunks",
       .help = "chunks that are in service at a time in each dimension",
       .otherwise = Default::value("1")},
      count(), [](auto& c) -> auto& { return c.collectives.chunks.active_chunks; });
  keys.add_astra_sim(
      {.name = "endpoint-delay",
       .becomes = "system.collectives.endpoint-delay",
       .help =
           "time between the arrival of a message and the next send; it is multiplied by `--injection-scale` and cut "
           "to whole ns",
       .otherwise = Default::described("10, not scaled")},
      plain_nanoseconds().info, scaled_delay());
}

bool has_roofline_enabled(const Configuration& c, const Reading&) { return c.execution.compute.model->uses_operations; }

void add_compute(Keys<Configuration>& keys) {
  keys.add_astra_sim({.name = "roofline-enabled",
                      .becomes = "system.compute.roofline",
                      .help = "compute the durations of compute nodes by the roofline",
                      .otherwise = Default::value("0")},
                     zero_or_one().info,
                     {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
                        const bool is_on = zero_or_one().read(value, path, reading);
                        target.execution.compute.model = compute::ModelName(is_on ? "roofline" : "recorded");
                      },
                      {},
                      {}});
  keys.add_astra_sim({.name = "peak-perf",
                      .becomes = "system.compute.peak",
                      .help = "peak compute rate",
                      .otherwise = Default::none()},
                     positive_number("TFLOPS").info,
                     {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
                        target.execution.compute.peak_flops =
                            positive_number("TFLOPS").read(value, path, reading) * 1e12;
                      },
                      {},
                      {}})
      .needed_if(has_roofline_enabled, "'roofline-enabled' is 1");
  keys.add_astra_sim(
          {.name = "local-mem-bw",
           .becomes = "system.compute.local-memory.bandwidth",
           .help = "bandwidth of the local memory, in GB of 10^9 bytes",
           .otherwise = Default::none()},
          plain_bandwidth(), [](auto& c) -> auto& { return c.execution.compute.local_memory; })
      .needed_if(has_roofline_enabled, "'roofline-enabled' is 1");
  keys.add_astra_sim(
      {.name = "replay-only",
       .becomes = "workload.replay-only",
       .help = "give every node its recorded duration",
       .otherwise = Default::value("0")},
      zero_or_one(), [](auto& c) -> auto& { return c.execution.replay_only; });
}

/// Adds keys that ASTRA-sim reads and Orrery has no use for: wrong values are faults. The warning names those that
/// `is_named` is true of.
template <class T>
void add_without_effect(Keys<Configuration>& keys, const AboutAstraSim& about, const Type<T>& type,
                        bool (*is_named)(const T&)) {
  keys.add_astra_sim(about, type.info,
                     {[=](const Value& value, const std::string& path, Configuration&, Reading& reading) {
                        if (is_named(type.read(value, path, reading))) reading.without_effect.push_back(path);
                      },
                      {},
                      {}});
}

/// Returns the type of values that are not looked at.
Type<bool> anything() {
  return {{"any", "a value", "-", "any"},
          [](const Value&, const std::string&, const Reading&) { return true; },
          [](const bool&) -> std::optional<std::string> { return std::nullopt; }};
}

const Words<int>& scheduling_policies() {
  static const Words<int> words = {
      {"LIFO", 0, "last in, first out"}, {"FIFO", 1, "first in, first out"}, {"EXPLICIT", 2, "an explicit order"}};
  return words;
}

void add_accepted_keys(Keys<Configuration>& keys) {
  const auto never = [](const auto&) { return false; };
  const auto always = [](const auto&) { return true; };
  add_without_effect<int>(
      keys,
      {.name = "scheduling-policy", .becomes = "-", .help = "accepted, without effect", .otherwise = Default::none()},
      word(scheduling_policies()), never);
  add_without_effect<bool>(
      keys, {.name = "trace-enabled", .becomes = "-", .help = "accepted, without effect", .otherwise = Default::none()},
      zero_or_one(), never);
  add_without_effect<bool>(keys,
                           {.name = "boost-mode",
                            .becomes = "-",
                            .help = "accepted, without effect; a warning names it if it is 1",
                            .otherwise = Default::none()},
                           zero_or_one(), [](const bool& is_on) { return is_on; });
  add_without_effect<bool>(keys,
                           {.name = "track-local-mem",
                            .becomes = "-",
                            .help = "accepted, without effect: results have the peaks anyway",
                            .otherwise = Default::none()},
                           zero_or_one(), never);
  add_without_effect<std::string>(keys,
                                  {.name = "local-mem-trace-filename",
                                   .becomes = "-",
                                   .help = "accepted, without effect",
                                   .otherwise = Default::none()},
                                  any_text("the name of a file"), never);
  static constexpr Text numbers[] = {"local-reduction-delay", "L", "o", "g", "G"};
  for (const Text& name : numbers)
    add_without_effect<double>(keys,
                               {.name = name,
                                .becomes = "-",
                                .help = "accepted, without effect; a warning names it",
                                .otherwise = Default::none()},
                               number("0 or more"), always);
  static constexpr Text policies[] = {"intra-dimension-scheduling", "inter-dimension-scheduling"};
  for (const Text& name : policies)
    add_without_effect<bool>(keys,
                             {.name = name,
                              .becomes = "-",
                              .help = "accepted, without effect; a warning names it",
                              .otherwise = Default::none()},
                             anything(), always);
}

/// Adds the key that would change results in a way that is not modelled.
void add_refused_key(Keys<Configuration>& keys) {
  keys.add_astra_sim({.name = "model-shared-bus",
                      .becomes = "-",
                      .help = "refused if it is 1: the shared bus is not modelled",
                      .otherwise = Default::none()},
                     zero_or_one().info,
                     {[](const Value& value, const std::string& path, Configuration&, Reading& reading) {
                        if (zero_or_one().read(value, path, reading))
                          throw Error(ErrorCode::bad_input, value.place(path),
                                      "the shared bus between NPU and memory is not modelled", "0",
                                      "Set it to 0; L, o, g and G have no effect then.");
                      },
                      {},
                      {}});
}

void refuse_other_implementations(const Section& section, Faults& faults) {
  for (const auto* entry : section.unknown())
    if (entry->key.find("-implementation-") != std::string::npos || entry->key.ends_with("-custom-implementation"))
      faults.add(Error(ErrorCode::bad_input, entry->value.place(entry->key),
                       "collective algorithms from files are not given by this key",
                       "'...-implementation-custom' of all-reduce, all-gather, reduce-scatter, all-to-all, or "
                       "'per-node-custom-implementation'"));
}

}  // namespace

const Keys<Configuration>& system_json_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.json");
    add_implementations(keys);
    add_scheduling(keys);
    add_compute(keys);
    add_accepted_keys(keys);
    add_refused_key(keys);
    return keys;
  }();
  return all;
}

void read_system_json(const AstraSimInputs& files, Reading& reading) {
  with_file(files.system, "system.json", reading, parse_astra_sim_system, [&](const Value& root) {
    Configuration& result = reading.configuration;
    Sections sections(Section(&root, "", root, reading.faults));
    read_keys(system_json_keys(), sections, result, reading);
    result.collectives.chunks.queues = files.num_queues_per_dim;
    result.execution.rendezvous = files.rendezvous;
    refuse_other_implementations(sections.at(""), reading.faults);
    warn_without_effect(sections.at(""), files.system, reading);
  });
}

}  // namespace orrery::config
