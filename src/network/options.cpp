#include "orrery/network/options.hpp"

namespace orrery::network {

std::string_view name(Switching switching) {
  return switching == Switching::cut_through ? "cut-through" : "store-and-forward";
}

}  // namespace orrery::network
