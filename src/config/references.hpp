#pragma once

#include <string>
#include <utility>
#include <vector>

#include "value.hpp"

namespace orrery::config {

/// Puts what other files hold into `system` and `workload.model`: the name of a file stands for all that it holds, and
/// in a mapping, that of a file too, `base: FILE` for what the mapping itself does not say. The files' texts go to
/// `inputs`. A file that cannot be read is a fault, and so is one that stands on itself.
void follow_references(Value& root, std::vector<std::pair<std::string, std::string>>& inputs, Faults& faults);

}  // namespace orrery::config
