#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::network {

enum class Model : std::uint8_t {
  congestion_unaware,  ///< a message takes what its own size, hops and links cost
  congestion_aware,    ///< every link serves one message at a time
};
/// "congestion-unaware", "congestion-aware".
std::string_view name(Model model);

struct Options {
  Model model = Model::congestion_unaware;

  friend bool operator==(const Options&, const Options&) = default;
};

}  // namespace orrery::network
