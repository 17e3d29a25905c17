#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/flags.hpp"
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

  constexpr Kind kind() const { return kind_; }
  constexpr std::string_view text() const { return text_; }

 private:
  constexpr Default(Kind kind, std::string_view text) : kind_(kind), text_(text) {}

  Kind kind_;
  std::string_view text_;
};

/// The subcommands that take the flag of a key.
class Takers {
 public:
  constexpr Takers(std::initializer_list<Taker> takers) {
    for (const Taker taker : takers) bits_ |= 1U << static_cast<unsigned>(taker);
  }
  constexpr bool has(Taker taker) const { return (bits_ >> static_cast<unsigned>(taker) & 1U) != 0; }

 private:
  std::uint32_t bits_ = 0;
};

/// The headings of the help under which flags are listed, in this order.
enum class Heading : std::uint8_t { output, ranks, model, generated_parallel, generated_model, astra_sim };
std::string_view title(Heading heading);

/// The flag of a key on the command line.
struct Flag {
  Text name;                        ///< without its dashes
  Heading heading;                  ///< under which the help lists it
  std::string_view argument;        ///< name of its value in the help; empty if the value is true or false
  Takers commands;                  ///< subcommands that take it
  std::string_view bare_unit = {};  ///< the unit of a number that is given without one; empty: there is none
};

/// What a row says of the values of its key: what their Type says, or texts of its own.
class ValueInfo {
 public:
  template <class T>
  constexpr ValueInfo(const Type<T>& type) : kind_(&type.kind()), limits_(type.limits()) {}
  /// The texts are those of TypeInfo; `words` returns its words.
  constexpr ValueInfo(std::string_view name, std::string_view expected, std::string_view unit, std::string_view range,
                      std::vector<WordInfo> (*words)() = nullptr, bool has_plain_unit = false)
      : name_(name), expected_(expected), unit_(unit), range_(range), words_(words), has_plain_unit_(has_plain_unit) {}
  /// What the program makes up.
  constexpr ValueInfo(TypeInfo (*make)()) : make_(make) {}

  TypeInfo info() const;
  constexpr const AnyValueKind* kind() const { return kind_; }
  constexpr const Limits& limits() const { return limits_; }

 private:
  const AnyValueKind* kind_ = nullptr;
  Limits limits_ = {};
  TypeInfo (*make_)() = nullptr;
  std::string_view name_ = {}, expected_ = {}, unit_ = {}, range_ = {};
  std::vector<WordInfo> (*words_)() = nullptr;
  bool has_plain_unit_ = false;
};

/// What a row says of its key, for tables, messages and the help.
struct Description {
  Text path;                 ///< from the top of CONFIG.yaml; the name of a key or flag of ASTRA-sim
  std::string_view becomes;  ///< the key of CONFIG.yaml that one of ASTRA-sim sets, or "-" if it has no effect
  Text help;                 ///< the meaning of the value: one line, which begins with a noun
  std::string_view example;  ///< a value, as CONFIG.yaml has it
  Default otherwise;
  ValueInfo values;
  std::string_view see = {};
  std::optional<Flag> flag = {};
  std::string_view hint = {}, needed_with = {}, only_with = {};
};

/// A key as tables, messages and the help see it.
struct KeyInfo {
  std::string path, becomes, help, example;
  TypeInfo type;
  Default otherwise;
  std::string default_text = {};  ///< the default as a value or in words; "needed"
  bool default_is_value = false;
  std::string needed_with = {};  ///< when the key is needed, if it is not always: "the roofline is on"
  std::string only_with = {};    ///< when the key is known, if it is not always: "shape: FatTree"
  std::string hint = {};         ///< remedy for a missing key
  std::string_view see = {};
  std::optional<Flag> flag = {};

  bool is_needed() const {
    return otherwise.kind() == Default::Kind::needed || otherwise.kind() == Default::Kind::needed_in_mapping;
  }
  bool is_optional() const { return otherwise.kind() == Default::Kind::none; }
  /// Returns what a message about the missing key ends with.
  std::string hint_if_missing() const { return hint.empty() ? "Meaning: " + help + "." : hint; }
  /// Returns what a message expects where the key is missing. `reason` says why it is needed; it may be empty.
  std::string expected(std::string_view reason) const;
};

/// Returns whether the default of a key holds where its flag is not given: `orrery generate` has others without
/// CONFIG.yaml.
bool tells_default(const KeyInfo& key);

/// Returns what is said of a key. Throws Error (internal) for what cannot be: a flag without a name for its value.
KeyInfo describe(const Description& description);

}  // namespace orrery::config
