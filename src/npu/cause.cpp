#include "orrery/npu/cause.hpp"

#include <algorithm>
#include <utility>

namespace orrery::npu {

Cause cause_of_group(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Cause>, 6> kinds = {{{"tp", Cause::tensor},
                                                                               {"cp", Cause::context},
                                                                               {"ep", Cause::expert},
                                                                               {"dp", Cause::data},
                                                                               {"edp", Cause::data},
                                                                               {"embedding", Cause::data}}};
  const auto found =
      std::ranges::find(kinds, name.substr(0, name.find_first_of("_@")), &decltype(kinds)::value_type::first);
  return found == kinds.end() ? Cause::other : found->second;
}

}  // namespace orrery::npu
