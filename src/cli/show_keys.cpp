#include <string>
#include <string_view>

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_keys_subcommand() {
  static const Subcommand command{
      "show keys",
      "Print the keys of CONFIG.yaml and of ASTRA-sim's files: type, default, range, meaning.",
      "[KEY]",
      "  orrery show keys system.network\n"
      "  orrery show keys run.output --json",
      {{"Output",
        {{"markdown", "", "print the tables of the documents"},
         {"json", "", "print JSON"},
         {"schema", "", "print the JSON schema of CONFIG.yaml, for editors"}}}},
      config::key_paths()};
  return command;
}

show::ShowKeysCommand make_show_keys(const Arguments& arguments) {
  show::ShowKeysCommand command;
  command.below = arguments.positional().value_or("");
  const bool markdown = arguments.flag("markdown").value_or(false);
  const bool json = arguments.flag("json").value_or(false);
  if (markdown && json) refuse_usage("orrery show keys: both --markdown and --json are given. Give one of them.");
  command.form = markdown ? config::KeyForm::markdown : json ? config::KeyForm::json : config::KeyForm::text;
  if (!arguments.flag("schema").value_or(false)) return command;
  if (markdown || json || !command.below.empty())
    refuse_usage("orrery show keys: --schema is given with something else. It stands alone: it is the whole schema.");
  command.form = config::KeyForm::schema;
  return command;
}

}  // namespace

extern const CommandEntry show_keys_entry;
const CommandEntry show_keys_entry{
    show_keys_subcommand, [](const Arguments& arguments) { return once(make_show_keys(arguments), show::show_keys); }};

}  // namespace orrery::cli
