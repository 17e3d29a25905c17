#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "key_table.hpp"
#include "orrery/serving/description.hpp"

namespace orrery::config {

struct ServingConfiguration;

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

/// Returns a warning for each setting without which keys of `serving` have no effect that `file`, or an option, gives
/// another value than their default.
std::vector<std::string> warnings_of_idle_serving_keys(const ServingConfiguration& configuration,
                                                       std::string_view file);

}  // namespace orrery::config
