#include <algorithm>
#include <tuple>

#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

void read_compute_speed(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  Perturbation& perturbation = target.perturbation;
  perturbation.compute_speed.clear();
  if (value.kind == Value::Kind::scalar) {
    const auto file = as_path(value, path);
    std::string text = read_text(file, value.place(path));
    perturbation.compute_speed = parse_factors(text, file.string());
    perturbation.compute_speed_file = file;
    target.inputs.emplace_back("compute-speed.txt", std::move(text));
  } else {
    const auto type = factor();
    const auto& items = as_list(value, path, "a list of factors, one for each NPU, or a file that has one a line");
    for (std::size_t i = 0; i < items.size(); ++i)
      perturbation.compute_speed.push_back(type.read(items[i], fmt::format("{}.{}", path, i), reading));
  }
  const auto count = perturbation.compute_speed.size();
  const std::uint32_t num_npus = reading.num_npus();
  if (num_npus == 0 || count == num_npus) return;
  perturbation.compute_speed.clear();
  throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", counted(count, "factor")),
              fmt::format("one for each of the {} NPUs", num_npus));
}

Handling<Configuration> compute_speed() {
  return {read_compute_speed,
          [](const Configuration& c, Writer& writer) {
            const auto& [file, speeds] = std::tie(c.perturbation.compute_speed_file, c.perturbation.compute_speed);
            if (file)
              writer.put("perturbation.compute-speed", in_quotes(normal_path(*file)));
            else if (!speeds.empty())
              writer.put("perturbation.compute-speed", fmt::format("[{}]", fmt::join(speeds, ", ")));
          },
          [](const Configuration& a, const Configuration& b) {
            const auto file = [](const Configuration& c) {
              return c.perturbation.compute_speed_file ? normal_path(*c.perturbation.compute_speed_file) : "";
            };
            return a.perturbation.compute_speed == b.perturbation.compute_speed && file(a) == file(b);
          }};
}

Handling<Configuration> slow_npus() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            const auto& items = as_list(value, path, find_key("perturbation.slow-npus")->info().expected({}));
            target.perturbation.slow_npus.clear();
            read_items(slow_npu_keys(), items, path, reading, [&](Perturbation::SlowNpus&& slow, const Place&, bool) {
              target.perturbation.slow_npus.push_back(std::move(slow));
            });
          },
          [](const Configuration& c, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& slow : c.perturbation.slow_npus) items.push_back(flow_text(slow_npu_keys(), slow));
            if (!items.empty()) writer.put_list("perturbation.slow-npus", items);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.perturbation.slow_npus == b.perturbation.slow_npus;
          }};
}

/// Returns the place of a key of the mapping at `place`.
Place place_in(Place place, std::string_view key) {
  place.key += fmt::format(".{}", key);
  return place;
}

/// Throws Error (bad_input) for what `all`, the links of the entries before it, cannot have.
void add_links(const LinkEntry& entry, const Place& place, const Reading& reading, topology::Links& all) {
  const Perturbation::Links& links = entry.links;
  if (links.failed == entry.has_factors)
    throw Error(
        ErrorCode::bad_input, place_in(place, "failed"),
        links.failed ? "a failed link has neither bandwidth nor latency" : "the entry changes nothing of the links",
        "factors of 'bandwidth' or 'latency', or 'failed: true'");
  if (reading.num_npus() == 0 || links.npus.empty()) return;
  try {
    all.add(link_fault(links));
  } catch (const Error& error) {
    const bool is_there = links.dimension < reading.configuration.dimensions.size();
    throw Error(error.code(), place_in(place, is_there ? "npus" : "dimension"), error.text());
  }
}

Handling<Configuration> changed_links() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            topology::Links all(target.dimensions);
            const auto& items = as_list(value, path, find_key("perturbation.links")->info().expected({}));
            target.perturbation.links.clear();
            read_items(link_keys(), items, path, reading, [&](LinkEntry&& entry, const Place& place, bool) {
              const bool can_be = reading.faults.attempt([&] { add_links(entry, place, reading, all); });
              if (can_be && !entry.links.npus.empty()) target.perturbation.links.push_back(std::move(entry.links));
            });
          },
          [](const Configuration& c, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& links : c.perturbation.links)
              items.push_back(flow_text(link_keys(), LinkEntry{links, !links.failed}));
            if (!items.empty()) writer.put_list("perturbation.links", items);
          },
          [](const Configuration& a, const Configuration& b) { return a.perturbation.links == b.perturbation.links; }};
}

/// Returns how a factor of the ports is read: an entry that gives it changes the links.
Handling<LinkEntry> factor_of(double topology::Port::*member, std::string_view path) {
  return {[=](const Value& value, const std::string& at, LinkEntry& entry, Reading& reading) {
            entry.has_factors = true;
            entry.links.port.*member = factor().read(value, at, reading);
          },
          [=](const LinkEntry& entry, Writer& writer) {
            if (entry.has_factors) writer.put(path, fmt::to_string(entry.links.port.*member));
          },
          [=](const LinkEntry& a, const LinkEntry& b) { return a.links.port.*member == b.links.port.*member; }};
}

/// Adds what is drawn.
void add_draws(Keys<Configuration>& keys) {
  keys.add(
          {.path = "perturbation.noise",
           .help = "share by which compute times vary: each is multiplied by 1 + noise r, with r in [-1, 1) drawn "
                   "for each NPU, node and iteration",
           .example = "0.05",
           .otherwise = Default::built_in(),
           .flag = Flag{.name = "noise",
                        .heading = Heading::model,
                        .argument = "SHARE",
                        .commands = {Taker::run, Taker::check}}},
          share(), [](auto& c) -> auto& { return c.execution.noise.amplitude; })
      .excludes("system.compute.noise");
  keys.add(
          {.path = "perturbation.noise-seed",
           .help = "seed of the draws, which do not depend on the number of ranks",
           .example = "7",
           .otherwise = Default::built_in(),
           .flag = Flag{.name = "noise-seed",
                        .heading = Heading::model,
                        .argument = "N",
                        .commands = {Taker::run, Taker::check}}},
          count(0), [](auto& c) -> auto& { return c.execution.noise.seed; })
      .excludes("system.compute.noise-seed");
  keys.add({.path = "perturbation.distributions",
            .help = "distributions from which factors of times are drawn: of compute per machine, NPU, step and node, "
                    "and of the network per collective and message; the keys of an entry are those of "
                    "`perturbation.distributions`",
            .example = "[{per: machine, kind: tail, probability: 0.005, factor: 1.1}]",
            .otherwise = Default::none(),
            .see = "model.md, *Distributions of times*"},
           {"list", "a list of distributions", "-", "any"}, distributions());
  keys.add(
          {.path = "perturbation.repetitions",
           .help = "runs, with the seeds noise-seed, noise-seed + 1 and so on; the summary gives mean and confidence "
                   "interval of the step time, and all other results are of the first run",
           .example = "20",
           .otherwise = Default::built_in(),
           .see = "user-guide.md, *Several steps*",
           .flag = Flag{.name = "repetitions",
                        .heading = Heading::model,
                        .argument = "N",
                        .commands = {Taker::run, Taker::check}}},
          count(1), [](auto& c) -> auto& { return c.perturbation.repetitions; })
      .written_unless_default();
}

}  // namespace

const Keys<Configuration>& perturbation_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("perturbation");
    keys.add({.path = "perturbation.base",
              .help = "file whose keys hold where `perturbation` has none of its own",
              .example = "perturbations/megascale.yaml",
              .otherwise = Default::none()},
             file().info, replaced_before());
    add_draws(keys);
    keys.add({.path = "perturbation.slow-npus",
              .help = "NPUs that compute faster or slower; the keys of an entry are those of `perturbation.slow-npus`",
              .example = "[{npus: \"3,64-71\", compute: 0.8}]",
              .otherwise = Default::none()},
             {"list", "a list of NPUs and factors", "-", "any"}, slow_npus());
    keys.add(
        {.path = "perturbation.compute-speed",
         .help = "factors of the compute speed of all NPUs: a list, or a file with one in each line (empty lines and "
                 "lines with `#` do not count)",
         .example = "speeds.txt",
         .otherwise = Default::described("1 for all")},
        {"list or file", "a list of factors, one for each NPU, or a file that has one a line", "-", "1e-6 to 1e6 each"},
        compute_speed());
    keys.add(
        {.path = "perturbation.links",
         .help =
             "links that are slower or faster, or that failed; the keys of an entry are those of `perturbation.links`",
         .example = "[{dimension: 1, npus: 0-7, bandwidth: 0.5}]",
         .otherwise = Default::none()},
        {"list", "a list of changed links", "-", "any"}, changed_links());
    return keys;
  }();
  return all;
}

const Keys<Perturbation::SlowNpus>& slow_npu_keys() {
  static const Keys<Perturbation::SlowNpus> all = [] {
    Keys<Perturbation::SlowNpus> keys("perturbation.slow-npus", "perturbation.slow-npus");
    keys.add(
        {.path = "perturbation.slow-npus.npus",
         .help = "NPUs that are meant",
         .example = "\"3,17,64-71\"",
         .otherwise = Default::needed()},
        npu_list(), [](auto& slow) -> auto& { return slow.npus; });
    keys.add(
        {.path = "perturbation.slow-npus.compute",
         .help = "factor of their compute speed; factors for the same NPU multiply",
         .example = "0.8",
         .otherwise = Default::needed()},
        factor(), [](auto& slow) -> auto& { return slow.compute; });
    return keys;
  }();
  return all;
}

const Keys<LinkEntry>& link_keys() {
  static const Keys<LinkEntry> all = [] {
    Keys<LinkEntry> keys("perturbation.links", "perturbation.links");
    keys.add(
        {.path = "perturbation.links.dimension",
         .help = "dimension of the links, 0 innermost",
         .example = "0",
         .otherwise = Default::needed()},
        count(0), [](auto& entry) -> auto& { return entry.links.dimension; });
    keys.add(
        {.path = "perturbation.links.npus",
         .help = "NPUs whose links are meant; of a failed link the two NPUs that it joined",
         .example = "0-7",
         .otherwise = Default::needed()},
        npu_list(), [](auto& entry) -> auto& { return entry.links.npus; });
    keys.add({.path = "perturbation.links.bandwidth",
              .help = "factor of the bandwidth of the links",
              .example = "0.5",
              .otherwise = Default::described("1")},
             factor().info, factor_of(&topology::Port::bandwidth, "perturbation.links.bandwidth"));
    keys.add({.path = "perturbation.links.latency",
              .help = "factor of the latency of the links",
              .example = "2",
              .otherwise = Default::described("1")},
             factor().info, factor_of(&topology::Port::latency, "perturbation.links.latency"));
    keys.add(
            {.path = "perturbation.links.failed",
             .help = "the link between the two NPUs carries nothing",
             .example = "true",
             .otherwise = Default::built_in()},
            boolean(), [](auto& entry) -> auto& { return entry.links.failed; })
        .written_unless_default();
    return keys;
  }();
  return all;
}

topology::LinkFault link_fault(const Perturbation::Links& links) {
  topology::LinkFault fault{links.dimension, {}, links.port, links.failed};
  for (const NpuRange& range : links.npus)
    for (std::uint64_t npu = range.first; npu <= range.last; ++npu)
      fault.npus.emplace_back(static_cast<std::uint32_t>(npu));
  return fault;
}

std::vector<double> parse_factors(const std::string& text, const std::string& file) {
  std::vector<double> factors;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at = end + 1;
    const Place place{.file = file, .line = ++number};
    if (line.empty() || line.starts_with('#')) continue;
    factors.push_back(parse_number(line, place));
    require_factor(factors.back(), place);
  }
  return factors;
}

std::vector<double> compute_speeds(const Perturbation& perturbation, const Variations& variations,
                                   std::uint32_t num_npus) {
  std::vector<double> speeds = perturbation.compute_speed;
  const bool are_drawn = variations.has(DrawnPer::machine) || variations.has(DrawnPer::npu);
  if (are_drawn || !perturbation.slow_npus.empty()) speeds.resize(num_npus, 1);
  for (const auto& slow : perturbation.slow_npus)
    for (const NpuRange& range : slow.npus)
      for (std::size_t npu = range.first; npu <= range.last; ++npu) speeds[npu] *= slow.compute;
  for (std::size_t npu = 0; are_drawn && npu < speeds.size(); ++npu)
    speeds[npu] /= variations.factor(DrawnPer::machine, {npu}) * variations.factor(DrawnPer::npu, {npu});
  return speeds;
}

}  // namespace orrery::config
