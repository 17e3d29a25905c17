#include <string>

#include <fmt/format.h>

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
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

const Subcommand& show_graph_subcommand() {
  static const Subcommand command{
      "show graph",
      "Print what a graph or a description of InfraGraph expands to, and dimensions that fit.",
      "FILE",
      "  orrery show graph configs/graph-16.yaml\n"
      "  orrery show graph configs/infragraph/dgx-h100.yaml\n"
      "  orrery show graph configs/infragraph/dgx-h100.yaml --bandwidth 450GB/s --latency 150ns --links",
      {{"InfraGraph",
        {{"devices", "OTHER", "file of devices that FILE uses and does not have; repeatable", true},
         {"bandwidth", "RATE", "of links to which the file gives none, as 450GB/s or 400Gb/s"},
         {"latency", "TIME", "of links to which the file gives none, as 500ns"},
         {"link", "NAME=RATE,TIME", "of the links of a name, whatever the file says; repeatable", true}}},
       {"Output",
        {json_option(),
         {"links", "", "print each link of the network with its rate and latency"},
         {"output", "GRAPH", "write hosts, switches and links to a file, as JSON if it ends in .json, else as YAML"},
         {"force", "", "replace an existing file"}}}}};
  return command;
}

show::ShowGraphCommand make_show_graph(const Arguments& arguments) {
  show::ShowGraphCommand command;
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

}  // namespace

extern const CommandEntry show_graph_entry;
const CommandEntry show_graph_entry{show_graph_subcommand, [](const Arguments& arguments) {
                                      return once(make_show_graph(arguments), show::show_graph);
                                    }};

}  // namespace orrery::cli
