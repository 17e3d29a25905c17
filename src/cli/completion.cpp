#include "completion.hpp"

#include <fmt/format.h>

#include "command.hpp"
#include "manual.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/suggestion.hpp"

namespace orrery::cli {
namespace {

/// Returns what is typed after "orrery" or "orrery show".
std::string_view word_of(const Subcommand& command) {
  return is_shown(command) ? command.name.substr(5) : command.name;
}

std::string replaced(std::string_view text, char what, std::string_view by) {
  std::string result;
  for (const char c : text)
    if (c == what)
      result += by;
    else
      result += c;
  return result;
}

/// Calls visit(option) for each option that the help names.
template <class Visit>
void for_each_option(const Subcommand& command, Visit visit) {
  for (const OptionGroup& group : command.groups)
    for (const Option& option : group.options)
      if (!option.hidden) visit(option);
}

bool takes_file(const Option& option) { return option.argument == "FILE" || option.argument == "PREFIX"; }

/// Returns the words, with blanks between them, that the positional argument may be; empty: a file, or nothing.
std::string positional_words(const Subcommand& command) {
  if (command.name != "show man") return fmt::format("{}", fmt::join(command.positional_words, " "));
  return fmt::format("{}", fmt::join(manual_pages(), " "));
}

/// Returns the words of the commands, with blanks between them.
std::string command_words(bool of_show) {
  std::string words;
  for (const Subcommand* const command : subcommands())
    if (is_shown(*command) == of_show) words += fmt::format("{} ", word_of(*command));
  return words;
}

// ---- bash ----

/// Completes names of files wherever it has no words to offer.
std::string bash() {
  std::string values, arguments;
  for (const Subcommand* const command : subcommands()) {
    std::string options;
    for_each_option(*command, [&](const Option& option) {
      options += fmt::format("--{} ", option.name);
      if (!option.words.empty())
        values +=
            fmt::format("    '{} --{}') words='{}' ;;\n", command->name, option.name, fmt::join(option.words, " "));
    });
    arguments += fmt::format("    '{}') options='{}--help' arguments='{}' ;;\n", command->name, options,
                             positional_words(*command));
  }
  return fmt::format(
      R"(# Lets bash complete the commands, options and words of orrery. Made by: orrery show completion bash
_orrery() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}}
  local options='' arguments='' words=''
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  if [[ $command == show ]] && ((COMP_CWORD > 2)); then command="show ${{COMP_WORDS[2]}}"; fi
  case $command in
{}    show) options='--help' arguments='{}' ;;
  esac
  if ((COMP_CWORD == 1)); then options='--help --version' arguments='{}show'; fi
  case "$command $previous" in
{}    *) words=$arguments ;;
  esac
  if [[ $current == -* ]]; then words=$options; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _orrery orrery
)",
      arguments, command_words(true), command_words(false), values);
}

// ---- zsh ----

std::string in_zsh(std::string_view text) { return fmt::format("'{}'", replaced(text, '\'', "'\\''")); }

/// Returns what _arguments is told of an option.
std::string zsh_option(const Option& option) {
  const std::string help = replaced(replaced(option.help, '[', "\\["), ']', "\\]");
  if (option.argument.empty()) return in_zsh(fmt::format("--{}[{}]", option.name, help));
  const std::string action = !option.words.empty() ? fmt::format("({})", fmt::join(option.words, " "))
                             : takes_file(option)  ? "_files"
                                                   : " ";
  return in_zsh(
      fmt::format("{}--{}=[{}]:{}:{}", option.repeatable ? "*" : "", option.name, help, option.argument, action));
}

std::string zsh() {
  std::string named, of_show, cases;
  for (const Subcommand* const command : subcommands()) {
    (is_shown(*command) ? of_show : named) +=
        fmt::format("    {}\n", in_zsh(fmt::format("{}:{}", word_of(*command), command->summary)));
    cases += fmt::format("    '{}')\n      _arguments \\\n", command->name);
    for_each_option(*command,
                    [&](const Option& option) { cases += fmt::format("        {} \\\n", zsh_option(option)); });
    const std::string words = positional_words(*command);
    if (!command->positional.empty())
      cases += fmt::format(
          "        {} \\\n",
          in_zsh(fmt::format("1:{}:{}", command->positional, words.empty() ? "_files" : fmt::format("({})", words))));
    cases += "        '--help[print the options and leave]'\n      ;;\n";
  }
  named += fmt::format("    {}\n", in_zsh(fmt::format("show:{}", show_summary)));
  return fmt::format(R"(#compdef orrery
# Lets zsh complete the commands, options and words of orrery. Made by: orrery show completion zsh
_orrery() {{
  local -a commands=(
{}  ) shown=(
{}  )
  local command=$words[2]
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  if [[ $command == show ]]; then
    if ((CURRENT == 3)); then
      _describe what shown
      return
    fi
    command="show $words[3]"
    shift words
    ((CURRENT--))
  fi
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _orrery ]]; then
  _orrery "$@"
else
  compdef _orrery orrery
fi
)",
                     named, of_show, cases);
}

// ---- fish ----

std::string in_fish(std::string_view text) {
  return fmt::format("'{}'", replaced(replaced(text, '\\', "\\\\"), '\'', "\\'"));
}

std::string fish_option(const Option& option) {
  std::string text = fmt::format("-l {} -d {}", option.name, in_fish(option.help));
  if (!option.words.empty())
    text += fmt::format(" -x -a {}", in_fish(fmt::format("{}", fmt::join(option.words, " "))));
  else if (!option.argument.empty())
    text += takes_file(option) ? " -r -F" : " -x";
  return text;
}

std::string fish() {
  std::string text =
      R"(# Lets fish complete the commands, options and words of orrery. Made by: orrery show completion fish
function __orrery_command
    set -l words (commandline -opc)
    if test (count $words) -gt 2; and test $words[2] = show
        echo show $words[3]
    else
        echo $words[2]
    end
end
)";
  const auto when = [&](std::string_view command, std::string_view what) {
    text += fmt::format("complete -c orrery -n 'test (__orrery_command) = \"{}\"' {}\n", command, what);
  };
  for (const Subcommand* const command : subcommands())
    when(is_shown(*command) ? "show" : "", fmt::format("-f -a {} -d {}", word_of(*command), in_fish(command->summary)));
  when("", fmt::format("-f -a show -d {}", in_fish(show_summary)));
  when("", "-l version -d 'print versions and leave'");
  for (const Subcommand* const command : subcommands()) {
    const std::string words = positional_words(*command);
    if (!words.empty()) when(command->name, fmt::format("-f -a {}", in_fish(words)));
    for_each_option(*command, [&](const Option& option) { when(command->name, fish_option(option)); });
  }
  return text + "complete -c orrery -s h -l help -d 'print the options and leave'\n";
}

}  // namespace

std::string completion(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  throw Error(ErrorCode::usage,
              fmt::format("orrery show completion: unknown shell '{}'. {}", shell, suggestion(shell, shells)));
}

}  // namespace orrery::cli
