#include "orrery/network/model.hpp"

namespace orrery::network {

// DelayModel computes the delays of this model.
extern const ModelType congestion_unaware_model;
constinit const ModelType congestion_unaware_model{
    .name = "congestion-unaware",
    .help = "a message takes what its own size, hops and links cost, whatever else is under way",
};

}  // namespace orrery::network
