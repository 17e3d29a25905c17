#include "manual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "command.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/suggestion.hpp"
#include "orrery/base/version.hpp"

namespace orrery::cli {
namespace {

constexpr std::string_view exit_status = R"(.SH EXIT STATUS
.TP
0
The command did what it was asked for.
.TP
1
Orrery has a fault, or the machine failed.
.TP
2
The command line is wrong.
.TP
3
The input is wrong.
.TP
4
The simulated system is stuck.
.TP
5
The output cannot be written, or exists already.
.TP
75
The run was stopped on request.
)";

/// Returns a text in which man sees neither requests nor escapes, and which can be copied as it stands.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

/// Returns the name of a command in which a dash stands for the blank.
std::string page_name(const Subcommand& command) {
  std::string name(command.name);
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// Returns the beginning of a page: its title, and a summary as man's index has it, lower-case and without a full stop.
std::string beginning(const std::string& name, std::string_view summary) {
  std::string title = name, text(summary.substr(0, summary.size() - (summary.ends_with('.') ? 1 : 0)));
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return fmt::format(".TH {} 1 \"\" \"orrery {}\" \"User commands\"\n.SH NAME\n{} \\- {}\n", plain(title), version(),
                     plain(name), plain(text));
}

std::string option_entry(const Option& option) {
  const std::string argument = option.argument.empty() ? "" : fmt::format(" \\fI{}\\fR", plain(option.argument));
  return fmt::format(".TP\n\\fB\\-\\-{}\\fR{}\n{}\n", plain(option.name), argument, plain(option.help));
}

std::string example(std::string_view text) { return fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", plain(text)); }

std::string command_page(const Subcommand& command) {
  std::string text = beginning("orrery-" + page_name(command), command.summary);
  text +=
      fmt::format(".SH SYNOPSIS\n\\fBorrery {}\\fR [\\fIOPTIONS\\fR] \\fI{}\\fR\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
                  command.name, plain(command.positional), plain(command.summary));
  for (const OptionGroup& group : command.groups) {
    text += fmt::format(".SS {}\n", plain(group.title));
    for (const Option& option : group.options)
      if (!option.hidden) text += option_entry(option);
  }
  text += ".SS Other\n" + option_entry({.name = "help", .argument = {}, .help = "print the options and leave"});
  return text + example(command.example) + std::string(exit_status) + ".SH SEE ALSO\n.BR orrery (1)\n";
}

std::string program_page() {
  std::string text = beginning("orrery", "Simulate one step of distributed machine-learning training.");
  text +=
      ".SH SYNOPSIS\n\\fBorrery\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n"
      "Orrery predicts how long a training step of a machine\\-learning model takes on a cluster, and where each "
      "accelerator's time goes. It runs alone or on many ranks of MPI, with the same answer.\n.SH COMMANDS\n";
  std::string see_also;
  for (const Subcommand* const command : subcommands()) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", command->name, plain(command->summary));
    see_also += fmt::format("{}.BR orrery\\-{} (1)", see_also.empty() ? "" : ",\n", plain(page_name(*command)));
  }
  text += ".SH OPTIONS\n" + option_entry({.name = "help", .argument = {}, .help = "print the commands and leave"}) +
          option_entry({.name = "version", .argument = {}, .help = "print versions and leave"});
  return text + example("  mpirun -np 2 orrery run configs/llm-64.yaml --output results.h5") +
         std::string(exit_status) +
         ".SH FILES\n\\fIshare/orrery/configs\\fR below the prefix of the installation holds presets and examples, and "
         "\\fIshare/doc/orrery\\fR the documents.\n.SH SEE ALSO\n" +
         see_also + "\n";
}

}  // namespace

std::vector<std::string> manual_pages() {
  std::vector<std::string> names;
  for (const Subcommand* const command : subcommands()) names.push_back(page_name(*command));
  return names;
}

std::string manual(std::string_view name) {
  if (name.empty()) return program_page();
  for (const Subcommand* const command : subcommands())
    if (page_name(*command) == name) return command_page(*command);
  const std::vector<std::string> pages = manual_pages();
  const std::vector<std::string_view> known(pages.begin(), pages.end());
  throw Error(ErrorCode::usage, fmt::format("orrery show man: no command '{}'. {}", name, suggestion(name, known)));
}

}  // namespace orrery::cli
