#include "network_commands.hpp"

#include <fmt/format.h>

#include "option_values.hpp"
#include "orrery/network/packet_recording.hpp"
#include "subcommands.hpp"

namespace orrery::config {
namespace {

std::vector<Option> table_options() { return {{"json", "", "print JSON"}, {"csv", "", "print the table as CSV"}}; }

}  // namespace

FlowsCommand make_flows(const Arguments& arguments) {
  FlowsCommand command;
  if (!arguments.positional()) refuse_usage("orrery flows: no file. Give a FLOWS.yaml (docs/flows.md).");
  command.file = *arguments.positional();
  command.overrides = settings(arguments, "flows");
  command.json = arguments.text("json").value_or("");
  command.links = arguments.flag("links").value_or(false);
  command.queue_bins = arguments.count("queue-bins", 0).value_or(0);
  if (command.queue_bins > network::PacketRecording::most_queue_bins)
    refuse_usage(fmt::format("orrery flows: --queue-bins: found {}; expected {} at the most", command.queue_bins,
                             network::PacketRecording::most_queue_bins));
  command.in_scheduling_order = arguments.flag("scheduling-order").value_or(false);
  command.force = arguments.flag("force").value_or(false);
  return command;
}

ShowFlowsCommand make_show_flows(const Arguments& arguments) {
  ShowFlowsCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show flows: no file. Give the results of a run on the packet network with --record-flows.");
  command.file = *arguments.positional();
  command.slowest = arguments.count("slowest", 0).value_or(command.slowest);
  command.form = table_form(arguments, "show flows");
  return command;
}

ShowCollisionsCommand make_show_collisions(const Arguments& arguments) {
  ShowCollisionsCommand command;
  if (!arguments.positional())
    refuse_usage(
        "orrery show collisions: no file. Give the results of a run on the packet network with --record-flows.");
  command.file = *arguments.positional();
  command.most_links = arguments.count("links").value_or(command.most_links);
  command.form = table_form(arguments, "show collisions");
  return command;
}

ShowQueuesCommand make_show_queues(const Arguments& arguments) {
  ShowQueuesCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show queues: no file. Give the results of a run on the packet network with --queue-bins.");
  command.file = *arguments.positional();
  command.most_links = arguments.count("links").value_or(command.most_links);
  command.form = table_form(arguments, "show queues");
  return command;
}

const Subcommand& show_collisions_subcommand() {
  static const Subcommand command{
      "show collisions",
      "Print on which links messages of the packet network met, and which messages these were.",
      "RESULTS.h5",
      "  orrery run configs/graph-16.yaml --record-flows --output results.h5\n"
      "  orrery show collisions results.h5 --links 20",
      {{"Output", table_options()}, {"Links", {{"links", "N", "list N links (default: 10)"}}}}};
  return command;
}

const Subcommand& show_queues_subcommand() {
  static const Subcommand command{
      "show queues",
      "Print how deep the queues of the packet network were, and which links were stopped, and by whom.",
      "RESULTS.h5",
      "  orrery run configs/graph-16.yaml --queue-bins 500 --output results.h5\n"
      "  orrery show queues results.h5 --csv",
      {{"Output",
        {{"json", "", "print JSON, with each interval of each queue"},
         {"csv", "", "print each interval of each queue as CSV"}}},
       {"Links", {{"links", "N", "list N links (default: 10)"}}}}};
  return command;
}

const Subcommand& flows_subcommand() {
  static const Subcommand command{
      "flows",
      "Simulate flows, packet by packet, over a graph of hosts and switches.",
      "FLOWS.yaml",
      "  orrery flows configs/flows/incast8.yaml\n"
      "  mpirun -np 2 orrery flows configs/flows/incast8.yaml --json flows.json",
      {{"Output",
        {{"json", "FILE", "times of each flow, and what each port did"},
         {"links", "", "record and print on which links flows met"},
         {"queue-bins", "N", "record queues and pauses in at most N intervals of time, and print them"},
         {"force", "", "replace an existing file"}}},
       {"Comparison", {{"scheduling-order", "", "order events of one time as ns-3 does; on one rank only"}}},
       own_inputs()}};
  return command;
}

const Subcommand& show_flows_subcommand() {
  static const Subcommand command{
      "show flows",
      "Print how long messages of the packet network took, by size and by group, and which were the slowest.",
      "RESULTS.h5",
      "  orrery run configs/graph-16.yaml --record-flows --output results.h5\n"
      "  orrery show flows results.h5 --slowest 20",
      {{"Output", table_options()},
       {"Flows", {{"slowest", "N", "list the N messages with the largest slowdown (default: 10)"}}}}};
  return command;
}

}  // namespace orrery::config
