#include <string>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/network/flit_traffic.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

Option pattern_option() {
  Option option{"pattern", "PATTERN", "which NPU sends to which (default: uniform)"};
  for (const network::FlitPattern& pattern : network::FlitPattern::all())
    option.words.push_back(pattern.name);
  return option;
}

const Subcommand& show_traffic_subcommand() {
  static const Subcommand command{
      "show traffic", "Print the latency of packets over the load, in a network that is simulated flit by flit.",
      "CONFIG.yaml",
      "  orrery show traffic configs/wafer-flits-256.yaml --rates 0.05,0.1,0.2,0.3\n"
      "  orrery show traffic configs/wafer-flits-256.yaml --pattern transpose --rates 1 --json",
      std::vector<OptionGroup>{
          {"Traffic",
           {pattern_option(),
            {"rates", "LIST", "flits that each NPU offers in a cycle, up to 1 (default: 0.02,0.05,0.1,0.2,0.3,0.4,1)"},
            {"dimension", "N", "a dimension with `flits` (default: the first one)"},
            {"cycles", "N", "cycles that are measured (default: 20000)"},
            {"warm-up", "N", "cycles before these (default: 3000)"},
            {"seed", "N", "seed of all draws (default: 1)"}}},
          {"Output", table_options()},
          own_inputs()}};
  return command;
}

std::vector<double> read_rates(const Arguments& arguments) {
  const std::string text = arguments.text("rates").value_or("0.02,0.05,0.1,0.2,0.3,0.4,1");
  std::vector<double> rates;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    read_option(arguments, "rates", [&] {
      const double rate = parse_number(text.substr(from, comma - from), {}, "more than 0 and up to 1");
      if (!(rate > 0 && rate <= 1))
        throw Error(ErrorCode::bad_input, {}, fmt::format("found {}", rate), "more than 0 and up to 1");
      rates.push_back(rate);
    });
    from = comma + 1;
  }
  return rates;
}

show::ShowTrafficCommand make_show_traffic(const Arguments& arguments) {
  show::ShowTrafficCommand command;
  command.inputs = read_inputs(arguments, "show traffic", true);
  command.pattern = arguments.text("pattern").value_or(command.pattern);
  command.rates = read_rates(arguments);
  command.dimension = arguments.count("dimension", 0);
  command.cycles = arguments.count("cycles").value_or(command.cycles);
  command.warm_up = arguments.count("warm-up", 0).value_or(command.warm_up);
  command.seed = arguments.count("seed", 0).value_or(command.seed);
  command.form = table_form(arguments, "show traffic");
  return command;
}

}  // namespace

extern const CommandEntry show_traffic_entry;
const CommandEntry show_traffic_entry{show_traffic_subcommand, [](const Arguments& arguments) {
                                        return once(make_show_traffic(arguments), show::show_traffic);
                                      }};

}  // namespace orrery::cli
