#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/collective/whole_durations.hpp"
#include "orrery/gpu/plan.hpp"
#include "orrery/gpu/profile.hpp"

namespace orrery::gpu {

/// How finely programs are simulated.
enum class GranularityKind : std::uint8_t {
  burst,  ///< at most Options::bursts pieces of each operation
  line,   ///< one piece for each iteration of a thread block
};

/// When programs of collectives are simulated.
enum class Evaluation : std::uint8_t {
  automatic,   ///< choice by the network: in the run if links are simulated, otherwise alone
  in_network,  ///< simulation in the run: thread blocks are events of NPUs, and their requests meet all else on the
               ///< links
  alone,       ///< once for each group, plan and size, with all members arriving together and nothing else on the links
};

/// GPUs that carry out collectives by thread blocks, as plans say.
struct Options {
  using Plans = std::vector<std::shared_ptr<const Plan>>;

  std::optional<ProfileName> profile;  ///< none: no GPUs are simulated
  Parameters parameters;               ///< those of the profile, as far as nothing else is said
  std::uint32_t bursts = 256;
  GranularityKind granularity_kind = GranularityKind::burst;
  Evaluation evaluation = Evaluation::automatic;
  bool compute_share = true;  ///< compute nodes have the SMs only that thread blocks leave. Not with `alone`
  std::map<collective::Kind, Plans> plans;  ///< plans by the kind that they carry out

  Granularity granularity() const { return {granularity_kind == GranularityKind::line ? 0 : bursts}; }
  /// Throws Error (bad_input) that names the key of a parameter that is not possible.
  void validate() const;
};

/// Returns the times of the plans, each simulated alone. A collective takes the plan of its kind for so many GPUs whose
/// range of sizes has its own, rounded up to the size that the plan can carry out.
std::shared_ptr<const collective::WholeDurations> plan_durations(const Options& options);

}  // namespace orrery::gpu
