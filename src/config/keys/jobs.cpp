#include <algorithm>

#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view allocation_expected =
    "contiguous, scattered, random, a list such as [0-7, 12], or {file: FILE}";

const Words<Allocation::Kind>& allocation_words() {
  static const Words<Allocation::Kind> words = {
      {"contiguous", Allocation::Kind::contiguous, "the first free NPUs that follow one another"},
      {"scattered", Allocation::Kind::scattered, "free NPUs equally far apart among those that are free"},
      {"random", Allocation::Kind::random, "free NPUs that are drawn with `seed`"}};
  return words;
}

/// Returns the number of NPUs, or the most that there can be where it is not known.
std::uint32_t npu_limit(const Reading& reading) {
  const std::uint32_t num_npus = reading.num_npus();
  return num_npus == 0 ? any_npus : num_npus;
}

Allocation read_allocation(const Value& value, const std::string& path, const Reading& reading) {
  Allocation result;
  if (value.kind == Value::Kind::scalar) {
    result.kind = as_word(value, path, allocation_words());
    return result;
  }
  result.kind = Allocation::Kind::listed;
  if (value.kind == Value::Kind::mapping) {
    Section file(&value, path, value, reading.faults);
    if (const Value* const name = file.need("file", "the name of a file that has an NPU in each line")) {
      const auto at = as_path(*name, file.path("file"));
      result.listed = parse_allocation(read_text(at, name->place(file.path("file"))), at.string(), npu_limit(reading));
    }
    file.refuse_unknown();
    return result;
  }
  const auto& items = as_list(value, path, allocation_expected);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string at = fmt::format("{}.{}", path, i);
    result.listed.push_back(parse_npu_range(as_text(items[i], at, "an NPU or a range such as 0-31"), npu_limit(reading),
                                            items[i].place(at)));
  }
  return result;
}

constinit const ValueKind<Allocation> allocation_kind = kind_of<Allocation>(
    [](const Limits&) {
      return TypeInfo{"NPUs", std::string(allocation_expected), "-", "each NPU for one job",
                      info_of(allocation_words())};
    },
    [](const Limits&, const Value& value, const std::string& path, const Reading& reading) {
      return read_allocation(value, path, reading);
    },
    [](const Limits&, const Allocation& allocation) {
      return allocation.kind == Allocation::Kind::listed ? fmt::format("[{}]", to_text(allocation.listed))
                                                         : std::string(text_of(allocation_words(), allocation.kind));
    },
    [](const Allocation& a, const Allocation& b) { return a.kind == b.kind && a.listed == b.listed; });

/// Returns how many NPUs the traces of a job are of; nothing if they do not say.
std::optional<std::uint32_t> npus_of_traces(const Value* traces, const std::string& path) {
  if (traces == nullptr || traces->faulty) return {};
  if (traces->kind == Value::Kind::scalar) {
    const std::string pattern = traces_of_prefix(as_path(*traces, path).string(), 1).pattern;
    if (pattern.find(npu_placeholder) == std::string::npos) return {};
    std::uint32_t count = 0;
    std::error_code failure;
    while (count < most_npus && std::filesystem::exists(name_for_npu(pattern, count), failure)) ++count;
    return std::max(count, 1U);  // the reader says of NPU 0 that it has no trace
  }
  if (traces->kind != Value::Kind::sequence) return {};
  std::optional<std::uint32_t> count;
  for (const Value& item : traces->items)
    if (const Value* const npus = item.find("npus"))
      if (Faults unused; npus->kind == Value::Kind::scalar)
        unused.attempt([&] { count = parse_npu_range(npus->text, most_npus, {}).last + 1; });
  return count;
}

/// Returns a mapping that holds `value` as its `workload`.
Value holder_of(const Value& value) {
  Value mapping;
  mapping.kind = Value::Kind::mapping;
  mapping.line = value.line;
  mapping.origin = value.origin;
  mapping.entries.push_back({"workload", value.line, value});
  return mapping;
}

constexpr Handling<JobEntry> job_workload() {
  return {[](const Value& value, const std::string& path, JobEntry& entry, Reading& reading) {
            read_job_workload(value, path, entry, reading);
          },
          [](const JobEntry& entry, std::string_view path, Writer& writer) {
            Writer workload("workload");
            write_keys(generated_workload_keys(), entry.holder, workload);
            write_keys(workload_keys(), entry.holder, workload);
            writer.put(path, workload.flow());
          },
          [](const JobEntry& a, const JobEntry& b) {
            return are_same(generated_workload_keys(), a.holder, b.holder) &&
                   are_same(workload_keys(), a.holder, b.holder);
          }};
}

/// Returns the entry that reads as this job.
JobEntry entry_of_job(const Job& job, const Configuration& configuration) {
  JobEntry entry;
  entry.name = job.name;
  entry.npus = job.num_npus();
  entry.allocation = {Allocation::Kind::listed, job.allocation};
  entry.start = job.start;
  entry.holder.workload = job.workload;
  entry.holder.execution.iterations = job.iterations;
  entry.holder.execution.replay_only = configuration.execution.replay_only;
  return entry;
}

/// Gives names to jobs that have none. Two jobs of one name are a fault.
void name_jobs(std::vector<JobEntry>& entries, const std::vector<Place>& places, Faults& faults) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name.empty()) entries[i].name = fmt::format("job-{}", i);
    for (std::size_t before = 0; before < i; ++before)
      if (entries[before].name == entries[i].name) {
        Place place = places[i];
        place.key += ".name";
        faults.add(Error(ErrorCode::bad_input, place,
                         fmt::format("'{}' is the name of job {} too", cited(entries[i].name), before),
                         "a name of its own for each job"));
        break;
      }
  }
}

/// Tells the NPUs when they begin and how often they execute their traces, and keeps the jobs apart where collectives
/// of one NPU share bandwidth.
void schedule_jobs(const std::vector<Job>& jobs, std::uint32_t num_npus, Configuration& target) {
  npu::Options& execution = target.execution;
  auto& set_of = target.collectives.sharing.set_of;
  if (jobs.size() > 1) set_of.assign(num_npus, 0);
  execution.iterations = 1;
  for (const Job& job : jobs) execution.iterations = std::max(execution.iterations, job.iterations);
  const bool differ = std::ranges::any_of(jobs, [&](const Job& job) { return job.iterations != execution.iterations; });
  const bool begin_later = std::ranges::any_of(jobs, [](const Job& job) { return job.start > Time::zero(); });
  if (differ) execution.own_iterations.assign(num_npus, 1);
  if (begin_later) execution.starts.assign(num_npus, Time::zero());
  for (const Job& job : jobs)
    for (const NpuId npu : job.npus()) {
      if (differ) execution.own_iterations[npu.index()] = job.iterations;
      if (begin_later) execution.starts[npu.index()] = job.start;
      if (jobs.size() > 1) set_of[npu.index()] = static_cast<std::uint32_t>(&job - jobs.data());
    }
}

/// Makes jobs of the entries, which have no faults of their own.
void take_entries(std::vector<JobEntry> entries, const std::vector<Place>& places, Configuration& target,
                  Reading& reading) {
  std::vector<AllocationRequest> requests;
  for (std::size_t i = 0; i < entries.size(); ++i)
    requests.push_back({entries[i].name, *entries[i].npus, entries[i].allocation, places[i]});
  const std::uint32_t num_npus = reading.num_npus();
  if (num_npus == 0) return;
  auto allocations = allocate(requests, num_npus, reading.faults);
  if (allocations.empty()) return;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& execution = entries[i].holder.execution;
    if (execution.replay_only != entries.front().holder.execution.replay_only) {
      Place place = places[i];
      place.key += ".workload.replay-only";
      throw Error(ErrorCode::bad_input, place, fmt::format("found {}", execution.replay_only),
                  fmt::format("{}, as in job '{}'", !execution.replay_only, cited(entries.front().name)));
    }
    target.workload.jobs.push_back({entries[i].name, std::move(allocations[i]), entries[i].start, execution.iterations,
                                    std::move(entries[i].holder.workload)});
    auto& workload = target.workload.jobs.back().workload;
    if (workload.groups_text)
      target.inputs.emplace_back(fmt::format("jobs.{}.groups.json", i), workload.groups_text->second);
  }
  target.execution.replay_only = entries.front().holder.execution.replay_only;
  schedule_jobs(target.workload.jobs, num_npus, target);
}

void read_jobs(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  std::vector<JobEntry> entries;
  std::vector<Place> places;
  bool are_good = true;
  read_items(job_keys(), as_list(value, path, "a list of jobs"), path, reading,
             [&](JobEntry&& entry, const Place& place, bool is_faultless) {
               are_good &= is_faultless;
               reading.configuration.places[place.key] = place;
               places.push_back(place);
               entries.push_back(std::move(entry));
             });
  const std::size_t faults_before = reading.faults.count();
  name_jobs(entries, places, reading.faults);
  if (are_good && reading.faults.count() == faults_before) take_entries(std::move(entries), places, target, reading);
}

constexpr Handling<Configuration> job_list() {
  return {read_jobs,
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const Job& job : c.workload.jobs) items.push_back(flow_text(job_keys(), entry_of_job(job, c)));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) {
            return std::ranges::equal(a.workload.jobs, b.workload.jobs, [&](const Job& x, const Job& y) {
              return are_same(job_keys(), entry_of_job(x, a), entry_of_job(y, b));
            });
          }};
}

constexpr auto job_npus = count(1, most_npus);

constexpr Handling<JobEntry> number_of_npus() {
  return {[](const Value& value, const std::string& path, JobEntry& entry, Reading& reading) {
            entry.npus = job_npus.read(value, path, reading);
          },
          [](const JobEntry& entry, std::string_view path, Writer& writer) {
            if (entry.npus) writer.put(path, fmt::to_string(*entry.npus));
          },
          [](const JobEntry& a, const JobEntry& b) { return a.npus == b.npus; }};
}

constexpr Row<JobEntry> job_rows[] = {
    {"jobs.name", "name of the job in results and messages", "llama",
     Default::described("job-0 for the first job, and so on"), any_text("a name"),
     [](auto& entry) { return &entry.name; }},
    {"jobs.npus", "number of NPUs that the job takes", "32",
     Default::described("as many as `allocation` lists, or the workload has"), job_npus, number_of_npus()},
    {"jobs.allocation", "NPUs of the system that the job takes, in the order of the job's own NPUs", "[0-7, 16-23]",
     Default::built_in(), Type(allocation_kind), [](auto& entry) { return &entry.allocation; }, see("jobs.md")},
    {"jobs.seed", "seed of the NPUs that are drawn", "7", Default::built_in(), count(0),
     [](auto& entry) { return &entry.allocation.seed; },
     only_if([](const JobEntry& entry) { return entry.allocation.kind == Allocation::Kind::random; },
             "allocation: random")},
    {"jobs.start", "simulated time at which the first nodes of the job are ready", "5 ms", Default::built_in(),
     duration(), [](auto& entry) { return &entry.start; }},
    {"jobs.workload", "work of the job; the keys are those of `workload`, and NPUs count from 0 within the job",
     "{traces: traces/llama}", Default::needed(),
     ValueInfo("mapping", "a mapping of keys to values", "-", "the keys of `workload`"), job_workload(),
     see("jobs.md")},
};

constexpr Row<Configuration> job_list_rows[] = {
    {"jobs", "workloads that share the system, each on separate NPUs",
     "[{npus: 8, workload: {traces: a}}, {npus: 8, workload: {traces: b}}]", Default::none(),
     ValueInfo("list", "a list of jobs", "-", "the keys below"), job_list(), see("jobs.md")},
};

}  // namespace

void read_job_workload(const Value& value, const std::string& path, JobEntry& entry, Reading& reading) {
  const std::string of_job = path.substr(0, path.rfind('.'));
  const bool is_listed = entry.allocation.kind == Allocation::Kind::listed;
  const auto num_listed = static_cast<std::uint32_t>(entry.allocation.num_listed());
  const auto differ = [&](std::string_view key, std::uint32_t found, std::string_view what, std::uint32_t expected) {
    throw Error(ErrorCode::bad_input, value.place(fmt::format("{}.{}", of_job, key)),
                fmt::format("{} {}", what, counted(found, "NPU")), fmt::format("{}, the NPUs of the job", expected));
  };
  if (is_listed && entry.npus && *entry.npus != num_listed)
    differ("allocation", num_listed, "the allocation has", *entry.npus);
  if (is_listed) entry.npus = num_listed;
  const Value* const traces = value.find("traces");
  const auto of_traces = npus_of_traces(traces, path + ".traces");
  if (!entry.npus) entry.npus = of_traces;
  entry.holder.dimensions.resize(entry.npus ? 1 : 0);
  if (entry.npus) entry.holder.dimensions.front().size = *entry.npus;

  const Value holder = holder_of(value);
  Reading of_holder{entry.holder, reading.faults, reading.system_only};
  Sections sections(Section(&holder, of_job, value, reading.faults));
  read_keys(generated_workload_keys(), sections, entry.holder, of_holder);
  read_keys(workload_keys(), sections, entry.holder, of_holder);
  sections.refuse_unknown();
  reading.configuration.changed_keys.merge(entry.holder.changed_keys);

  if (const auto& generated = entry.holder.workload.generated) {
    const std::uint32_t own = generated->parallel.num_npus();
    if (entry.npus && *entry.npus != own) differ("workload.parallel", own, "tp * cp * ep * dp * pp is", *entry.npus);
    entry.npus = own;
  }
  if (!entry.npus)
    throw Error(ErrorCode::bad_input, value.place(of_job + ".npus"), "the key is missing",
                "the number of NPUs, which these traces do not say");
}

const Keys<JobEntry>& job_keys() {
  static const Keys<JobEntry> all("jobs", job_rows, "jobs");
  return all;
}

const Keys<Configuration>& job_list_keys() {
  static const Keys<Configuration> all("jobs", job_list_rows);
  return all;
}

/// What all jobs have in common, and what runs of several jobs cannot do.
void Validation::validate_jobs() {
  const auto all = c_.workloads();
  require(!c_.workload.jobs_alone || !c_.workload.jobs.empty(), "run.jobs-alone", "found true without jobs",
          "jobs, or false");
  if (c_.workload.jobs.empty()) return;
  require(!c_.run.fold, "run.fold", "found true with jobs, whose NPUs are not folded", "false (no --fold)");
  require(!c_.workload.jobs_alone || (c_.run.checkpoint.empty() && c_.run.restart.empty()), "run.jobs-alone",
          "found true with checkpoints, which hold one run only", "false, or neither --checkpoint nor --restart");
  require(!c_.workload.jobs_alone || c_.perturbation.repetitions == 1, "run.jobs-alone",
          "found true with perturbation.repetitions, of which each would be another comparison",
          "false, or perturbation.repetitions: 1");
  require(c_.workload.custom_nodes.empty(), "system.collectives.custom.nodes",
          "found ids of nodes, but jobs have traces of their own, in which the same ids mean other nodes",
          "collectives by kind (system.collectives.custom.KIND)");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const workload::Precision precision = all[i]->precision();
    const bool has_low_products =
        workload::is_below_bf16(precision) && c_.execution.compute.model == compute::ModelName("products");
    const bool matters =
        !c_.peaks.empty() || has_low_products || c_.execution.compute.model == compute::ModelName("table");
    if (matters && precision != c_.precision())
      refuse(fmt::format("jobs.{}.workload", i), fmt::format("found {}", text_of(precisions(), precision)),
             fmt::format("{}, as in the first job, since the compute rates depend on it",
                         text_of(precisions(), c_.precision())));
    if (all[i]->counts_by_dimension() != c_.execution.dimension_streams)
      refuse(fmt::format("jobs.{}.workload.streams", i), "found streams of another kind than in the first job",
             "`named` and `dimension` in all jobs, or `counted` and `trace` in all");
  }
}

}  // namespace orrery::config
