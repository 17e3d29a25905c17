#include "orrery/network/model.hpp"

#include <source_location>

#include "orrery/base/error.hpp"

namespace orrery::network {

// Each is in a file of its own in src/network/models.
extern const ModelType congestion_unaware_model, congestion_aware_model, packet_model;

std::span<const ModelType* const> ModelType::registry() {
  static constexpr const ModelType* models[] = {&congestion_unaware_model, &congestion_aware_model, &packet_model};
  return models;
}

std::unique_ptr<const SimulatedNetwork> make_network(const topology::Topology& topology, const Options& options) {
  return options.model->simulates_links() ? options.model->make(topology, options) : nullptr;
}

void MessageNetwork::serialize(LpId, Archive&) {
  ensure_failed("a checkpoint of a network that has none", std::source_location::current());
}

NpuId SimulatedNetwork::owner(std::uint32_t) const {
  ensure_failed("a checkpoint of a network that has none", std::source_location::current());
}

}  // namespace orrery::network
