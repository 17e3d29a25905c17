#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "logged_job.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/synthesis/emit.hpp"
#include "orrery/synthesis/exponents.hpp"
#include "orrery/synthesis/fidelity.hpp"
#include "orrery/synthesis/learn.hpp"
#include "orrery/synthesis/model_file.hpp"
#include "orrery/trace/writer.hpp"
#include "synthesis_report.hpp"
#include "trace_inputs.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "orrery/base/quantity_text.hpp"

namespace orrery::cli {
namespace {

/// Prints unless the command is to be quiet.
template <class... Values>
void say(const SynthesizeCommand& command, fmt::format_string<Values...> text, Values&&... values) {
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

Source learn(const SynthesizeCommand& command) {
  if (command.model) return {synthesis::parse_model(trace::read_unpacked(*command.model), command.model->string()), {}};
  const synthesis::LearnOptions options{.min_support = command.min_support};
  TraceInputs inputs = read_trace_inputs(command.traces, files_of(command.traces));
  say(command, "learned from {} of {} ({})\n", counted(inputs.num_nodes, "node"), counted(inputs.traces.size(), "rank"),
      inputs.store.format(inputs.traces.front()));
  synthesis::Model model = synthesis::learn(inputs.store, inputs.traces, options);
  if (command.reference) {
    ConvertCommand reference = command.traces;
    reference.inputs = {*command.reference};
    reference.groups = command.reference_groups;
    reference.npus = {};
    const TraceInputs other = read_trace_inputs(reference, files_of(reference));
    synthesis::learn_exponents(model, synthesis::learn(other.store, other.traces, options));
  }
  return {std::move(model), std::move(inputs)};
}

synthesis::Scale scale_of(const SynthesizeCommand& command) {
  synthesis::Scale scale{
      .npus = command.ranks, .layers = command.layers, .micro_batches = command.micro_batches, .sizes = command.sizes};
  for (const auto& [axis, factor] : command.scale)
    if (!scale.axes.emplace(axis, factor).second)
      throw Error(ErrorCode::usage, {}, fmt::format("--scale gives axis a{} twice", axis), "each axis once");
  return scale;
}

/// Says whether traces are written at the scale of the input.
bool is_of_input_scale(const SynthesizeCommand& command) {
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

void write_traces(const SynthesizeCommand& command, const Source& source, synthesis::Obfuscation obfuscation) {
  const auto originals = sizes_of(source);
  obfuscation.avoid = &originals;
  const synthesis::Scale scale = scale_of(command);
  trace::Store store({.num_npus = synthesis::num_npus_of(source.model, scale), .precision = source.model.precision},
                     {});
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

void synthesize(const SynthesizeCommand& command) {
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

/// Reads "a1=4".
std::pair<std::uint32_t, double> read_axis_factor(const std::string& text) {
  const auto at = text.find('=');
  if (at == std::string::npos || at < 2 || text.front() != 'a')
    throw Error(ErrorCode::bad_input, {}, fmt::format("found '{}'", text), "an axis and its factor, such as a1=4");
  const auto axis = static_cast<std::uint32_t>(parse_count(std::string_view(text).substr(1, at - 1), 0, 63));
  return {axis, parse_number(std::string_view(text).substr(at + 1))};
}

void read_synthesis(const Arguments& arguments, SynthesizeCommand& command) {
  if (const auto model = arguments.text("model")) command.model = *model;
  if (command.model.has_value() != command.traces.inputs.empty())
    throw Error(ErrorCode::usage, "orrery synthesize: give either traces or --model FILE.");
  if (const auto output = arguments.text("model-out")) command.model_output = *output;
  command.traces.output = arguments.text("output").value_or("");
  if (command.traces.output.empty() && !command.model_output)
    throw Error(ErrorCode::usage,
                "orrery synthesize: --output missing. Give a prefix such as --output traces/workload, or --model-out "
                "FILE.");
  for (const std::string& text : arguments.texts("scale"))
    read_option(arguments, "scale", [&] { command.scale.push_back(read_axis_factor(text)); });
  command.ranks = arguments.count("ranks");
  command.layers = arguments.count("layers");
  command.micro_batches = arguments.count("micro-batches");
  for (const auto& [name, value] :
       {std::pair("sizes", &command.sizes), std::pair("delta", &command.delta), std::pair("spread", &command.spread)})
    if (const auto text = arguments.text(name)) read_option(arguments, name, [&] { *value = parse_number(*text); });
  if (command.sizes <= 0) arguments.refuse("sizes", "a factor above 0");
  if (command.delta > 2) arguments.refuse("delta", "a number from 0 to 2");
  if (command.spread > 2) arguments.refuse("spread", "a number from 0 to 2");
  command.seed = arguments.count("seed", 0).value_or(command.seed);
  command.min_support = arguments.count("min-support").value_or(command.min_support);
  command.quiet = arguments.flag("quiet").value_or(false);
  command.reference = arguments.text("reference");
  if (const auto groups = arguments.text("reference-groups")) command.reference_groups = *groups;
}

const Subcommand& synthesize_subcommand() {
  static const Subcommand command{
      "synthesize",
      "Learn from traces, and write obfuscated ones for other numbers of layers, micro-batches and ranks.",
      "TRACES ...",
      "  orrery synthesize 'private/trace.{npu}.et' --groups private/groups.json --output shared/workload\n"
      "  orrery synthesize 'private/trace.{npu}.et' --groups private/groups.json --model-out model.json\n"
      "  orrery synthesize --model model.json --scale a1=4 --layers 80 --output shared/workload",
      std::vector<OptionGroup>{
          {"Output",
           {{"output", "PREFIX", "traces PREFIX.<npu>.et, groups PREFIX.json"},
            {"model-out", "FILE", "what was learned, as JSON, to share in place of traces"},
            {"quiet", "", "print nothing, and do not measure how true the traces are and what they hide"},
            {"force", "", "replace existing files"}}},
          {"Scale",
           {{"ranks", "N", "ranks (NPUs) to write traces for; the axis of data parallelism grows or shrinks"},
            {"scale", "AXIS=FACTOR", "factor of the size of an axis, as a1=4; repeatable", true},
            {"layers", "N", "layers of the model"},
            {"micro-batches", "N", "micro-batches of a step"},
            {"sizes", "FACTOR", "factor of all FLOPs, bytes and recorded durations (default: 1)"}}},
          {"Obfuscation",
           {{"delta", "D",
             "sizes are multiplied by exp(N(0, D)) and rounded to 3 digits (default: 0.05; 0: as learned)"},
            {"spread", "S",
             "sizes that are alike are multiplied by one factor exp(N(0, S)), so that ratios of sizes change (default: "
             "0)"},
            {"seed", "S", "seed of all draws (default: 1)"},
            {"min-support", "K", "sizes of fewer nodes are pooled with those nearest to them (default: 5)"}}},
          {"Traces",
           {{"model", "FILE", "a model that --model-out wrote, in place of traces"},
            {"npus", "N", "number of NPUs of the system (default: as many as there are traces)"},
            {"groups", "FILE", "communicator file: the members of the process groups that the traces name"},
            {"reference", "NAME", "traces, a name with {npu}, of the same program with another size of one axis"},
            {"reference-groups", "FILE", "communicator file of these"}}}} +
          key_groups(config::Taker::convert)};
  return command;
}

SynthesizeCommand make_synthesize(const Arguments& arguments) {
  SynthesizeCommand command;
  command.traces.inputs = arguments.positionals();
  read_trace_options(arguments, command.traces);
  read_synthesis(arguments, command);
  return command;
}

}  // namespace

extern const CommandEntry synthesize_entry;
const CommandEntry synthesize_entry{
    synthesize_subcommand, [](const Arguments& arguments) { return once(make_synthesize(arguments), synthesize); }};

}  // namespace orrery::cli
