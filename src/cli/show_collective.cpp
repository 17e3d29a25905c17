#include <string>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

/// Returns the value of --kind.
collective::Kind kind_of(const Arguments& arguments) {
  collective::Kind kind{};
  read_option(arguments, "kind", [&] { kind = config::parse_collective_kind(*arguments.text("kind"), "kind"); });
  return kind;
}

Option kind_option() {
  Option option{"kind", "KIND", "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, ...; needed"};
  option.words = config::collective_kind_words();
  return option;
}

const Subcommand& show_collective_subcommand() {
  static const Subcommand command{
      "show collective", "Print what one collective costs when all members arrive together, or a table of sizes.",
      "CONFIG.yaml",
      "  orrery show collective configs/llm-64.yaml --kind all-reduce --bytes \"64 MiB\"\n"
      "  orrery show collective configs/ring-8.yaml --kind all-gather --table --network congestion-aware --csv",
      std::vector<OptionGroup>{
          {"Collective",
           {kind_option(),
            {"bytes", "SIZE",
             "with its unit, as \"64 MiB\": the shard of a member for all-gather and gather, else the buffer; needed "
             "but for a barrier and with --table"},
            {"table", "", "print a line for each size from 1 KiB to 16 GiB, in the columns of nccl-tests"},
            {"npus", "N", "the first N NPUs take part (default: all)"},
            {"at-once", "N",
             "each NPU is in N such collectives at a time, which share its links in the congestion-unaware network "
             "(default: 1)"}}}} +
          key_groups(config::Taker::show_collective) +
          std::vector<OptionGroup>{{"Output", {json_option(), {"csv", "", "print the table as CSV"}}},
                                   own_inputs(),
                                   astra_sim_inputs(config::Taker::show_collective)}};
  return command;
}

show::ShowCollectiveCommand make_show_collective(const Arguments& arguments) {
  show::ShowCollectiveCommand command;
  command.inputs = read_inputs(arguments, "show collective", true);
  needed(arguments, "show collective", "kind", "all-reduce");
  command.inputs.flags = read_flags(arguments, config::Taker::show_collective);
  command.kind = kind_of(arguments);
  const bool is_barrier = command.kind == collective::Kind::barrier;
  command.is_table = arguments.flag("table").value_or(false);
  if (command.is_table && (is_barrier || arguments.has("bytes")))
    refuse_usage(fmt::format("orrery show collective: both --table and {} are given. A table has sizes of its own.",
                             is_barrier ? "a barrier, which has no size," : "--bytes"));
  if (!command.is_table && (!is_barrier || arguments.has("bytes"))) {
    const std::string text = needed(arguments, "show collective", "bytes", "\"64 MiB\", or --table for all sizes");
    read_option(arguments, "bytes", [&] { command.bytes = parse_bytes(text); });
  }
  command.npus = arguments.count("npus");
  command.at_once = arguments.count("at-once").value_or(1);
  if (command.at_once == 0)
    refuse_usage("orrery show collective: --at-once 0 is given. Give the collectives that an NPU is in, 1 or more.");
  command.form = table_form(arguments, "show collective");
  if (command.form == show::TableForm::csv && !command.is_table)
    refuse_usage("orrery show collective: --csv is given without --table, which it prints.");
  return command;
}

}  // namespace

extern const CommandEntry show_collective_entry;
const CommandEntry show_collective_entry{show_collective_subcommand, [](const Arguments& arguments) {
                                           return once(make_show_collective(arguments), show::show_collective);
                                         }};

}  // namespace orrery::cli
