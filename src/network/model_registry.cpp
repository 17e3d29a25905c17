#include "orrery/network/model.hpp"

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

}  // namespace orrery::network
