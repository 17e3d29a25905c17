#include "orrery/results/study.hpp"

#include "orrery/base/version.hpp"
#include "output.hpp"

namespace orrery::results {

std::filesystem::path write_study(const std::filesystem::path& path, const StudyTable& study, bool force,
                                  parallel::Communicator& world) {
  Output output(path, world);
  output.on_root([&](File& file) {
    file.attribute("/", "format", "orrery-explore");
    file.attribute("/", "format_version", std::int64_t{1});
    file.attribute("/", "orrery_version", version());
    file.group("/study", "what was searched");
    for (const auto& [name, text] : study.inputs) file.text("/study/" + name, text, {"1", name, "verbatim"});
    file.group("/kernel", "how it was searched; the rest of the file does not depend on it");
    file.attribute("/kernel", "command_line", study.command_line);
    file.attribute("/kernel", "num_ranks", std::int64_t{world.size()});
    file.attribute("/kernel", "revision", revision());
    file.column<std::uint64_t>("/kernel/extra", study.extra,
                               {"1", "extra", "trials that were simulated although their bounds rule them out"});
    file.group("/trials", "one row for each legal configuration");
    file.column<std::uint64_t>("/trials/number", study.number, {"1", "number", "among the legal configurations"});
    file.strings("/trials/status", study.status, {"1", "status", "how the trial ended"});
    file.strings("/trials/error", study.error, {"1", "error", "why it is not done"});
    for (const StudyColumn& column : study.metrics)
      file.column<double>("/trials/" + column.name, column.values, {column.units, column.name, column.description});
    file.group("/parameters", "[trials] values of the study's names");
    for (const auto& [name, values] : study.parameters)
      file.strings("/parameters/" + name, values, {"1", name, "value as the configuration has it"});
    file.column<std::uint64_t>("/best", study.best, {"1", "best", "numbers of the best trials or of the Pareto front"});
    file.group("/funnel", "how many configurations fell to what");
    std::vector<std::string> reasons;
    std::vector<std::uint64_t> counts;
    for (const auto& [reason, count] : study.funnel) {
      reasons.push_back(reason);
      counts.push_back(count);
    }
    file.strings("/funnel/reason", reasons, {"1", "reason", "constraint or status"});
    file.column<std::uint64_t>("/funnel/count", counts, {"1", "count", "configurations"});
  });
  return output.commit(force);
}

}  // namespace orrery::results
