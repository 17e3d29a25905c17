#pragma once

#include "key_table.hpp"
#include "orrery/serving/description.hpp"

namespace orrery::config {

/// Returns a row of the scheduler's options, which stand at two places.
template <class Target, class T, class Access>
consteval Row<Target> of_scheduler(Text path, Text help, Text example, const Type<T>& type, Access access) {
  return {path, help, example, Default::built_in(), type, access};
}

// The keys of `serving`, which stands in place of `workload`.

const Keys<serving::Description>& serving_keys();
/// The keys of an entry of serving.instances.
const Keys<serving::InstanceOptions>& instance_keys();
/// The keys of serving.requests.prompt and of serving.requests.output.
const Keys<serving::Lengths>& length_keys();

}  // namespace orrery::config
