#include "orrery/network/options.hpp"

namespace orrery::network {

std::string_view name(Model model) {
  return model == Model::congestion_aware ? "congestion-aware" : "congestion-unaware";
}

std::string_view name(Switching switching) {
  return switching == Switching::cut_through ? "cut-through" : "store-and-forward";
}

}  // namespace orrery::network
