#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keys/keys.hpp"
#include "option_table.hpp"
#include "orrery/base/error.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Throws Error (usage).
[[noreturn]] void refuse_usage(const std::string& text);

/// Runs `read`, and makes a usage error about the option of a fault of its value.
template <class Read>
void read_option(const Arguments& arguments, std::string_view name, Read read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string& text = error.text();
    arguments.refuse_as(name, text);
  }
}

/// Returns the value of an option that is one of these words; none if it was not given.
template <class T>
std::optional<T> choice(const Arguments& arguments, std::string_view name, const Words<T>& words) {
  const auto text = arguments.text(name);
  if (!text) return {};
  std::optional<T> value;
  read_option(arguments, name, [&] { value = as_word(option_value(*text), std::string(name), words); });
  return value;
}

/// Returns the values of --set. Throws Error (usage) for one without a key.
std::vector<std::string> settings(const Arguments& arguments, std::string_view command);

/// Returns how a table is printed, by --json and --csv. Throws Error (usage) if both are given.
TableForm table_form(const Arguments& arguments, std::string_view command);

/// Returns the value of an option. Throws Error (usage) with the example if it was not given.
std::string needed(const Arguments& arguments, std::string_view command, std::string_view name,
                   std::string_view example);

}  // namespace orrery::config
