#include "orrery/workload/description.hpp"

#include <fmt/format.h>

#include "layer.hpp"
#include "orrery/base/error.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

void require_interleaving(const Parallel& parallel) {
  constexpr std::string_view key = "workload.parallel.interleaving";
  if (parallel.interleaving == 1) return;
  if (parallel[Axis::pp] == 1) refuse(key, parallel.interleaving, "1 without a pipeline");
  if (parallel.schedule == Schedule::gpipe) refuse(key, parallel.interleaving, "1 with the GPipe schedule");
  require_multiple("workload.parallel.micro-batches", parallel.micro_batches, "pp (the schedule is interleaved)",
                   parallel[Axis::pp]);
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
  require_interleaving(parallel);
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
