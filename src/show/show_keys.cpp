#include <fmt/format.h>

#include "orrery/config/key_listing.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::show {

void show_keys(const ShowKeysCommand& command) { fmt::print("{}", config::list_keys(command.form, command.below)); }

}  // namespace orrery::show
