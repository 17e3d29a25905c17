#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::cli {

/// One option of a subcommand.
struct Option {
  std::string name;
  std::string argument;  ///< name of the value in the help; empty: a switch
  std::string help;
  bool repeatable = false;
  bool hidden = false;                       ///< it is taken, but neither the help nor a completion names it
  std::vector<std::string_view> words = {};  ///< values that a completion offers
};

/// Options under one heading of the help.
struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

/// A subcommand as the help tells it.
struct Subcommand {
  std::string_view name;        ///< "run", "show trace", ...
  std::string_view summary;     ///< one line
  std::string_view positional;  ///< "CONFIG.yaml"; empty: takes none; "FILE ...": takes several
  std::string_view example;     ///< lines of the help's end
  std::vector<OptionGroup> groups;
  std::vector<std::string_view> positional_words = {};  ///< words that a completion offers instead of files
};

/// The options and the positional argument that were given.
class Arguments {
 public:
  /// Throws Error (usage): an unknown option (with the nearest known one), a missing or superfluous argument, an option
  /// given twice that is not repeatable. Cost O(length of the arguments).
  Arguments(const Subcommand& command, std::span<const char* const> arguments);

  bool help() const { return help_; }
  /// Returns the positional argument, or the first of several; none if there is none.
  std::optional<std::string> positional() const {
    return positionals_.empty() ? std::nullopt : std::optional(positionals_.front());
  }
  const std::vector<std::string>& positionals() const { return positionals_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Returns the value of an option; none if it was not given.
  std::optional<std::string> text(std::string_view name) const;
  /// Returns the values of an option that may be repeated.
  std::vector<std::string> texts(std::string_view name) const;
  /// Returns a switch, true or false; none if it was not given.
  std::optional<bool> flag(std::string_view name) const;
  /// Returns a whole number from `minimum` to 2^32 - 1; none if it was not given.
  std::optional<std::uint32_t> count(std::string_view name, std::uint32_t minimum = 1) const;
  /// Throws the usage error about the value of an option.
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;
  /// Throws a usage error about an option; `said` says what was found and what was expected.
  [[noreturn]] void refuse_as(std::string_view name, std::string_view said) const;

 private:
  struct Given {
    std::string name;
    std::vector<std::string> values;
  };
  const Given* find(std::string_view name) const;

  std::string command_;
  bool help_ = false;
  std::vector<std::string> positionals_;
  std::vector<Given> given_;
};

/// Returns the help of a subcommand.
std::string help_text(const Subcommand& command);

}  // namespace orrery::cli
