#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_tables_subcommand() {
  static const Subcommand command{"show tables",
                                  "Print which NPU holds which embedding tables, and how uneven that is.",
                                  "CONFIG.yaml",
                                  "  orrery show tables configs/dlrm-dcnv2-16.yaml --set "
                                  "workload.parallel.table-balance=lookups",
                                  {{"Output", {json_option()}}, own_inputs()}};
  return command;
}

show::ShowTablesCommand make_show_tables(const Arguments& arguments) {
  show::ShowTablesCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show tables: no file. Give a CONFIG.yaml with a DLRM as workload.model.");
  command.file = *arguments.positional();
  command.overrides = settings(arguments, "show tables");
  command.json = arguments.flag("json").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry show_tables_entry;
const CommandEntry show_tables_entry{show_tables_subcommand, [](const Arguments& arguments) {
                                       return once(make_show_tables(arguments), show::show_tables);
                                     }};

}  // namespace orrery::cli
