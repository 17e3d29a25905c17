#include "orrery/compute/options.hpp"

namespace orrery::compute {

// Each is in a file of its own in src/compute/models.
extern const ModelType products_model, recorded_model, roofline_model, systolic_model, table_model;

std::span<const ModelType* const> ModelType::registry() {
  static constexpr const ModelType* models[] = {&recorded_model, &roofline_model, &products_model, &table_model,
                                                &systolic_model};
  return models;
}

std::unique_ptr<const ComputeModel> make_model(const Options& options) { return options.model->make(options); }

}  // namespace orrery::compute
