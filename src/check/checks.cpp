#include "orrery/check/checks.hpp"

#include <variant>

#include "preflight.hpp"

namespace orrery::check {

std::vector<char> checked_npus(const Subject& subject, parallel::Communicator& world) {
  std::vector<NpuId> mine;
  for (const auto& npu : subject.run.npus) mine.push_back(npu.id);
  std::vector<char> checked(subject.run.hosting.num_npus());
  for (const NpuId npu : world.all_gather(std::span<const NpuId>(mine))) checked[npu.index()] = 1;
  return checked;
}

void run_checks(std::span<const Check> checks, const Subject& subject, parallel::Communicator& world,
                Findings findings) {
  for (const Check& check : checks) {
    if (const auto* const local = std::get_if<Check::Local>(&check.run))
      world.agree([&] { (*local)(subject, findings); });
    else
      std::get<Check::Collective>(check.run)(subject, world, findings);
  }
}

}  // namespace orrery::check
