#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/config/read.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::config {

/// A subcommand that may take the flag of a key.
enum class Taker : std::uint8_t {
  run,
  check,
  generate,
  convert,
  partition,
  show_trace,
  show_topology,
  show_collective
};

/// A flag of the command line that sets a key.
struct KeyFlag {
  std::string key;                           ///< path of the key
  std::string name;                          ///< name of the flag without its dashes
  std::string argument;                      ///< name of the value in the help; empty: a switch
  std::string help;                          ///< meaning, with the words and the default
  std::string_view heading;                  ///< heading of the help under which the flag stands
  std::string_view bare_unit;                ///< unit of a number that is given without one; may be empty
  std::vector<std::string_view> words = {};  ///< values that a completion offers
  /// Throws Error (bad_input) for a value that the key cannot have. `option` is the flag with its dashes.
  std::function<void(const std::string& text, const std::string& option)> check = {};
};

/// Returns the flags of keys that a subcommand takes, by heading, in the order of the tables of keys.
std::vector<KeyFlag> key_flags(Taker command);
/// Returns the flag of a key that has one, without `check`.
KeyFlag flag_of(std::string_view key);

/// A flag of ASTRA-sim.
struct AstraSimFlag {
  KeyFlag flag;
  bool has_effect = true;
  /// Reads a value. Throws Error (bad_input).
  std::function<void(const std::string& text, AstraSimInputs& into)> read;
  /// Says whether the flag is needed beside those that were given before it.
  std::function<bool(const AstraSimInputs& given)> is_missing;
};
/// Returns ASTRA-sim's flags, in their order. `system_only` as in Inputs.
std::vector<AstraSimFlag> flags_of_astra_sim(bool system_only = false);

/// Returns the paths of all keys, in the order of the alphabet.
std::vector<std::string_view> key_paths();

/// Reads the value of an option that is one of the words of a key. Throws Error (bad_input) with the known words.
trace::Dependencies parse_dependencies(const std::string& text, std::string_view option);
collective::Kind parse_collective_kind(const std::string& text, std::string_view option);
std::vector<std::string_view> collective_kind_words();
/// Reads "last", "all" or the number of a step; nothing for any other text.
std::optional<trace::StepChoice> parse_step(std::string_view text);

}  // namespace orrery::config
