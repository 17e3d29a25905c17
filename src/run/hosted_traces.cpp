#include "orrery/run/hosted_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job_traces.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"
#include "orrery/parallel/raise_faults.hpp"
#include "orrery/partition/contiguous.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/recorded_starts.hpp"
#include "orrery/workload/generator.hpp"
#include "same_inputs.hpp"
#include "trace_files.hpp"
#include "trace_reader.hpp"

namespace orrery::run {
namespace {

/// Returns the process groups that the communicator file names.
struct GroupFile {
  trace::NamedGroups groups;
  bool is_readable = true;
};

/// With `faults` of the configuration, a missing text may be one that could not be read.
GroupFile read_group_file(const config::Configuration& configuration, std::uint32_t num_npus, Faults& faults) {
  GroupFile result;
  Faults of_groups;
  const auto& file = configuration.workload.groups;
  const auto& text = configuration.workload.groups_text;
  if (text)
    result.groups = trace::parse_groups(text->second, file->string(), num_npus, of_groups);
  else if (!faults.empty())
    result.is_readable = false;
  else if (file)
    of_groups.attempt(
        [&] { result.groups = trace::parse_groups(read_text(*file), file->string(), num_npus, of_groups); });
  result.is_readable = result.is_readable && of_groups.empty();
  of_groups.for_each([&](const Error& fault) { faults.add(fault); });
  return result;
}

/// The traces of some NPUs.
struct TraceList {
  std::vector<NpuId> npus;              // ascending
  std::vector<trace::NpuTrace> traces;  // [npus]

  void add(NpuId npu, trace::NpuTrace trace) {
    npus.push_back(npu);
    traces.push_back(std::move(trace));
  }
};

TraceList read_job_traces(const JobTraces& jobs, std::span<const NpuId> npus, Rank here, trace::Store& store,
                          Faults& faults, Notices& notices) {
  TraceList list;
  auto traces = jobs.read(npus, here, store, faults, notices);
  for (std::size_t i = 0; i < npus.size(); ++i)
    if (traces[i]) list.add(npus[i], std::move(*traces[i]));
  return list;
}

/// Reads the traces of these NPUs. Leaves out those that cannot be read. `jobs`: null if all NPUs have one workload.
TraceList read_traces(const config::Configuration& configuration, const JobTraces* jobs, std::span<const NpuId> npus,
                      Rank here, trace::Store& store, Faults& faults, Notices& notices) {
  if (jobs != nullptr) return read_job_traces(*jobs, npus, here, store, faults, notices);
  const config::Workload& workload = configuration.workload;
  if (workload.generated)
    return {{npus.begin(), npus.end()}, workload::assemble(*workload.generated, npus, store, workload.estimates.get())};
  TraceList list;
  list.traces.reserve(npus.size());
  TraceReader reader(configuration.run, here, npus.size());
  for (const NpuId npu : npus)
    if (auto trace = reader.read(workload.trace_of(npu), npu, store, faults)) list.add(npu, std::move(*trace));
  return list;
}

/// Returns the question whether an NPU is one of these.
std::function<bool(NpuId)> is_one_of(std::span<const NpuId> npus) {
  return [listed = std::vector<NpuId>(npus.begin(), npus.end())](NpuId npu) {
    return std::ranges::binary_search(listed, npu);
  };
}

/// Returns the traces of both lists, which have no NPU in common.
TraceList merged(TraceList a, TraceList b) {
  TraceList list;
  for (std::size_t i = 0, j = 0; i < a.npus.size() || j < b.npus.size();)
    if (j == b.npus.size() || (i < a.npus.size() && a.npus[i] < b.npus[j])) {
      list.add(a.npus[i], std::move(a.traces[i]));
      ++i;
    } else {
      list.add(b.npus[j], std::move(b.traces[j]));
      ++j;
    }
  return list;
}

/// Returns the traces that another partition gives this rank. Keeps those that this rank has read already, frees those
/// that go to other ranks, and then reads the others. Leaves the notices as they are, because every trace has been read
/// on one rank already.
HostedTraces moved(HostedTraces old, partition::Partition partition, const config::Configuration& configuration,
                   const JobTraces* jobs, Rank here, Faults& faults) {
  TraceList kept;
  for (std::size_t i = 0; i < old.npus.size(); ++i)
    if (partition.rank_of(old.npus[i]) == here) kept.add(old.npus[i], std::move(old.traces[i]));
  old.traces.clear();
  old.store.host_instead(is_one_of(partition.npus_of(here)));
  std::vector<NpuId> missing;
  std::ranges::set_difference(partition.npus_of(here), kept.npus, std::back_inserter(missing));
  Notices known;
  TraceList all = merged(std::move(kept), read_traces(configuration, jobs, missing, here, old.store, faults, known));
  return {std::move(partition),  std::move(old.store),   std::move(all.npus),
          std::move(all.traces), std::move(old.notices), old.groups_are_known};
}

/// Finds the members of the groups that traces name but nobody lists: the NPUs of all ranks that use the name, in the
/// order of the numbers that the traces give them. Collective.
void list_groups_by_use(HostedTraces& traces, const JobTraces* jobs, parallel::Communicator& world) {
  const auto unlisted = traces.store.unlisted_groups();
  std::int64_t any = unlisted.empty() ? 0 : 1;
  world.maximum(std::span(&any, 1));
  if (any == 0) return;
  std::map<GroupId, std::string> name_of;
  for (const GroupId group : unlisted) name_of.emplace(group, traces.store.groups()[group.index()].name);
  std::string mine;  // "NPU BYTES NAME" for each use
  for (std::size_t i = 0; i < traces.npus.size(); ++i)
    for (const GroupId group : traces.traces[i].groups)
      if (const auto name = name_of.find(group); name != name_of.end())
        mine += fmt::format("{} {} {}", traces.npus[i].value(), name->second.size(), name->second);
  const std::vector<char> all = world.all_gather(std::span<const char>(mine));
  std::map<std::string, std::vector<NpuId>, std::less<>> users;
  for (const char* at = all.data(); at != all.data() + all.size();) {
    const auto number = [&] {
      std::uint32_t value = 0;
      at = std::from_chars(at, all.data() + all.size(), value).ptr + 1;
      return value;
    };
    const NpuId npu(number());
    const std::uint32_t size = number();
    users[std::string(at, size)].push_back(npu);
    at += size;
  }
  // Another partition may give this rank traces with names that it has not seen yet.
  for (auto& [name, members] : users) {
    std::ranges::sort(members, {}, [&](NpuId npu) { return jobs == nullptr ? npu : jobs->npus().own(npu); });
    if (std::ranges::binary_search(traces.npus, members.front()))
      traces.notices.add("unlisted-group", members.front().value(),
                         fmt::format("process group '{}' is named, but nothing lists its members: they are the {} that "
                                     "name it ({}); workload.groups names a file that lists them",
                                     cited(name), counted(members.size(), "NPU"), list(members)));
    const GroupId group = traces.store.keep_group(name, {});
    traces.store.list_group(group, std::move(members));
  }
}

/// Looks on rank 0 whether the trace files are those of the system's NPUs; adds what is wrong to its faults and
/// notices. Returns whether they are worth reading, on all ranks. Collective.
bool has_traces_of_all(const config::Workload& workload, const JobTraces* jobs, std::uint32_t num_npus,
                       parallel::Communicator& world, Faults& faults, Notices& notices) {
  Faults found;
  world.agree([&] {
    if (!world.is_root()) return;
    if (jobs != nullptr)
      jobs->compare_files(found, notices);
    else if (!workload.generated)
      compare_trace_files(workload, TraceOwner::system, num_npus, found, notices);
  });
  found.for_each([&](const Error& fault) { faults.add(fault); });
  return !parallel::any_faults(found, world);
}

/// Keeps the starts of recordings of each job, whose clocks have nothing to do with those of other jobs. Without jobs
/// it returns the delays of the traces, as keep_starts does. Collective.
std::vector<Time> keep_starts_of(HostedTraces& traces, const JobTraces* jobs, std::size_t num_jobs,
                                 parallel::Communicator& world) {
  if (jobs == nullptr) return keep_starts(traces.npus, traces.traces, traces.store, traces.notices, world);
  for (std::size_t job = 0; job < num_jobs; ++job) {
    std::vector<std::size_t> at;
    std::vector<NpuId> npus;
    std::vector<trace::NpuTrace> of_job;
    for (std::size_t i = 0; i < traces.npus.size(); ++i)
      if (jobs->npus().job_of(traces.npus[i]) == static_cast<std::int32_t>(job)) {
        at.push_back(i);
        npus.push_back(traces.npus[i]);
        of_job.push_back(std::move(traces.traces[i]));
      }
    keep_starts(npus, of_job, traces.store, traces.notices, world);
    for (std::size_t i = 0; i < at.size(); ++i) traces.traces[at[i]] = std::move(of_job[i]);
  }
  return {};
}

/// Returns the partition in which some NPUs are where they have to be.
partition::Partition with_fixed(const partition::Partition& made, std::span<const HostedNpu> fixed) {
  std::vector<Rank> ranks(made.ranks().begin(), made.ranks().end());
  for (const auto& [npu, rank] : fixed) ranks[npu.index()] = rank;
  return {std::move(ranks), made.num_ranks()};
}

/// The phases of read_hosted_traces, in their order. Each of them is collective.
class TraceReading {
 public:
  TraceReading(const config::Configuration& configuration, const System& system, parallel::Communicator& world,
               Faults& faults, std::span<const HostedNpu> fixed)
      : configuration_(configuration), system_(system), world_(world), faults_(faults), fixed_(fixed) {}

  /// Finds the trace files, and whether they are those of the system's NPUs.
  void locate() {
    const config::Workload& workload = configuration_.workload;
    if (!workload.jobs.empty() || !fixed_.empty())
      jobs_ = agreed(world_, [&] { return std::make_unique<const JobTraces>(configuration_, system_, faults_); });
    is_worth_reading_ = has_traces_of_all(workload, jobs_.get(), num_npus(), world_, faults_, of_files_);
  }

  /// Reads the process groups.
  void group() {
    groups_ = agreed(world_, [&] {
      if (jobs_ != nullptr) return GroupFile{{}, jobs_->groups_are_known()};
      return is_worth_reading_ ? read_group_file(configuration_, num_npus(), faults_) : GroupFile{{}, false};
    });
  }

  /// Divides the NPUs among the ranks as far as this needs no traces: for the run, or for the reading.
  partition::Partition divide() const {
    return agreed(world_, [&] {
      const bool is_for_later = needs_traces() || configuration_.run.fold;  // folding needs contiguous blocks
      const auto made = is_for_later ? partition::contiguous(num_npus(), 1, world_.size())
                                     : configuration_.run.partition.make({system_.topology(), world_.size()});
      return fixed_.empty() ? made : with_fixed(made, fixed_);
    });
  }

  /// Reads the traces of this rank's NPUs.
  HostedTraces read(partition::Partition partition) {
    return agreed(world_, [&] {
      const std::span<const NpuId> npus = partition.npus_of(world_.rank());
      trace::Store store(store_options(npus), std::move(groups_.groups));
      TraceList list;
      if (is_worth_reading_)
        list = read_traces(configuration_, jobs_.get(), npus, world_.rank(), store, faults_, of_files_);
      Notices notices = store.notices();
      notices.merge(of_files_);
      return HostedTraces{std::move(partition),   std::move(store),   std::move(list.npus),
                          std::move(list.traces), std::move(notices), groups_.is_readable};
    });
  }

  /// Settles what no rank can tell alone: that the ranks have read one version of the files, the members of groups that
  /// nobody lists, and when recordings begin.
  void settle(HostedTraces& traces) const {
    require_same_traces(traces.store, world_);
    list_groups_by_use(traces, jobs_.get(), world_);
    const std::vector<Time> delays = keep_starts(traces);
    if (configuration_.run.fold) traces.delays = world_.all_gather(std::span<const Time>(delays));
  }

  /// Returns whether the traces decide which rank hosts which NPU. With one rank every such strategy makes the same
  /// partition, and that of a folded run is decided later.
  bool moves() const { return needs_traces() && !configuration_.run.fold && world_.size() > 1; }

  /// Divides the NPUs by the traces, and moves the traces to the ranks that host them.
  HostedTraces move(HostedTraces traces) {
    auto by_traffic = make_partition(traces, configuration_, system_, world_);
    HostedTraces result = agreed(world_, [&] {
      return moved(std::move(traces), std::move(by_traffic), configuration_, jobs_.get(), world_.rank(), faults_);
    });
    if (!parallel::any_faults(faults_, world_)) keep_starts(result);
    return result;
  }

 private:
  std::uint32_t num_npus() const { return system_.topology().num_npus(); }
  bool needs_traces() const { return configuration_.run.partition.strategy().needs_traces; }
  std::vector<Time> keep_starts(HostedTraces& traces) const {
    return keep_starts_of(traces, jobs_.get(), configuration_.workload.jobs.size(), world_);
  }
  trace::ReadOptions store_options(std::span<const NpuId> hosted) const {
    const config::Workload& workload = configuration_.workload;
    return {.dependencies = workload.dependencies,
            .streams = workload.streams,
            .recording = workload.recording,
            .custom_nodes = workload.custom_nodes,
            .num_npus = num_npus(),
            .num_dimensions = static_cast<std::uint32_t>(configuration_.dimensions.size()),
            .precision = configuration_.required_precision(workload),
            .memory_has_size = configuration_.execution.room() != Bytes(0),
            .groups_unknown = !groups_.is_readable,
            .hosts = is_one_of(hosted)};
  }

  const config::Configuration& configuration_;
  const System& system_;
  parallel::Communicator& world_;
  Faults& faults_;
  std::span<const HostedNpu> fixed_;
  std::unique_ptr<const JobTraces> jobs_;  // null if all NPUs have one workload
  GroupFile groups_;
  bool is_worth_reading_ = false;
  Notices of_files_;
};

}  // namespace

HostedTraces read_hosted_traces(const config::Configuration& configuration, const System& system,
                                parallel::Communicator& world, Faults& faults, std::span<const HostedNpu> fixed) {
  TraceReading reading(configuration, system, world, faults, fixed);
  reading.locate();
  reading.group();
  HostedTraces traces = reading.read(reading.divide());
  if (parallel::any_faults(faults, world)) return traces;
  reading.settle(traces);
  if (!reading.moves()) return traces;
  return reading.move(std::move(traces));
}

std::vector<trace::NpuTrace> read_others(HostedTraces& traces, const config::Configuration& configuration,
                                         std::span<const NpuId> npus, Rank here) {
  std::vector<NpuId> all(traces.npus);
  all.insert(all.end(), npus.begin(), npus.end());
  std::ranges::sort(all);
  traces.store.host_instead(is_one_of(all));
  Faults faults;
  TraceList read = read_traces(configuration, nullptr, npus, here, traces.store, faults, traces.notices);
  faults.raise();
  if (!traces.delays.empty())
    for (std::size_t i = 0; i < read.npus.size(); ++i)
      if (const Time delay = traces.delays[read.npus[i].index()]; read.traces[i].recorded)
        traces.store.delay(read.traces[i], delay);
  return std::move(read.traces);
}

partition::Partition make_partition(const HostedTraces& traces, const config::Configuration& configuration,
                                    const System& system, parallel::Communicator& world) {
  const auto& options = configuration.run.partition;
  std::optional<partition::CommunicationGraph> graph;
  if (options.strategy().needs_traces) graph = communication_graph(traces, configuration, system, world);
  std::vector<Rank> ranks;
  world.agree([&] {
    if (!world.is_root()) return;
    const auto made = options.make({system.topology(), world.size(), graph ? &*graph : nullptr});
    ranks.assign(made.ranks().begin(), made.ranks().end());
  });
  world.broadcast(ranks, Rank(0));
  return {std::move(ranks), world.size()};
}

partition::CommunicationGraph communication_graph(const HostedTraces& traces,
                                                  const config::Configuration& configuration, const System& system,
                                                  parallel::Communicator& world) {
  const partition::ReadTraces mine{traces.npus, traces.traces, traces.store.groups()};
  return partition::communication_graph(mine, system.topology(), system.engine, !configuration.execution.replay_only,
                                        world);
}

Place place_of(const HostedTraces& traces, const config::Configuration& configuration, NpuId npu, std::uint64_t node) {
  const auto look_up = [&](const trace::Store& store, const trace::NpuTrace& trace) {
    const auto& ids = trace.labels->ids;
    const auto at = std::ranges::lower_bound(ids, node - trace.first_id) - ids.begin();
    return store.place(trace, npu, NodeId(static_cast<std::uint32_t>(at)));
  };
  const auto own = std::ranges::lower_bound(traces.npus, npu);
  if (own != traces.npus.end() && *own == npu)
    return look_up(traces.store, traces.traces[static_cast<std::size_t>(own - traces.npus.begin())]);
  NpuId own_number = npu;
  const config::Workload* workload = &configuration.workload;
  if (!configuration.workload.jobs.empty()) {
    const JobNpus jobs(configuration.workload.jobs, static_cast<std::uint32_t>(traces.partition.ranks().size()));
    const std::int32_t job = jobs.job_of(npu);
    ensure(job != JobNpus::no_job, "an NPU without a job has no nodes");
    own_number = jobs.own(npu);
    workload = &configuration.workload.jobs[static_cast<std::size_t>(job)].workload;
  }
  trace::Store others({.dependencies = workload->dependencies, .streams = workload->streams, .alone = true}, {});
  return look_up(others, workload->generated
                             ? workload::assemble(*workload->generated, {&own_number, 1}, others).front()
                             : others.read(workload->trace_of(own_number), own_number));
}

}  // namespace orrery::run
