#pragma once

#include "orrery/config/configuration.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::run {

/// Throws Error (bad_input) on all ranks unless they have read the same configuration and have the same options, by
/// the same program. Ranks may differ if a file changes while they start, if a file system shows an old state, if each
/// machine has its own copy, or if a script gives them other options. Collective. O(bytes of the inputs).
void require_same_configuration(const config::Configuration& configuration, parallel::Communicator& world);

/// Throws Error (bad_input) on all ranks if two of them, or one of them twice, have read a trace file with different
/// contents. Collective. O(files that this rank has read).
void require_same_traces(const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::run
