#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text.hpp"
#include "types.hpp"

namespace orrery::config {

/// What holds where a key is not given.
class Default {
 public:
  enum class Kind : std::uint8_t { built_in, value, described, none, needed, needed_in_mapping };

  /// The value that the member of the Options is initialised with.
  static constexpr Default built_in() { return {Kind::built_in, {}}; }
  /// The value that `text` would give if it stood in the file.
  static consteval Default value(Text text) { return {Kind::value, text.view()}; }
  /// What the reader does then, in words. The member keeps its initial value unless the key says more (Key::prepare).
  static consteval Default described(Text text) { return {Kind::described, text.view()}; }
  /// Nothing: a missing key is a fault.
  static constexpr Default needed() { return {Kind::needed, "needed"}; }
  /// Nothing: a missing key is a fault if the mapping that would hold it is there.
  static constexpr Default needed_in_mapping() { return {Kind::needed_in_mapping, "needed"}; }
  /// Nothing: the key may be left out.
  static constexpr Default none() { return {Kind::none, "none"}; }

  Kind kind() const { return kind_; }
  std::string_view text() const { return text_; }

 private:
  constexpr Default(Kind kind, std::string_view text) : kind_(kind), text_(text) {}

  Kind kind_;
  std::string_view text_;
};

/// A subcommand that may take the flag of a key.
enum class Taker : std::uint8_t { run, check, generate, convert, partition, show_trace, show_topology, show_collective };

/// The headings of the help under which flags are listed, in this order.
enum class Heading : std::uint8_t { output, ranks, model, generated_parallel, generated_model, astra_sim };
std::string_view title(Heading heading);

/// The flag of a key on the command line.
struct Flag {
  Text name;                        ///< without its dashes
  Heading heading;                  ///< under which the help lists it
  std::string_view argument;        ///< what the help calls its value; empty if the value is true or false
  std::vector<Taker> commands;      ///< that take it
  std::string_view bare_unit = {};  ///< the unit of a number that is given without one; empty: there is none
};

/// What is said of a key of CONFIG.yaml. A descriptor that leaves a field out does not compile.
struct About {
  Text path;     ///< from the top of CONFIG.yaml
  Text help;     ///< what the value means: one line, which begins with a noun
  Text example;  ///< a value, as CONFIG.yaml has it
  Default otherwise;
  std::string_view see =
      {};  ///< the document that says more, from docs/, and perhaps its part: "memory.md, *Capacity*"
  std::optional<Flag> flag = {};
};

/// What is said of a key or flag of ASTRA-sim.
struct AboutAstraSim {
  Text name;     ///< the key, or the flag without its dashes
  Text becomes;  ///< the key of CONFIG.yaml that it sets, or "-" if it has no effect
  Text help;
  Default otherwise;
  std::optional<Flag> flag = {};
};

/// A key as tables, messages and the help see it.
struct KeyInfo {
  std::string path, becomes, help, example;
  TypeInfo type;
  Default otherwise;
  std::string default_text;  ///< the default as a value or in words; "needed"
  bool default_is_value = false;
  std::string needed_with = {};  ///< when the key is needed, if it is not always: "the roofline is on"
  std::string only_with = {};    ///< when the key is known, if it is not always: "shape: FatTree"
  std::string hint = {};         ///< what to do about a missing key
  std::string_view see = {};
  std::optional<Flag> flag = {};

  bool is_needed() const {
    return otherwise.kind() == Default::Kind::needed || otherwise.kind() == Default::Kind::needed_in_mapping;
  }
  bool is_optional() const { return otherwise.kind() == Default::Kind::none; }
  /// Returns what a message about the missing key ends with.
  std::string hint_if_missing() const { return hint.empty() ? fmt::format("Meaning: {}.", help) : hint; }
  /// Returns what a message expects where the key is missing. `reason` says why it is needed; it may be empty.
  std::string expected(std::string_view reason) const;
};

/// Returns whether the default of a key holds where its flag is not given: `orrery generate` has others without
/// CONFIG.yaml.
bool tells_default(const KeyInfo& key);

/// Returns what is said of a key. Throws Error (internal) for what cannot be: a flag without a name for its value.
KeyInfo describe(const About& about, TypeInfo type);
KeyInfo describe(const AboutAstraSim& about, TypeInfo type);

}  // namespace orrery::config
