#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "package.hpp"

namespace orrery::cli {
namespace {

const Subcommand& calibrate_subcommand() {
  static const Subcommand command{
      "calibrate",
      "Fit numbers of a configuration or a stack to what was measured on a machine.",
      "step|steps|collectives FILE ...",
      "  orrery calibrate step config.yaml --measured 1.42s\n"
      "  orrery calibrate steps steps.csv --output own-stack.yaml\n"
      "  orrery calibrate collectives all_reduce_perf.txt --library nccl-h100",
      {{"A step",
        {{"measured", "TIME", "the measured time of a step; needed"},
         {"key", "KEY", "the number that is fitted, from 0.01 to 1 (default: system.compute.efficiency)"}}},
       {"Steps",
        {{"stack", "NAME", "the stack whose numbers are known before (default: by hardware and group of the rows)"},
         {"output", "FILE", "the stack that is written (default: calibrated-stack.yaml)"}}},
       {"Collectives",
        {{"library", "NAME", "the library to correct, such as nccl-h100; needed"},
         {"kind", "KIND", "of the collectives that were measured (default: all-reduce)"},
         {"fabric", "NAME", "network between nodes, a word of library.fabric (default: infiniband)"},
         {"nic", "BANDWIDTH", "bandwidth of a rank to other nodes (default: 400 Gb/s)"}}}},
      {"step", "steps", "collectives"}};
  return command;
}

PackageCommand make_calibrate(const Arguments& arguments) {
  const auto& words = arguments.positionals();
  constexpr std::pair<std::string_view, std::string_view> subjects[] = {
      {"step", "CONFIG.yaml"}, {"steps", "a CSV of measured steps"}, {"collectives", "what nccl-tests printed"}};
  const auto subject = std::ranges::find(subjects, words.empty() ? std::string_view() : std::string_view(words.front()),
                                         [](const auto& each) { return each.first; });
  if (subject == std::end(subjects)) refuse_usage("orrery calibrate: of what? Give step, steps or collectives.");
  if (words.size() < 2)
    refuse_usage(fmt::format("orrery calibrate {}: no file. Give {}.", words.front(), subject->second));
  if (words.front() == "step" && !arguments.has("measured"))
    refuse_usage(
        "orrery calibrate step: --measured missing. Give the measured time of a step, such as --measured 1.42s.");
  if (words.front() == "collectives" && !arguments.has("library"))
    refuse_usage("orrery calibrate collectives: --library missing. Give the library to correct, such as nccl-h100.");
  PackageCommand command{{words.front()}, "calibrate"};
  for (const std::string_view option : {"measured", "key", "library", "kind", "fabric", "nic", "stack", "output"})
    if (const auto text = arguments.text(option)) command.arguments.push_back(fmt::format("--{}={}", option, *text));
  command.arguments.emplace_back("--");
  command.arguments.insert(command.arguments.end(), words.begin() + 1, words.end());
  return command;
}

}  // namespace

extern const CommandEntry calibrate_entry;
const CommandEntry calibrate_entry{
    calibrate_subcommand, [](const Arguments& arguments) { return once(make_calibrate(arguments), run_package); }};

}  // namespace orrery::cli
