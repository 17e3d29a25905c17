#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "logged_job.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/synthesis/emit.hpp"
#include "orrery/synthesis/fidelity.hpp"
#include "orrery/synthesis/learn.hpp"
#include "orrery/synthesis/model_file.hpp"
#include "orrery/trace/writer.hpp"
#include "subcommands.hpp"
#include "synthesis_report.hpp"
#include "trace_inputs.hpp"

namespace orrery::cli {
namespace {

/// Prints unless the command is to be quiet.
template <class... Values>
void say(const config::SynthesizeCommand& command, fmt::format_string<Values...> text, Values&&... values) {
  if (!command.quiet) fmt::print(text, std::forward<Values>(values)...);
}

void print_model(const synthesis::Model& model) {
  fmt::print("roles: {}, micro-batches: {}, layers: {}\n", model.roles.size(), model.micro_batches,
             model.layers > 0 ? fmt::to_string(model.layers) : "not found");
  for (std::size_t a = 0; a < model.axes.size(); ++a) {
    const synthesis::Axis& axis = model.axes[a];
    fmt::print("axis a{}: {} ranks, stride {}; of a rank {:.0f} collectives and {:.0f} sends{}\n", a, axis.size,
               axis.stride, axis.collectives, axis.messages,
               axis.is_pipeline ? "; pipeline"
               : axis.has_roles ? "; ranks differ"
                                : "");
  }
}

/// What is learned from, for the report.
struct Source {
  synthesis::Model model;
  std::optional<TraceInputs> inputs;
};

Source learn(const config::SynthesizeCommand& command) {
  if (command.model) return {synthesis::parse_model(trace::read_unpacked(*command.model), command.model->string()), {}};
  const synthesis::LearnOptions options{.min_support = command.min_support};
  TraceInputs inputs = read_trace_inputs(command.traces, files_of(command.traces));
  say(command, "learned from {} of {} ({})\n", counted(inputs.num_nodes, "node"), counted(inputs.traces.size(), "rank"),
      inputs.store.format(inputs.traces.front()));
  synthesis::Model model = synthesis::learn(inputs.store, inputs.traces, options);
  if (command.reference) {
    config::ConvertCommand reference = command.traces;
    reference.inputs = {*command.reference};
    reference.groups = command.reference_groups;
    reference.npus = {};
    const TraceInputs other = read_trace_inputs(reference, files_of(reference));
    synthesis::learn_exponents(model, synthesis::learn(other.store, other.traces, options));
  }
  return {std::move(model), std::move(inputs)};
}

synthesis::Scale scale_of(const config::SynthesizeCommand& command) {
  synthesis::Scale scale{
      .npus = command.ranks, .layers = command.layers, .micro_batches = command.micro_batches, .sizes = command.sizes};
  for (const auto& [axis, factor] : command.scale)
    if (!scale.axes.emplace(axis, factor).second)
      throw Error(ErrorCode::usage, {}, fmt::format("--scale gives axis a{} twice", axis), "each axis once");
  return scale;
}

/// Says whether traces are written at the scale of the input.
bool is_of_input_scale(const config::SynthesizeCommand& command) {
  return command.scale.empty() && !command.ranks && !command.layers && !command.micro_batches && command.sizes == 1;
}

/// Returns the sizes of the input; none if a model was read.
std::unordered_set<std::uint64_t> sizes_of(const Source& source) {
  std::unordered_set<std::uint64_t> sizes;
  if (source.inputs) for_each_trace_size(source.inputs->traces, [&](std::uint64_t size) { sizes.insert(size); });
  return sizes;
}

void report_sizes(const Source& source, const std::unordered_set<std::uint64_t>& originals,
                  const synthesis::Emission& emission) {
  if (!source.inputs) return;
  std::uint64_t all = 0, equal = 0;
  for_each_trace_size(emission.traces, [&](std::uint64_t size) {
    ++all;
    equal += originals.contains(size) ? 1 : 0;
  });
  if (all > 0)
    fmt::print("{:.1f} % of sizes equal one of the input\n",
               100 * static_cast<double>(equal) / static_cast<double>(all));
}

void write_traces(const config::SynthesizeCommand& command, const Source& source, synthesis::Obfuscation obfuscation) {
  const auto originals = sizes_of(source);
  obfuscation.avoid = &originals;
  const synthesis::Scale scale = scale_of(command);
  trace::Store store({.num_npus = synthesis::num_npus_of(source.model, scale)}, {});
  const synthesis::Emission emission = synthesis::emit(source.model, scale, obfuscation, store);
  const synthesis::EmitReport& report = emission.report;
  trace::write_traces(store, emission.traces, command.traces.output, command.traces.force);
  if (command.quiet) return;
  fmt::print("written: {} of {}, micro-batches: {}, layers: {}\n", counted(report.num_nodes, "node"),
             counted(report.num_npus, "rank"), report.micro_batches,
             report.layers > 0 ? fmt::to_string(report.layers) : "as learned");
  if (report.dropped_edges > 0)
    fmt::print("{} left out: their sources are not there at this scale\n",
               counted(report.dropped_edges, "dependency", "dependencies"));
  report_sizes(source, originals, emission);
  fmt::print("traces in {0}.<npu>.et, groups in {0}.json\n", command.traces.output.string());
  std::optional<synthesis::TraceSet> input;
  if (source.inputs) input.emplace(source.inputs->store, source.inputs->traces);
  print_synthesis_report({source.model, obfuscation, input, {store, emission.traces}, is_of_input_scale(command)});
}

}  // namespace

void synthesize(const config::SynthesizeCommand& command) {
  honour_signals();
  const synthesis::Obfuscation obfuscation{.delta = command.delta, .seed = command.seed, .spread = command.spread};
  if (command.model_output) check_output(*command.model_output, command.traces.force);
  const Source source = learn(command);
  if (!command.quiet) print_model(source.model);
  if (!command.traces.output.empty()) write_traces(command, source, obfuscation);
  if (command.model_output) {
    PartialFile file(*command.model_output);
    file.write(synthesis::to_json(source.model, obfuscation));
    file.commit();
    say(command, "model in {}\n", command.model_output->string());
  }
  say(command,
      "sizes {}. Structure is kept: at the same scale a known model is always recognised with\n"
      "--delta 0. This is not differential privacy (docs/synthesis.md).\n",
      command.delta > 0 || command.spread > 0
          ? fmt::format(
                "times exp(N(0, {})){}", command.delta,
                command.spread > 0 ? fmt::format(", those that are alike times exp(N(0, {}))", command.spread) : "")
          : "as learned");
}

}  // namespace orrery::cli
