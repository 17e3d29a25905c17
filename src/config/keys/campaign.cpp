#include <algorithm>
#include <cmath>
#include <ranges>

#include "campaign_values.hpp"
#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

using campaign::ProcessOptions;
using campaign::Symptom;
using campaign::TierOptions;

constexpr Type<double> probability() { return number("0 to 1"); }

/// Returns the row of a probability.
template <class Target, class Access>
consteval Row<Target> share_row(Text path, Text help, Text example, Access access) {
  return {path,
          help,
          example,
          Default::built_in(),
          probability(),
          access,
          check([](const Target& target, const Place& place, const Reading&) {
            Target copy = target;
            require_share_of_one(*Access{}(copy), place);
          }),
          written_unless_default()};
}

constexpr Handling<TierOptions> survivals() {
  return {[](const Value& value, const std::string& path, TierOptions& tier, Reading&) {
            static const std::vector<std::string_view> words = {"host", "group"};
            tier.survives_host = tier.survives_group = false;
            const auto& items = as_list(value, path, "a list of host and group");
            for (std::size_t i = 0; i < items.size(); ++i) {
              const std::string at = fmt::format("{}.{}", path, i);
              const std::string word = as_text(items[i], at, "host or group");
              if (word == "host")
                tier.survives_host = true;
              else if (word == "group")
                tier.survives_group = true;
              else
                refuse_word(items[i], at, words);
            }
          },
          [](const TierOptions& tier, std::string_view path, Writer& writer) {
            if (tier.survives_host != tier.survives_group)
              writer.put(path, tier.survives_host ? "[host]" : "[group]");
            else if (tier.survives_host)
              writer.put(path, "[host, group]");
          },
          [](const TierOptions& a, const TierOptions& b) {
            return a.survives_host == b.survives_host && a.survives_group == b.survives_group;
          }};
}

constexpr Row<TierOptions> checkpoint_rows[] = {
    {"campaign.checkpoint.kind", "place of the checkpoints", "peer", Default::built_in(), word<checkpoint_tiers>(),
     [](auto& tier) { return &tier.kind; }},
    {"campaign.checkpoint.interval",
     "work between two checkpoints: whole steps, a multiple of those of the tier before", "20 steps", Default::needed(),
     work_amount(), [](auto& tier) { return &tier.interval; }},
    {"campaign.checkpoint.mode", "whether the job stops for the whole write, or for the copy to host memory",
     "asynchronous", Default::built_in(), word<checkpoint_modes>(), [](auto& tier) { return &tier.asynchronous; }},
    {"campaign.checkpoint.stall", "time for which the job stops", "2 s", Default::none(), optional_time(),
     [](auto& tier) { return &tier.stall; }, see("campaign.md")},
    {"campaign.checkpoint.durable", "time from the snapshot until a restart may use the checkpoint", "60 s",
     Default::none(), optional_time(), [](auto& tier) { return &tier.durable; }},
    {"campaign.checkpoint.read", "time to read the checkpoint in a restart", "45 s", Default::none(), optional_time(),
     [](auto& tier) { return &tier.read; }},
    {"campaign.checkpoint.keep", "checkpoints that are kept", "4", Default::built_in(), count(1, 1000),
     [](auto& tier) { return &tier.keep; }},
    {"campaign.checkpoint.survives", "failures that the checkpoints survive: of a host, of a group", "[host]",
     Default::described("[host, group]"), ValueInfo("list", "a list of host and group", "-", "host, group"),
     survivals()},
    {"campaign.checkpoint.writers", "NPUs that write a checkpoint", "first-replica", Default::built_in(),
     word<checkpoint_writers>(), [](auto& tier) { return &tier.writers; }},
    {"campaign.checkpoint.bytes-per-parameter", "bytes of a checkpoint for each parameter of the model", "16",
     Default::built_in(), number("more than 0"), [](auto& tier) { return &tier.bytes_per_parameter; }},
};

constexpr Handling<FailureEntry> life_distribution() {
  return {[](const Value& value, const std::string& path, FailureEntry& entry, Reading& reading) {
            double& shape = entry.options.process.weibull_shape;
            shape = 0;
            if (value.kind == Value::Kind::scalar && value.text == "exponential") return;
            Section section(&value, path, value, reading.faults);
            const Value* const found = section.need("weibull", "exponential or {weibull: SHAPE}");
            section.refuse_unknown();
            if (found == nullptr) return;
            shape = as_number(*found, path + ".weibull");
            if (shape < 0.1 || shape > 10)
              throw Error(ErrorCode::bad_input, found->place(path + ".weibull"), fmt::format("found {}", shape),
                          "shape must be from 0.1 to 10");
          },
          [](const FailureEntry& entry, std::string_view path, Writer& writer) {
            const double shape = entry.options.process.weibull_shape;
            if (shape > 0) writer.put(path, fmt::format("{{weibull: {}}}", shape));
          },
          [](const FailureEntry& a, const FailureEntry& b) {
            return a.options.process.weibull_shape == b.options.process.weibull_shape;
          }};
}

constexpr Handling<FailureEntry> known_times() {
  return {[](const Value& value, const std::string& path, FailureEntry& entry, Reading&) {
            const auto& items = as_list(value, path, "a list of times");
            for (std::size_t i = 0; i < items.size(); ++i)
              entry.options.at.push_back(as_long_time(items[i], fmt::format("{}.{}", path, i)));
          },
          [](const FailureEntry& entry, std::string_view path, Writer& writer) {
            std::vector<std::string> times;
            for (const auto time : entry.options.at) times.push_back(long_time_text(time));
            if (!times.empty()) writer.put(path, fmt::format("[{}]", fmt::join(times, ", ")));
          },
          [](const FailureEntry& a, const FailureEntry& b) { return a.options.at == b.options.at; }};
}

template <Symptom... kinds>
bool has_symptom(const FailureEntry& entry) {
  return ((entry.options.process.symptom == kinds) || ...);
}

constexpr Row<FailureEntry> failure_rows[] = {
    {"campaign.failures.name", "name of the failures in results", "gpu",
     Default::described("failure-0 for the first process, and so on"), any_text("a name"),
     [](auto& entry) { return &entry.options.process.name; }},
    {"campaign.failures.per", "unit that fails", "npu", Default::built_in(), word<failure_units>(),
     [](auto& entry) { return &entry.options.process.per; }},
    {"campaign.failures.rate", "failures of a unit in some time of exposure", "0.2 per 1000 days", Default::none(),
     daily_rate(), [](auto& entry) { return &entry.options.process.rate; }},
    {"campaign.failures.mtbf", "mean time between failures of a unit, in place of `rate`", "900 d", Default::none(),
     long_time(), [](auto& entry) { return &entry.mtbf; },
     written_if([](const FailureEntry& entry) { return entry.mtbf > 0; })},
    {"campaign.failures.distribution",
     "times between failures: exponential, or {weibull: SHAPE} with a shape from 0.1 to 10", "{weibull: 0.7}",
     Default::described("exponential"),
     ValueInfo("distribution", "exponential or {weibull: SHAPE}", "-", "shape from 0.1 to 10"), life_distribution()},
    {"campaign.failures.symptom", "effect of a failure on the job", "hang", Default::built_in(), word<symptoms>(),
     [](auto& entry) { return &entry.options.process.symptom; }, see("campaign.md")},
    {"campaign.failures.while", "when units are exposed", "running", Default::built_in(), word<exposures>(),
     [](auto& entry) { return &entry.options.process.exposure; }},
    {"campaign.failures.detect", "time from the failure to its detection", "10 min", Default::built_in(), time_spread(),
     [](auto& entry) { return &entry.options.process.detect; }},
    {"campaign.failures.repair", "whether hosts that failed are repaired and replaced", "false", Default::built_in(),
     boolean(), [](auto& entry) { return &entry.options.process.repairs; }},
    {"campaign.failures.bad", "whether bad hosts have the higher rate of `campaign.bad`", "false", Default::built_in(),
     boolean(), [](auto& entry) { return &entry.options.process.counts_bad; }},
    {"campaign.failures.speed", "speed of the job until a straggler is found", "0.8", Default::none(),
     number("more than 0, 1 at the most"), [](auto& entry) { return &entry.options.process.speed; },
     only_if(has_symptom<Symptom::slow>, "symptom: slow"),
     check([](const FailureEntry& entry, const Place& place, const Reading&) {
       require_relative_speed(entry.options.process.speed, place);
     }),
     written_if([](const FailureEntry& entry) { return entry.options.compute == 0; })},
    {"campaign.failures.compute", "speed of the NPUs of a straggler, with which a step is simulated", "0.7",
     Default::none(), number("more than 0, 1 at the most"), [](auto& entry) { return &entry.options.compute; },
     only_if(has_symptom<Symptom::slow>, "symptom: slow"),
     check([](const FailureEntry& entry, const Place& place, const Reading&) {
       require_relative_speed(entry.options.compute, place);
     }),
     excludes("campaign.failures.speed"),
     written_if([](const FailureEntry& entry) { return entry.options.compute > 0; })},
    {"campaign.failures.notice", "whether a checkpoint is taken before a pause", "true", Default::built_in(), boolean(),
     [](auto& entry) { return &entry.options.process.has_notice; },
     only_if(has_symptom<Symptom::pause>, "symptom: pause")},
    {"campaign.failures.length", "time of a pause", "2 h", Default::built_in(), time_spread(),
     [](auto& entry) { return &entry.options.process.length; }, only_if(has_symptom<Symptom::pause>, "symptom: pause")},
    {"campaign.failures.at", "times of pauses that are known beforehand", "[30 d, 60 d]", Default::none(),
     ValueInfo("list", "a list of times", "s", "0 s to 100 years each"), known_times(),
     only_if(has_symptom<Symptom::pause>, "symptom: pause")},
};

/// Reads one line "time, host, process" of recorded failures. Returns nothing for a heading.
std::optional<campaign::Recorded> parse_recorded(std::string_view line, const Place& place,
                                                 std::vector<ProcessOptions>& processes, bool adds) {
  std::vector<std::string> cells;
  for (const auto part : std::views::split(line, ','))
    cells.emplace_back(trimmed(std::string_view(part.begin(), part.end())));
  if (cells.size() != 3)
    throw Error(ErrorCode::bad_input, place, fmt::format("found {} cells", cells.size()), "time, host, process");
  if (cells[0] == "time") return {};
  campaign::Recorded recorded;
  Value time = option_value(cells[0]);
  if (!cells[0].empty() && cells[0].find_first_not_of("0123456789.eE+-") == std::string::npos) time.text += " s";
  try {
    recorded.time = as_long_time(time, "time");
    if (!cells[1].empty() && cells[1] != "job")
      recorded.host = static_cast<std::int64_t>(as_count(option_value(cells[1]), "host", 0));
  } catch (const Error& error) {
    throw Error(error.code(), place, error.text());
  }
  auto found = std::ranges::find(processes, cells[2], [](const ProcessOptions& p) { return p.process.name; });
  if (found == processes.end() && adds) {
    ProcessOptions added;
    added.process.name = cells[2];
    found = processes.insert(processes.end(), added);
  }
  if (found == processes.end())
    throw Error(ErrorCode::bad_input, place, fmt::format("found the process '{}'", cited(cells[2])),
                "a name of campaign.failures");
  recorded.process = static_cast<std::uint32_t>(found - processes.begin());
  return recorded;
}

/// Reads recorded failures; `adds`: they make the processes that they name.
void read_recorded(const Value& value, const std::string& path, bool adds, Configuration& target) {
  auto& options = target.campaign;
  const auto file = as_path(value, path);
  std::string text = read_text(file, value.place(path));
  std::uint64_t number = 0;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line = trimmed(std::string_view(part.begin(), part.end()), " \t\r");
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (auto recorded = parse_recorded(line, {.file = file.string(), .line = number}, options.processes, adds))
      options.recorded.push_back(*recorded);
  }
  std::ranges::stable_sort(options.recorded, {}, &campaign::Recorded::time);
  options.recorded_file = normal_path(file);
  target.inputs.emplace_back("failures.csv", std::move(text));
}

constexpr Handling<Configuration> failure_list() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            if (value.kind == Value::Kind::scalar) return read_recorded(value, path, true, target);
            auto& processes = target.campaign.processes;
            processes.clear();
            read_items(failure_keys(), as_list(value, path, "a list of processes, or a file of recorded failures"),
                       path, reading, [&](FailureEntry&& entry, const Place& place, bool is_faultless) {
                         auto& process = entry.options.process;
                         if (is_faultless && process.symptom == Symptom::slow && process.speed == 1 &&
                             entry.options.compute == 0)
                           reading.faults.add(Error(ErrorCode::bad_input, place,
                                                    "found symptom: slow without a speed below 1", "speed or compute"));
                         if (process.rate > 0 && entry.mtbf > 0)
                           reading.faults.add(
                               Error(ErrorCode::bad_input, place, "rate and mtbf exclude each other", "one of them"));
                         if (entry.mtbf > 0)
                           process.rate = campaign::seconds(campaign::day) / campaign::seconds(entry.mtbf);
                         if (process.name.empty()) process.name = fmt::format("failure-{}", processes.size());
                         processes.push_back(std::move(entry.options));
                       });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const ProcessOptions& options : c.campaign.processes)
              items.push_back(flow_text(failure_keys(), {.options = options, .mtbf = 0}));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) { return a.campaign.processes == b.campaign.processes; }};
}

constexpr Handling<Configuration> recorded_failures() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            read_recorded(value, path, false, target);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (!c.campaign.recorded_file.empty()) writer.put(path, in_quotes(c.campaign.recorded_file));
          },
          [](const Configuration& a, const Configuration& b) { return a.campaign.recorded == b.campaign.recorded; }};
}

constexpr Handling<Configuration> tier_list() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            auto& tiers = target.campaign.tiers;
            tiers.clear();
            if (value.kind == Value::Kind::sequence && value.items.empty()) return;
            read_items(tier_keys_of_campaign(), as_list(value, path, "a list of tiers"), path, reading,
                       [&](TierOptions&& tier, const Place&, bool) { tiers.push_back(tier); });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const TierOptions& tier : c.campaign.tiers) items.push_back(flow_text(tier_keys_of_campaign(), tier));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) { return a.campaign.tiers == b.campaign.tiers; }};
}

constexpr Handling<Configuration> groups_of_hosts() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            auto& hosts = target.campaign.hosts;
            hosts.groups.clear();
            if (value.kind == Value::Kind::scalar) {
              hosts.group_size = as_count(value, path);
              return;
            }
            const auto& items = as_list(value, path, "a number of hosts, or a list of groups such as [0-15, 16-31]");
            for (std::size_t i = 0; i < items.size(); ++i) {
              const std::string at = fmt::format("{}.{}", path, i);
              const auto range =
                  parse_npu_range(as_text(items[i], at, "hosts such as 0-15"), most_npus, items[i].place(at));
              auto& group = hosts.groups.emplace_back();
              for (std::uint32_t host = range.first; host <= range.last; ++host) group.push_back(host);
            }
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            const auto& hosts = c.campaign.hosts;
            std::vector<std::string> ranges;
            for (const auto& group : hosts.groups) ranges.push_back(fmt::format("{}-{}", group.front(), group.back()));
            if (!ranges.empty()) return writer.put(path, fmt::format("[{}]", fmt::join(ranges, ", ")));
            if (hosts.group_size > 0) writer.put(path, fmt::to_string(hosts.group_size));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.campaign.hosts.group_size == b.campaign.hosts.group_size &&
                   a.campaign.hosts.groups == b.campaign.hosts.groups;
          }};
}

void read_elastic_speeds(const Value& value, const std::string& path, Configuration& target, Reading&) {
  auto& speeds = target.campaign.elastic.speeds;
  speeds.clear();
  if (value.kind != Value::Kind::mapping)
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                "a mapping of replicas to speeds, such as {2: 0.55, 3: 0.8}");
  for (const auto& [key, line, speed] : value.entries) {
    const std::string at = fmt::format("{}.{}", path, key);
    speeds.emplace_back(static_cast<std::uint32_t>(parse_count(key, 1, 1U << 24U, speed.place(at))),
                        as_number(speed, at));
    require_relative_speed(speeds.back().second, speed.place(at));
  }
  std::ranges::sort(speeds);
}

constexpr Handling<Configuration> elastic_speeds() {
  return {read_elastic_speeds,
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> entries;
            for (const auto& [replicas, speed] : c.campaign.elastic.speeds)
              entries.push_back(fmt::format("{}: {}", replicas, speed));
            if (!entries.empty()) writer.put(path, fmt::format("{{{}}}", fmt::join(entries, ", ")));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.campaign.elastic.speeds == b.campaign.elastic.speeds;
          }};
}

/// Returns how the time of an automatic repair is read, which says that there are repairs.
constexpr Handling<Configuration> automatic_repair() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.campaign.repair.automatic = time_spread().read(value, path, reading);
            target.campaign.repair.any = true;
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (c.campaign.repair.any) writer.put(path, *time_spread().text(c.campaign.repair.automatic));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.campaign.repair.any == b.campaign.repair.any &&
                   a.campaign.repair.automatic == b.campaign.repair.automatic;
          }};
}

constexpr Handling<Configuration> ettr_accuracy() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            constexpr std::string_view expected = "a share of the wall time such as 0.5 %";
            std::string text = as_text(value, path, expected);
            const bool percent = text.ends_with('%');
            if (percent) text.pop_back();
            const double number = parse_number(trimmed(text), value.place(path), "more than 0");
            target.campaign.sampling.accuracy = percent ? number / 100 : number;
            if (!(target.campaign.sampling.accuracy >= 1e-6))
              throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.text), expected);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (c.campaign.sampling.accuracy > 0) writer.put(path, fmt::to_string(c.campaign.sampling.accuracy));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.campaign.sampling.accuracy == b.campaign.sampling.accuracy;
          }};
}

constexpr Row<Configuration> campaign_rows[] = {
    {"campaign.base", "file whose keys apply where `campaign` does not set them", "llama3-2024", Default::none(),
     file(), replaced_before(), see("campaign.md")},
    {"campaign.work", "work of the campaign: time of the full configuration, steps or tokens", "2 T tokens",
     Default::none(), work_amount(), [](auto& c) { return &c.campaign.work; }, see("campaign.md")},
    {"campaign.duration", "wall time after which the campaign ends", "90 d", Default::none(), long_time(),
     [](auto& c) { return &c.campaign.duration; }},
    {"campaign.step.time", "time of a step with all replicas", "4.8 s", Default::described("the simulated step"),
     optional_time(), [](auto& c) { return &c.campaign.step.time; }},
    {"campaign.step.tokens", "tokens of a step", "16000000", Default::described("those of the workload"),
     number("0 or more"), [](auto& c) { return &c.campaign.step.tokens; }, written_unless_default()},
    {"campaign.step.host-bandwidth", "bandwidth with which an NPU copies a checkpoint to host memory", "50 GB/s",
     Default::none(), bandwidth(), [](auto& c) { return &c.campaign.step.host_bandwidth; }},
    {"campaign.hosts.active", "hosts that the job needs", "2048",
     Default::described("the NPUs of the workload over `npus`"), count(0, 1U << 24U),
     [](auto& c) { return &c.campaign.hosts.active; }, written_unless_default()},
    {"campaign.hosts.npus", "NPUs of a host", "4", Default::built_in(), count(1, 1U << 20U),
     [](auto& c) { return &c.campaign.npus_per_host; }, written_unless_default()},
    {"campaign.hosts.standby", "warm hosts that take the places of failed ones", "16", Default::built_in(),
     count(0, 1U << 24U), [](auto& c) { return &c.campaign.hosts.standby; }, written_unless_default()},
    {"campaign.hosts.pool", "further hosts of the pool, from which hosts are selected", "48", Default::built_in(),
     count(0, 1U << 24U), [](auto& c) { return &c.campaign.hosts.pool; }, written_unless_default()},
    {"campaign.hosts.spare", "hosts of other jobs that are taken if the pool is empty", "200", Default::built_in(),
     count(0, 1U << 24U), [](auto& c) { return &c.campaign.hosts.spare; }, written_unless_default()},
    {"campaign.hosts.group", "hosts with consecutive numbers that fail together, or a list of groups", "16",
     Default::none(),
     ValueInfo("whole number or list", "a number of hosts, or groups such as [0-15, 16-31]", "-", "1 or more"),
     groups_of_hosts()},
    {"campaign.selection", "order in which hosts of the pool are taken", "fewest-failures", Default::built_in(),
     word<host_selections>(), [](auto& c) { return &c.campaign.hosts.selection; }, written_unless_default()},
    {"campaign.wait-for", "hosts for which a job waits that has too few", "standbys", Default::built_in(),
     word<awaited_hosts>(), [](auto& c) { return &c.campaign.hosts.wait_for_standbys; }, written_unless_default()},
    {"campaign.checkpoint", "tiers of checkpoints, the most frequent first; without any no work is lost",
     "[{kind: remote, interval: 100 steps}]", Default::none(),
     ValueInfo("list", "a list of tiers", "-", "the keys below"), tier_list(), see("campaign.md")},
    {"campaign.final-checkpoint", "whether a checkpoint is taken at the end of the work", "true", Default::built_in(),
     boolean(), [](auto& c) { return &c.campaign.final_checkpoint; }, written_unless_default()},
    {"campaign.restart.begin", "time of the start of the processes at the beginning", "10 min", Default::built_in(),
     long_time(), [](auto& c) { return &c.campaign.restart.begin; }, written_unless_default()},
    {"campaign.restart.start", "time of the start of the processes after a failure", "3 min", Default::built_in(),
     time_spread(), [](auto& c) { return &c.campaign.restart.start; }, written_unless_default()},
    {"campaign.restart.select", "time to select hosts anew", "3 min", Default::built_in(), long_time(),
     [](auto& c) { return &c.campaign.restart.select; }, written_unless_default()},
    {"campaign.restart.swap", "time until a standby has the place of a failed host", "30 s", Default::built_in(),
     long_time(), [](auto& c) { return &c.campaign.restart.swap; }, written_unless_default()},
    {"campaign.restart.spare-preemption", "time to take a spare host from another job", "20 min", Default::built_in(),
     long_time(), [](auto& c) { return &c.campaign.restart.spare_preemption; }, written_unless_default()},
    {"campaign.failures", "failure processes, or a file of recorded failures",
     "[{name: gpu, per: npu, rate: 0.2 per 1000 days}]", Default::none(),
     ValueInfo("list or file", "a list of processes, or a file", "-", "the keys below"), failure_list(),
     see("campaign.md")},
    {"campaign.recorded", "file of recorded failures of the processes: lines of time, host and process", "failures.csv",
     Default::none(), ValueInfo("file name", "the name of a file", "-", "any"), recorded_failures()},
    share_row<Configuration>("campaign.bad.fraction", "share of the hosts that fail more often until they are cured",
                             "0.05", [](auto& c) { return &c.campaign.hosts.bad_fraction; }),
    {"campaign.bad.factor", "rate of such a host over that of another one", "6", Default::built_in(), factor(),
     [](auto& c) { return &c.campaign.hosts.bad_factor; }, written_unless_default()},
    {"campaign.repair.auto", "time of an automatic repair", "{exponential: 2 h}",
     Default::described("hosts are back at once"),
     ValueInfo("time or distribution", "a time, or a distribution such as {exponential: 2 h}", "s", "0 s or more"),
     automatic_repair()},
    {"campaign.repair.manual", "time of a repair by hand, after the automatic one", "{exponential: 2 d}",
     Default::built_in(), time_spread(), [](auto& c) { return &c.campaign.repair.manual; }, written_unless_default()},
    share_row<Configuration>("campaign.repair.escalate", "probability that a host is repaired by hand too", "0.8",
                             [](auto& c) { return &c.campaign.repair.escalate; }),
    share_row<Configuration>("campaign.repair.auto-fails", "probability that an automatic repair cures nothing", "0.4",
                             [](auto& c) { return &c.campaign.repair.automatic_fails; }),
    share_row<Configuration>("campaign.repair.manual-fails", "probability that a repair by hand cures nothing", "0.2",
                             [](auto& c) { return &c.campaign.repair.manual_fails; }),
    share_row<Configuration>("campaign.diagnosis.found", "probability that a failure is traced to a host", "0.9",
                             [](auto& c) { return &c.campaign.repair.found; }),
    share_row<Configuration>("campaign.diagnosis.wrong", "probability that another host is repaired", "0.05",
                             [](auto& c) { return &c.campaign.repair.wrong; }),
    {"campaign.retire.failures", "failures after which a host is taken out for ever; 0: never", "3",
     Default::built_in(), count(0, 1U << 20U), [](auto& c) { return &c.campaign.repair.retire_failures; },
     written_unless_default()},
    {"campaign.retire.within", "time within which these failures count", "30 d", Default::described("all of it"),
     long_time(), [](auto& c) { return &c.campaign.repair.retire_within; }},
    {"campaign.elastic.hosts-per-replica", "hosts of a replica, of which the job can lose some; 0: it cannot", "2",
     Default::built_in(), count(0, 1U << 24U), [](auto& c) { return &c.campaign.elastic.hosts_per_replica; },
     written_unless_default()},
    {"campaign.elastic.least", "fewest replicas with which the job continues", "12", Default::built_in(),
     count(1, 1U << 24U), [](auto& c) { return &c.campaign.elastic.least; }, written_unless_default()},
    {"campaign.elastic.batch", "batch with fewer replicas, where speeds are simulated", "scaled", Default::built_in(),
     word<elastic_batches>(), [](auto& c) { return &c.campaign.elastic.scales_batch; }, written_unless_default()},
    {"campaign.elastic.speeds", "speed of the job by its replicas", "{2: 0.55, 3: 0.8}",
     Default::described("simulated"),
     ValueInfo("mapping", "a mapping of replicas to speeds", "-", "more than 0, 1 at the most"), elastic_speeds()},
    {"campaign.replications", "replications with other draws", "1000", Default::built_in(), count(1, 10'000'000),
     [](auto& c) { return &c.campaign.sampling.replications; }, written_unless_default()},
    {"campaign.accuracy",
     "half-width of the 95 % interval of the ETTR until which replications are added, in place of `replications`",
     "0.5 %", Default::none(), ValueInfo("share", "a share such as 0.5 %", "-", "1e-6 or more"), ettr_accuracy()},
    {"campaign.seed", "seed of all draws", "7", Default::built_in(), count(0),
     [](auto& c) { return &c.campaign.sampling.seed; }, written_unless_default()},
};

}  // namespace

const Keys<TierOptions>& tier_keys_of_campaign() {
  static const Keys<TierOptions> all("campaign.checkpoint", checkpoint_rows, "campaign.checkpoint");
  return all;
}

const Keys<FailureEntry>& failure_keys() {
  static const Keys<FailureEntry> all("campaign.failures", failure_rows, "campaign.failures");
  return all;
}

const Keys<Configuration>& campaign_keys() {
  static const Keys<Configuration> all("campaign", campaign_rows);
  return all;
}

}  // namespace orrery::config
