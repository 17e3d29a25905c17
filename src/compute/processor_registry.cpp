#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

// Products: `scripts/studies/products` fits these figures to the products that the Vidur project
// measured on A100 and H100 (microsoft/vidur, commit 7d47513, MIT; 58,440 products). Attention: shares that the
// training steps of public reports come to (docs/validation.md). B200 has no measured products: its share of the peak
// is that of measured largest products, the rest is H100's. No product measured on a TPU v5p is known: its share of the
// peak is 1, so that a stack's `efficiency` says what its steps reach; it has 2 cores of 4 matrix units each (Google).
// Engines of inference read weights at 0.75 to 0.85 of the bandwidth: NVIDIA's Llama 3.3 70B in FP8 on one H200
// takes 19.6 ms a token, of which 70.6 GB at 0.85 of 4.8 TB/s are 17.3 ms, and kernels the rest.

constinit const Processor a100{.name = "a100",
                               .help = "NVIDIA A100 SXM",
                               .num_units = 108,
                               .product_share = 0.784,
                               .half_tile_share = 0.971,
                               .wave_seconds = 1.75e-6,
                               .launch_seconds = 9e-9,
                               .product_bandwidth_share = 0.8,
                               .inference_bandwidth_share = 0.8,
                               .attention_share = 0.45};
constinit const Processor h100{.name = "h100",
                               .help = "NVIDIA H100 SXM, H200",
                               .num_units = 132,
                               .product_share = 0.785,
                               .half_tile_share = 0.928,
                               .wave_seconds = 8e-10,
                               .launch_seconds = 6.2e-6,
                               .product_bandwidth_share = 0.5525,
                               .inference_bandwidth_share = 0.85,
                               .attention_share = 0.5};
constinit const Processor b200{.name = "b200",
                               .help = "NVIDIA B200, GB200",
                               .num_units = 148,
                               .product_share = 0.7,
                               .half_tile_share = 0.928,
                               .wave_seconds = 8e-10,
                               .launch_seconds = 6.2e-6,
                               .product_bandwidth_share = 0.5525,
                               .inference_bandwidth_share = 0.85,
                               .attention_share = 0.45};

constinit const Processor tpu_v5p{.name = "tpu-v5p",
                                  .help = "Google TPU v5p",
                                  .num_units = 8,
                                  .product_share = 1,
                                  .half_tile_share = 1,
                                  .product_bandwidth_share = 0.8,
                                  .inference_bandwidth_share = 0.8,
                                  .attention_share = 0.4};

}  // namespace

std::span<const Processor* const> Processor::registry() {
  static constexpr const Processor* processors[] = {&h100, &a100, &b200, &tpu_v5p};
  return processors;
}

}  // namespace orrery::compute
