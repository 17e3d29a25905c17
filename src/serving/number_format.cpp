#include "orrery/serving/number_format.hpp"

namespace orrery::serving {
namespace {

constexpr NumberFormat bf16{"bf16", "2 bytes for each value, of either 16-bit format", 2};
constexpr NumberFormat fp8{"fp8", "1 byte for each value", 1};
constexpr NumberFormat fp4{"fp4", "4 bits for each value, and a byte of scale for 16 values", 0.5625};
constexpr NumberFormat int8{"int8", "1 byte for each value", 1};
constexpr NumberFormat int4{"int4", "4 bits for each value, and 2 bytes of scale for 128 values", 0.515625};

}  // namespace

std::span<const NumberFormat* const> NumberFormat::registry() {
  static constexpr const NumberFormat* all[] = {&bf16, &fp8, &fp4, &int8, &int4};
  return all;
}

}  // namespace orrery::serving
