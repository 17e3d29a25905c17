#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/network/flit_traffic.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using network::FlitPattern;
using network::FlitShape;
using network::FlitTraffic;
using network::FlitTrafficFigures;

[[noreturn]] void refuse_option(std::string_view option, const std::string& found, const std::string& expected) {
  throw Error(ErrorCode::usage, {.key = std::string(option)}, found, expected);
}

/// Returns the dimensions with flits that the command asks for: the first ones, if it asks for none.
const network::FlitDimensions& flits_of(const ShowTrafficCommand& command, const config::Configuration& configuration) {
  const auto& all = configuration.execution.network.flits;
  if (all.empty())
    throw Error(ErrorCode::bad_input, {.file = command.inputs.file.string(), .key = "system.network.dimensions"},
                "found no dimension with `flits`", "a Mesh2D, a Torus2D or a Crossbar with `flits: {}`");
  if (!command.dimension) return all.front();
  const auto found = std::ranges::find_if(all, [&](const auto& one) { return one.contains(*command.dimension); });
  if (found != all.end()) return *found;
  refuse_option("--dimension", fmt::format("found {}, a dimension without `flits`", *command.dimension),
                fmt::format("{}", all.front().first));
}

const FlitPattern& pattern_of(const ShowTrafficCommand& command, const FlitTraffic& traffic) {
  const auto all = FlitPattern::all();
  const auto found = std::ranges::find(all, command.pattern, &FlitPattern::name);
  const auto names_of = [&](bool (*is_named)(const FlitPattern&)) {
    std::vector<std::string_view> names;
    for (const FlitPattern& pattern : all)
      if (is_named(pattern)) names.push_back(pattern.name);
    return fmt::format("{}", fmt::join(names, ", "));
  };
  if (found == all.end())
    refuse_option("--pattern", fmt::format("found '{}'", command.pattern),
                  names_of([](const FlitPattern&) { return true; }));
  if (found->needs_rows && traffic.shape == FlitShape::crossbar)
    refuse_option("--pattern", fmt::format("found {} on a Crossbar, which has no rows", command.pattern),
                  names_of([](const FlitPattern& one) { return !one.needs_rows; }));
  if (found->needs_square && traffic.width != traffic.height)
    refuse_option("--pattern", fmt::format("found {} on {} by {} NPUs", command.pattern, traffic.width, traffic.height),
                  "as many rows as columns, or another pattern");
  return *found;
}

FlitTraffic traffic_of(const ShowTrafficCommand& command, const config::Configuration& configuration) {
  const network::FlitDimensions& flits = flits_of(command, configuration);
  FlitTraffic traffic{.shape = flits.shape,
                      .width = configuration.dimensions[flits.first].size,
                      .height = flits.count > 1 ? configuration.dimensions[flits.first + 1].size : 1,
                      .rules = flits.rules,
                      .warm_up = command.warm_up,
                      .measured = command.cycles,
                      .seed = command.seed};
  traffic.pattern = &pattern_of(command, traffic);
  return traffic;
}

nlohmann::ordered_json to_json(double rate, const FlitTrafficFigures& figures) {
  nlohmann::ordered_json json = {{"rate", rate},
                                 {"accepted", figures.accepted},
                                 {"saturated", figures.is_saturated},
                                 {"packets", figures.packets}};
  if (figures.packets > 0)
    json.update({{"latency", figures.latency},
                 {"latency_p99", figures.latency_99},
                 {"latency_max", figures.latency_most},
                 {"routers", figures.routers}});
  json["flit_hops"] = figures.flit_hops;
  json["cycles"] = figures.cycles;
  return json;
}

/// Returns the mean, the 99th percentile and the maximum of latencies, or `nothing` for each if no packet has arrived.
std::array<std::string, 3> latencies_of(const FlitTrafficFigures& figures, std::string mean, std::string nothing) {
  if (figures.packets == 0) return {nothing, nothing, nothing};
  return {std::move(mean), std::to_string(figures.latency_99), std::to_string(figures.latency_most)};
}

void print_row(TableForm form, double rate, const FlitTrafficFigures& figures) {
  if (form == TableForm::csv) {
    fmt::print("{},{:.6g},{},{},{}\n", rate, figures.accepted, figures.is_saturated, figures.packets,
               fmt::join(latencies_of(figures, fmt::format("{:.6g}", figures.latency), ""), ","));
    return;
  }
  const auto [mean, most_of_99, most] = latencies_of(figures, fmt::format("{:.2f}", figures.latency), "-");
  fmt::print("{:>8} {:>9.4f} {:>9} {:>9} {:>9} {:>9}{}\n", rate, figures.accepted, figures.packets, mean, most_of_99,
             most, figures.is_saturated ? "  saturated" : "");
}

}  // namespace

void show_traffic(const ShowTrafficCommand& command) {
  const auto configuration = config::read(command.inputs);
  FlitTraffic traffic = traffic_of(command, configuration);
  if (command.form == TableForm::csv) fmt::print("rate,accepted,saturated,packets,latency,latency_p99,latency_max\n");
  if (command.form == TableForm::text)
    fmt::print(
        "{} on {} by {} NPUs, rates in flits of an NPU and cycle, latencies in cycles\n{:>8} {:>9} {:>9} {:>9} "
        "{:>9} {:>9}\n",
        command.pattern, traffic.width, traffic.height, "rate", "accepted", "packets", "latency", "p99", "max");
  auto rows = nlohmann::ordered_json::array();
  for (const double rate : command.rates) {
    traffic.rate = rate;
    const FlitTrafficFigures figures = network::simulate_traffic(traffic);
    if (command.form == TableForm::json)
      rows.push_back(to_json(rate, figures));
    else
      print_row(command.form, rate, figures);
  }
  if (command.form == TableForm::json)
    print_figures({{"pattern", command.pattern}, {"npus", traffic.width * traffic.height}, {"rates", rows}}, true);
}

}  // namespace orrery::show
