#include "option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/suggestion.hpp"

// cxxopts splits values at this character, ',' by default: a character that no value holds.
#define CXXOPTS_VECTOR_DELIMITER '\0'
#include <cxxopts.hpp>

namespace orrery::cli {
namespace {

[[noreturn]] void usage(std::string_view command, std::string_view what, std::string_view hint = {}) {
  const std::string_view stop = what.ends_with('.') || what.ends_with('?') ? "" : ".";
  throw Error(ErrorCode::usage, fmt::format("orrery {}: {}{}{}{} See 'orrery {} --help'.", command, what, stop,
                                            hint.empty() ? "" : " ", hint, command));
}

/// Declares the options of a subcommand. For the help, switches are declared as such: else it would show the values
/// that they can be given.
cxxopts::Options declare(const Subcommand& command, bool for_help = false) {
  cxxopts::Options options(fmt::format("orrery {}", command.name), std::string(command.summary));
  options.custom_help("[OPTIONS]");
  options.positional_help(std::string(command.positional));
  options.allow_unrecognised_options();
  for (const auto& group : command.groups)
    for (const auto& option : group.options) {
      if (for_help && option.hidden) continue;
      std::shared_ptr<cxxopts::Value> value = cxxopts::value<std::vector<std::string>>();
      if (option.argument.empty() && for_help)
        value = cxxopts::value<bool>();
      else if (option.argument.empty())
        value->implicit_value("true");
      options.add_option(group.title, "", option.name, option.help, value, option.argument);
    }
  options.add_option("Other", "h", "help", "print this and leave", cxxopts::value<bool>(), "");
  options.add_option("", "", "positional", "", cxxopts::value<std::vector<std::string>>(), "");
  options.parse_positional("positional");
  return options;
}

/// Returns the name of an option as it was written: "--bandwith=3" is "bandwith".
std::string_view bare_name(std::string_view argument) {
  argument.remove_prefix(std::min(argument.find_first_not_of('-'), argument.size()));
  return argument.substr(0, argument.find('='));
}

/// The arguments as cxxopts gets them. It matches each one that begins with a dash with a regular expression that
/// recurses for every character, so long values stay here, and a mark with their positions stands for them. So do
/// values that begin with the mark.
class ShortArguments {
 public:
  ShortArguments(std::string_view command, std::span<const char* const> arguments) {
    texts_ = {"orrery"};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string_view argument = arguments[i];
      const std::string_view option = argument.substr(0, argument.find('='));
      const bool is_option = argument.starts_with('-');
      const std::string_view value =
          is_option ? argument.substr(std::min(option.size() + 1, argument.size())) : argument;
      if (!value.starts_with(mark) && (!is_option || argument.size() <= longest)) {
        texts_.emplace_back(argument);
        continue;
      }
      if (is_option && option.size() > longest)
        usage(command, fmt::format("unknown option '{}...'", argument.substr(0, 80)));
      const std::string place = fmt::format("{}{}", mark, i);
      texts_.push_back(is_option ? fmt::format("{}={}", option, place) : place);
      values_.emplace(place, value);
    }
  }

  std::vector<const char*> pointers() const {
    std::vector<const char*> pointers;
    for (const auto& text : texts_) pointers.push_back(text.c_str());
    return pointers;
  }
  /// Puts the long values where cxxopts has their positions.
  std::vector<std::string> restored(std::vector<std::string> values) const {
    for (auto& value : values)
      if (const auto found = values_.find(value); found != values_.end()) value = found->second;
    return values;
  }

 private:
  static constexpr char mark = '\x01';
  static constexpr std::size_t longest = 1000;

  std::vector<std::string> texts_;
  std::map<std::string, std::string_view, std::less<>> values_;  // by what stands for them
};

void refuse_unknown(const Subcommand& command, const std::vector<std::string>& unmatched) {
  if (unmatched.empty()) return;
  std::vector<std::string_view> known = {"help"};
  for (const auto& group : command.groups)
    for (const auto& option : group.options)
      if (!option.hidden) known.push_back(option.name);
  const std::string& first = unmatched.front();
  const auto near = nearest(bare_name(first), known);
  usage(command.name, fmt::format("unknown option '{}'", first.substr(0, first.find('='))),
        near.empty() ? std::string() : fmt::format("Did you mean '--{}'?", near));
}

}  // namespace

Arguments::Arguments(const Subcommand& command, std::span<const char* const> arguments) : command_(command.name) {
  auto options = declare(command);
  try {
    const ShortArguments short_arguments(command_, arguments);
    const std::vector<const char*> argv = short_arguments.pointers();
    const auto parsed = options.parse(static_cast<int>(argv.size()), argv.data());
    help_ = parsed.count("help") > 0;
    if (help_) return;
    refuse_unknown(command, parsed.unmatched());
    if (parsed.count("positional") > 0) {
      const auto words = short_arguments.restored(parsed["positional"].as<std::vector<std::string>>());
      if (command.positional.empty()) usage(command_, fmt::format("unexpected argument '{}'", words.front()));
      if (words.size() > 1 && !command.positional.ends_with("..."))
        usage(command_, fmt::format("unexpected argument '{}' after '{}'", words[1], words.front()));
      positionals_ = words;
    }
    for (const auto& group : command.groups)
      for (const auto& option : group.options) {
        const std::string& name = option.name;
        if (parsed.count(name) == 0) continue;
        if (parsed.count(name) > 1 && !option.repeatable) usage(command_, fmt::format("--{} is given twice", name));
        given_.push_back({name, short_arguments.restored(parsed[name].as<std::vector<std::string>>())});
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
  refuse_as(name, fmt::format("found '{}'; expected {}", text(name).value_or(""), expected));
}

void Arguments::refuse_as(std::string_view name, std::string_view said) const {
  usage(command_, fmt::format("--{}: {}", name, said));
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
  std::uint64_t number = 0;
  try {
    number = parse_count(*value, minimum, std::numeric_limits<std::uint64_t>::max());
  } catch (const Error&) {
    refuse(name, fmt::format("a whole number, {} or more", minimum));
  }
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (number > most) refuse(name, fmt::format("a whole number from {} to {}", minimum, most));
  return static_cast<std::uint32_t>(number);
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

}  // namespace orrery::cli
