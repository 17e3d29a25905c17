#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "columns.hpp"
#include "orrery/results/jobs.hpp"
#include "orrery/results/npu_records.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using WideJobSum = __int128;

const std::array<Column<JobFigures>, 13> job_columns{{
    {"npus", {"1", "NPUs", "number of NPUs of the job"}, [](const JobFigures& job) { return job.npus; }},
    {"start_time",
     {"ps", "start time", "time at which the first nodes of the job were ready"},
     [](const JobFigures& job) { return job.start.ps(); }},
    {"finish_time",
     {"ps", "finish time", "time at which the last node of the job completed"},
     [](const JobFigures& job) { return job.finish.ps(); }},
    {"run_time",
     {"ps", "run time", "finish time less start time"},
     [](const JobFigures& job) { return job.run_time.ps(); }},
    {"iterations",
     {"1", "iterations", "number of times that the NPUs of the job executed their traces"},
     [](const JobFigures& job) { return job.iterations; }},
    {"step_time",
     {"ps", "step time", "run time over the number of iterations"},
     [](const JobFigures& job) { return job.step_time.ps(); }},
    {"compute_time",
     {"ps", "compute time", "time in which the compute resource was busy, the mean over the NPUs of the job"},
     [](const JobFigures& job) { return job.compute.ps(); }},
    {"cpu_time",
     {"ps", "CPU time", "time in which the CPU was busy and the compute resource was not, the mean over the NPUs"},
     [](const JobFigures& job) { return job.cpu.ps(); }},
    {"exposed_communication_time",
     {"ps", "exposed communication time",
      "time in which communication was in progress and neither the compute resource nor the CPU was busy, the mean "
      "over the NPUs of the job"},
     [](const JobFigures& job) { return job.exposed_communication.ps(); }},
    {"exposed_memory_time",
     {"ps", "exposed remote memory time",
      "time in which only remote memory accesses were in progress, the mean over the NPUs of the job"},
     [](const JobFigures& job) { return job.exposed_memory.ps(); }},
    {"idle_time",
     {"ps", "idle time",
      "time from the start of the job to its end in which nothing was in progress, the mean over the "
      "NPUs of the job"},
     [](const JobFigures& job) { return job.idle.ps(); }},
    {"bytes_sent",
     {"byte", "bytes sent", "bytes that the NPUs of the job sent into the network"},
     [](const JobFigures& job) { return static_cast<std::int64_t>(job.bytes_sent.count()); }},
    {"tokens_per_second",
     {"1/s", "tokens per second", "tokens of a step over the step time; 0: the workload does not say how many it has"},
     [](const JobFigures& job) { return job.tokens_per_second; }},
}};

const std::array<Column<JobFigures>, 2> alone_columns{{
    {"alone_time",
     {"ps", "run time alone", "run time of the job without the others, on the same NPUs"},
     [](const JobFigures& job) { return job.alone->ps(); }},
    {"slowdown",
     {"1", "slowdown", "run time over the run time alone"},
     [](const JobFigures& job) { return job.slowdown(); }},
}};

Time nearest_mean(WideJobSum sum, std::uint64_t count) {
  return Time::from_ps(static_cast<std::int64_t>((2 * sum + count) / (2 * WideJobSum{count})));
}

JobFigures figures_of_job(const JobDescription& job, const NpuRecords& npus) {
  JobFigures figures;
  figures.npus = static_cast<std::uint32_t>(job.npus.size());
  figures.start = figures.finish = job.start;
  figures.iterations = job.iterations;
  figures.alone = job.alone;
  WideJobSum compute = 0, cpu = 0, communication = 0, memory = 0;
  for (const NpuId id : job.npus) {
    const npu::NpuRecord& npu = npus[id.index()];
    figures.finish = std::max(figures.finish, npu.finish);
    compute += npu.compute.ps();
    cpu += npu.cpu.ps();
    communication += npu.exposed_communication().ps();
    memory += npu.exposed_memory.ps();
    figures.bytes_sent = figures.bytes_sent + npu.bytes_sent;
  }
  figures.run_time = figures.finish - figures.start;
  figures.step_time = nearest_mean(figures.run_time.ps(), figures.iterations);
  const std::uint64_t count = job.npus.size();
  figures.compute = nearest_mean(compute, count);
  figures.cpu = nearest_mean(cpu, count);
  figures.exposed_communication = nearest_mean(communication, count);
  figures.exposed_memory = nearest_mean(memory, count);
  const WideJobSum whole = WideJobSum{figures.run_time.ps()} * count;
  figures.idle = nearest_mean(whole - compute - cpu - communication - memory, count);
  if (figures.step_time > Time::zero()) figures.tokens_per_second = job.tokens / figures.step_time.seconds();
  return figures;
}

}  // namespace

double JobFigures::slowdown() const {
  if (*alone > Time::zero()) return static_cast<double>(run_time.ps()) / static_cast<double>(alone->ps());
  return run_time == Time::zero() ? 1 : std::numeric_limits<double>::infinity();
}

std::vector<JobFigures> write_jobs(Output& output, std::span<const JobDescription> jobs, const NpuRecords& npus) {
  std::vector<JobFigures> figures;
  if (jobs.empty()) return figures;
  output.on_root([&](File& file) {
    for (const JobDescription& job : jobs) figures.push_back(figures_of_job(job, npus));
    const std::string group = "/jobs";
    file.group(group, "one row per job; jobs share the system, and each has NPUs of its own");
    const std::span<const JobFigures> rows(figures);
    write_table(file, group, job_columns, "job", {"1", "job", "number of the job"}, rows);
    std::vector<std::string> names;
    for (const JobDescription& job : jobs) names.push_back(job.name);
    file.strings(group + "/name", names, {"1", "name", "name of the job"});
    file.attach(group + "/name", group + "/job");
    if (std::ranges::all_of(figures, [](const JobFigures& job) { return job.alone.has_value(); })) {
      create_columns(file, group, alone_columns, rows.size(), "job", File::Layout::plain);
      write_columns(file, group, alone_columns, 0, rows);
    }
    std::vector<std::int32_t> job_of(npus.size(), -1);
    for (std::size_t j = 0; j < jobs.size(); ++j)
      for (const NpuId npu : jobs[j].npus) job_of[npu.index()] = static_cast<std::int32_t>(j);
    file.column<std::int32_t>("/npus/job", job_of, {"1", "job", "number of the job of the NPU; -1: it has none"});
    file.attach("/npus/job", "/npus/npu");
  });
  return figures;
}

}  // namespace orrery::results
