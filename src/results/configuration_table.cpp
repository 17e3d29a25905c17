#include <fmt/format.h>

#include <set>
#include <string>

#include "tables.hpp"

namespace orrery::results {

void write_configuration(Output& output, const RunInputs& inputs) {
  output.on_root([&](File& file) {
    file.group("/config", "what was simulated");
    file.text("/config/resolved", inputs.resolved_configuration,
              {"", "resolved configuration", "the whole configuration as YAML; orrery run reads it"});
    write_inputs(file, "/config/inputs", inputs.texts);
  });
}

void write_inputs(File& file, const std::string& group, const InputTexts& texts) {
  file.group(group, "the text inputs, verbatim");
  std::set<std::string> taken;
  for (const auto& [name, text] : texts) {
    std::string base = name.substr(name.find_last_of('/') + 1);
    if (base.empty() || base == ".") base = "input";
    std::string free = base;
    for (int next = 2; !taken.insert(free).second; ++next) free = fmt::format("{}.{}", base, next);
    file.text(group + "/" + free, text, {"", name, "an input file as it was read"});
  }
}

}  // namespace orrery::results
