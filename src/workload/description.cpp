#include "orrery/workload/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "inference.hpp"
#include "layer.hpp"
#include "orrery/base/error.hpp"
#include "schedule.hpp"

namespace orrery::workload {
namespace {

/// Each virtual stage has as many blocks as `stage-layers` says.
void require_stage_layers(const Parallel& parallel, std::uint64_t blocks) {
  constexpr std::string_view key = "workload.parallel.stage-layers";
  const auto& counts = parallel.pipeline.stage_layers;
  if (counts.empty()) return;
  const auto refuse_list = [&](const std::string& found, const std::string& expected) {
    throw Error(ErrorCode::bad_input, {.key = std::string(key)}, found, expected);
  };
  if (counts.size() != parallel.num_virtual_stages())
    refuse_list(fmt::format("found {} numbers", counts.size()),
                fmt::format("one for each of {} virtual stages", parallel.num_virtual_stages()));
  if (std::ranges::find(counts, 0U) != counts.end()) refuse_list("found 0", "1 or more for each virtual stage");
  const std::uint64_t sum = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  if (sum != blocks)
    refuse_list(fmt::format("found {} layers in all", sum), fmt::format("{}, those of the model", blocks));
}

}  // namespace

void Description::validate() const {
  parallel.validate();
  std::visit([this](const auto& family) { family.validate(parallel); }, model);
  const std::uint64_t blocks = std::visit([](const auto& family) { return family.num_blocks(); }, model);
  if (parallel.num_virtual_stages() > blocks)
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.pp"},
                fmt::format("{} layers cannot be shared by {} pipeline stages", blocks, parallel.num_virtual_stages()),
                "a layer or more for each of pp * interleaving stages");
  require_possible_inference(*this);
  require_possible_schedule(parallel);
  require_stage_layers(parallel, blocks);
}

bool Description::has_times() const {
  return std::visit(
      [](const auto& family) {
        if constexpr (requires { family.has_times(); }) return family.has_times();
        return false;
      },
      model);
}

}  // namespace orrery::workload
