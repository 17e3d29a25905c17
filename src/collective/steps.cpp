#include "steps.hpp"

#include <algorithm>
#include <bit>

namespace orrery::collective {

Steps::Steps(const PhaseShape& shape, std::uint32_t size, const Rules& rules)
    : shape_(shape), size_(size), reduces_every_message_(rules.reduce_every_message), count_(num_steps(shape, size)) {}

Step Steps::at(std::uint64_t k) const {
  switch (shape_.algorithm.kind) {
    case AlgorithmKind::ring: {
      const Bytes message = message_size(shape_, size_);
      return {message, 1, 1, false, reduces_first(shape_) && k + 1 < size_ ? message : Bytes(0)};
    }
    case AlgorithmKind::direct:
      return of_direct(k);
    case AlgorithmKind::halving_doubling:
      return of_halving_doubling(k);
    case AlgorithmKind::double_binary_tree:
    case AlgorithmKind::binomial_tree:
    case AlgorithmKind::in_switch:
    case AlgorithmKind::custom:
      break;
  }
  ensure_failed("steps of an algorithm that has none", std::source_location::current());
}

/// Reductions: `physical` rules pay one in every round of the reducing half; `astra-sim` rules in every second round of
/// a reduce-scatter and every fourth of an all-reduce, from the first on (as measured; without a window it is the first
/// round alone, under both).
Step Steps::of_direct(std::uint64_t k) const {
  const std::uint32_t farthest = size_ - 1;
  const std::uint32_t window = shape_.algorithm.window == 0 ? farthest : std::min(shape_.algorithm.window, farthest);
  const std::uint64_t half = shape_.kind == Kind::all_reduce ? count_ / 2 : count_;
  const std::uint64_t period = shape_.kind == Kind::all_reduce ? 4 : 2;
  const Bytes message = message_size(shape_, size_);
  const auto first = static_cast<std::uint32_t>(k % half) * window + 1;
  const bool pays = reduces_first(shape_) && (reduces_every_message_ ? k < half : k % period == 0);
  return {message, first,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(farthest, std::uint64_t{first} + window - 1)), false,
          pays ? message : Bytes(0)};
}

/// docs/model.md, 6.3: the reduction of what was received; else, as measured, of the next step's message.
Step Steps::of_halving_doubling(std::uint64_t k) const {
  const auto levels = static_cast<std::uint32_t>(std::bit_width(size_) - 1);
  const std::uint64_t halvings = shape_.kind == Kind::all_gather ? 0 : levels;
  if (k < halvings) {
    const Bytes message = shape_.size / (std::uint64_t{2} << k);
    Bytes reduced(0);
    if (shape_.reduces && reduces_every_message_) reduced = message;
    if (shape_.reduces && !reduces_every_message_ && k + 1 < levels) reduced = shape_.size / (std::uint64_t{4} << k);
    return {message, 1U << k, 1U << k, true, reduced};
  }
  const auto j = static_cast<std::uint32_t>(levels - 1 - (k - halvings));
  return {times(message_size(shape_, size_), std::uint64_t{1} << (levels - 1 - j)), 1U << j, 1U << j, true, Bytes(0)};
}

}  // namespace orrery::collective
