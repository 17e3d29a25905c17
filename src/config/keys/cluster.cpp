#include <algorithm>

#include "campaign_values.hpp"
#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/cluster/arrivals.hpp"

namespace orrery::config {
namespace {

using cluster::JobClass;

constexpr std::string_view shape_expected = "three sizes such as [4, 4, 2]";

std::array<std::uint32_t, 3> shape_of(const Value& value, const std::string& path) {
  const auto& items = as_list(value, path, shape_expected);
  if (items.size() != 3)
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {} sizes", items.size()), shape_expected);
  std::array<std::uint32_t, 3> shape{};
  for (std::size_t i = 0; i < 3; ++i) shape[i] = as_count(items[i], fmt::format("{}.{}", path, i), 1, 64);
  return shape;
}

std::string shape_text(const std::array<std::uint32_t, 3>& shape) {
  return fmt::format("[{}, {}, {}]", shape[0], shape[1], shape[2]);
}

double plain_amount(const Value& value, const std::string& path) { return as_number(value, path, "0 or more"); }
std::string plain_text(double number) { return fmt::to_string(number); }

/// Returns how the numbers of NPUs of a class are read: one, or a list from which they are drawn.
constexpr Handling<JobClass> sizes_of_jobs() {
  return {[](const Value& value, const std::string& path, JobClass& c, Reading&) {
            c.npus.clear();
            if (value.kind == Value::Kind::scalar) {
              c.npus.push_back(as_count(value, path, 1, most_npus));
              return;
            }
            const auto& items = as_list(value, path, "a number of NPUs, or a list of them");
            for (std::size_t i = 0; i < items.size(); ++i)
              c.npus.push_back(as_count(items[i], fmt::format("{}.{}", path, i), 1, most_npus));
          },
          [](const JobClass& c, std::string_view path, Writer& writer) {
            writer.put(path, fmt::format("[{}]", fmt::join(c.npus, ", ")));
          },
          [](const JobClass& a, const JobClass& b) { return a.npus == b.npus; }};
}

constexpr Handling<JobClass> steps_of_jobs() {
  return {
      [](const Value& value, const std::string& path, JobClass& c, Reading&) {
        c.length = as_spread(value, path, plain_amount);
        c.counts_steps = true;
      },
      [](const JobClass& c, std::string_view path, Writer& writer) {
        if (c.counts_steps) writer.put(path, spread_text(c.length, plain_text));
      },
      [](const JobClass& a, const JobClass& b) { return a.counts_steps == b.counts_steps && a.length == b.length; }};
}

/// Returns a value in YAML's flow style.
std::string flow_of(const Value& value) {
  if (value.kind == Value::Kind::null) return "~";
  if (value.kind == Value::Kind::scalar) {
    const bool is_plain = !value.quoted && value.text.find_first_of(",[]{}#:'\"") == std::string::npos;
    return is_plain ? value.text : fmt::format("'{}'", value.text);
  }
  std::string items;
  for (const Value& item : value.items) items += fmt::format("{}{}", items.empty() ? "" : ", ", flow_of(item));
  for (const auto& entry : value.entries)
    items += fmt::format("{}{}: {}", items.empty() ? "" : ", ", entry.key, flow_of(entry.value));
  return value.kind == Value::Kind::mapping ? fmt::format("{{{}}}", items) : fmt::format("[{}]", items);
}

constexpr Handling<JobClass> class_workload() {
  return {[](const Value& value, const std::string& path, JobClass& c, Reading&) {
            if (value.kind != Value::Kind::mapping)
              throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                          "a workload such as {model: llama3-8b, parallel: {dp: 8}}");
            c.workload = flow_of(value);
          },
          [](const JobClass& c, std::string_view path, Writer& writer) {
            if (!c.workload.empty()) writer.put(path, c.workload);
          },
          [](const JobClass& a, const JobClass& b) { return a.workload == b.workload; }};
}

constexpr Handling<JobClass> class_priority() {
  return {
      [](const Value& value, const std::string& path, JobClass& c, Reading&) { c.priority = as_count(value, path, 0); },
      [](const JobClass& c, std::string_view path, Writer& writer) {
        if (c.priority) writer.put(path, fmt::to_string(*c.priority));
      },
      [](const JobClass& a, const JobClass& b) { return a.priority == b.priority; }};
}

bool counts_seconds(const JobClass& c) { return !c.counts_steps; }

constexpr Row<JobClass> class_rows[] = {
    {"cluster.classes.name", "name of the class in results", "pretrain",
     Default::described("class-0 for the first class, and so on"), any_text("a name"), [](auto& c) { return &c.name; }},
    {"cluster.classes.rate", "arrivals of jobs in some time", "200 per day", Default::built_in(), daily_rate(),
     [](auto& c) { return &c.rate; }},
    {"cluster.classes.npus", "NPUs of a job, or a list from which they are drawn", "[8, 8, 16, 64]",
     Default::described("1"), ValueInfo("whole number or list", "a number of NPUs, or a list", "-", "1 or more"),
     sizes_of_jobs()},
    {"cluster.classes.steps", "steps of a job", "{lognormal: {mean: 20000, median: 6000}}", Default::none(),
     ValueInfo("number or distribution", "a number, or a distribution such as {exponential: 3000}", "-", "0 or more"),
     steps_of_jobs(), see("cluster-time.md")},
    {"cluster.classes.workload",
     "workload whose step is simulated, as the section `workload` has it; `dp` follows npus",
     "{model: llama3-8b, parallel: {dp: 8}}", Default::none(),
     ValueInfo("mapping", "a workload such as {model: llama3-8b, parallel: {dp: 8}}", "-", "any"), class_workload(),
     see("cluster-time.md")},
    {"cluster.classes.step", "time of a step of a job alone, on a packed placement", "1.2 s", Default::built_in(),
     long_time(), [](auto& c) { return &c.step; }, written_if([](const JobClass& c) { return c.counts_steps; })},
    {"cluster.classes.length", "time of a job alone, on a packed placement, in place of `steps`", "{exponential: 2 h}",
     Default::none(), time_spread(), [](auto& c) { return &c.length; }, excludes("cluster.classes.steps"),
     written_if(counts_seconds)},
    {"cluster.classes.overestimate", "estimate of the user over the length", "2", Default::built_in(), factor(),
     [](auto& c) { return &c.overestimate; }},
    {"cluster.classes.priority", "priority with admission: priority; 0 is the highest", "0",
     Default::described("the number of the class"), ValueInfo("whole number", "a whole number", "-", "0 or more"),
     class_priority()},
    {"cluster.classes.share", "share of its time alone in which a job keeps a shared link busy; 0: cluster.share",
     "0.3", Default::built_in(), number("0 to 1"), [](auto& c) { return &c.share; },
     check([](const JobClass& c, const Place& place, const Reading&) { require_share_of_one(c.share, place); })},
    {"cluster.classes.power", "power of an NPU that has such a job, in W; 0: cluster.site.running", "900",
     Default::built_in(), number("0 or more"), [](auto& c) { return &c.power; }},
};

constexpr Handling<ClusterJob> job_shape() {
  return {[](const Value& value, const std::string& path, ClusterJob& job, Reading&) {
            job.job.shape = shape_of(value, path);
          },
          [](const ClusterJob& job, std::string_view path, Writer& writer) {
            if (job.job.has_shape()) writer.put(path, shape_text(job.job.shape));
          },
          [](const ClusterJob& a, const ClusterJob& b) { return a.job.shape == b.job.shape; }};
}

constexpr Row<ClusterJob> cluster_job_rows[] = {
    {"cluster.jobs.name", "name of the job", "llama", Default::described("empty"), any_text("a name"),
     [](auto& j) { return &j.job.name; }},
    {"cluster.jobs.arrival", "time at which the job is submitted", "3 h", Default::built_in(), long_time(),
     [](auto& j) { return &j.job.arrival; }},
    {"cluster.jobs.npus", "NPUs of the job", "64", Default::built_in(), count(1, most_npus),
     [](auto& j) { return &j.job.npus; }},
    {"cluster.jobs.shape", "block of a torus that the job needs", "[4, 4, 2]", Default::none(),
     ValueInfo("list", shape_expected, "-", "1 to 64 each"), job_shape()},
    {"cluster.jobs.length", "time of the job alone, on a packed placement", "12 h", Default::needed(), long_time(),
     [](auto& j) { return &j.job.length; }},
    {"cluster.jobs.estimate", "time that the user asked for", "24 h", Default::described("the length"), long_time(),
     [](auto& j) { return &j.job.estimate; }},
    {"cluster.jobs.class", "class of the job", "tune", Default::described("job"), any_text("a name"),
     [](auto& j) { return &j.job_class; }},
    {"cluster.jobs.priority", "priority with admission: priority; 0 is the highest", "1", Default::built_in(), count(0),
     [](auto& j) { return &j.job.priority; }},
    {"cluster.jobs.share", "share of its time alone in which the job keeps a shared link busy; 0: cluster.share", "0.3",
     Default::built_in(), number("0 to 1"), [](auto& j) { return &j.job.share; },
     check([](const ClusterJob& j, const Place& place, const Reading&) { require_share_of_one(j.job.share, place); })},
    {"cluster.jobs.power", "power of an NPU that has the job, in W; 0: cluster.site.running", "900",
     Default::built_in(), number("0 or more"), [](auto& j) { return &j.job.power; }},
};

void take_listed_job(ClusterJob&& entry, cluster::Arrivals& arrivals) {
  cluster::Job job = std::move(entry.job);
  if (job.has_shape()) job.npus = job.shape[0] * job.shape[1] * job.shape[2];
  if (job.estimate == 0) job.estimate = job.length;
  const std::string name = entry.job_class.empty() ? "job" : entry.job_class;
  auto& classes = arrivals.classes_of_jobs;
  const auto found = std::ranges::find(classes, name);
  job.job_class = static_cast<std::uint32_t>(found - classes.begin());
  if (found == classes.end()) classes.push_back(name);
  arrivals.jobs.push_back(std::move(job));
}

constexpr Handling<Configuration> listed_jobs() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            auto& arrivals = target.cluster.arrivals;
            if (value.kind == Value::Kind::scalar) {
              arrivals.count = as_count(value, path);
              return;
            }
            arrivals.jobs.clear();
            read_items(cluster_job_keys(), as_list(value, path, "a number of jobs, or a list of jobs"), path, reading,
                       [&](ClusterJob&& job, const Place&, bool) { take_listed_job(std::move(job), arrivals); });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            const auto& arrivals = c.cluster.arrivals;
            std::vector<std::string> items;
            for (const cluster::Job& job : arrivals.jobs)
              items.push_back(flow_text(cluster_job_keys(), {job, arrivals.classes_of_jobs[job.job_class]}));
            if (!items.empty()) return writer.put_list(path, items);
            if (arrivals.count > 0) writer.put(path, fmt::to_string(arrivals.count));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.cluster.arrivals.jobs == b.cluster.arrivals.jobs &&
                   a.cluster.arrivals.count == b.cluster.arrivals.count;
          }};
}

constexpr Handling<Configuration> class_list() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            auto& classes = target.cluster.arrivals.classes;
            classes.clear();
            read_items(
                job_class_keys(), as_list(value, path, "a list of classes"), path, reading,
                [&](JobClass&& c, const Place& place, bool is_faultless) {
                  if (c.name.empty()) c.name = fmt::format("class-{}", classes.size());
                  const bool has_workload = !c.workload.empty();
                  if (c.counts_steps && c.step == 0 && !has_workload)
                    reading.faults.add(
                        Error(ErrorCode::bad_input, place, "steps are given, but no time of a step", "step"));
                  if (is_faultless && !c.counts_steps && c.step > 0)
                    reading.faults.add(
                        Error(ErrorCode::bad_input, place, "step is given, but no number of steps", "steps"));
                  else if (is_faultless && !c.counts_steps && c.length.is_zero() && !(has_workload && c.rate == 0))
                    reading.faults.add(
                        Error(ErrorCode::bad_input, place, "neither a length nor steps are given", "one of them"));
                  classes.push_back(std::move(c));
                });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const JobClass& job_class : c.cluster.arrivals.classes)
              items.push_back(flow_text(job_class_keys(), job_class));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.cluster.arrivals.classes == b.cluster.arrivals.classes;
          }};
}

constexpr Handling<Configuration> trace_columns() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            target.cluster.arrivals.columns = as_text(value, path, "acme, philly, helios or cmu");
            cluster::columns_of(target.cluster.arrivals.columns, value.place(path));
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (!c.cluster.arrivals.columns.empty()) writer.put(path, c.cluster.arrivals.columns);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.cluster.arrivals.columns == b.cluster.arrivals.columns;
          }};
}

constexpr Handling<Configuration> torus_sizes() {
  return {
      [](const Value& value, const std::string& path, Configuration& target, Reading&) {
        auto& places = target.cluster.places;
        places.torus = shape_of(value, path);
        places.npus = places.torus[0] * places.torus[1] * places.torus[2];
      },
      [](const Configuration& c, std::string_view path, Writer& writer) {
        if (c.cluster.places.torus[0] > 0) writer.put(path, shape_text(c.cluster.places.torus));
      },
      [](const Configuration& a, const Configuration& b) { return a.cluster.places.torus == b.cluster.places.torus; }};
}

constexpr Handling<Configuration> cube_sizes() {
  return {
      [](const Value& value, const std::string& path, Configuration& target, Reading&) {
        target.cluster.places.cubes = shape_of(value, path);
      },
      [](const Configuration& c, std::string_view path, Writer& writer) {
        if (c.cluster.places.cubes[0] > 0) writer.put(path, shape_text(c.cluster.places.cubes));
      },
      [](const Configuration& a, const Configuration& b) { return a.cluster.places.cubes == b.cluster.places.cubes; }};
}

constexpr std::string_view cap_expected = "a number of W, or a list such as [[0 h, 5000000], [18 h, 3000000]]";

/// Reads caps of power from times of the day on. Throws Error (bad_input).
void take_caps(const Value& value, const std::string& path, cluster::Site& site) {
  site.caps.clear();
  const auto& items = as_list(value, path, cap_expected);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string here = fmt::format("{}.{}", path, i);
    const auto& pair = as_list(items[i], here, "a time of the day and a power in W");
    if (pair.size() != 2)
      throw Error(ErrorCode::bad_input, items[i].place(here), fmt::format("found {} items", pair.size()),
                  "a time of the day and a power in W");
    const auto time = as_long_time(pair[0], here + ".0");
    const auto after = site.caps.empty() ? -1 : site.caps.back().first;
    if (time <= after || time >= campaign::day || (i == 0 && time != 0))
      throw Error(ErrorCode::bad_input, pair[0].place(here + ".0"), fmt::format("found {}", long_time_text(time)),
                  i == 0 ? "0 h, at which the day begins" : "a time after the one before, below 24 h");
    site.caps.emplace_back(time, as_number(pair[1], here + ".1", "0 or more"));
  }
  if (site.caps.empty()) throw Error(ErrorCode::bad_input, value.place(path), "the list is empty", cap_expected);
}

constexpr Handling<Configuration> power_cap() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            auto& site = target.cluster.site;
            if (value.kind != Value::Kind::scalar) return take_caps(value, path, site);
            site.power_cap = as_number(value, path, "0 or more");
            site.caps.clear();
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            const auto& site = c.cluster.site;
            std::vector<std::string> items;
            for (const auto& [time, cap] : site.caps)
              items.push_back(fmt::format("[{}, {}]", long_time_text(time), cap));
            if (!items.empty()) return writer.put_list(path, items);
            if (site.power_cap > 0) writer.put(path, fmt::to_string(site.power_cap));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.cluster.site.power_cap == b.cluster.site.power_cap && a.cluster.site.caps == b.cluster.site.caps;
          }};
}

constexpr Handling<Configuration> queue_limit() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            target.cluster.rules.queue_limit = as_count(value, path, 0);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (c.cluster.rules.queue_limit) writer.put(path, fmt::to_string(*c.cluster.rules.queue_limit));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.cluster.rules.queue_limit == b.cluster.rules.queue_limit;
          }};
}

constexpr Row<Configuration> cluster_rows[] = {
    {"cluster.npus", "NPUs of the cluster", "10240", Default::described("those of the system"), count(0, most_npus),
     [](auto& c) { return &c.cluster.places.npus; }, see("cluster-time.md"), written_unless_default()},
    {"cluster.leaf", "NPUs below one leaf switch; 0: all", "32", Default::built_in(), count(0, most_npus),
     [](auto& c) { return &c.cluster.places.leaf; }, written_unless_default()},
    {"cluster.npus-per-host", "NPUs of a host; a job of more than half a host takes whole hosts", "8",
     Default::built_in(), count(1, most_npus), [](auto& c) { return &c.cluster.places.npus_per_host; },
     written_unless_default()},
    {"cluster.torus", "sizes of a torus whose blocks jobs take, x first", "[16, 16, 16]", Default::none(),
     ValueInfo("list", shape_expected, "-", "1 to 64 each"), torus_sizes()},
    {"cluster.cubes", "sizes of the cubes of which the torus is made; larger jobs take whole ones", "[4, 4, 4]",
     Default::none(), ValueInfo("list", shape_expected, "-", "1 to 64 each"), cube_sizes()},
    {"cluster.circuits", "whether optical circuits join any free cubes for a job", "true", Default::built_in(),
     boolean(), [](auto& c) { return &c.cluster.places.circuits; }, written_unless_default()},
    {"cluster.switching-time", "time by which the circuits of a job of several cubes delay its start", "10 ms",
     Default::built_in(), long_time(), [](auto& c) { return &c.cluster.rules.switching; }, written_unless_default()},
    {"cluster.rotate", "whether blocks may be turned", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.cluster.places.rotate; }, written_unless_default()},
    {"cluster.wrap", "whether blocks may go round the edge", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.cluster.places.wrap; }, written_unless_default()},
    {"cluster.placement", "NPUs that a job is given", "packed", Default::built_in(), word<placement_policies>(),
     [](auto& c) { return &c.cluster.places.policy; }, see("cluster-time.md"), written_unless_default()},
    {"cluster.admission", "order in which jobs start", "easy", Default::built_in(), word<admission_policies>(),
     [](auto& c) { return &c.cluster.rules.admission; }, see("cluster-time.md"), written_unless_default()},
    {"cluster.preemption", "whether jobs of a higher priority stop others", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.cluster.rules.preemption; }, written_unless_default()},
    {"cluster.protected", "time for which a job that has started is not stopped", "2 h", Default::built_in(),
     long_time(), [](auto& c) { return &c.cluster.rules.protect; }, written_unless_default()},
    {"cluster.restart", "time that a stopped job needs when it starts again", "5 min", Default::built_in(), long_time(),
     [](auto& c) { return &c.cluster.rules.restart; }, written_unless_default()},
    {"cluster.checkpoint-interval", "work between two checkpoints of a job; 0 s: a stop loses nothing", "1 h",
     Default::built_in(), long_time(), [](auto& c) { return &c.cluster.rules.checkpoint_interval; },
     written_unless_default()},
    {"cluster.queue-limit", "waiting jobs above which a job that does not fit is refused", "100",
     Default::described("none"), ValueInfo("whole number", "a whole number", "-", "0 or more"), queue_limit()},
    {"cluster.backfill-depth", "waiting jobs that EASY looks at", "100", Default::built_in(), count(1),
     [](auto& c) { return &c.cluster.rules.backfill_depth; }, written_unless_default()},
    {"cluster.sharing", "how jobs that share links slow each other", "formula", Default::built_in(),
     word<sharing_kinds>(), [](auto& c) { return &c.cluster.rules.sharing; }, see("cluster-time.md"),
     written_unless_default()},
    {"cluster.shared-links", "links that jobs share", "one-link", Default::built_in(), word<shared_link_kinds>(),
     [](auto& c) { return &c.cluster.rules.links; }, written_unless_default()},
    {"cluster.share", "share of its time alone in which a job keeps a shared link busy", "0.3", Default::built_in(),
     number("0 to 1"), [](auto& c) { return &c.cluster.rules.share; },
     check([](const Configuration& c, const Place& place, const Reading&) {
       require_share_of_one(c.cluster.rules.share, place);
     }),
     written_unless_default()},
    {"cluster.sharing-steps", "steps of the slowest job for which jobs that share links are simulated", "24",
     Default::built_in(), count(1, 10'000), [](auto& c) { return &c.cluster.rules.sharing_steps; },
     written_unless_default()},
    {"cluster.classes", "kinds of jobs that are drawn", "[{rate: 200 per day, npus: 8, length: {exponential: 2 h}}]",
     Default::none(), ValueInfo("list", "a list of classes", "-", "the keys below"), class_list(),
     see("cluster-time.md")},
    {"cluster.jobs", "number of jobs that are drawn, or a list of jobs", "100000", Default::none(),
     ValueInfo("whole number or list", "a number of jobs, or a list of jobs", "-", "the keys below"), listed_jobs()},
    {"cluster.duration", "time in which jobs arrive, in place of `jobs`", "90 d", Default::built_in(), long_time(),
     [](auto& c) { return &c.cluster.arrivals.duration; }, excludes("cluster.jobs"), written_unless_default()},
    {"cluster.trace.file", "file of recorded jobs, in CSV", "acme.csv", Default::none(), file(),
     [](auto& c) { return &c.cluster.arrivals.trace; }, see("cluster-time.md"),
     written_if([](const Configuration& c) { return !c.cluster.arrivals.trace.empty(); })},
    {"cluster.trace.columns", "columns of the file: acme, philly, helios or cmu", "acme", Default::described("acme"),
     ValueInfo("word", "acme, philly, helios or cmu", "-", "acme, philly, helios, cmu"), trace_columns()},
    {"cluster.site.power-cap",
     "power of all NPUs above which no job starts, in W, or times of the day and the power "
     "from each on; 0: none",
     "[[0 h, 5000000], [18 h, 3000000]]", Default::described("0"),
     ValueInfo("number or list", cap_expected, "-", "0 or more"), power_cap(), see("cluster-time.md")},
    {"cluster.site.running", "power of an NPU that has a job, in W", "1200", Default::built_in(), number("0 or more"),
     [](auto& c) { return &c.cluster.site.running; }, written_unless_default()},
    {"cluster.site.idle", "power of an NPU that has none, in W", "200", Default::built_in(), number("0 or more"),
     [](auto& c) { return &c.cluster.site.idle; }, written_unless_default()},
    {"cluster.site.ramp", "power in W by which starts of jobs raise that of the site in a second; 0: any", "50000",
     Default::built_in(), number("0 or more"), [](auto& c) { return &c.cluster.site.ramp; }, written_unless_default()},
    {"cluster.hosts.mtbf", "time from a repair of a host to its next failure; 0 s: hosts do not fail",
     "{exponential: 60 d}", Default::built_in(), time_spread(), [](auto& c) { return &c.cluster.failures.mtbf; },
     see("cluster-time.md"), written_if([](const Configuration& c) { return c.cluster.failures.any(); })},
    {"cluster.hosts.repair", "time for which a host that has failed is out of service", "{exponential: 12 h}",
     Default::built_in(), time_spread(), [](auto& c) { return &c.cluster.failures.repair; },
     written_if([](const Configuration& c) { return c.cluster.failures.any(); })},
    {"cluster.warm-up", "first jobs that summaries leave out", "1000", Default::built_in(), count(0),
     [](auto& c) { return &c.cluster.warm_up; }, written_unless_default()},
    {"cluster.seed", "seed of all draws; replication r has the seed plus r", "7", Default::built_in(), count(0),
     [](auto& c) { return &c.cluster.seed; }, written_unless_default()},
    {"cluster.replications", "runs with other draws", "8", Default::built_in(), count(1, 100'000),
     [](auto& c) { return &c.cluster.replications; }, written_unless_default()},
};

}  // namespace

const Words<cluster::Placing>& placement_policies() {
  static const Words<cluster::Placing> words = [] {
    Words<cluster::Placing> all;
    for (const cluster::Policy& policy : cluster::policies()) all.push_back({policy.name, policy.placing, policy.help});
    return all;
  }();
  return words;
}

const Words<cluster::Admission>& admission_policies() {
  static const Words<cluster::Admission> words = {
      {"fifo", cluster::Admission::fifo, "in the order of their arrivals"},
      {"easy", cluster::Admission::easy, "as fifo, and later jobs that do not delay the first one"},
      {"sjf", cluster::Admission::sjf, "the shortest estimate first"},
      {"priority", cluster::Admission::priority, "by priority, then arrival"}};
  return words;
}

const Words<cluster::Sharing>& sharing_kinds() {
  static const Words<cluster::Sharing> words = {
      {"none", cluster::Sharing::none, "not at all"},
      {"formula", cluster::Sharing::formula, "by the shares of time in which they keep links busy"},
      {"simulate", cluster::Sharing::simulate, "as simulations of all jobs that share links say"}};
  return words;
}

const Words<cluster::SharedLinks>& shared_link_kinds() {
  static const Words<cluster::SharedLinks> words = {
      {"uplinks", cluster::SharedLinks::uplinks, "jobs on several leaves load the uplinks of these leaves"},
      {"one-link", cluster::SharedLinks::one_link, "all jobs load one link"}};
  return words;
}

const Keys<JobClass>& job_class_keys() {
  static const Keys<JobClass> all("cluster.classes", class_rows, "cluster.classes");
  return all;
}

const Keys<ClusterJob>& cluster_job_keys() {
  static const Keys<ClusterJob> all("cluster.jobs", cluster_job_rows, "cluster.jobs");
  return all;
}

const Keys<Configuration>& cluster_keys() {
  static const Keys<Configuration> all("cluster", cluster_rows);
  return all;
}

}  // namespace orrery::config
