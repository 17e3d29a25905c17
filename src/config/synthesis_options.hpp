#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads the options of `synthesize` that say what is written: the scale, the obfuscation and the reference. Throws
/// Error (usage) for a value that cannot be read.
void read_synthesis(const Arguments& arguments, SynthesizeCommand& command);

}  // namespace orrery::config
