#include "option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "orrery/base/error.hpp"
#include "orrery/config/units.hpp"
#include "suggestion.hpp"

// cxxopts splits values at this character, ',' by default: a character that no value holds.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

namespace orrery::config {
namespace {

[[noreturn]] void usage(std::string_view command, std::string_view what, std::string_view hint = {}) {
  throw Error(ErrorCode::usage, fmt::format("orrery {}: {}.{}{} See 'orrery {} --help'.", command, what,
                                            hint.empty() ? "" : " ", hint, command));
}

/// For the help, switches are declared as such: else it would show the values that they can be given.
cxxopts::Options declare(const Subcommand& command, bool for_help = false) {
  cxxopts::Options options(fmt::format("orrery {}", command.name), std::string(command.summary));
  options.custom_help("[OPTIONS]");
  options.positional_help(std::string(command.positional));
  options.allow_unrecognised_options();
  for (const auto& group : command.groups)
    for (const auto& option : group.options) {
      std::shared_ptr<cxxopts::Value> value = cxxopts::value<std::vector<std::string>>();
      if (option.argument.empty() && for_help)
        value = cxxopts::value<bool>();
      else if (option.argument.empty())
        value->implicit_value("true");
      options.add_option(std::string(group.title), "", std::string(option.name), std::string(option.help), value,
                         std::string(option.argument));
    }
  options.add_option("Other", "h", "help", "print this and leave", cxxopts::value<bool>(), "");
  options.add_option("", "", "positional", "", cxxopts::value<std::vector<std::string>>(), "");
  options.parse_positional("positional");
  return options;
}

/// The name of an option as it was written: "--bandwith=3" is "bandwith".
std::string_view bare_name(std::string_view argument) {
  argument.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return argument.substr(0, argument.find('='));
}

void refuse_unknown(const Subcommand& command, const std::vector<std::string>& unmatched) {
  if (unmatched.empty()) return;
  std::vector<std::string_view> known = {"help"};
  for (const auto& group : command.groups)
    for (const auto& option : group.options) known.push_back(option.name);
  const std::string& first = unmatched.front();
  const auto near = nearest(bare_name(first), known);
  usage(command.name, fmt::format("unknown option '{}'", first.substr(0, first.find('='))),
        near.empty() ? std::string() : fmt::format("Did you mean '--{}'?", near));
}

}  // namespace

Arguments::Arguments(const Subcommand& command, std::span<const char* const> arguments) : command_(command.name) {
  auto options = declare(command);
  try {
    std::vector<const char*> argv = {"orrery"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const auto parsed = options.parse(static_cast<int>(argv.size()), argv.data());
    help_ = parsed.count("help") > 0;
    if (help_) return;
    refuse_unknown(command, parsed.unmatched());
    if (parsed.count("positional") > 0) {
      const auto& words = parsed["positional"].as<std::vector<std::string>>();
      if (command.positional.empty()) usage(command_, fmt::format("unexpected argument '{}'", words.front()));
      if (words.size() > 1)
        usage(command_, fmt::format("unexpected argument '{}' after '{}'", words[1], words.front()));
      positional_ = words.front();
    }
    for (const auto& group : command.groups)
      for (const auto& option : group.options) {
        const std::string name(option.name);
        if (parsed.count(name) == 0) continue;
        if (parsed.count(name) > 1 && !option.repeatable) usage(command_, fmt::format("--{} is given twice", name));
        given_.push_back({name, parsed[name].as<std::vector<std::string>>()});
      }
  } catch (const cxxopts::exceptions::exception& error) {
    usage(command_, error.what());
  }
}

const Arguments::Given* Arguments::find(std::string_view name) const {
  for (const auto& given : given_)
    if (given.name == name) return &given;
  return nullptr;
}

void Arguments::refuse(std::string_view name, std::string_view expected) const {
  usage(command_, fmt::format("--{}: found '{}'; expected {}", name, text(name).value_or(""), expected));
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto* const given = find(name);
  if (given == nullptr || given->values.empty()) return {};
  return given->values.front();
}

std::vector<std::string> Arguments::texts(std::string_view name) const {
  const auto* const given = find(name);
  return given == nullptr ? std::vector<std::string>() : given->values;
}

std::optional<bool> Arguments::flag(std::string_view name) const {
  const auto value = text(name);
  if (!value) return {};
  if (*value == "true") return true;
  if (*value == "false") return false;
  refuse(name, "true or false");
}

std::optional<std::uint32_t> Arguments::count(std::string_view name, std::uint32_t minimum) const {
  const auto value = text(name);
  if (!value) return {};
  try {
    return static_cast<std::uint32_t>(parse_count(*value, minimum, std::numeric_limits<std::uint32_t>::max()));
  } catch (const Error&) {
    refuse(name, fmt::format("a whole number, {} or more", minimum));
  }
}

std::optional<double> Arguments::number(std::string_view name) const {
  const auto value = text(name);
  if (!value) return {};
  try {
    return parse_number(*value);
  } catch (const Error&) {
    refuse(name, "a number, 0 or more");
  }
}

std::string help_text(const Subcommand& command) {
  std::vector<std::string> titles;
  for (const auto& group : command.groups) titles.emplace_back(group.title);
  titles.emplace_back("Other");
  auto options = declare(command, true);
  options.set_width(110);
  std::string text = options.help(titles);
  for (const auto& title : titles) {
    const std::string heading = fmt::format(" {} options:", title);
    if (const auto at = text.find(heading); at != std::string::npos)
      text.replace(at, heading.size(), fmt::format(" {}:", title));
  }
  return text + fmt::format("\nExample:\n{}\n", command.example);
}

}  // namespace orrery::config
