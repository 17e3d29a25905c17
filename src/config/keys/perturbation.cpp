#include <algorithm>
#include <tuple>

#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"

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

constexpr Handling<Configuration> compute_speed() {
  return {read_compute_speed,
          [](const Configuration& c, std::string_view path, Writer& writer) {
            const auto& [file, speeds] = std::tie(c.perturbation.compute_speed_file, c.perturbation.compute_speed);
            if (file)
              writer.put(path, in_quotes(normal_path(*file)));
            else if (!speeds.empty())
              writer.put(path, fmt::format("[{}]", fmt::join(speeds, ", ")));
          },
          [](const Configuration& a, const Configuration& b) {
            const auto file = [](const Configuration& c) {
              return c.perturbation.compute_speed_file ? normal_path(*c.perturbation.compute_speed_file) : "";
            };
            return a.perturbation.compute_speed == b.perturbation.compute_speed && file(a) == file(b);
          }};
}

constexpr Handling<Configuration> slow_npus() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            const auto& items = as_list(value, path, find_key("perturbation.slow-npus")->info().expected({}));
            target.perturbation.slow_npus.clear();
            read_items(slow_npu_keys(), items, path, reading, [&](Perturbation::SlowNpus&& slow, const Place&, bool) {
              target.perturbation.slow_npus.push_back(std::move(slow));
            });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& slow : c.perturbation.slow_npus) items.push_back(flow_text(slow_npu_keys(), slow));
            if (!items.empty()) writer.put_list(path, items);
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
  if (!links.switches.empty() && !links.npus.empty())
    throw Error(ErrorCode::bad_input, place_in(place, "npus"), "found NPUs beside switches", "one of the two");
  if (reading.num_npus() == 0 || (links.npus.empty() && links.switches.empty())) return;
  try {
    all.add(link_fault(links));
  } catch (const Error& error) {
    const bool is_there = links.dimension < reading.configuration.dimensions.size();
    throw Error(error.code(), place_in(place, is_there ? (links.npus.empty() ? "switches" : "npus") : "dimension"),
                error.text());
  }
}

constexpr Handling<Configuration> changed_links() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            topology::Links all(target.dimensions);
            const auto& items = as_list(value, path, find_key("perturbation.links")->info().expected({}));
            target.perturbation.links.clear();
            read_items(link_keys(), items, path, reading, [&](LinkEntry&& entry, const Place& place, bool) {
              const bool can_be = reading.faults.attempt([&] { add_links(entry, place, reading, all); });
              if (can_be && (!entry.links.npus.empty() || !entry.links.switches.empty()))
                target.perturbation.links.push_back(std::move(entry.links));
            });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& links : c.perturbation.links)
              items.push_back(flow_text(link_keys(), LinkEntry{links, !links.failed}));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) { return a.perturbation.links == b.perturbation.links; }};
}

/// Returns how a factor of the ports is read: an entry that gives it changes the links.
template <double topology::Port::*member>
constexpr Handling<LinkEntry> factor_of() {
  return {[](const Value& value, const std::string& at, LinkEntry& entry, Reading& reading) {
            entry.has_factors = true;
            entry.links.port.*member = factor().read(value, at, reading);
          },
          [](const LinkEntry& entry, std::string_view path, Writer& writer) {
            if (entry.has_factors) writer.put(path, fmt::to_string(entry.links.port.*member));
          },
          [](const LinkEntry& a, const LinkEntry& b) { return a.links.port.*member == b.links.port.*member; }};
}

constexpr Handling<LinkEntry> switch_names() {
  return {[](const Value& value, const std::string& path, LinkEntry& entry, Reading&) {
            const auto refuse = [&] {
              throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                          "the name of a switch such as 'router 3', or a list of two");
            };
            if (value.kind == Value::Kind::scalar) {
              entry.links.switches = {value.text};
            } else {
              if (value.kind != Value::Kind::sequence || value.items.empty() || value.items.size() > 2) refuse();
              for (const Value& item : value.items) {
                if (item.kind != Value::Kind::scalar) refuse();
                entry.links.switches.push_back(item.text);
              }
            }
          },
          [](const LinkEntry& entry, std::string_view path, Writer& writer) {
            if (!entry.links.switches.empty())
              writer.put(path, fmt::format("[{}]", fmt::join(entry.links.switches, ", ")));
          },
          [](const LinkEntry& a, const LinkEntry& b) { return a.links.switches == b.links.switches; }};
}

constexpr Handling<Configuration> distributions() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            const auto& items = as_list(value, path, find_key("perturbation.distributions")->info().expected({}));
            Variations& variations = target.execution.noise.variations;
            variations = {};
            read_items(distribution_keys(), items, path, reading,
                       [&](Variation&& variation, const Place& place, bool is_faultless) {
                         if (is_faultless && reading.faults.attempt([&] { require_sound(variation, place); }))
                           variations.add(std::move(variation));
                       });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& variation : c.execution.noise.variations.all())
              items.push_back(flow_text(distribution_keys(), variation));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.noise.variations == b.execution.noise.variations;
          }};
}

constexpr Row<Configuration> perturbation_rows[] = {
    {"perturbation.base", "file whose keys apply where `perturbation` does not set them",
     "perturbations/megascale.yaml", Default::none(), file(), replaced_before()},

    // Adds what is drawn.
    {"perturbation.noise",
     "share by which compute times vary: each is multiplied by 1 + noise r, with r in [-1, 1) drawn "
     "for each NPU, node and iteration",
     "0.05", Default::built_in(), share(), [](auto& c) { return &c.execution.noise.amplitude; },
     flag("noise", Heading::model, "SHARE", {Taker::run, Taker::check}), excludes("system.compute.noise")},
    {"perturbation.noise-seed", "seed of the draws, which do not depend on the number of ranks", "7",
     Default::built_in(), count(0), [](auto& c) { return &c.execution.noise.seed; },
     flag("noise-seed", Heading::model, "N", {Taker::run, Taker::check}), excludes("system.compute.noise-seed")},
    {"perturbation.distributions",
     "distributions from which factors of times are drawn: of compute per machine, NPU, step and node, "
     "and of the network per collective and message; the keys of an entry are those of "
     "`perturbation.distributions`",
     "[{per: machine, kind: tail, probability: 0.005, factor: 1.1}]", Default::none(),
     ValueInfo("list", "a list of distributions", "-", "any"), distributions(),
     see("model.md, *Distributions of times*")},
    {"perturbation.repetitions",
     "runs, with the seeds noise-seed, noise-seed + 1 and so on; the summary gives mean and confidence "
     "interval of the step time, and all other results are of the first run",
     "20", Default::built_in(), count(1), [](auto& c) { return &c.perturbation.repetitions; },
     see("user-guide.md, *Several steps*"), flag("repetitions", Heading::model, "N", {Taker::run, Taker::check}),
     written_unless_default()},
    {"perturbation.slow-npus",
     "NPUs that compute faster or slower; the keys of an entry are those of `perturbation.slow-npus`",
     "[{npus: \"3,64-71\", compute: 0.8}]", Default::none(),
     ValueInfo("list", "a list of NPUs and factors", "-", "any"), slow_npus()},
    {"perturbation.compute-speed",
     "factors of the compute speed of all NPUs: a list, or a file with one in each line (empty lines and "
     "lines with `#` do not count)",
     "speeds.txt", Default::described("1 for all"),
     ValueInfo("list or file", "a list of factors, one for each NPU, or a file that has one a line", "-",
               "1e-6 to 1e6 each"),
     compute_speed()},
    {"perturbation.links",
     "links that are slower or faster, or that failed; the keys of an entry are those of `perturbation.links`",
     "[{dimension: 1, npus: 0-7, bandwidth: 0.5}]", Default::none(),
     ValueInfo("list", "a list of changed links", "-", "any"), changed_links()},
};

constexpr Row<Perturbation::SlowNpus> slow_npu_rows[] = {
    {"perturbation.slow-npus.npus", "NPUs that are meant", "\"3,17,64-71\"", Default::needed(), npu_list(),
     [](auto& slow) { return &slow.npus; }},
    {"perturbation.slow-npus.compute", "factor of their compute speed; factors for one NPU multiply", "0.8",
     Default::needed(), factor(), [](auto& slow) { return &slow.compute; }},
};

constexpr Row<LinkEntry> link_rows[] = {
    {"perturbation.links.dimension", "dimension of the links, 0 innermost", "0", Default::needed(), count(0),
     [](auto& entry) { return &entry.links.dimension; }},
    {"perturbation.links.switches",
     "a switch whose links are meant, or two, and the links between them, by the names that results give them",
     "[edge 0, aggregation 1]", Default::none(),
     ValueInfo("list", "the name of a switch, or a list of two", "-", "1 or 2 names"), switch_names()},
    {"perturbation.links.npus",
     "NPUs whose links are meant; of a failed link the two NPUs that it joined, or those that lost one of several "
     "links to their switch",
     "0-7", Default::described("needed without `switches`"), npu_list(), [](auto& entry) { return &entry.links.npus; },
     needed_if([](const LinkEntry& entry, const Reading&) { return entry.links.switches.empty(); },
               "there are no `switches`"),
     written_if([](const LinkEntry& entry) { return !entry.links.npus.empty(); })},
    {"perturbation.links.bandwidth", "factor of the bandwidth of the links", "0.5", Default::described("1"), factor(),
     factor_of<&topology::Port::bandwidth>()},
    {"perturbation.links.latency", "factor of the latency of the links", "2", Default::described("1"), factor(),
     factor_of<&topology::Port::latency>()},
    {"perturbation.links.failed",
     "the link between the two NPUs, or one of the `links` of each NPU to its switch, carries nothing", "true",
     Default::built_in(), boolean(), [](auto& entry) { return &entry.links.failed; }, written_unless_default()},
};

}  // namespace

const Keys<Configuration>& perturbation_keys() {
  static const Keys<Configuration> all("perturbation", perturbation_rows);
  return all;
}

const Keys<Perturbation::SlowNpus>& slow_npu_keys() {
  static const Keys<Perturbation::SlowNpus> all("perturbation.slow-npus", slow_npu_rows, "perturbation.slow-npus");
  return all;
}

const Keys<LinkEntry>& link_keys() {
  static const Keys<LinkEntry> all("perturbation.links", link_rows, "perturbation.links");
  return all;
}

topology::LinkFault link_fault(const Perturbation::Links& links) {
  topology::LinkFault fault{links.dimension, {}, links.port, links.failed, links.switches};
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
