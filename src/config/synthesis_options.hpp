#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads the options of `synthesize`, but those that say how traces are read; `command` has the inputs. Throws Error
/// (usage) for a value that cannot be read, and if there are no traces and no model, or nothing is to be written.
void read_synthesis(const Arguments& arguments, SynthesizeCommand& command);

}  // namespace orrery::config
