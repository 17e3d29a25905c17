#include "orrery/gpu/check.hpp"

#include <algorithm>
#include <numeric>

#include "marks.hpp"
#include "orrery/collective/data_contract.hpp"
#include "races.hpp"

namespace orrery::gpu {

Findings check_program(const Program& program, collective::Kind kind, Bytes message, std::uint32_t root) {
  const collective::DataContract contract(kind, static_cast<std::uint32_t>(program.gpus.size()), message.count(), root);
  for (const Turns turns : {Turns::round_robin, Turns::last_first}) follow_marks(program, contract, turns);
  Races races = find_races(program);
  return {std::move(races.found), races.count, races.is_searched};
}

Bytes test_message(const Plan& plan) {
  constexpr std::uint64_t most_units = std::uint64_t{1} << 24;
  constexpr Bytes most(std::uint64_t{1} << 40);
  std::uint64_t units = 1, unit_of_pipelines = 0;
  for (const Plan::Gpu& gpu : plan.gpus)
    for (const Plan::Block& block : gpu.blocks)
      for (const Plan::Step& step : block.steps) {
        units = std::min(std::lcm(units, std::uint64_t{step.share.size}), most_units);
        unit_of_pipelines = std::max(unit_of_pipelines, std::uint64_t{step.unit});
      }
  const Bytes one = next_size(plan, Bytes(1));  // a unit in each chunk
  const Bytes of_shares = one * (2 * units), of_pipelines = one * (3 * unit_of_pipelines / plan.alignment + 1);
  const Bytes message = unit_of_pipelines > 0 ? std::max(of_shares, of_pipelines) : of_shares;
  const Bytes usual = message <= most ? message : one;
  if (usual < plan.least) return next_size(plan, plan.least);
  if (usual <= plan.most) return usual;
  return std::max(Bytes(plan.most.count() / one.count() * one.count()), one);
}

}  // namespace orrery::gpu
