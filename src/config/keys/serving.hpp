#pragma once

#include "key_table.hpp"
#include "orrery/serving/description.hpp"

namespace orrery::config {

// The keys of `serving`, which stands in place of `workload`.

const Keys<serving::Description>& serving_keys();
/// The keys of an entry of serving.instances.
const Keys<serving::InstanceOptions>& instance_keys();
/// The keys of serving.requests.prompt and of serving.requests.output.
const Keys<serving::Lengths>& length_keys();

}  // namespace orrery::config
