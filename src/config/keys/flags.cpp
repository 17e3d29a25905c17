#include "orrery/config/flags.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "astra_sim/astra_sim.hpp"
#include "keys.hpp"

namespace orrery::config {
namespace {

/// Returns the help of a key as that of its flag, without marks of code.
std::string flag_help(const KeyInfo& info) {
  std::string text = info.help;
  std::erase(text, '`');
  if (!info.type.words.empty()) text += fmt::format(": {}", info.type.range);
  const bool is_plain_switch = info.type.name == boolean_name && info.default_text == "false";
  if (tells_default(info) && !is_plain_switch && !info.is_needed() && !info.is_optional())
    text += fmt::format(" (default: {})", info.default_text);
  return text;
}

/// Returns the words that can be typed as they stand: not "dimension:<d>".
std::vector<std::string_view> plain_words(const KeyInfo& info) {
  std::vector<std::string_view> words;
  for (const WordInfo& word : info.type.words)
    if (word.text.find_first_of("<> ") == std::string_view::npos) words.push_back(word.text);
  return words;
}

template <class T>
T word_of(const std::string& text, std::string_view option, const Words<T>& words) {
  return as_word(option_value(text), std::string(option), words);
}

}  // namespace

KeyFlag flag_of(const KeyInfo& info) {
  return {.key = info.path,
          .name = std::string(info.flag->name.view()),
          .argument = std::string(info.flag->argument),
          .help = flag_help(info),
          .heading = title(info.flag->heading),
          .bare_unit = info.flag->bare_unit,
          .words = plain_words(info)};
}

KeyFlag flag_of(std::string_view key) { return flag_of(find_key(key)->info()); }

std::vector<KeyFlag> key_flags(Taker command) {
  std::vector<FlagKey> keys = flag_keys(command);
  std::ranges::stable_sort(keys, {}, [](const FlagKey& key) { return key.info->flag->heading; });
  std::vector<KeyFlag> flags;
  for (FlagKey& key : keys) {
    flags.push_back(flag_of(*key.info));
    flags.back().check = std::move(key.check);
  }
  return flags;
}

std::vector<AstraSimFlag> flags_of_astra_sim(bool system_only) {
  std::vector<AstraSimFlag> flags;
  for (const auto& key : astra_sim_flags()) {
    AstraSimFlag& flag = flags.emplace_back(AstraSimFlag{
        .flag = flag_of(key->info()), .has_effect = key->info().becomes != "-", .read = {}, .is_missing = {}});
    flag.read = [&key, system_only](const std::string& text, AstraSimInputs& into) {
      Configuration unused;
      Faults faults;
      Reading reading{unused, faults, system_only};
      key->read(option_value(text), fmt::format("--{}", key->info().path), &into, reading);
    };
    flag.is_missing = [&key, system_only](const AstraSimInputs& given) {
      Configuration unused;
      Faults faults;
      Reading reading{unused, faults, system_only};
      return key->need(&given, reading, true).has_value();
    };
  }
  return flags;
}

std::vector<std::string_view> key_paths() {
  std::vector<std::string_view> paths;
  for (const KeySection& section : key_sections())
    for (const KeyInfo* const key : section.keys) paths.push_back(key->path);
  std::ranges::sort(paths);
  const auto [first, last] = std::ranges::unique(paths);
  paths.erase(first, last);
  return paths;
}

trace::Dependencies parse_dependencies(const std::string& text, std::string_view option) {
  return word_of(text, option, dependency_policies());
}

collective::Kind parse_collective_kind(const std::string& text, std::string_view option) {
  return word_of(text, option, collective_kinds());
}

std::vector<std::string_view> collective_kind_words() {
  std::vector<std::string_view> words;
  for (const auto& word : collective_kinds()) words.push_back(word.text);
  return words;
}

}  // namespace orrery::config
