#include "orrery/network/options.hpp"

namespace orrery::network {

std::string_view name(Model model) {
  return model == Model::congestion_aware ? "congestion-aware" : "congestion-unaware";
}

}  // namespace orrery::network
