#include "orrery/config/key_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "astra_sim/astra_sim.hpp"
#include "keys/keys.hpp"
#include "keys/serving.hpp"
#include "orrery/base/suggestion.hpp"
#include "schema.hpp"

namespace orrery::config {
namespace {

constexpr std::size_t line_width = 120;

/// Returns what stands before the names of a section's keys in their paths.
std::string_view prefix_of(const KeySection& section) {
  return std::string_view(section.title).substr(0, section.title.find(','));
}

/// Returns the name of a key in the table of its section.
std::string_view name_in(const KeySection& section, const KeyInfo& key) {
  const std::string_view prefix = prefix_of(section);
  const std::string_view path = key.path;
  return path.starts_with(prefix) && path.size() > prefix.size() ? path.substr(prefix.size() + 1) : path;
}

std::string option_name(const KeyInfo& key) { return fmt::format("--{}", key.flag->name.view()); }

/// Returns a flag as it is typed: "--output FILE".
std::string option_text(const KeyInfo& key) {
  return key.flag->argument.empty() ? option_name(key) : fmt::format("{} {}", option_name(key), key.flag->argument);
}

std::string code(std::string_view text) { return fmt::format("`{}`", text); }

/// Returns where a line that begins with `text` may end, at a space: not within code. 0 if there is no such place.
std::size_t break_of(std::string_view text, std::size_t width) {
  std::size_t last = 0;
  bool is_code = false;
  for (std::size_t i = 0; i < text.size() && (i <= width || last == 0); ++i) {
    if (text[i] == '`') is_code = !is_code;
    if (text[i] == ' ' && !is_code) last = i;
  }
  return last;
}

/// Returns a text in which a `<` outside code does not begin a tag of HTML.
std::string escaped(std::string_view text) {
  std::string result;
  bool is_code = false;
  for (const char c : text) {
    if (c == '`') is_code = !is_code;
    result += c == '<' && !is_code ? "&lt;" : std::string(1, c);
  }
  return result;
}

/// Returns `mark` and a text in lines of `line_width` characters at most; those after the first are indented as the
/// text.
std::string item(std::string_view mark, std::string_view plain_text) {
  const std::string whole = escaped(plain_text);
  std::string_view text = whole;
  std::string result(mark);
  const std::string indent(mark.size(), ' ');
  const std::size_t width = line_width - mark.size();
  for (std::size_t end = break_of(text, width); text.size() > width && end > 0; end = break_of(text, width)) {
    result += fmt::format("{}\n{}", text.substr(0, end), indent);
    text.remove_prefix(end + 1);
  }
  return fmt::format("{}{}\n", result, text);
}

/// Returns the type with its unit and range, in a few words.
std::string type_text(const KeyInfo& key) {
  const TypeInfo& type = key.type;
  if (type.name == boolean_name) return type.range;
  std::string text = type.name;
  if (type.has_plain_unit && type.unit != "-") text += fmt::format(" of {}", type.unit);
  if (type.words.empty() && type.range != "any") text += fmt::format(", {}", type.range);
  return text;
}

/// Returns what holds where the key is not given.
std::string default_text(const KeyInfo& key, bool with_code) {
  if (!key.needed_with.empty()) return fmt::format("needed if {}", key.needed_with);
  if (key.default_is_value) return fmt::format("default: {}", with_code ? code(key.default_text) : key.default_text);
  if (key.is_optional()) return "optional";
  return key.is_needed() ? key.default_text : fmt::format("default: {}", key.default_text);
}

/// Returns a link to a document, and perhaps to a part of it that is named after a comma.
std::string link_to(std::string_view see) {
  if (see.empty()) return {};
  const std::string_view file = see.substr(0, see.find(','));
  return fmt::format(" ([{}]({}){})", file.substr(file.rfind('/') + 1), file, see.substr(file.size()));
}

bool same_words(const KeyInfo& a, const KeyInfo& b) {
  return std::ranges::equal(a.type.words, b.type.words, {}, &WordInfo::text, &WordInfo::text);
}

/// Returns a line of CONFIG.yaml that gives a key: "local-memory: {size: 80 GiB}" for the name local-memory.size.
std::string line_of_yaml(std::string_view name, std::string_view value) {
  std::string text(value);
  for (auto dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
    text = fmt::format("{{{}: {}}}", name.substr(dot + 1), text);
    name = name.substr(0, dot);
  }
  return fmt::format("{}: {}", name, text);
}

/// Returns the words of a key as a list; only a reference if the key `first`, listed earlier, has the same words.
std::string word_lines(const KeyInfo& key, const KeyInfo* first, std::string_view first_name) {
  if (key.type.words.empty()) return {};
  if (first != nullptr && same_words(key, *first))
    return item("  - ", fmt::format("the same words as {}", code(first_name)));
  std::string text;
  for (const auto& [word, help] : key.type.words) text += item("  - ", fmt::format("{}: {}", code(word), help));
  return text;
}

/// Returns a list between the comments that mark its place in a document.
std::string marked(std::string_view title, std::string_view list) {
  return fmt::format("<!-- keys: {} -->\n\n{}\n<!-- end of keys -->\n", title, list);
}

std::string markdown(const KeySection& section) {
  std::string text;
  const KeyInfo* first = nullptr;  // of the keys in a row that share their words
  for (const KeyInfo* key : section.keys) {
    const bool is_flag = !key->becomes.empty() && key->flag;
    const std::string name = is_flag ? option_text(*key) : std::string(name_in(section, *key));
    std::string line = fmt::format("**{}** ({}; {}", code(name), type_text(*key), default_text(*key, true));
    if (!key->only_with.empty()) line += fmt::format("; only with {}", code(key->only_with));
    if (key->becomes.empty() && key->flag) line += fmt::format("; flag {}", code(option_name(*key)));
    line += fmt::format("): {}{}", key->help, link_to(key->see));
    if (!key->becomes.empty() && key->becomes != "-") line += fmt::format("; becomes {}", code(key->becomes));
    if (!key->example.empty()) line += fmt::format(". Example: {}", code(line_of_yaml(name, key->example)));
    text += item("- ", line);
    text += word_lines(*key, first, first == nullptr ? std::string_view() : name_in(section, *first));
    if (!key->type.words.empty() && (first == nullptr || !same_words(*key, *first))) first = key;
  }
  return marked(section.title, text);
}

/// Returns the list of the flags that a subcommand has for keys.
std::string flag_list(Taker command, std::string_view name) {
  std::string text;
  for (const FlagKey& flag : flag_keys(command)) {
    const KeyInfo& key = *flag.info;
    text += item("- ", fmt::format("**{}** ({}{}): {}{}", code(option_text(key)), code(key.path),
                                   tells_default(key) ? fmt::format("; {}", default_text(key, true)) : "", key.help,
                                   link_to(key.see)));
  }
  return marked(fmt::format("flags of {}", name), text);
}

std::string plain(const KeyInfo& key) {
  std::string text =
      fmt::format("{}\n    {}\n    {}; {}", key.path, key.help, type_text(key), default_text(key, false));
  if (!key.example.empty()) text += fmt::format("; such as {}", key.example);
  if (!key.only_with.empty()) text += fmt::format("; only with {}", key.only_with);
  if (!key.becomes.empty() && key.becomes != "-") text += fmt::format("; becomes {}", key.becomes);
  if (key.flag) text += fmt::format("; flag --{}", key.flag->name.view());
  text += "\n";
  for (const auto& [word, help] : key.type.words) text += fmt::format("      {}: {}\n", word, help);
  return text;
}

nlohmann::ordered_json json_of(const KeySection& section, const KeyInfo& key) {
  nlohmann::ordered_json json = {{"path", key.path},
                                 {"section", section.title},
                                 {"type", key.type.name},
                                 {"unit", key.type.unit},
                                 {"range", key.type.range},
                                 {"default", key.default_text},
                                 {"needed_if", key.needed_with},
                                 {"only_with", key.only_with},
                                 {"meaning", key.help},
                                 {"example", key.example},
                                 {"becomes", key.becomes},
                                 {"see", key.see},
                                 {"flag", key.flag ? option_name(key) : ""}};
  json["words"] = nlohmann::ordered_json::array();
  for (const auto& [word, help] : key.type.words) json["words"].push_back({{"word", word}, {"meaning", help}});
  return json;
}

void add_section(const AnyKeys& keys, std::vector<KeySection>& sections) {
  KeySection section = keys.section();
  if (!sections.empty() && sections.back().title == section.title)
    sections.back().keys.insert(sections.back().keys.end(), section.keys.begin(), section.keys.end());
  else
    sections.push_back(std::move(section));
}

/// Keeps the keys whose path is `below` or begins with it and a dot.
std::vector<KeySection> sections_below(std::string_view below) {
  std::vector<KeySection> sections = key_sections();
  if (below.empty()) return sections;
  std::vector<std::string_view> paths;
  for (KeySection& section : sections) {
    for (const KeyInfo* key : section.keys) {
      paths.push_back(key->path);
      if (const auto dot = key->path.rfind('.'); dot != std::string::npos) paths.push_back(paths.back().substr(0, dot));
    }
    std::erase_if(section.keys, [&](const KeyInfo* key) {
      return key->path != below && !(key->path.starts_with(below) && key->path[below.size()] == '.');
    });
  }
  std::erase_if(sections, [](const KeySection& section) { return section.keys.empty(); });
  if (sections.empty()) {
    const auto near = nearest(below, paths);
    throw Error(ErrorCode::usage, fmt::format("orrery show keys: no key '{}'.{}", below,
                                              near.empty() ? "" : fmt::format(" Did you mean '{}'?", near)));
  }
  return sections;
}

}  // namespace

std::vector<KeySection> key_sections() {
  std::vector<KeySection> sections;
  add_section(system_keys(), sections);
  add_section(network_keys(), sections);
  add_section(dimension_keys(), sections);
  add_section(flit_keys(), sections);
  add_section(packet_keys(), sections);
  add_section(tcp_keys(), sections);
  add_section(collective_keys(), sections);
  add_section(gpu_keys(), sections);
  add_section(custom_collective_keys(), sections);
  add_section(collective_library_keys(), sections);
  add_section(compute_keys(), sections);
  add_section(communication_keys(), sections);
  add_section(remote_memory_keys(), sections);
  add_section(generated_workload_keys(), sections);
  add_section(workload_keys(), sections);
  add_section(trace_keys(), sections);
  add_section(model_keys(), sections);
  add_section(transformer_keys(), sections);
  add_section(dlrm_keys(), sections);
  add_section(table_keys(), sections);
  add_section(layer_list_keys(), sections);
  add_section(layer_keys(), sections);
  add_section(late_keys(), sections);
  add_section(parallel_keys(), sections);
  add_section(provenance_keys(), sections);
  add_section(job_list_keys(), sections);
  add_section(job_keys(), sections);
  add_section(serving_keys(), sections);
  add_section(length_keys(), sections);
  add_section(instance_keys(), sections);
  add_section(perturbation_keys(), sections);
  add_section(distribution_keys(), sections);
  add_section(slow_npu_keys(), sections);
  add_section(link_keys(), sections);
  add_section(cost_keys(), sections);
  add_section(tier_keys(), sections);
  add_section(campaign_keys(), sections);
  add_section(tier_keys_of_campaign(), sections);
  add_section(failure_keys(), sections);
  add_section(cluster_keys(), sections);
  add_section(job_class_keys(), sections);
  add_section(cluster_job_keys(), sections);
  add_section(run_keys(), sections);
  add_section(network_yml_keys(), sections);
  add_section(system_json_keys(), sections);
  add_section(remote_memory_json_keys(), sections);
  add_section(astra_sim_flags(), sections);
  return sections;
}

std::string list_keys(KeyForm form, std::string_view below) {
  if (form == KeyForm::schema) return json_schema();
  const std::vector<KeySection> sections = sections_below(below);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::string text;
  for (const KeySection& section : sections) {
    if (form == KeyForm::markdown) text += markdown(section);
    for (const KeyInfo* key : section.keys) {
      if (form == KeyForm::text) text += plain(*key);
      if (form == KeyForm::json) json.push_back(json_of(section, *key));
    }
  }
  if (form == KeyForm::markdown && below.empty())
    text += flag_list(Taker::run, "run") + flag_list(Taker::generate, "generate");
  return form == KeyForm::json ? json.dump(2) + "\n" : text;
}

}  // namespace orrery::config
