#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

constexpr double ns_per_second = 1e9;

/// Reads "2,4,8".
std::vector<std::uint32_t> read_ranks(const Arguments& arguments) {
  constexpr std::uint64_t most_ranks = 1U << 20;
  std::vector<std::uint32_t> ranks;
  const std::string text = arguments.text("ranks").value_or("");
  for (std::size_t from = 0; from < text.size() + 1 && !text.empty();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    read_option(arguments, "ranks", [&] {
      ranks.push_back(static_cast<std::uint32_t>(parse_count(text.substr(from, comma - from), 1, most_ranks)));
    });
    from = comma + 1;
  }
  return ranks;
}

/// Returns the seconds of an option; none if it was not given.
std::optional<double> read_duration(const Arguments& arguments, std::string_view name) {
  const auto text = arguments.text(name);
  if (!text) return {};
  double seconds = 0;
  read_option(arguments, name, [&] { seconds = parse_nanoseconds(*text) / ns_per_second; });
  return seconds;
}

const Subcommand& show_scaling_subcommand() {
  static const Subcommand command{
      "show scaling",
      "Predict how long a run would take on more ranks.",
      "RESULTS.h5",
      "  orrery run configs/llama3-8b-64.yaml --noise 0.02 --record-load --output results.h5\n"
      "  orrery show scaling results.h5 --ranks 2,4,8,16,32,64 --latency 2us",
      {{"Ranks",
        {{"ranks", "LIST", "numbers of ranks, as 2,4,8 (default: powers of two up to the number of blocks)"},
         {"event-time", "TIME", "that a rank needs for an event, as 200ns (default: as measured in the run)"},
         {"latency", "TIME", "of a message from rank to rank (default: 2us)"},
         {"message-time", "TIME", "that each of its two ranks spends on a message (default: 1us)"}}},
       {"Output", {{"json", "", "print JSON"}, {"csv", "", "print the table as CSV"}}}}};
  return command;
}

show::ShowScalingCommand make_show_scaling(const Arguments& arguments) {
  show::ShowScalingCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show scaling: no file. Give the results of a run with --record-load.");
  command.file = *arguments.positional();
  command.ranks = read_ranks(arguments);
  command.event_time_s = read_duration(arguments, "event-time");
  if (command.event_time_s && *command.event_time_s <= 0)
    arguments.refuse_as("event-time", "found 0; expected a time that an event takes, such as 200ns");
  if (const auto seconds = read_duration(arguments, "latency")) command.latency_s = *seconds;
  if (const auto seconds = read_duration(arguments, "message-time")) command.message_time_s = *seconds;
  command.form = table_form(arguments, "show scaling");
  return command;
}

}  // namespace

extern const CommandEntry show_scaling_entry;
const CommandEntry show_scaling_entry{show_scaling_subcommand, [](const Arguments& arguments) {
                                        return once(make_show_scaling(arguments), show::show_scaling);
                                      }};

}  // namespace orrery::cli
