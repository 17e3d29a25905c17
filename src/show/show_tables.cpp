#include <algorithm>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/show/commands.hpp"
#include "orrery/workload/table_placement.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using workload::Dlrm;
using workload::TablePart;

/// Returns "3 19[64]": table 3, and 64 columns of table 19.
std::string list(const Dlrm& model, const std::vector<TablePart>& parts) {
  std::string text;
  for (const TablePart& part : parts) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", part.table);
    if (part.columns < model.width_of(part.table)) text += fmt::format("[{}]", part.columns);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

void show_tables(const ShowTablesCommand& command) {
  const auto description = config::read_workload(command.file, command.overrides);
  const auto* const model = std::get_if<Dlrm>(&description.model);
  if (model == nullptr)
    throw Error(ErrorCode::bad_input, {.file = command.file.string(), .key = "workload.model.kind"},
                "the model has no embedding tables", "dlrm");
  description.validate();
  const workload::TablePlacement placement(*model, description.parallel);
  const auto num_npus = static_cast<std::uint32_t>(placement.kinds().size());
  if (command.json) {
    nlohmann::ordered_json json;
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
      const auto bytes = workload::table_bytes(placement.share(npu), description.parallel);
      nlohmann::ordered_json entry = {{"npu", npu}, {"bytes", bytes.held}, {"bytes_read", bytes.read}};
      entry["tables"] = nlohmann::ordered_json::array();
      for (const TablePart& part : placement.parts(npu))
        entry["tables"].push_back({{"table", part.table}, {"columns", part.columns}});
      json["npus"].push_back(std::move(entry));
    }
    const auto mean = workload::table_bytes(placement.mean(), description.parallel);
    json["mean"] = {{"bytes", mean.held}, {"bytes_read", mean.read}};
    print_figures(json, true);
    return;
  }
  fmt::print("{}{:>7} {:>12} {:>12}  tables that it holds alone, with their columns if these are not all\n",
             workload::text_of(placement, description.parallel), "NPU", "holds", "reads");
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    const auto bytes = workload::table_bytes(placement.share(npu), description.parallel);
    fmt::print("{:>7} {:>12} {:>12}  {}\n", npu, size_text(bytes.held, 2), size_text(bytes.read, 2),
               list(*model, placement.parts(npu)));
  }
}

}  // namespace orrery::show
