#include <fmt/format.h>

#include "orrery/app/commands.hpp"
#include "orrery/config/key_listing.hpp"

namespace orrery::app {

void show(const config::ShowKeysCommand& command) { fmt::print("{}", config::list_keys(command.form, command.below)); }

}  // namespace orrery::app
