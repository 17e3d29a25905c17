#include "orrery/run/checkpoints.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/version.hpp"
#include "orrery/checkpoint/file.hpp"
#include "orrery/model/saved_rank.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::run {
namespace {

namespace fs = std::filesystem;

// The pieces of a checkpoint are of these.
constexpr std::uint32_t first_simulation = 0, later_simulation = 1;

/// Returns the settings that a checkpoint must share with the run that resumes it, as text.
std::string compared(const config::Configuration& configuration) {
  return fmt::format(
      "{}run.timeline: {}\nrun.record-iterations: {}\nrun.fold: {}\nrun.record-flows: {}\n"
      "run.queue-bins: {}\n",
      configuration.to_yaml(false), configuration.execution.timeline, configuration.execution.record_iterations,
      configuration.run.fold, configuration.execution.network.recording.flows,
      configuration.execution.network.recording.queue_bins);
}

/// Returns the absolute, normalised path of `file`.
std::string whole_name(const fs::path& file) {
  std::error_code failure;
  const fs::path whole = fs::absolute(file, failure);
  return (failure ? file : whole).lexically_normal().string();
}

CheckpointHead::Digests texts_of(const config::Configuration& configuration) {
  CheckpointHead::Digests digests;
  // The resolved configuration repeats these two, without their comments and their layout.
  const auto is_resolved = [](std::string_view name) { return name == "configuration.yaml" || name == "stack.yaml"; };
  for (const auto& [name, text] : configuration.inputs)
    if (!is_resolved(name)) digests.emplace_back(name, digest_of(text));
  if (const auto& groups = configuration.workload.groups_text)
    digests.emplace_back(groups->first, digest_of(groups->second));
  return digests;
}

/// Throws Error (bad_input): the checkpoint is of another run.
[[noreturn]] void refuse(const fs::path& file, const std::string& difference) {
  throw Error(ErrorCode::bad_input, {.file = file.string()}, "the checkpoint is of another run: " + difference,
              "the same model, workload and system",
              "Give the same configuration (only what is below `run` may differ, but for timeline, "
              "record-iterations, record-flows, queue-bins and fold), or start anew without --restart.");
}

void require_same_text(const fs::path& file, const std::string& saved, const std::string& mine) {
  if (saved == mine) return;
  std::istringstream first(saved), second(mine);
  std::string there, here, section;
  for (bool more = true; more;) {
    const bool is_there = static_cast<bool>(std::getline(first, there));
    const bool is_here = static_cast<bool>(std::getline(second, here));
    more = is_there && is_here;
    if (more && there == here) {
      if (!there.empty() && there.front() != ' ') section = there.substr(0, there.find(':'));
      continue;
    }
    const auto trimmed = [](bool is, const std::string& line) {
      const auto begin = line.find_first_not_of(' ');
      return !is || begin == std::string::npos ? std::string("nothing")
                                               : fmt::format("'{}'", cited(line.substr(begin)));
    };
    refuse(file,
           fmt::format("its configuration has {}, and this one {}{}", trimmed(is_there, there), trimmed(is_here, here),
                       section.empty() ? "" : fmt::format(" (after or below {})", section)));
  }
}

void require_same_digests(const fs::path& file, const CheckpointHead::Digests& saved,
                          const CheckpointHead::Digests& mine) {
  std::map<std::string_view, std::uint64_t> left;
  for (const auto& [name, value] : saved) left.emplace(name, value);
  for (const auto& [name, value] : mine) {
    const auto found = left.find(name);
    if (found == left.end()) refuse(file, fmt::format("it has no '{}'", cited(name)));
    if (found->second != value) refuse(file, fmt::format("'{}' has other contents now", cited(name)));
    left.erase(found);
  }
  if (!left.empty()) refuse(file, fmt::format("it has '{}', which is not there now", cited(left.begin()->first)));
}

/// Returns the digests of the trace files of all ranks, each file once, on rank 0. Collective.
CheckpointHead::Digests all_traces(const trace::Store& store, parallel::Communicator& world) {
  parallel::Packer packer;
  for (const auto& [name, digest] : store.files_read()) {
    packer.put_text(whole_name(name));
    packer.put(digest);
  }
  const std::vector<std::byte> mine = packer.take();
  const auto all = world.gather(std::span<const std::byte>(mine), Rank(0));
  std::map<std::string, std::uint64_t> digests;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    std::string name = unpacker.get_text();
    digests.insert_or_assign(std::move(name), unpacker.get<std::uint64_t>());
  }
  return {digests.begin(), digests.end()};
}

/// Says whether two names are those of one file, whether it is there or not.
bool are_same(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  const auto plain = [&](const fs::path& path) { return fs::weakly_canonical(without_links(path), ignored); };
  return plain(a) == plain(b);
}

/// Returns the number of ends of links by which data leave an NPU or a switch.
std::uint64_t num_link_ends(const config::Configuration& configuration, const topology::Topology& topology) {
  const auto& given = configuration.execution.network.graph;
  return given ? 2 * given->graph.links().size() : topology::Fabric(topology).num_links();
}

}  // namespace

Checkpoints::Checkpoints(const config::Configuration& configuration, parallel::Communicator& world)
    : world_(world),
      file_(configuration.run.checkpoint),
      restart_(configuration.run.restart),
      interval_(configuration.run.checkpoint_interval_s),
      is_quiet_(configuration.run.quiet),
      has_repetitions_(configuration.perturbation.repetitions > 1) {
  head_ = {.program = program(),
           .configuration = compared(configuration),
           .texts = texts_of(configuration),
           .traces = {},
           .first = {},
           .complete = {},
           .later = {}};
  world_.agree([&] {
    if (file_.empty() && restart_.empty()) return;
    if (!world_.is_root()) return;
    if (!restart_.empty()) restart_ = without_links(restart_);
    if (!file_.empty()) {
      file_ = without_links(file_);
      check_place(configuration.run);
    }
    if (!restart_.empty()) find();
  });
}

/// Checks that the checkpoints can be written and replace nothing that the user has not named. For rank 0.
void Checkpoints::check_place(const config::RunOptions& options) {
  const auto fail = [&](const fs::path& file, std::string_view found, const std::string& what_to_do) {
    throw Error(ErrorCode::output, {.file = file.string(), .key = "run.checkpoint"}, std::string(found), {},
                what_to_do);
  };
  if (are_same(file_, options.output))
    fail(file_, "is the file of the results, too", "Give checkpoints a name of their own.");
  const std::array generations = {file_, checkpoint::previous(file_)};
  check_outputs(generations, true);
  std::error_code ignored;
  const bool goes_on = !restart_.empty() && are_same(file_, restart_);
  for (const fs::path& file : generations) {
    if (goes_on || !fs::exists(file, ignored)) continue;
    if (!checkpoint::is_checkpoint(file)) fail(file, "exists already and is no checkpoint", "Give another name.");
    if (!options.force)
      fail(file, "exists already",
           fmt::format("--restart={} goes on from it, and --force replaces it.", file_.string()));
  }
  older_ = fs::exists(file_, ignored) ? checkpoint::Older::replaced : checkpoint::Older::none;
}

/// Finds the checkpoint to go on from and takes over its head. For rank 0.
void Checkpoints::find() {
  const auto found = checkpoint::find(restart_);
  if (!found.why_not_newest.empty())
    job_log().warn(fmt::format("{} The run goes on from {}", found.why_not_newest, found.file.string()));
  found_ = found.file;
  if (!file_.empty() && are_same(found_, file_)) older_ = checkpoint::Older::whole;
  CheckpointHead saved;
  Archive archive(found.head);
  archive(saved.program);
  if (saved.program != head_.program)
    throw Error(ErrorCode::bad_input, {.file = found_.string()},
                fmt::format("the checkpoint was written by orrery {}, and this is orrery {}", cited(saved.program),
                            head_.program),
                "a checkpoint of the same program", "Go on with the program that wrote it.");
  Archive whole(found.head);
  whole(saved);
  require_same_text(found_, saved.configuration, head_.configuration);
  require_same_digests(found_, saved.texts, head_.texts);
  head_ = std::move(saved);
}

void Checkpoints::prepare(Preparation& preparation) {
  if (file_.empty() && restart_.empty()) return;
  auto traces = all_traces(preparation.store(), world_);
  world_.agree([&] {
    if (world_.is_root() && !restart_.empty()) require_same_digests(found_, head_.traces, traces);
  });
  head_.traces = std::move(traces);
  if (restart_.empty()) return;
  Archive written;
  written(head_.first, head_.complete, head_.later);
  std::vector<std::byte> bytes = written.written();
  world_.broadcast_bytes(bytes, Rank(0));
  Archive archive(bytes);
  archive(head_.first, head_.complete, head_.later);
  for (const auto& divergences : head_.first.foldings) preparation.fold_again(divergences, world_);
}

void Checkpoints::begin(model::RankModel& model, pdes::Kernel& kernel) {
  model::SavedRank saved(model);
  if (restart_.empty())
    model.start(kernel);
  else
    saved.prepare(kernel);
  if (!file_.empty()) saved.keep_history();
  if (restart_.empty()) return;
  const auto mine = checkpoint::read(
      found_, is_later_ ? later_simulation : first_simulation, [&](LpId lp) { return saved.host_of(lp); }, world_);
  saved.restore(kernel, present().now, mine);
  if (is_later_ || head_.complete.empty()) restart_.clear();
  last_ = Clock::now();
}

void Checkpoints::note_end(model::RankModel& model, const pdes::Kernel& kernel) {
  if (is_later_ || !has_repetitions_ || file_.empty()) return;
  end_of_first_ = model::SavedRank(model).save(kernel.state());
  head_.first.now = Time::zero();  // no event is left that must come after it
}

const results::Repetition* Checkpoints::complete(std::size_t number) const {
  return !restart_.empty() && number < head_.complete.size() ? &head_.complete[number] : nullptr;
}

void Checkpoints::begin_repetition(const std::vector<results::Repetition>& complete, Preparation& preparation,
                                   bool is_new) {
  is_later_ = true;
  if (!restart_.empty()) {
    for (const auto& divergences : head_.later.foldings) preparation.fold_again(divergences, world_);
    return;
  }
  head_.complete = complete;
  if (is_new) head_.later.foldings.clear();
}

bool Checkpoints::is_due() const {
  return !file_.empty() && Clock::now() - last_ >= std::max<std::chrono::duration<double>>(interval_, cost_);
}

void Checkpoints::write(model::RankModel& model, const pdes::Kernel& kernel) {
  if (file_.empty()) return;
  const auto start = Clock::now();
  const pdes::KernelState state = kernel.state();
  present().now = state.now;
  Archive archive;
  archive(head_);
  auto pieces = model::SavedRank(model).save(state);
  if (is_later_)
    for (auto& piece : pieces) piece.simulation = later_simulation;
  pieces.insert(pieces.end(), end_of_first_.begin(), end_of_first_.end());
  const std::string failure = checkpoint::write(file_, older_, archive.written(), std::move(pieces), world_);
  last_ = Clock::now();
  cost_ = last_ - start;
  if (failure.empty()) {
    written_ = file_;
    older_ = checkpoint::Older::whole;
  }
  if (!world_.is_root()) return;
  std::error_code ignored;
  if (!failure.empty())
    job_log().warn(fmt::format("no checkpoint could be written, and those before are kept: {}", failure));
  else if (!is_quiet_)
    job_log().info(fmt::format(
        "checkpoint at simulated {}: {}, {} in {:.2f} s", readable(std::max(state.now, Time::zero())), file_.string(),
        counted(fs::file_size(file_, ignored), "byte"), std::chrono::duration<double>(cost_).count()));
}

std::uint64_t checkpoint_size(const Preparation& preparation, const config::Configuration& configuration) {
  constexpr std::uint64_t of_npu = 1000, of_use = 150, of_link_end = 250;  // bytes, as measured
  const std::uint64_t recorded =
      std::min(configuration.execution.record_iterations, configuration.execution.iterations);
  std::uint64_t size = of_npu * preparation.num_npus();
  double collectives = 0;  // recorded
  for (const auto& npu : preparation.simulated_npus()) {
    const auto& graph = *npu.program->graph;
    size += graph.num_nodes() + 2 * graph.tensors.sizes.size() + of_use * npu.groups.size();
    if (configuration.execution.timeline) size += graph.num_nodes() * recorded * sizeof(npu::TimelineRecord);
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      if (graph.nodes[i].kind != trace::NodeKind::collective) continue;
      const auto& group = preparation.groups()[npu.groups[npu.program->use_of_node(NodeId(i))].index()];
      const std::size_t members = group.members.empty() ? preparation.num_npus() : group.members.size();
      collectives += static_cast<double>(recorded) / static_cast<double>(members);
    }
  }
  size += static_cast<std::uint64_t>(collectives * sizeof(communicator::CollectiveRecord));
  if (configuration.execution.goes_over_links())
    size += of_link_end * num_link_ends(configuration, preparation.system().topology());
  return configuration.perturbation.repetitions > 1 ? 2 * size : size;
}

}  // namespace orrery::run
