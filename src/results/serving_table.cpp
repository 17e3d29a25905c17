#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

#include "columns.hpp"
#include "format.hpp"
#include "orrery/base/version.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/results/serving.hpp"
#include "orrery/serving/request_source.hpp"
#include "output.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using serving::InstanceRecord;
using serving::RequestRecord;
using serving::StepItem;
using serving::StepRecord;

/// A request with what was asked.
struct RequestRow {
  const RequestRecord* record;
  const serving::Request* request;
};

const std::array<Column<RequestRow>, 14> request_columns{{
    {"arrival", {"ps", "arrival", "arrival at the router"}, [](const RequestRow& r) { return r.record->arrival.ps(); }},
    {"prompt", {"1", "prompt", "tokens of the prompt"}, [](const RequestRow& r) { return r.request->prompt; }},
    {"output", {"1", "output", "tokens of the output"}, [](const RequestRow& r) { return r.request->output; }},
    {"instance",
     {"1", "instance", "number of the instance that computed the prompt"},
     [](const RequestRow& r) { return r.record->instance; }},
    {"decode_instance",
     {"1", "decode instance", "number of the instance that made the output; -1: the other one"},
     [](const RequestRow& r) { return r.record->decode_instance; }},
    {"scheduled",
     {"ps", "scheduled", "time of the first admission to a step"},
     [](const RequestRow& r) { return r.record->scheduled.ps(); }},
    {"first",
     {"ps", "first token", "end of the step that made the first token"},
     [](const RequestRow& r) { return r.record->first.ps(); }},
    {"last",
     {"ps", "last token", "end of the step that made the last token"},
     [](const RequestRow& r) { return r.record->last.ps(); }},
    {"prefix_hit",
     {"1", "prefix hit", "tokens found in prefix caches, at all admissions"},
     [](const RequestRow& r) { return static_cast<std::int64_t>(r.record->prefix_hit); }},
    {"preemptions",
     {"1", "preemptions", "number of preemptions"},
     [](const RequestRow& r) { return r.record->preemptions; }},
    {"lost",
     {"1", "lost", "tokens whose keys and values were given up by preemptions"},
     [](const RequestRow& r) { return static_cast<std::int64_t>(r.record->lost); }},
    {"transferred",
     {"1", "transferred", "tokens whose keys and values were sent to another instance"},
     [](const RequestRow& r) { return static_cast<std::int64_t>(r.record->transferred); }},
    {"transfer_time",
     {"ps", "transfer time", "time from asking for keys and values to their arrival"},
     [](const RequestRow& r) { return r.record->transfer_time.ps(); }},
    {"session",
     {"1", "session", "number of the session; -1: none"},
     [](const RequestRow& r) { return r.request->session; }},
}};

/// Returns a sum over time divided by a span, both in ps.
double mean_over(std::uint64_t high, std::uint64_t low, double span) {
  return span > 0 ? (std::ldexp(static_cast<double>(high), 64) + static_cast<double>(low)) / span : 0;
}

struct InstanceRow {
  const InstanceRecord* record;
  double end;  ///< ps
};

const std::array<Column<InstanceRow>, 13> instance_columns{{
    {"blocks", {"1", "blocks", "usable KV blocks"}, [](const InstanceRow& r) { return r.record->blocks; }},
    {"steps",
     {"1", "steps", "number of steps"},
     [](const InstanceRow& r) { return static_cast<std::int64_t>(r.record->steps); }},
    {"busy_time", {"ps", "busy time", "sum over the steps"}, [](const InstanceRow& r) { return r.record->busy.ps(); }},
    {"output_tokens",
     {"1", "output tokens", "output tokens made"},
     [](const InstanceRow& r) { return static_cast<std::int64_t>(r.record->output_tokens); }},
    {"prefill_tokens",
     {"1", "prefill tokens", "tokens of prompts computed, also those that were computed before"},
     [](const InstanceRow& r) { return static_cast<std::int64_t>(r.record->prefill_tokens); }},
    {"lost",
     {"1", "lost", "tokens given up by preemptions"},
     [](const InstanceRow& r) { return static_cast<std::int64_t>(r.record->lost); }},
    {"preemptions",
     {"1", "preemptions", "number of preemptions"},
     [](const InstanceRow& r) { return static_cast<std::int64_t>(r.record->preemptions); }},
    {"evicted",
     {"1", "evicted", "blocks that left the index because they were needed"},
     [](const InstanceRow& r) { return static_cast<std::int64_t>(r.record->evicted); }},
    {"kv_use_mean",
     {"1", "mean use of the cache", "share of blocks in use, the mean over time"},
     [](const InstanceRow& r) {
       return r.record->blocks == 0
                  ? 0.0
                  : mean_over(r.record->used_sum_high, r.record->used_sum_low, r.end) / r.record->blocks;
     }},
    {"kv_use_peak",
     {"1", "peak use of the cache", "largest share of blocks in use"},
     [](const InstanceRow& r) {
       return r.record->blocks == 0 ? 0.0 : static_cast<double>(r.record->peak_used) / r.record->blocks;
     }},
    {"blocks_in_use_at_end",
     {"1", "blocks in use at the end", "blocks that nobody gave up"},
     [](const InstanceRow& r) { return r.record->used_at_end; }},
    {"running_mean",
     {"1", "mean running", "requests that run, the mean over time"},
     [](const InstanceRow& r) { return mean_over(r.record->running_sum_high, r.record->running_sum_low, r.end); }},
    {"waiting_mean",
     {"1", "mean waiting", "requests that wait, the mean over time"},
     [](const InstanceRow& r) { return mean_over(r.record->waiting_sum_high, r.record->waiting_sum_low, r.end); }},
}};

const std::array<Column<StepRecord>, 8> step_columns{{
    {"instance", {"1", "instance", "number of the instance"}, [](const StepRecord& s) { return s.instance; }},
    {"number",
     {"1", "number", "number of the step at its instance"},
     [](const StepRecord& s) { return static_cast<std::int64_t>(s.number); }},
    {"scheduled", {"ps", "scheduled", "time of scheduling"}, [](const StepRecord& s) { return s.scheduled.ps(); }},
    {"start", {"ps", "start", "begin of the step"}, [](const StepRecord& s) { return s.start.ps(); }},
    {"end", {"ps", "end", "end of the step"}, [](const StepRecord& s) { return s.end.ps(); }},
    {"used_blocks",
     {"1", "used blocks", "KV blocks in use after the step was scheduled"},
     [](const StepRecord& s) { return s.used_blocks; }},
    {"items", {"1", "items", "rows of the step in /steps_items"}, [](const StepRecord& s) { return s.num_items; }},
    {"preempted",
     {"1", "preempted", "rows of the step in /steps_preempted"},
     [](const StepRecord& s) { return s.num_preempted; }},
}};

const std::array<Column<StepItem>, 3> item_columns{{
    {"request", {"1", "request", "id of the request"}, [](const StepItem& i) { return i.request; }},
    {"tokens", {"1", "tokens", "tokens that the step computes"}, [](const StepItem& i) { return i.tokens; }},
    {"context", {"1", "context", "tokens before them"}, [](const StepItem& i) { return i.context; }},
}};

const std::array<Column<std::uint32_t>, 1> preempted_columns{{
    {"request", {"1", "request", "id of the request"}, [](const std::uint32_t& i) { return i; }},
}};

void write_requests(File& file, const ServingRun& run) {
  std::vector<RequestRow> rows;
  for (const RequestRecord& record : run.results.requests) rows.push_back({&record, &run.scenario.requests[record.id]});
  file.group("/requests", "one row per request, in the order of the file");
  write_table(file, "/requests", request_columns, "request", {"1", "request", "id of the request"},
              std::span<const RequestRow>(rows));
}

void write_instances(File& file, const ServingRun& run) {
  std::vector<InstanceRow> rows;
  for (const InstanceRecord& record : run.results.instances)
    rows.push_back({&record, static_cast<double>(run.results.end.ps())});
  file.group("/instances", "one row per scheduler");
  write_table(file, "/instances", instance_columns, "instance", {"1", "instance", "number of the scheduler"},
              std::span<const InstanceRow>(rows));
  std::vector<std::string> names;
  for (const auto& instance : run.scenario.instances)
    for (std::uint32_t member = 0; member < instance.members; ++member)
      names.push_back(instance.members == 1 ? instance.name : fmt::format("{}.{}", instance.name, member));
  file.strings("/instances/name", names, {"1", "name", "name of the instance"});
  file.attach("/instances/name", "/instances/instance");
}

void write_steps(File& file, const serving::Results& results) {
  file.group("/steps", "one row per step, by instance and number");
  write_table(file, "/steps", step_columns, "step", {"1", "step", "row of the step"},
              std::span<const StepRecord>(results.steps));
  file.group("/steps_items", "what each step computes, in the order of /steps");
  write_table(file, "/steps_items", item_columns, "item", {"1", "item", "row"},
              std::span<const StepItem>(results.items));
  file.group("/steps_preempted", "requests that gave way while a step was scheduled, in the order of /steps");
  write_table(file, "/steps_preempted", preempted_columns, "row", {"1", "row", "row"},
              std::span<const std::uint32_t>(results.preempted));
}

void write_figures(File& file, const ServingRun& run) {
  const std::string group = "/serving";
  file.group(group, "metrics of the requests that arrive in the window; times in ps");
  const serving::Metrics& m = run.metrics;
  const auto put = [&](const std::string& name, double value) { file.attribute(group, name.c_str(), value); };
  const auto put_times = [&](const std::string& name, const serving::TimeFigures& of) {
    put(name + "_mean", of.mean);
    put(name + "_p50", of.p50);
    put(name + "_p90", of.p90);
    put(name + "_p95", of.p95);
    put(name + "_p99", of.p99);
  };
  put_times("ttft", m.ttft);
  put_times("tpot", m.tpot);
  put_times("itl", m.itl);
  put_times("latency", m.latency);
  put("requests_per_s", m.requests_per_s);
  put("output_tokens_per_s", m.output_tokens_per_s);
  put("total_tokens_per_s", m.total_tokens_per_s);
  put("requests_per_s_per_npu", m.requests_per_s / m.npus);
  put("output_tokens_per_s_per_npu", m.output_tokens_per_s / m.npus);
  put("total_tokens_per_s_per_npu", m.total_tokens_per_s / m.npus);
  put("slo_attainment", m.slo_attainment);
  put("goodput", m.goodput);
  put("goodput_per_npu", m.goodput / m.npus);
  put("prefix_hit_share", m.prefix_hit_share);
  put("makespan", m.makespan * 1e12);
  put("kv_use_mean", m.kv_use_mean);
  const serving::Slo& slo = run.description.slo;
  if (slo.ttft != Time::max()) put("slo_ttft", static_cast<double>(slo.ttft.ps()));
  if (slo.tpot != Time::max()) put("slo_tpot", static_cast<double>(slo.tpot.ps()));
  if (slo.any()) put("slo_share", slo.share);
  put("front_end", static_cast<double>(run.description.front_end.ps()));
  const auto figures = serving::figures_of(run.scenario.requests);
  const auto put_count = [&](const char* name, std::uint64_t value) {
    file.attribute(group, name, static_cast<std::int64_t>(value));
  };
  put_count("npus", m.npus);
  put_count("measured_requests", m.requests);
  put_count("requests", figures.requests);
  put_count("input_tokens", figures.prompt_tokens);
  put_count("output_tokens", figures.output_tokens);
  put_count("last_arrival", static_cast<std::uint64_t>(figures.last_arrival.ps()));
  put_count("prefix_hit_unlimited", figures.unlimited_hit);
  put_count("preemptions", m.preemptions);
  put_count("transferred_bytes", m.transferred_tokens * run.scenario.kv_bytes_per_token);
  put_count("kv_bytes_per_token", run.scenario.kv_bytes_per_token);
}

void write_ends_of_jobs(File& file, const ServingRun& run) {
  if (run.results.jobs.empty()) return;
  file.group("/jobs", "a group for each job that shared the network, with times in ps");
  for (const serving::JobEnd& job : run.results.jobs) {
    const std::string group = "/jobs/" + job.name;
    file.group(group, "a job");
    file.attribute(group, "npus", std::int64_t{job.npus});
    file.attribute(group, "start", job.start.ps());
    file.attribute(group, "finish", job.finish.ps());
    file.attribute(group, "run_time", (job.finish - job.start).ps());
  }
}

void write_attributes_of_run(File& file, const ServingRun& run, int num_ranks) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  file.attribute("/", "format", format::name);
  file.attribute("/", "format_version", format::version);
  file.attribute("/", "kind", "serving");
  file.attribute("/", "created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)));
  file.attribute("/", "orrery_version", version());
  file.attribute("/", "revision", revision());
  file.attribute("/", "command_line", run.command_line);
  file.attribute("/", "mpi_library", parallel::library_version());
  file.attribute("/", "num_ranks", std::int64_t{num_ranks});
  file.attribute("/", "status", "complete");
  file.attribute("/", "simulated_time", run.results.end.ps());
  file.attribute("/", "events", static_cast<std::int64_t>(run.results.events));
  file.attribute("/", "wall_time", run.results.wall_seconds);
  file.group("/config", "what was simulated");
  write_inputs(file, "/config/inputs", run.inputs);
}

}  // namespace

std::filesystem::path write_serving(const std::filesystem::path& path, const ServingRun& run,
                                    parallel::Communicator& world) {
  Output output(path, world);
  output.on_root([&](File& file) {
    if (run.description.record_requests) write_requests(file, run);
    write_instances(file, run);
    if (run.description.record_steps) write_steps(file, run.results);
    write_figures(file, run);
    write_ends_of_jobs(file, run);
    write_attributes_of_run(file, run, world.size());
  });
  return output.commit(run.force);
}

}  // namespace orrery::results
