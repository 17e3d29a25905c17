#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// Which parts of the input could be read without faults. Checks that need another part are left out.
struct Readable {
  bool system = true;  ///< the configuration
  bool groups = true;  ///< the communicator file
};

/// The subject of checks before a run: all NPUs, or some of them, and their system.
struct Subject {
  const config::Configuration& configuration;
  npu::RunContext run;  ///< `run.npus` are the NPUs of this rank that are checked
  const trace::Store& store;
  Readable readable = {};
};

/// What checks add to: faults, for which the run is refused, and warnings.
struct Findings {
  Faults& faults;
  Notices& notices;
};

/// One check. Each has a file of its own and one line in the registry.
struct Check {
  /// Looks at the NPUs of this rank.
  using Local = void (*)(const Subject& subject, Findings findings);
  /// Compares NPUs of several ranks; collective.
  using Collective = void (*)(const Subject& subject, parallel::Communicator& world, Findings findings);

  std::string_view name;
  std::string_view help;  ///< one line: what is wrong where it finds something
  std::variant<Local, Collective> run;
};

/// Returns the checks of each NPU on its own. They are made for all NPUs.
std::span<const Check> checks_of_nodes();

/// Returns the checks of interactions between NPUs. For a folded run those NPUs suffice that
/// fold::Folding::npus_to_compare returns.
std::span<const Check> checks_of_agreement();

/// Returns the checks of the needs of the simulated NPUs: their Subject is the context of the run, folded or not.
std::span<const Check> checks_of_simulated_npus();

/// Makes the checks in their order. Every rank adds the faults of its own NPUs. Collective.
void run_checks(std::span<const Check> checks, const Subject& subject, parallel::Communicator& world,
                Findings findings);

}  // namespace orrery::check
