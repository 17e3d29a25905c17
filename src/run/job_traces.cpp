#include "job_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/workload/generator.hpp"
#include "trace_files.hpp"

namespace orrery::run {
namespace {

void add_faults_of(const config::Job& job, const Faults& found, Faults& faults) {
  found.for_each(
      [&](const Error& fault) { faults.add(Error(fault.code(), fault.place(), of_job(job, fault.text()))); });
}

/// Turns the traces of one job, which count the job's own NPUs, into traces of the system.
class JobTranslation {
 public:
  JobTranslation(const config::Job& job, const JobNpus& npus, std::uint32_t number, bool has_suffix,
                 const trace::Store& from, trace::Store& into)
      : job_(job),
        all_(npus),
        npus_(npus.npus_of(number)),
        from_(from),
        into_(into),
        suffix_(has_suffix ? "@" + job.name : ""),
        is_whole_(npus.is_whole(number)) {}

  /// Returns the trace of an NPU of the system. Throws Error (bad_input) for a dimension that is not there.
  trace::NpuTrace operator()(trace::NpuTrace trace, NpuId npu, const System& system) {
    if (!is_whole_) split_by_dimensions(trace, npu, system);
    std::vector<GroupId> groups;
    for (const GroupId group : trace.groups) groups.push_back(kept(group));
    groups.insert(groups.end(), sub_grids_.begin(), sub_grids_.end());
    for (NpuId& peer : trace.peers) peer = npus_[peer.index()];
    trace = adopt(into_, std::move(trace), from_, adopted_);
    trace.groups = std::move(groups);
    return trace;
  }

 private:
  using Use = std::pair<std::uint32_t, std::uint64_t>;  // group slot, dimensions

  /// Returns the group of the store of the system.
  GroupId kept(GroupId group) {
    if (const auto known = groups_.find(group); known != groups_.end()) return known->second;
    const trace::Group& own = from_.groups()[group.index()];
    const auto unlisted = from_.unlisted_groups();
    GroupId result;
    if (std::ranges::find(unlisted, group) != unlisted.end()) {
      result = keep_unlisted_group(into_, own.name + suffix_);
    } else {
      std::vector<NpuId> members;
      for (const NpuId member : own.members) members.push_back(npus_[member.index()]);
      if (own.members.empty() && !is_whole_) members.assign(npus_.begin(), npus_.end());
      const std::string name = !own.name.empty() ? own.name + suffix_ : is_whole_ ? "" : "world@" + job_.name;
      result = into_.keep_group(name, std::move(members));
    }
    groups_.emplace(group, result);
    return result;
  }

  /// Gives nodes of all NPUs of the job that name some dimensions groups of their own: those NPUs of the job that
  /// differ from this one in these dimensions only.
  void split_by_dimensions(trace::NpuTrace& trace, NpuId npu, const System& system) {
    const auto& found = split_of(trace, npu, system);
    sub_grids_.clear();
    for (const Use& use : found.uses) {
      const auto& members = grids_of(use.second, system.topology()).at(corner(npu, use.second, system.topology()));
      sub_grids_.push_back(
          into_.keep_group(fmt::format("sub-grid of NPU {}{}", members.front().value(), suffix_), members));
    }
    trace.graph = found.graph;
  }

  using Grids = std::map<NpuId, std::vector<NpuId>>;  // by corner

  /// Returns the NPUs of the job by what they have in common outside some dimensions.
  const Grids& grids_of(std::uint64_t dimensions, const topology::Topology& topology) {
    const auto [grids, is_new] = grids_.try_emplace(dimensions);
    if (is_new)
      for (const NpuId npu : npus_) grids->second[corner(npu, dimensions, topology)].push_back(npu);
    return grids->second;
  }

  /// Returns the NPU that has coordinate 0 in some dimensions, and else the coordinates of this one.
  static NpuId corner(NpuId npu, std::uint64_t dimensions, const topology::Topology& topology) {
    std::uint32_t number = npu.value();
    for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
      if ((dimensions >> d & 1U) != 0) number -= topology.coordinate(npu, d) * topology.stride(d);
    return NpuId(number);
  }

  struct Split {
    std::vector<Use> uses;
    std::shared_ptr<const trace::Graph> graph;
  };

  const Split& split_of(const trace::NpuTrace& trace, NpuId npu, const System& system) {
    std::vector<char> is_world;
    for (const GroupId group : trace.groups)
      is_world.push_back(communicator::ignores_dimensions(from_.groups()[group.index()]) ? 0 : 1);
    const std::pair key(trace.graph, std::move(is_world));
    if (const auto known = splits_.find(key); known != splits_.end()) return known->second;
    Split split{{}, trace.graph};
    auto changed = std::make_shared<trace::Graph>(*trace.graph);
    const auto in_use = communicator::dimensions_in_use(system.topology(), system.engine);
    for (std::uint32_t i = 0; i < changed->num_nodes(); ++i) {
      trace::Node& node = changed->nodes[i];
      if (!node.is_of_group() || key.second[node.slot] == 0) continue;
      require_dimensions(trace, node, {npu, NodeId(i)}, system.topology().num_dimensions());
      const auto use = communicator::use_of(*trace.graph, NodeId(i), in_use);
      if (use.dimensions == trace::all_dimensions) continue;
      const Use asked{node.slot, use.dimensions};
      const auto at = std::ranges::find(split.uses, asked);
      node.slot = trace.graph->num_group_slots + static_cast<std::uint32_t>(at - split.uses.begin());
      node.detail = trace::all_dimensions;
      if (at == split.uses.end()) split.uses.push_back(asked);
    }
    if (!split.uses.empty()) {
      changed->num_group_slots += static_cast<std::uint32_t>(split.uses.size());
      split.graph = std::move(changed);
    }
    return splits_.emplace(key, std::move(split)).first->second;
  }

  /// Throws Error (bad_input) if the node names a dimension that the system does not have.
  void require_dimensions(const trace::NpuTrace& trace, const trace::Node& node, std::pair<NpuId, NodeId> where,
                          std::uint32_t num_dimensions) const {
    constexpr std::uint64_t last = std::uint64_t{1} << 63;  // a list with this dimension names all further ones too
    const std::uint64_t beyond = num_dimensions < 64 ? trace::all_dimensions << num_dimensions : 0;
    if ((node.detail & last) != 0 || (node.detail & beyond) == 0) return;
    throw Error(ErrorCode::bad_input, from_.place(trace, all_.own(where.first), where.second),
                fmt::format("involved_dim names dimension {}, but the system has {}",
                            std::countr_zero(node.detail & beyond), counted(num_dimensions, "dimension")),
                fmt::format("dimensions 0 to {}", num_dimensions - 1));
  }

  const config::Job& job_;
  const JobNpus& all_;
  std::span<const NpuId> npus_;
  const trace::Store& from_;
  trace::Store& into_;
  std::string suffix_;  // of the names of its groups
  bool is_whole_;
  trace::Adopted adopted_;
  std::map<GroupId, GroupId> groups_;  // of `from_`, in `into_`
  std::map<std::pair<std::shared_ptr<const trace::Graph>, std::vector<char>>, Split> splits_;
  std::map<std::uint64_t, Grids> grids_;  // by dimensions
  std::vector<GroupId> sub_grids_;        // of the NPU at hand
};

}  // namespace

JobNpus::JobNpus(std::span<const config::Job> jobs, std::uint32_t num_npus)
    : job_(num_npus, no_job), own_(num_npus, NpuId(0)) {
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const auto& npus = npus_.emplace_back(jobs[j].npus());
    for (std::uint32_t i = 0; i < npus.size(); ++i) {
      job_[npus[i].index()] = static_cast<std::int32_t>(j);
      own_[npus[i].index()] = NpuId(i);
    }
  }
}

bool JobNpus::is_whole(std::uint32_t job) const {
  for (std::uint32_t i = 0; i < npus_[job].size(); ++i)
    if (npus_[job][i] != NpuId(i)) return false;
  return npus_[job].size() == job_.size();
}

std::string of_job(const config::Job& job, std::string_view text) {
  return fmt::format("job '{}': {}", cited(job.name), text);
}

JobTraces::JobTraces(const config::Configuration& configuration, const System& system, Faults& faults)
    : configuration_(configuration), system_(system), npus_(configuration.workload.jobs, system.topology().num_npus()) {
  for (const config::Job& job : configuration.workload.jobs) {
    auto& groups = groups_.emplace_back();
    const auto& text = job.workload.groups_text;
    if (!text) continue;
    Faults found;
    found.attempt(
        [&] { groups = trace::parse_groups(text->second, job.workload.groups->string(), job.num_npus(), found); });
    groups_are_known_ = groups_are_known_ && found.empty();
    add_faults_of(job, found, faults);
  }
}

void JobTraces::compare_files(Faults& faults, Notices& notices) const {
  for (std::uint32_t number = 0; number < configuration_.workload.jobs.size(); ++number) {
    const config::Job& job = configuration_.workload.jobs[number];
    if (job.workload.generated) continue;
    Faults found;
    Notices noticed;
    compare_trace_files(job.workload, TraceOwner::job, job.num_npus(), found, noticed);
    add_faults_of(job, found, faults);
    for (const auto& [kind, entry] : noticed.entries())
      notices.add(kind, npus_.npus_of(number).front().value(), of_job(job, entry.text), entry.count);
  }
}

std::vector<std::optional<trace::NpuTrace>> JobTraces::read(std::span<const NpuId> npus, Rank here, trace::Store& store,
                                                            Faults& faults, Notices& notices) const {
  std::vector<std::optional<trace::NpuTrace>> traces(npus.size());
  TraceReader reader(configuration_.run, here, npus.size());
  for (std::uint32_t job = 0; job < configuration_.workload.jobs.size(); ++job) {
    std::vector<NpuId> of_job;
    for (const NpuId npu : npus)
      if (npus_.job_of(npu) == static_cast<std::int32_t>(job)) of_job.push_back(npu);
    auto read = read_job(job, of_job, reader, store, faults, notices);
    for (std::size_t i = 0, next = 0; i < npus.size() && next < of_job.size(); ++i)
      if (npus[i] == of_job[next]) traces[i] = std::move(read[next++]);
  }
  std::optional<trace::NpuTrace> idle;
  for (std::size_t i = 0; i < npus.size(); ++i)
    if (npus_.job_of(npus[i]) == JobNpus::no_job) {
      if (!idle) idle = store.keep(trace::Builder().finish(), "no job");
      traces[i] = idle;
    }
  return traces;
}

/// Reads the traces of NPUs of one job. They are read by the job's own numbers into a store of the job, because what a
/// file says of peers and groups is checked against the job; then the store of the system takes them over.
std::vector<std::optional<trace::NpuTrace>> JobTraces::read_job(std::uint32_t number, std::span<const NpuId> npus,
                                                                TraceReader& reader, trace::Store& store,
                                                                Faults& faults, Notices& notices) const {
  const config::Job& job = configuration_.workload.jobs[number];
  const config::Workload& workload = job.workload;
  std::vector<NpuId> own;
  for (const NpuId npu : npus) own.push_back(npus_.own(npu));
  std::vector<NpuId> sorted = own;
  std::ranges::sort(sorted);
  trace::Store of_job({.dependencies = workload.dependencies,
                       .streams = workload.streams,
                       .recording = workload.recording,
                       .custom_nodes = workload.custom_nodes,
                       .num_npus = job.num_npus(),
                       .num_dimensions = static_cast<std::uint32_t>(configuration_.dimensions.size()),
                       .precision = configuration_.required_precision(workload),
                       .memory_has_size = configuration_.execution.room() != Bytes(0),
                       .groups_unknown = !groups_are_known_,
                       .hosts = [&sorted](NpuId npu) { return std::ranges::binary_search(sorted, npu); }},
                      groups_[number]);
  std::vector<std::optional<trace::NpuTrace>> traces(npus.size());
  if (workload.generated) {
    auto made = workload::assemble(*workload.generated, own, of_job, workload.estimates.get());
    std::ranges::move(made, traces.begin());
  }
  const bool has_names = configuration_.workload.jobs.size() > 1 || configuration_.workload.is_one_of_jobs;
  JobTranslation translate(job, npus_, number, has_names, of_job, store);
  Faults found;
  for (std::size_t i = 0; i < npus.size(); ++i) {
    end_if_stopped();
    beat();
    if (!workload.generated) traces[i] = reader.read(workload.trace_of(own[i]), own[i], of_job, found);
    if (traces[i] && !found.attempt([&] { traces[i] = translate(std::move(*traces[i]), npus[i], system_); }))
      traces[i].reset();
  }
  add_faults_of(job, found, faults);
  const bool is_alone = configuration_.workload.jobs.size() == 1;
  for (const auto& [kind, entry] : of_job.notices().entries())
    notices.add(kind, npus_.npus_of(number)[std::min(entry.npu, job.num_npus() - 1)].value(),
                is_alone ? entry.text : run::of_job(job, entry.text), entry.count);
  return traces;
}

}  // namespace orrery::run
