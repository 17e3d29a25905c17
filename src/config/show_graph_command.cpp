#include "show_graph_command.hpp"

#include <fmt/format.h>

#include <string>

#include "option_values.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

/// Reads "NAME=BANDWIDTH" or "NAME=BANDWIDTH,LATENCY".
void read_link(const Arguments& arguments, const std::string& text, topology::LinkDefaults& defaults) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    arguments.refuse_as("link", fmt::format("found '{}'; expected NAME=BANDWIDTH,LATENCY, such as "
                                            "pcie=64GB/s,500ns",
                                            text));
  read_option(arguments, "link", [&] {
    const std::string values = text.substr(equals + 1);
    const std::size_t comma = values.find(',');
    topology::LinkPhysics& link = defaults.of_link[text.substr(0, equals)];
    link.bytes_per_ns = parse_bandwidth(values.substr(0, comma)).bytes_per_ns();
    if (comma != std::string::npos) link.latency_ns = parse_nanoseconds(values.substr(comma + 1));
  });
}

}  // namespace

ShowGraphCommand make_show_graph(const Arguments& arguments) {
  ShowGraphCommand command;
  if (!arguments.positional()) refuse_usage("orrery show graph: no file. Give a graph or a description of InfraGraph.");
  command.file = *arguments.positional();
  for (const std::string& text : arguments.texts("devices")) command.devices.emplace_back(text);
  if (const auto text = arguments.text("bandwidth"))
    read_option(arguments, "bandwidth",
                [&] { command.defaults.all.bytes_per_ns = parse_bandwidth(*text).bytes_per_ns(); });
  if (const auto text = arguments.text("latency"))
    read_option(arguments, "latency", [&] { command.defaults.all.latency_ns = parse_nanoseconds(*text); });
  for (const std::string& text : arguments.texts("link")) read_link(arguments, text, command.defaults);
  if (const auto text = arguments.text("output")) command.output = *text;
  command.force = arguments.flag("force").value_or(false);
  command.lists_links = arguments.flag("links").value_or(false);
  command.json = arguments.flag("json").value_or(false);
  return command;
}

}  // namespace orrery::config
