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
                               .attention_share = 0.45,
                               .power_at_rest = 60,
                               .power = 400};
constinit const Processor h100{.name = "h100",
                               .help = "NVIDIA H100 SXM, H200",
                               .num_units = 132,
                               .product_share = 0.785,
                               .half_tile_share = 0.928,
                               .wave_seconds = 8e-10,
                               .launch_seconds = 6.2e-6,
                               .product_bandwidth_share = 0.5525,
                               .inference_bandwidth_share = 0.85,
                               .attention_share = 0.5,
                               .power_at_rest = 110,
                               .power = 700};
constinit const Processor b200{.name = "b200",
                               .help = "NVIDIA B200, B300, GB200, GB300",
                               .num_units = 148,
                               .product_share = 0.7,
                               .half_tile_share = 0.928,
                               .wave_seconds = 8e-10,
                               .launch_seconds = 6.2e-6,
                               .product_bandwidth_share = 0.5525,
                               .inference_bandwidth_share = 0.85,
                               .attention_share = 0.45,
                               .power_at_rest = 150,
                               .power = 1000};
// AMD: `scripts/studies/measured` has no products. The largest measured rates (stas00/ml-engineering, MAMF) are 668 of
// 1,307 TFLOPS on MI300X, 785 on MI325X (0.6, which is taken for both) and 1,565 of 2,300 on MI355X; all else is
// assumed, after H100.
constinit const Processor mi300x{.name = "mi300x",
                                 .help = "AMD MI300X, MI325X",
                                 .num_units = 304,
                                 .product_share = 0.6,
                                 .half_tile_share = 0.93,
                                 .wave_seconds = 8e-10,
                                 .launch_seconds = 8e-6,
                                 .product_bandwidth_share = 0.55,
                                 .inference_bandwidth_share = 0.7,
                                 .attention_share = 0.35,
                                 .power_at_rest = 140,
                                 .power = 750};
constinit const Processor mi355x{.name = "mi355x",
                                 .help = "AMD MI350X, MI355X",
                                 .num_units = 256,
                                 .product_share = 0.65,
                                 .half_tile_share = 0.93,
                                 .wave_seconds = 8e-10,
                                 .launch_seconds = 8e-6,
                                 .product_bandwidth_share = 0.55,
                                 .inference_bandwidth_share = 0.7,
                                 .attention_share = 0.4,
                                 .power_at_rest = 200,
                                 .power = 1400};

constinit const Processor tpu_v5p{.name = "tpu-v5p",
                                  .help = "Google TPU v5p",
                                  .num_units = 8,
                                  .product_share = 1,
                                  .half_tile_share = 1,
                                  .product_bandwidth_share = 0.8,
                                  .inference_bandwidth_share = 0.8,
                                  .attention_share = 0.4,
                                  .reads_aligned = false};
// TPU v5e, v6e and v7, and Trainium 2: no product is public. A chip has 4, 2 and 4 large matrix units (Google), 8 cores
// (AWS). Shares are assumed.
constinit const Processor tpu_v5e{.name = "tpu-v5e",
                                  .help = "Google TPU v5e",
                                  .num_units = 4,
                                  .product_share = 1,
                                  .half_tile_share = 1,
                                  .product_bandwidth_share = 0.8,
                                  .inference_bandwidth_share = 0.8,
                                  .attention_share = 0.4,
                                  .reads_aligned = false};
constinit const Processor tpu_v6e{.name = "tpu-v6e",
                                  .help = "Google TPU v6e (Trillium)",
                                  .num_units = 2,
                                  .product_share = 1,
                                  .half_tile_share = 1,
                                  .product_bandwidth_share = 0.8,
                                  .inference_bandwidth_share = 0.8,
                                  .attention_share = 0.35,
                                  .reads_aligned = false};
constinit const Processor tpu_v7{.name = "tpu-v7",
                                 .help = "Google TPU v7 (Ironwood)",
                                 .num_units = 4,
                                 .product_share = 1,
                                 .half_tile_share = 1,
                                 .product_bandwidth_share = 0.8,
                                 .inference_bandwidth_share = 0.8,
                                 .attention_share = 0.35,
                                 .reads_aligned = false};
constinit const Processor trainium2{.name = "trainium2",
                                    .help = "AWS Trainium 2",
                                    .num_units = 8,
                                    .product_share = 0.8,
                                    .half_tile_share = 1,
                                    .wave_seconds = 1e-6,
                                    .launch_seconds = 5e-6,
                                    .product_bandwidth_share = 0.7,
                                    .inference_bandwidth_share = 0.7,
                                    .attention_share = 0.35,
                                    .reads_aligned = false};

}  // namespace

std::span<const Processor* const> Processor::registry() {
  static constexpr const Processor* processors[] = {&h100,    &a100,    &b200,    &mi300x, &mi355x,
                                                    &tpu_v5p, &tpu_v5e, &tpu_v6e, &tpu_v7, &trainium2};
  return processors;
}

}  // namespace orrery::compute
