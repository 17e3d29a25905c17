#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/gpu/alone.hpp"
#include "orrery/gpu/check.hpp"
#include "orrery/gpu/msccl.hpp"
#include "orrery/gpu/plan.hpp"
#include "orrery/results/bandwidth.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;
using Form = ShowPlanCommand::Form;

/// Returns one number if all are equal, else all of them.
ordered_json folded(const std::vector<std::size_t>& counts) {
  if (!counts.empty() && std::ranges::all_of(counts, [&](std::size_t count) { return count == counts.front(); }))
    return counts.front();
  return counts;
}

template <class Count>
ordered_json of_each_gpu(const gpu::Plan& plan, Count count) {
  std::vector<std::size_t> counts;
  for (const gpu::Plan::Gpu& one : plan.gpus) counts.push_back(count(one));
  return folded(counts);
}

ordered_json figures_of(const gpu::Plan& plan) {
  const auto channels = [](gpu::Transport transport) {
    return [transport](const gpu::Plan::Gpu& one) {
      return static_cast<std::size_t>(std::ranges::count(one.channels, transport, &gpu::Channel::transport));
    };
  };
  ordered_json figures{
      {"name", plan.name},
      {"kind", collective::name(plan.kind)},
      {"protocol", plan.uses_packets ? "LL" : "Simple"},
      {"in_place", plan.in_place},
      {"gpus", plan.gpus.size()},
      {"blocks_of_a_gpu", of_each_gpu(plan, [](const auto& one) { return one.blocks.size(); })},
      {"threads_of_a_block", plan.threads},
      {"operations", plan.counts()},
      {"memory_channels_of_a_gpu", of_each_gpu(plan, channels(gpu::Transport::memory))},
      {"port_channels_of_a_gpu", of_each_gpu(plan, channels(gpu::Transport::port))},
      {"switch_groups", plan.groups.size()},
      {"semaphores_of_a_gpu", of_each_gpu(plan, [](const auto& one) { return one.semaphores.size(); })},
      {"input_chunks", plan.gpus.front().input_chunks},
      {"output_chunks", plan.gpus.front().output_chunks},
      {"scratch_chunks", of_each_gpu(plan, [](const auto& one) { return one.scratch_chunks; })}};
  figures["bytes_are_a_multiple_of"] = gpu::next_size(plan, Bytes(1)).count();
  if (plan.least > Bytes(0)) figures["least_bytes"] = plan.least.count();
  if (plan.most < Bytes(~std::uint64_t{0})) figures["most_bytes"] = plan.most.count();
  return figures;
}

ordered_json figures_of(const collective::Msccl& algorithm) {
  constexpr std::array protocols = {"Simple", "LL", "LL128"};
  std::vector<std::size_t> blocks;
  for (const auto& of_gpu : algorithm.blocks) blocks.push_back(of_gpu.size());
  std::map<std::string, std::size_t> steps;
  for (const auto& of_gpu : algorithm.steps)
    for (const auto& step : of_gpu) ++steps[step.type];
  return {{"kind", collective::name(algorithm.kind)},
          {"protocol", protocols[static_cast<std::size_t>(algorithm.protocol)]},
          {"in_place", algorithm.in_place},
          {"gpus", algorithm.num_gpus},
          {"blocks_of_a_gpu", folded(blocks)},
          {"steps", steps},
          {"chunks", algorithm.num_chunks},
          {"bytes_are_a_multiple_of", gpu::next_size(algorithm, Bytes(1)).count()}};
}

/// What a file holds, whatever its format.
struct PlanSource {
  ordered_json figures;
  std::vector<std::string> warnings;
  collective::Kind kind = collective::Kind::all_reduce;
  std::uint32_t size = 0;  ///< GPUs
  std::uint32_t root = 0;
  Bytes least, most{~std::uint64_t{0}};  ///< messages that it is for
  Bytes test_message;
  std::function<Bytes(Bytes)> next_size;
  std::function<gpu::Program(Bytes)> make_program;
};

PlanSource source_of(const std::filesystem::path& file) {
  PlanSource source;
  if (file.extension() == ".xml") {
    const auto algorithm = collective::read_msccl_algorithm(file, {});
    source.figures = figures_of(algorithm);
    source.kind = algorithm.kind;
    source.size = algorithm.num_gpus;
    source.root = algorithm.root;
    source.test_message = gpu::test_message(algorithm);
    source.next_size = [algorithm](Bytes bytes) { return gpu::next_size(algorithm, bytes); };
    source.make_program = [algorithm](Bytes bytes) { return gpu::make_program(algorithm, bytes); };
    return source;
  }
  gpu::Plan plan = gpu::read_plan(file);
  source.figures = figures_of(plan);
  source.warnings = plan.warnings;
  source.kind = plan.kind;
  source.least = plan.least;
  source.most = plan.most;
  source.test_message = gpu::test_message(plan);
  source.size = static_cast<std::uint32_t>(plan.gpus.size());
  plan.least = Bytes(0);  // the caller compares them
  plan.most = Bytes(~std::uint64_t{0});
  source.next_size = [plan](Bytes bytes) { return gpu::next_size(plan, bytes); };
  source.make_program = [plan](Bytes bytes) { return gpu::make_program(plan, bytes); };
  return source;
}

ordered_json figures_of(const gpu::Findings& findings) {
  if (!findings.has_race_search) return "not searched: the plan has too many thread blocks";
  return findings.num_races;
}

// --- operations ---

std::string_view name(gpu::Buffer buffer) {
  return buffer == gpu::Buffer::input ? "input" : buffer == gpu::Buffer::output ? "output" : "scratch";
}

ordered_json figures_of(const gpu::Program& program, std::span<const gpu::Operand> operands) {
  auto list = ordered_json::array();
  for (const gpu::Operand& operand : operands) {
    ordered_json& figures = list.emplace_back();
    if (gpu::is_of_group(operand.access))
      figures["gpus"] = program.groups[operand.gpu];
    else
      figures["gpu"] = operand.gpu;
    figures["buffer"] = name(operand.buffer);
    if (gpu::is_packets(operand.access)) figures["packets"] = true;
    figures["offset"] = operand.offset;
    figures["bytes"] = operand.bytes.count();
  }
  return list;
}

void print_operation(const gpu::Program& program, std::uint32_t index, const gpu::Block& block,
                     const gpu::Operation& operation) {
  const gpu::Gpu& gpu = program.gpus[index];
  ordered_json figures{{"gpu", index}, {"block", block.id}, {"operation", operation.number}};
  figures["name"] = gpu::name(operation.kind);
  if (operation.transport == gpu::Transport::port) figures["channel_type"] = "port";
  if (operation.num_sources > 0) figures["sources"] = figures_of(program, gpu.sources(operation));
  if (operation.num_destinations > 0) figures["destinations"] = figures_of(program, gpu.destinations(operation));
  const bool has_semaphores =
      operation.kind == gpu::OperationKind::sem_acquire || operation.kind == gpu::OperationKind::sem_release;
  for (const std::uint32_t id : gpu.ids_of(operation)) {
    if (has_semaphores)
      figures["semaphores"].push_back(id);
    else
      figures["channels"].push_back({{"id", id}, {"gpu", gpu.channels[id].peer}});
  }
  if (operation.kind == gpu::OperationKind::barrier)
    figures.update({{"barrier", operation.barrier.id}, {"blocks", operation.barrier.num_blocks}});
  fmt::print("{}\n", figures.dump());
}

void print_operations(const gpu::Program& program) {
  for (std::uint32_t index = 0; index < program.gpus.size(); ++index)
    for (const gpu::Block& block : program.gpus[index].blocks)
      for (const gpu::Operation& operation : block.operations) print_operation(program, index, block, operation);
}

// --- times ---

struct SizeRow {
  Bytes bytes;
  gpu::Timing timing;
  double algorithm_bandwidth = 0, bus_bandwidth = 0;  ///< bytes per second
};

bool is_in_range(const PlanSource& source, Bytes message) { return message >= source.least && message <= source.most; }

/// The GPUs that execute a plan, and what joins them.
class Machine {
 public:
  explicit Machine(const ShowPlanCommand& command) {
    if (!command.system) {
      if (!command.profile.empty()) profile_ = named(command.profile);
      granularity_.bursts = command.bursts.value_or(granularity_.bursts);
      return;
    }
    const config::Configuration configuration = config::read(*command.system);
    if (!configuration.gpu.profile)
      throw Error(ErrorCode::bad_input, {.file = command.system->file.string(), .key = "system.gpu"},
                  "there are no GPUs", "a profile, such as gpu: {profile: h100}");
    profile_ = *configuration.gpu.profile;
    parameters_ = configuration.gpu.parameters;
    granularity_ = configuration.gpu.granularity();
    if (command.bursts) granularity_.bursts = *command.bursts;
    delays_.emplace(configuration.delays());
  }

  std::string_view name() const { return profile_.name(); }
  gpu::Timing simulate(const gpu::Program& program) const {
    if (!delays_) return gpu::simulate_alone(program, *profile_, profile_->parameters, granularity_);
    const auto size = static_cast<std::uint32_t>(program.gpus.size());
    if (const std::uint32_t npus = delays_->topology().num_npus(); npus < size)
      throw Error(ErrorCode::bad_input, {.file = program.file},
                  fmt::format("the plan is for {}, and the system has {}", counted(size, "GPU"), counted(npus, "NPU")),
                  "as many NPUs as GPUs, or more");
    std::vector<NpuId> members;
    for (std::uint32_t npu = 0; npu < size; ++npu) members.emplace_back(npu);
    return gpu::simulate_alone(program, parameters_, granularity_, *delays_, members);
  }

 private:
  static gpu::ProfileName named(const std::string& name) {
    if (const auto found = gpu::ProfileName::find(name)) return *found;
    throw Error(ErrorCode::usage, {.key = "--profile"}, fmt::format("found '{}'", cited(name)),
                names_where<gpu::Profile>([](const gpu::Profile&) { return true; }));
  }

  gpu::ProfileName profile_;
  gpu::Parameters parameters_;
  gpu::Granularity granularity_;
  std::optional<network::DelayModel> delays_;
};

SizeRow simulate(const PlanSource& source, const Machine& machine, Bytes message) {
  SizeRow row;
  row.bytes = message;
  row.timing = machine.simulate(source.make_program(message));
  row.algorithm_bandwidth = static_cast<double>(message.count()) / row.timing.whole.seconds();
  row.bus_bandwidth = row.algorithm_bandwidth * results::bus_factor(source.kind, source.size);
  return row;
}

/// Simulates messages of the sizes of the command, each made as large as the file needs it; those out of its range are
/// left out.
std::vector<SizeRow> simulate(const PlanSource& source, const ShowPlanCommand& command, const Machine& machine) {
  std::vector<SizeRow> rows;
  for (Bytes bytes = *command.smallest; bytes <= *command.largest; bytes = bytes * 2) {
    const Bytes message = source.next_size(bytes);
    if (!is_in_range(source, message) || (!rows.empty() && rows.back().bytes == message)) continue;
    rows.push_back(simulate(source, machine, message));
  }
  if (rows.empty())
    throw Error(ErrorCode::usage, {.key = "--bytes"},
                fmt::format("{} is for messages of {} to {} bytes", command.file.string(), source.least.count(),
                            source.most.count()),
                "a size of these");
  return rows;
}

ordered_json parts_of(const gpu::Timing& timing) {
  ordered_json parts;
  for (std::size_t k = 0; k < gpu::num_stalls; ++k)
    if (timing.stalls[k] > Time::zero())
      parts[std::string(gpu::name(static_cast<gpu::Stall>(k)))] = timing.stalls[k].ps();
  parts["end"] = timing.end.ps();
  return parts;
}

ordered_json figures_of(const SizeRow& row) {
  return {{"bytes", row.bytes.count()},
          {"time_ps", row.timing.whole.ps()},
          {"algorithm_bandwidth_bytes_per_s", row.algorithm_bandwidth},
          {"bus_bandwidth_bytes_per_s", row.bus_bandwidth},
          {"last_gpu", row.timing.last},
          {"parts_ps", parts_of(row.timing)}};
}

double us(Time time) { return static_cast<double>(time.ps()) / 1e6; }

void print_table(const std::vector<SizeRow>& rows, bool as_csv) {
  std::vector<std::size_t> used;
  for (std::size_t k = 0; k < gpu::num_stalls; ++k)
    if (std::ranges::any_of(rows, [&](const SizeRow& row) { return row.timing.stalls[k] > Time::zero(); }))
      used.push_back(k);
  if (as_csv) {
    fmt::print("bytes,time (us),algbw (GB/s),busbw (GB/s)");
    for (const std::size_t k : used) fmt::print(",{} (us)", gpu::name(static_cast<gpu::Stall>(k)));
    fmt::print(",end (us)\n");
  } else {
    fmt::print("# where the time of the last thread block goes\n");
    fmt::print("#{:>11} {:>12} {:>9} {:>9}", "bytes", "time", "algbw", "busbw");
    for (const std::size_t k : used) fmt::print(" {:>9}", gpu::name(static_cast<gpu::Stall>(k)));
    fmt::print(" {:>9}\n#{:>11} {:>12} {:>9} {:>9}{:>10}\n", "end", "", "(us)", "(GB/s)", "(GB/s)", "(us)");
  }
  for (const SizeRow& row : rows) {
    const double algorithm = row.algorithm_bandwidth / 1e9, bus = row.bus_bandwidth / 1e9;
    if (as_csv)
      fmt::print("{},{:.6f},{:.6g},{:.6g}", row.bytes.count(), us(row.timing.whole), algorithm, bus);
    else
      fmt::print("{:>12} {:>12.3f} {:>9.2f} {:>9.2f}", row.bytes.count(), us(row.timing.whole), algorithm, bus);
    const auto print = [&](Time time) {
      if (as_csv)
        fmt::print(",{:.6f}", us(time));
      else
        fmt::print(" {:>9.3f}", us(time));
    };
    for (const std::size_t k : used) print(row.timing.stalls[k]);
    print(row.timing.end);
    fmt::print("\n");
  }
}

}  // namespace

void show_plan(const ShowPlanCommand& command) {
  const Machine machine(command);
  const PlanSource source = source_of(command.file);
  const bool is_one = command.smallest && command.smallest == command.largest;
  const Bytes checked = is_one ? source.next_size(*command.smallest) : source.test_message;
  const gpu::Program program = source.make_program(checked);
  const gpu::Findings findings = gpu::check_program(program, source.kind, checked, source.root);
  if (command.form == Form::operations) return print_operations(program);
  std::vector<SizeRow> rows;
  if (command.smallest) rows = simulate(source, command, machine);
  if (command.form == Form::csv) return print_table(rows, true);
  ordered_json figures = source.figures;
  figures["races"] = figures_of(findings);
  std::vector<std::string> warnings = source.warnings;
  warnings.insert(warnings.end(), findings.warnings.begin(), findings.warnings.end());
  if (!warnings.empty()) figures["warnings"] = warnings;
  if (!rows.empty()) figures["profile"] = machine.name();
  const bool as_json = command.form == Form::json;
  for (const SizeRow& row : rows)
    if (as_json) figures["sizes"].push_back(figures_of(row));
  print_figures(figures, as_json);
  if (!as_json && !rows.empty()) print_table(rows, false);
}

}  // namespace orrery::show
