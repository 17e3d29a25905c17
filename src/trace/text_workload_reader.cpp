#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "orrery/base/text.hpp"
#include "reader.hpp"
#include "text_workload.hpp"

namespace orrery::trace {
namespace {

constexpr std::uint64_t first_dimension = 1;

/// Who communicates: all NPUs along some dimensions, or a group of the NPUs that have the same place elsewhere.
struct Members {
  std::uint64_t dimensions = all_dimensions;  ///< 0: nobody
  std::string_view group = {};                ///< empty: all NPUs
};

bool is_transformer(TrainingLoop loop) {
  return loop == TrainingLoop::hybrid_transformer || loop == TrainingLoop::hybrid_transformer_fwd_in_bckwd;
}

bool is_dlrm(TrainingLoop loop) {
  return loop == TrainingLoop::hybrid_dlrm || loop == TrainingLoop::hybrid_dlrm_enhanced;
}

/// Returns who takes part in the communication of a pass. ASTRA-sim 1.0 names dimensions, SimAI groups.
Members members_of(const TextPass& pass, Pass which, TrainingLoop loop, bool is_first_layer,
                   std::uint64_t other_dimensions) {
  if (pass.group == TextGroup::expert) return {.group = "EP"};
  if (pass.group == TextGroup::data_of_expert) return {.group = "DP_EP"};
  const bool is_weight = which == Pass::weight_gradient;
  if (is_transformer(loop)) return {.group = is_weight ? "DP" : "TP"};
  if (is_dlrm(loop)) return {.dimensions = is_weight || is_first_layer ? all_dimensions : 0};
  switch (loop) {
    case TrainingLoop::data:
    case TrainingLoop::micro:
      return {.dimensions = is_weight ? all_dimensions : 0};
    case TrainingLoop::hybrid_data_model:
      return {.dimensions = is_weight ? other_dimensions : first_dimension};
    case TrainingLoop::hybrid_model_data:
      return {.dimensions = is_weight ? first_dimension : other_dimensions};
    default:  // model, inference
      return {.dimensions = is_weight ? 0 : all_dimensions};
  }
}

/// Writes one training step as nodes. Each method follows the loop of ASTRA-sim 1.0 that has its name.
class StepWriter {
 public:
  StepWriter(const TextWorkload& workload, ParsedTrace& trace, std::uint64_t num_npus, std::uint64_t num_dimensions);

  void write();

 private:
  using Ids = std::vector<std::uint64_t>;

  void write_transformer();
  void write_hybrid();
  void write_data();
  void write_dlrm();
  void write_micro();
  void forward_all();
  void forward_again(std::size_t layer);
  void compute(std::size_t layer, Pass pass);
  Ids communicate(std::size_t layer, Pass pass);
  void wait_for(const Ids& ids) { after_.insert(after_.end(), ids.begin(), ids.end()); }
  void communicate_and_wait(std::size_t layer, Pass pass);
  ParsedNode& add(std::size_t layer, std::string_view name, const Ids& after);
  std::uint64_t shard(const TextPass& pass, const Members& members) const;
  bool is_of_comet() const { return workload_.layout != TextLayout::times; }

  const TextWorkload& workload_;
  ParsedTrace& trace_;
  std::uint64_t num_npus_;          ///< 0: not known
  std::uint64_t other_dimensions_;  ///< bits: every dimension but the first
  Ids after_;                       ///< nodes that the next node of the NPU waits for
};

StepWriter::StepWriter(const TextWorkload& workload, ParsedTrace& trace, std::uint64_t num_npus,
                       std::uint64_t num_dimensions)
    : workload_(workload),
      trace_(trace),
      num_npus_(num_npus),
      other_dimensions_(~first_dimension &
                        (num_dimensions - 1 < 63 ? (std::uint64_t{1} << num_dimensions) - 1 : all_dimensions)) {
  const std::uint64_t model = workload.model_parallel;
  const std::uint64_t expert = workload.expert_parallel;
  const std::uint64_t replica = model * workload.pipeline;
  const std::uint64_t data = std::max<std::uint64_t>(num_npus / replica, 1);
  trace.definitions["TP"] = {.regular = RegularGroup{model, 1}};
  trace.definitions["DP"] = {.regular = RegularGroup{data, replica}};
  trace.definitions["EP"] = {.regular = RegularGroup{expert, model}};
  trace.definitions["DP_EP"] = {.regular = RegularGroup{std::max<std::uint64_t>(data / expert, 1), model * expert}};
}

ParsedNode& StepWriter::add(std::size_t layer, std::string_view name, const Ids& after) {
  ParsedNode& node = trace_.add_node(workload_.layers[layer].line);
  node.id = trace_.nodes.size();
  node.name = trace_.names.intern(name);
  trace_.data.insert(trace_.data.end(), after.begin(), after.end());
  return node;
}

void StepWriter::compute(std::size_t layer, Pass pass) {
  const TextLayer& of = workload_.layers[layer];
  const TextPass& work = of[pass];
  if (work.compute_ns == 0 && work.flops == 0 && work.moved_bytes == 0) return;
  ParsedNode& node = add(layer, fmt::format("{} {}", of.name, pass_names[static_cast<std::size_t>(pass)]), after_);
  node.type = static_cast<std::uint32_t>(NodeType::comp);
  node.duration = work.compute_ns;
  if (work.flops > 0) node.set(Attribute::num_ops, whole_number(work.flops));
  if (work.moved_bytes > 0) node.set(Attribute::tensor_size, whole_number(work.moved_bytes));
  after_ = {node.id};
}

/// Returns the comm_size of a collective. The all-gathers of the loop that AICB writes give the gathered bytes, those
/// of other loops and of COMET the share of a member, as comm_size does.
std::uint64_t StepWriter::shard(const TextPass& pass, const Members& members) const {
  const bool is_whole = workload_.loop == TrainingLoop::hybrid_transformer_fwd_in_bckwd && !is_of_comet();
  if (!is_whole || pass.kind != CollectiveKind::all_gather || num_npus_ == 0) return pass.bytes;
  const auto found = trace_.definitions.find(members.group);
  const std::uint64_t size = found == trace_.definitions.end() ? num_npus_ : found->second.regular->size;
  return pass.bytes / size + (pass.bytes % size != 0);
}

/// Adds the communication of a pass, and the update that follows it. Returns what is to be waited for: nothing if there
/// is no communication.
StepWriter::Ids StepWriter::communicate(std::size_t layer, Pass which) {
  const TextLayer& of = workload_.layers[layer];
  const TextPass& pass = of[which];
  const Members members = members_of(pass, which, of.loop, layer == 0, other_dimensions_);
  if (!pass.kind || pass.bytes == 0 || members.dimensions == 0) return {};
  const std::string_view pass_name = pass_names[static_cast<std::size_t>(which)];
  ParsedNode& node = add(layer, fmt::format("{} {} {}", of.name, pass_name, pass.collective), after_);
  node.type = static_cast<std::uint32_t>(NodeType::comm_coll);
  node.dimensions = members.dimensions;
  if (!members.group.empty()) node.group = trace_.names.intern(members.group);
  node.set(Attribute::comm_type, whole_number(static_cast<std::uint64_t>(*pass.kind)));
  node.set(Attribute::comm_size, whole_number(shard(pass, members)));
  const std::uint64_t id = node.id;
  if (of.update_ns == 0) return {id};
  ParsedNode& update = add(layer, fmt::format("{} {} update", of.name, pass_name), {id});
  update.type = static_cast<std::uint32_t>(NodeType::comp);
  update.set(Attribute::is_cpu_op, whole_number(std::uint64_t{1}));
  update.duration = of.update_ns;
  return {update.id};
}

void StepWriter::communicate_and_wait(std::size_t layer, Pass pass) {
  if (auto ids = communicate(layer, pass); !ids.empty()) after_ = std::move(ids);
}

void StepWriter::forward_all() {
  for (std::size_t layer = 0; layer < workload_.layers.size(); ++layer) {
    compute(layer, Pass::forward);
    communicate_and_wait(layer, Pass::forward);
  }
}

/// Repeats the forward pass from the last checkpoint before a layer up to that layer.
void StepWriter::forward_again(std::size_t layer) {
  auto checkpoint = workload_.checkpoints.upper_bound(layer);
  Place place = trace_.source.place();
  place.line = 1;
  if (checkpoint == workload_.checkpoints.begin() || *std::prev(checkpoint) == layer)
    throw Error(
        ErrorCode::bad_input, place,
        fmt::format("layer {} initiates a repeated forward pass, but no layer before it is a checkpoint", layer),
        "a checkpoint before each layer of checkpoint_initiates");
  for (std::size_t again = *std::prev(checkpoint); again < layer; ++again) {
    compute(again, Pass::forward);
    communicate_and_wait(again, Pass::forward);
  }
}

/// HYBRID_TRANSFORMER and HYBRID_TRANSFORMER_FWD_IN_BCKWD: only weight gradients travel beside what follows. In COMET's
/// version the input gradient travels while the weight gradient is computed.
void StepWriter::write_transformer() {
  forward_all();
  for (std::size_t layer = workload_.layers.size(); layer-- > 0;) {
    if (workload_.initiates.contains(layer)) forward_again(layer);
    compute(layer, Pass::input_gradient);
    Ids input_gradient = communicate(layer, Pass::input_gradient);
    if (!is_of_comet() && !input_gradient.empty()) after_ = std::exchange(input_gradient, {});
    compute(layer, Pass::weight_gradient);
    communicate(layer, Pass::weight_gradient);
    wait_for(input_gradient);
  }
}

/// MODEL, HYBRID_DATA_MODEL, HYBRID_MODEL_DATA and HYBRID_CUSTOMIZED: the input gradient travels while the weight
/// gradient is computed. Layer 0 has nobody to send it to.
void StepWriter::write_hybrid() {
  forward_all();
  for (std::size_t layer = workload_.layers.size(); layer-- > 0;) {
    compute(layer, Pass::input_gradient);
    const Ids input_gradient = layer > 0 ? communicate(layer, Pass::input_gradient) : Ids{};
    compute(layer, Pass::weight_gradient);
    if (workload_.loop != TrainingLoop::model) communicate(layer, Pass::weight_gradient);
    wait_for(input_gradient);
  }
}

/// DATA: only weight gradients travel.
void StepWriter::write_data() {
  for (std::size_t layer = 0; layer < workload_.layers.size(); ++layer) compute(layer, Pass::forward);
  for (std::size_t layer = workload_.layers.size(); layer-- > 0;) {
    compute(layer, Pass::weight_gradient);
    communicate(layer, Pass::weight_gradient);
    if (layer > 0) compute(layer, Pass::input_gradient);
  }
}

/// HYBRID_DLRM: layer 0 stands for the embeddings, whose all-to-all travels beside the bottom layers.
void StepWriter::write_dlrm() {
  Ids embeddings;
  for (std::size_t layer = 0; layer < workload_.layers.size(); ++layer) {
    compute(layer, Pass::forward);
    if (layer == 0 && workload_.layers[0][Pass::forward].kind == CollectiveKind::all_to_all)
      embeddings = communicate(0, Pass::forward);
    else if (layer == workload_.last_bottom_layer)
      wait_for(embeddings);
  }
  for (std::size_t layer = workload_.layers.size(); layer-- > 0;) {
    compute(layer, Pass::weight_gradient);
    communicate(layer, Pass::weight_gradient);
    if (layer == 0) break;
    compute(layer, Pass::input_gradient);
    if (layer == workload_.last_bottom_layer + 1) communicate(0, Pass::input_gradient);
  }
}

/// MICRO: one collective after the other, without compute.
void StepWriter::write_micro() {
  for (std::size_t layer = 0; layer < workload_.layers.size(); ++layer)
    communicate_and_wait(layer, Pass::weight_gradient);
}

void StepWriter::write() {
  switch (workload_.loop) {
    case TrainingLoop::data:
      return write_data();
    case TrainingLoop::hybrid_transformer:
    case TrainingLoop::hybrid_transformer_fwd_in_bckwd:
      return write_transformer();
    case TrainingLoop::hybrid_dlrm:
    case TrainingLoop::hybrid_dlrm_enhanced:
      return write_dlrm();
    case TrainingLoop::micro:
      return write_micro();
    case TrainingLoop::distributed_inference:
      return forward_all();
    default:
      return write_hybrid();
  }
}

/// Checks that the workload is one for the system.
void check_size(const TextWorkload& workload, std::uint64_t num_npus, const TraceFile& file) {
  Place place = file.place();
  place.line = 1;
  if (workload.all_gpus > 0 && workload.all_gpus != num_npus)
    throw Error(ErrorCode::bad_input, place,
                fmt::format("this is a text workload for {} (all_gpus)", counted(workload.all_gpus, "GPU")),
                fmt::format("one for the {} of the system", counted(num_npus, "NPU")));
  const std::uint64_t replica = workload.model_parallel * workload.pipeline;
  if (num_npus % replica != 0 || num_npus / replica % workload.expert_parallel != 0)
    throw Error(
        ErrorCode::bad_input, place,
        fmt::format("this is a text workload with {} x {} NPUs for a copy of the model and {} copies that share "
                    "experts, but the system has {}",
                    workload.model_parallel, workload.pipeline, workload.expert_parallel, counted(num_npus, "NPU")),
        "a system of a multiple of model_parallel_NPU_group * pp * ep NPUs");
}

void read_text(TraceFile& file, TraceSink& sink) {
  ParsedTrace& trace = sink.begin();
  trace.position_unit = PositionUnit::line;
  trace.duration_unit = {1000, "nanosecond"};
  LineReader lines(file);
  const TextWorkload workload = read_text_workload(lines, trace.notices);
  const ReadOptions& options = sink.options();
  const std::uint64_t num_npus = options.alone ? 0 : options.num_npus;
  if (num_npus > 0) check_size(workload, num_npus, file);
  if (workload.pipeline > 1)
    trace.notices.add("text-pipeline",
                      fmt::format("every NPU executes the same layers: what {} stages of a pipeline send (pp_comm, {}) "
                                  "and how long they wait is not in such a file",
                                  workload.pipeline, counted(workload.pipeline_bytes, "byte")));
  StepWriter(workload, trace, num_npus, options.num_dimensions).write();
}

/// A text whose first word has capital letters only, and whose second line is a number.
bool recognises_text(std::string_view beginning) {
  std::vector<std::string_view> lines;
  while (!beginning.empty() && lines.size() < 2) {
    const std::size_t end = std::min(beginning.find('\n'), beginning.size());
    const std::string_view line = trimmed(beginning.substr(0, end), " \t\r");
    if (!line.empty()) lines.push_back(line);
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
  }
  const auto words = lines.empty() ? std::vector<std::string_view>() : words_in(lines[0]);
  if (words.empty()) return false;
  const std::string_view word = words.front();
  if (find_training_loop(word)) return true;
  const auto is_name = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return lines.size() == 2 && word.size() > 3 && std::ranges::all_of(word, is_name) &&
         std::ranges::all_of(lines[1], is_digit);
}

}  // namespace

extern constinit const Reader text_workload_reader{
    .name = "text-workload",
    .help = "text workload of ASTRA-sim 1.0, SimAI and AICB, which every NPU executes",
    .recognises = recognises_text,
    .read = read_text,
};

}  // namespace orrery::trace
