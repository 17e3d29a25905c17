#include "orrery/study/campaign_times.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "orrery/base/job_context.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/trace/writer.hpp"
#include "orrery/workload/figures.hpp"
#include "study_trials.hpp"
#include "trial.hpp"

namespace orrery::study {
namespace {

using campaign::Nanoseconds;
using campaign::TierKind;
using campaign::Times;

/// Throws the error about a time that nobody knows.
[[noreturn]] void refuse_missing(const std::string& key, std::string_view hint) {
  throw Error(ErrorCode::bad_input, {.key = key}, "the key is missing", "a time", hint);
}

/// A time that a simulation finds.
struct TimeTask {
  std::string name;
  std::uint64_t digest = 0;          ///< digest of all that it depends on
  std::function<double()> simulate;  ///< returns seconds
};

/// Makes and carries out the simulations that a campaign needs.
class TimeFinder {
 public:
  TimeFinder(const config::CampaignFile& file, const CampaignCommand& command) : file_(file), command_(command) {
    config::Configuration without = file.configuration;
    without.campaign = {};
    without.cluster = {};
    if (file.has_system) settings_ = without.to_yaml(false);
  }

  void need_step() {
    add("step", "", [this] {
      config::Configuration configuration = file_.configuration;
      return step_of(configuration);
    });
  }
  void need_straggler(std::size_t process, double compute) {
    const std::uint32_t npus = file_.configuration.campaign.npus_per_host;
    add(fmt::format("straggler.{}", process), fmt::format("{} NPUs of speed {}", npus, compute), [this, npus, compute] {
      config::Configuration configuration = file_.configuration;
      auto& speeds = configuration.execution.compute_speed;
      speeds.resize(topology::Topology(configuration.dimensions).num_npus(), 1);
      for (std::size_t npu = 0; npu < std::min<std::size_t>(npus, speeds.size()); ++npu) speeds[npu] *= compute;
      configuration.execution.validate();
      return step_of(configuration);
    });
  }
  /// Adds a step with fewer replicas. `micro_batches`: of each.
  void need_replicas(std::uint32_t replicas, std::uint32_t micro_batches) {
    const std::string name = fmt::format("elastic.{}", replicas);
    add(name, fmt::format("{} micro-batches", micro_batches), [this, replicas, micro_batches] {
      config::Configuration configuration = file_.configuration;
      config::Job job;
      job.name = "elastic";
      job.workload = std::exchange(configuration.workload, {});
      auto& parallel = job.workload.generated->parallel;
      parallel[workload::Axis::dp] = replicas;
      parallel.micro_batches = micro_batches;
      job.allocation = {{0, parallel.num_npus() - 1}};
      configuration.workload.jobs = {std::move(job)};
      return step_of(configuration);
    });
  }
  /// Adds an access of all NPUs to remote memory.
  void need_access(std::size_t tier, bool is_store, double bytes) {
    const std::string name = fmt::format("checkpoint.{}.{}", tier, is_store ? "write" : "read");
    add(name, fmt::format("{} {}", name, bytes), [this, is_store, bytes] { return access_time(is_store, bytes); });
  }

  /// Finds all times: those of --times, else by simulations that are divided among the ranks. Collective.
  void find(parallel::Communicator& world) {
    std::vector<double> mine(tasks_.size(), 0);
    world.agree([&] {
      const auto known = known_times();
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (const auto found = known.find(tasks_[i].digest); found != known.end()) {
          if (world.is_root()) mine[i] = found->second;
        } else if (!command_.times.empty()) {
          throw Error(ErrorCode::bad_input, {.file = command_.times.string()},
                      fmt::format("it has no time of '{}' for this configuration", tasks_[i].name),
                      "the times of a campaign with this system and workload", "Leave out --times to simulate them.");
        } else if (i % static_cast<std::size_t>(world.size()) == static_cast<std::size_t>(world.rank().value())) {
          mine[i] = tasks_[i].simulate();
        }
      }
    });
    const auto all = world.all_gather(std::span<const double>(mine));
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      double seconds = 0;
      for (std::size_t at = i; at < all.size(); at += tasks_.size()) seconds += all[at];
      found_[tasks_[i].name] = seconds;
    }
    if (command_.times.empty() && command_.keeps_times && !tasks_.empty())
      world.agree([&] {
        if (world.is_root()) write_times();
      });
  }

  Nanoseconds time(const std::string& name) const { return campaign::nanoseconds(found_.at(name)); }
  bool has(const std::string& name) const { return found_.contains(name); }

 private:
  void add(std::string name, std::string_view setting, std::function<double()> simulate) {
    const std::uint64_t digest = mix(digest_of(settings_), digest_of(fmt::format("{} {}", name, setting)));
    tasks_.push_back({std::move(name), digest, std::move(simulate)});
  }

  /// Returns the seconds of a step, without a campaign whose times would need the step in turn.
  double step_of(config::Configuration& configuration) const {
    configuration.campaign = {};
    configuration.cluster = {};
    const std::function<bool()> stop = [job = JobContext::current()] { return job && job->stop.is_requested(); };
    const auto trial = simulate_trial(configuration, {.fold = command_.fold}, stop);
    if (!trial) throw Error(ErrorCode::interrupted, "the job was stopped before the step was simulated");
    if (trial->metrics.empty()) throw Error(ErrorCode::bad_input, fmt::format("the step: {}", trial->text));
    return metric_of(*trial, "step_time");
  }

  double access_time(bool is_store, double bytes) const {
    config::Configuration configuration = file_.configuration;
    const std::filesystem::path trace =
        fmt::format("{}.access-{}.et", command_.output.string(), static_cast<long>(::getpid()));
    const PartialFileOfJob guard(trace);
    {
      trace::Writer writer(trace);
      writer.access({.id = 1, .name = "checkpoint", .data_deps = {}},
                    is_store ? trace::NodeKind::mem_store : trace::NodeKind::mem_load,
                    Bytes(static_cast<std::uint64_t>(std::ceil(bytes))));
      writer.close();
    }
    configuration.workload = {};
    configuration.workload.traces = {{0, topology::Topology(configuration.dimensions).num_npus() - 1, trace.string()}};
    try {
      const double seconds = step_of(configuration);
      std::filesystem::remove(trace);
      return seconds;
    } catch (...) {
      std::filesystem::remove(trace);
      throw;
    }
  }

  /// Returns the times of --times by digest.
  std::map<std::uint64_t, double> known_times() const {
    std::map<std::uint64_t, double> known;
    if (command_.times.empty()) return known;
    const std::string text = read_text(command_.times);
    std::uint64_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const auto end = rest.find('\n');
      std::string line(trimmed(rest.substr(0, end)));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      ++number;
      if (line.empty() || line.starts_with('#')) continue;
      unsigned long long digest = 0;
      double seconds = 0;
      if (std::sscanf(line.c_str(), "t%16llx: %lf", &digest, &seconds) != 2)
        throw Error(ErrorCode::bad_input, {.file = command_.times.string(), .line = number},
                    fmt::format("found '{}'", cited(line)), "a digest and seconds, as a campaign writes them");
      known[digest] = seconds;
    }
    return known;
  }

  void write_times() const {
    std::filesystem::path file = command_.output;
    file.replace_extension(".times.yaml");
    std::string text = "# Times in seconds that a campaign has simulated, by the digest of what they depend on.\n";
    for (const TimeTask& task : tasks_)
      text += fmt::format("t{:016x}: {}  # {}\n", task.digest, found_.at(task.name), task.name);
    PartialFile partial(file);
    partial.write(text);
    partial.commit();
  }

  const config::CampaignFile& file_;
  const CampaignCommand& command_;
  std::string settings_;
  std::vector<TimeTask> tasks_;
  std::map<std::string, double> found_;
};

/// Returns the bytes of a checkpoint that each writer has.
double bytes_of_writer(const campaign::TierOptions& tier, const JobTimes& job, const std::string& key) {
  if (job.parameters == 0 || job.num_npus == 0)
    refuse_missing(key, "Give it: the size of a checkpoint is known of a workload.model only.");
  if (tier.writers == campaign::Writers::first_replica)
    refuse_missing(key, "Give it: times are simulated for writers: sharded only.");
  return job.parameters * tier.bytes_per_parameter / job.num_npus;
}

/// Notes what has to be simulated of a tier.
void need_tier(const config::CampaignFile& file, const JobTimes& job, std::size_t i, TimeFinder& finder) {
  const auto& tier = file.configuration.campaign.tiers[i];
  const bool needs_write = !tier.stall || (tier.asynchronous && !tier.durable);
  const char* const missing = !tier.stall ? "stall" : needs_write ? "durable" : "read";
  const std::string key = fmt::format("campaign.checkpoint.{}.{}", i, missing);
  if (!needs_write && tier.read) return;
  if (tier.kind == TierKind::peer) {
    bytes_of_writer(tier, job, key);
    return;
  }
  if (!file.configuration.remote_memory.kind->has_memory)
    refuse_missing(key, "Give it, or system.remote-memory, from whose simulation it follows.");
  const double bytes = bytes_of_writer(tier, job, key);
  if (needs_write) finder.need_access(i, true, bytes);
  if (!tier.read) finder.need_access(i, false, bytes);
}

/// Returns how long a message of the bytes takes to a peer in the next host.
Nanoseconds peer_time(const config::CampaignFile& file, double bytes) {
  const auto& configuration = file.configuration;
  const auto delays = configuration.delays();
  const std::uint32_t peer = configuration.campaign.npus_per_host;
  if (peer >= delays.topology().num_npus())
    throw Error(ErrorCode::bad_input, {.key = "campaign.checkpoint"}, "there is one host only, which has no peer",
                "kind: remote");
  const Bytes size(static_cast<std::uint64_t>(std::ceil(bytes)));
  return campaign::nanoseconds(delays.delay(NpuId(0), NpuId(peer), size).seconds());
}

Times::OfTier tier_times(const config::CampaignFile& file, const JobTimes& job, std::size_t i,
                         const TimeFinder& finder) {
  const auto& options = file.configuration.campaign;
  const auto& tier = options.tiers[i];
  Times::OfTier times{tier.stall.value_or(0), tier.durable.value_or(0), tier.read.value_or(0)};
  const std::string name = fmt::format("checkpoint.{}", i);
  const bool needs_write = !tier.stall || (tier.asynchronous && !tier.durable);
  if (!needs_write && tier.read) return times;
  const std::string key = fmt::format("campaign.checkpoint.{}.stall", i);
  const double bytes = bytes_of_writer(tier, job, key);
  const Nanoseconds peer = tier.kind == TierKind::peer ? peer_time(file, bytes) : 0;
  Nanoseconds copy = 0;
  if (options.step.host_bandwidth.bytes_per_ns() > 0)
    copy = campaign::nanoseconds(bytes / options.step.host_bandwidth.bytes_per_ns() * 1e-9);
  else if (tier.asynchronous && !tier.stall)
    refuse_missing("campaign.step.host-bandwidth",
                   "An asynchronous checkpoint stops the job for the copy to host memory.");
  if (needs_write) {
    const Nanoseconds write = (tier.kind == TierKind::peer ? peer : finder.time(name + ".write")) + copy;
    if (!tier.stall) times.stall = tier.asynchronous ? copy : write;
    if (!tier.durable) times.durable = write;
  }
  if (!tier.read) times.read = (tier.kind == TierKind::peer ? peer : finder.time(name + ".read")) + copy;
  return times;
}

/// Returns the numbers of replicas with which an elastic job goes on, and the micro-batches that each of them takes.
std::vector<std::pair<std::uint32_t, std::uint32_t>> fewer_replicas(const config::CampaignFile& file) {
  const auto& elastic = file.configuration.campaign.elastic;
  const auto& parallel = file.configuration.workload.generated->parallel;
  const std::uint32_t all = parallel[workload::Axis::dp];
  const std::uint32_t hosts = elastic.hosts_per_replica * file.configuration.campaign.npus_per_host;
  if (const std::uint32_t npus = parallel.num_npus(); npus != all * hosts)
    throw Error(ErrorCode::bad_input, {.key = "campaign.elastic.hosts-per-replica"},
                fmt::format("a replica of {} hosts has {} NPUs, but the workload has {} replicas of {}",
                            elastic.hosts_per_replica, hosts, all, npus / all),
                "the hosts of one replica of workload.parallel.dp");
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (std::uint32_t r = elastic.least; r < all; ++r)
    found.emplace_back(r, elastic.scales_batch ? parallel.micro_batches : (parallel.micro_batches * all + r - 1) / r);
  return found;
}

/// Returns the tokens in a second with fewer replicas over those with all.
std::vector<std::pair<std::uint32_t, double>> elastic_speeds(const config::CampaignFile& file,
                                                             const TimeFinder& finder) {
  const auto& parallel = file.configuration.workload.generated->parallel;
  const double all = parallel[workload::Axis::dp] * static_cast<double>(parallel.micro_batches) /
                     campaign::seconds(finder.time("step"));
  std::vector<std::pair<std::uint32_t, double>> speeds;
  for (const auto& [replicas, micro_batches] : fewer_replicas(file)) {
    const double step = campaign::seconds(finder.time(fmt::format("elastic.{}", replicas)));
    speeds.emplace_back(replicas, std::min(1.0, replicas * static_cast<double>(micro_batches) / step / all));
  }
  return speeds;
}

}  // namespace

JobTimes times_of(const config::CampaignFile& file, const CampaignCommand& command, parallel::Communicator& world) {
  const auto& options = file.configuration.campaign;
  JobTimes job;
  TimeFinder finder(file, command);
  world.agree([&] {
    if (!options.step.time && !file.has_workload)
      refuse_missing("campaign.step.time", "Give it, or a system and a workload from whose simulation it follows.");
    if (file.has_workload) job.num_npus = topology::Topology(file.configuration.dimensions).num_npus();
    job.times.tokens = options.step.tokens;
    if (const auto& generated = file.configuration.workload.generated) {
      job.parameters = static_cast<double>(workload::figures_of_model(*generated).parameters);
      if (job.times.tokens == 0) job.times.tokens = static_cast<double>(workload::size_of_step(*generated).tokens);
    }
    bool needs_step = !options.step.time;
    for (std::size_t f = 0; f < options.processes.size(); ++f)
      if (options.processes[f].compute > 0) {
        if (!file.has_workload)
          refuse_missing(fmt::format("campaign.failures.{}.speed", f), "Give it: `compute` needs a workload.");
        finder.need_straggler(f, options.processes[f].compute);
        needs_step = true;
      }
    if (options.elastic.hosts_per_replica > 0 && options.elastic.speeds.empty()) {
      if (!file.configuration.workload.generated)
        refuse_missing("campaign.elastic.speeds", "Give the speed of the job for each number of replicas.");
      needs_step = true;
      for (const auto& [replicas, micro_batches] : fewer_replicas(file)) finder.need_replicas(replicas, micro_batches);
    }
    if (needs_step) finder.need_step();
    for (std::size_t i = 0; i < options.tiers.size(); ++i)
      if (file.has_system && file.has_workload)
        need_tier(file, job, i, finder);
      else if (!options.tiers[i].stall)
        refuse_missing(fmt::format("campaign.checkpoint.{}.stall", i),
                       "Give it, or a system and a workload from whose simulation it follows.");
  });
  finder.find(world);
  world.agree([&] {
    job.times.step = options.step.time ? *options.step.time : finder.time("step");
    for (std::size_t i = 0; i < options.tiers.size(); ++i)
      job.times.tiers.push_back(file.has_system && file.has_workload
                                    ? tier_times(file, job, i, finder)
                                    : Times::OfTier{*options.tiers[i].stall, options.tiers[i].durable.value_or(0),
                                                    options.tiers[i].read.value_or(0)});
    if (options.elastic.hosts_per_replica > 0 && options.elastic.speeds.empty())
      job.times.elastic = elastic_speeds(file, finder);
    for (std::size_t f = 0; f < options.processes.size(); ++f) {
      const std::string name = fmt::format("straggler.{}", f);
      job.times.speeds.push_back(finder.has(name) ? std::min(1.0, campaign::seconds(finder.time("step")) /
                                                                      campaign::seconds(finder.time(name)))
                                                  : options.processes[f].process.speed);
    }
  });
  return job;
}

}  // namespace orrery::study
