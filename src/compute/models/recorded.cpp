#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

class Recorded final : public ComputeModel {
 public:
  Time duration(const ComputeNode& node) const override { return node.recorded; }
};

}  // namespace

extern const ModelType recorded_model;
constinit const ModelType recorded_model{
    .name = "recorded",
    .help = "a node takes the duration that its trace recorded",
    .uses_recorded = true,
    .make = [](const Options&) -> std::unique_ptr<const ComputeModel> { return std::make_unique<Recorded>(); },
};

}  // namespace orrery::compute
