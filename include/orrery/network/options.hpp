#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/base/quantity.hpp"

namespace orrery::network {

enum class Model : std::uint8_t {
  congestion_unaware,  ///< a message takes what its own size, hops and links cost
  congestion_aware,    ///< every link serves one message at a time
};
/// "congestion-unaware", "congestion-aware".
std::string_view name(Model model);

/// What a device does with a message that goes on in the same dimension.
enum class Switching : std::uint8_t {
  store_and_forward,  ///< it goes on when it is there whole
  cut_through,        ///< it goes on when its first byte is there
};
/// "store-and-forward", "cut-through".
std::string_view name(Switching switching);

/// The rules by which delays are computed (docs/model.md, 1).
struct Rules {
  Rounding rounding = Rounding::up_to_ps;
  /// Point to point over several dimensions pays for every differing one; else for the first that differs only.
  bool charge_every_dimension = true;

  friend bool operator==(const Rules&, const Rules&) = default;
};

struct Options {
  Rules rules = {};
  Model model = Model::congestion_unaware;
  Switching switching = Switching::store_and_forward;  ///< in the congestion-aware network
  Bytes packet;  ///< of cut-through: links serve messages in pieces of this size; 0 = whole

  friend bool operator==(const Options&, const Options&) = default;
};

}  // namespace orrery::network
