#include <algorithm>
#include <array>
#include <cmath>

#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

// Rates as shares of the bf16 peak of data sheets (A100 312, H100 989, B200 2250, MI300X 1307, MI355X 2500 TFLOPS).
// Sources: H100, FlashAttention 2 and 3 and cuDNN 9, forward: figures of arXiv 2407.08608, heads of 128 (sequences of
// 512 to 16,384; half lengths are fitted to them). H100, FlashAttention 2: 335 TFLOPS forward and backward together
// (arXiv 2307.08691), which leaves 323 backward. A100: FlashAttention 2 reaches 73 % of the peak forward and 63 %
// backward at most, FlashAttention 1 25 to 40 % (arXiv 2307.08691). B200: FlashAttention 4 1,613 TFLOPS forward, 1.3
// times cuDNN 9.13 (arXiv abstract of FlashAttention 4). Backward rates of the others, and those of AMD's kernels, are
// assumed: 0.75 to 0.87 of the forward rate.

constexpr std::array flash_1 = {AttentionRates{.processor = "a100",
                                               .forward = 0.4,
                                               .backward = 0.35,
                                               .causal = 0.87,
                                               .half_length = 200,
                                               .causal_half_length = 300,
                                               .small_head = 0.95},
                                AttentionRates{.processor = "h100",
                                               .forward = 0.22,
                                               .backward = 0.19,
                                               .causal = 0.87,
                                               .half_length = 200,
                                               .causal_half_length = 300,
                                               .small_head = 0.95}};
constexpr std::array flash_2 = {AttentionRates{.processor = "a100",
                                               .forward = 0.73,
                                               .backward = 0.63,
                                               .causal = 0.92,
                                               .half_length = 100,
                                               .causal_half_length = 320,
                                               .small_head = 0.85},
                                AttentionRates{.processor = "h100",
                                               .forward = 0.374,
                                               .backward = 0.327,
                                               .causal = 0.91,
                                               .half_length = 100,
                                               .causal_half_length = 320,
                                               .small_head = 0.85},
                                AttentionRates{.processor = "mi300x",
                                               .forward = 0.4,
                                               .backward = 0.3,
                                               .causal = 0.9,
                                               .half_length = 150,
                                               .causal_half_length = 400,
                                               .small_head = 0.8}};
constexpr std::array flash_3 = {AttentionRates{.processor = "h100",
                                               .forward = 0.66,
                                               .backward = 0.55,
                                               .causal = 0.95,
                                               .half_length = 190,
                                               .causal_half_length = 500,
                                               .small_head = 0.75}};
constexpr std::array flash_3_fp8 = {AttentionRates{.processor = "h100",
                                                   .forward = 1.1,
                                                   .backward = 0.55,
                                                   .causal = 0.9,
                                                   .half_length = 300,
                                                   .causal_half_length = 700,
                                                   .small_head = 0.65}};
constexpr std::array flash_4 = {AttentionRates{.processor = "b200",
                                               .forward = 0.717,
                                               .backward = 0.5,
                                               .causal = 0.95,
                                               .half_length = 300,
                                               .causal_half_length = 700,
                                               .small_head = 0.7}};
constexpr std::array cudnn_9 = {AttentionRates{.processor = "a100",
                                               .forward = 0.73,
                                               .backward = 0.63,
                                               .causal = 0.92,
                                               .half_length = 100,
                                               .causal_half_length = 320,
                                               .small_head = 0.85},
                                AttentionRates{.processor = "h100",
                                               .forward = 0.61,
                                               .backward = 0.52,
                                               .causal = 0.9,
                                               .half_length = 115,
                                               .causal_half_length = 350,
                                               .small_head = 0.75},
                                AttentionRates{.processor = "b200",
                                               .forward = 0.551,
                                               .backward = 0.42,
                                               .causal = 0.95,
                                               .half_length = 250,
                                               .causal_half_length = 600,
                                               .small_head = 0.7}};
constexpr std::array aiter_rates = {AttentionRates{.processor = "mi300x",
                                                   .forward = 0.5,
                                                   .backward = 0.38,
                                                   .causal = 0.9,
                                                   .half_length = 150,
                                                   .causal_half_length = 400,
                                                   .small_head = 0.8},
                                    AttentionRates{.processor = "mi355x",
                                                   .forward = 0.5,
                                                   .backward = 0.38,
                                                   .causal = 0.9,
                                                   .half_length = 150,
                                                   .causal_half_length = 400,
                                                   .small_head = 0.8}};

constinit const AttentionKernel flash_attention_1{"flash-attention-1", "FlashAttention 1 (2022)", flash_1};
constinit const AttentionKernel flash_attention_2{"flash-attention-2", "FlashAttention 2 (2023)", flash_2};
constinit const AttentionKernel flash_attention_3{"flash-attention-3", "FlashAttention 3 (2024)", flash_3};
constinit const AttentionKernel flash_attention_3_fp8{
    "flash-attention-3-fp8", "FlashAttention 3, forward in fp8, backward in bf16", flash_3_fp8};
constinit const AttentionKernel flash_attention_4{"flash-attention-4", "FlashAttention 4 (2026)", flash_4};
constinit const AttentionKernel cudnn{"cudnn", "cuDNN 9", cudnn_9};
constinit const AttentionKernel aiter{"aiter", "AMD's AITER and Composable Kernel", aiter_rates};

constexpr double large_head = 128, small_head = 64;  // values, of the heads whose rates are known

}  // namespace

std::span<const AttentionKernel* const> AttentionKernel::registry() {
  static constexpr const AttentionKernel* kernels[] = {&flash_attention_2,
                                                       &flash_attention_1,
                                                       &flash_attention_3,
                                                       &flash_attention_3_fp8,
                                                       &flash_attention_4,
                                                       &cudnn,
                                                       &aiter};
  return kernels;
}

/// Short sequences leave units idle at the ends of rows of tiles, and causal ones more: the rate is that of long
/// sequences over 1 + half length / sequence. Between and beyond the two sizes of heads the factor is a power law.
std::optional<double> AttentionKernel::share(std::string_view processor, const Operation& operation) const {
  const auto found = std::ranges::find(rates, processor, &AttentionRates::processor);
  if (found == rates.end()) return {};
  const double length = std::max(1.0, static_cast<double>(operation.shape.n));
  const double head = std::clamp(static_cast<double>(operation.shape.k), small_head / 2, large_head);
  const double half = operation.is_causal ? found->causal_half_length : found->half_length;
  const double slope = std::log(found->small_head) / std::log(small_head / large_head);
  return (operation.is_backward ? found->backward : found->forward) * (operation.is_causal ? found->causal : 1) *
         std::pow(head / large_head, slope) / (1 + half / length);
}

double clock_factor(double cap, double rest, double full, double clock_exponent) {
  if (cap >= full || full <= rest) return 1;
  // Below the power at rest no clock would do; a twentieth of the clock stands for it.
  return std::max(0.05, std::pow(std::max(0.0, cap - rest) / (full - rest), 1 / clock_exponent));
}

}  // namespace orrery::compute
