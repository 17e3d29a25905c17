#pragma once

#include <string_view>

#include "option_table.hpp"
#include "orrery/study/options.hpp"

namespace orrery::cli {

// Options that `orrery explore` and `orrery best` share.

Option walltime_option();
OptionGroup study_output(const char* file);
/// Reads them. `output`: where to write if the command line does not say it. Throws Error (usage).
study::ExploreCommand explore_options(const Arguments& arguments, std::string_view command_name, const char* output);

}  // namespace orrery::cli
