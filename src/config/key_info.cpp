#include "key_info.hpp"

#include <fmt/format.h>

#include <source_location>

#include "orrery/base/error.hpp"

namespace orrery::config {
namespace {

KeyInfo described(KeyInfo info) {
  const TypeInfo& type = info.type;
  for (const std::string* const text : {&type.name, &type.expected, &type.unit, &type.range})
    ensure(!text->empty(), "a type says its name, what is expected, its unit and its range");
  for (const WordInfo& word : type.words) ensure(!word.help.empty(), "a word has a line of help");
  if (const auto& flag = info.flag; flag && type.name != boolean_name)
    ensure(!flag->argument.empty(), "the help has a name for the value of a flag");
  const auto kind = info.otherwise.kind();
  info.default_is_value = kind == Default::Kind::built_in || kind == Default::Kind::value;
  info.default_text = info.otherwise.text();
  if (kind == Default::Kind::needed_in_mapping) {
    const std::string_view mapping = std::string_view(info.path).substr(0, info.path.rfind('.'));
    info.default_text = fmt::format("needed if {} is given", mapping.substr(mapping.rfind('.') + 1));
  }
  return info;
}

}  // namespace

std::string KeyInfo::expected(std::string_view reason) const {
  std::string text = type.expected;
  if (!example.empty() && type.words.empty()) text += fmt::format(", such as '{}'", example);
  if (!reason.empty()) text += fmt::format(", because {}", reason);
  return text;
}

KeyInfo describe(const Description& description) {
  return described({.path = description.path.string(),
                    .becomes = std::string(description.becomes),
                    .help = description.help.string(),
                    .example = std::string(description.example),
                    .type = description.values.info(),
                    .otherwise = description.otherwise,
                    .needed_with = std::string(description.needed_with),
                    .only_with = std::string(description.only_with),
                    .hint = std::string(description.hint),
                    .see = description.see,
                    .flag = description.flag});
}

TypeInfo ValueInfo::info() const {
  if (kind_ != nullptr) return kind_->info(limits_);
  if (make_ != nullptr) return make_();
  return {std::string(name_),
          std::string(expected_),
          std::string(unit_),
          std::string(range_),
          words_ == nullptr ? std::vector<WordInfo>() : words_(),
          has_plain_unit_};
}

bool tells_default(const KeyInfo& key) {
  const Heading heading = key.flag->heading;
  return heading != Heading::generated_parallel && heading != Heading::generated_model;
}

std::string_view title(Heading heading) {
  switch (heading) {
    case Heading::output:
      return "Output";
    case Heading::ranks:
      return "Ranks";
    case Heading::model:
      return "Model";
    case Heading::generated_parallel:
      return "Short for --set workload.parallel.KEY; without CONFIG.yaml, of a transformer on 64 NPUs";
    case Heading::generated_model:
      return "Short for --set workload.model.KEY";
    case Heading::astra_sim:
      return "ASTRA-sim's own files instead of CONFIG.yaml";
  }
  ensure_failed("a heading has a title", std::source_location::current());
}

}  // namespace orrery::config
