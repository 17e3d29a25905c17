#include <algorithm>
#include <boost/random/sobol.hpp>
#include <numeric>
#include <utility>

#include "orrery/base/mix.hpp"
#include "orrery/explore/samples.hpp"

namespace orrery::explore {
namespace {

/// Returns a number from 0 to below 1 of 53 bits.
double unit_of(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

std::uint64_t mix_of(std::uint64_t seed, std::uint64_t first, std::uint64_t second) {
  return mix(mix(mix(0, seed), first), second);
}

class Random final : public Sequence {
 public:
  Random(std::uint64_t seed, std::size_t dimensions) : seed_(seed), dimensions_(dimensions) {}

  std::vector<double> draw(std::uint64_t number) override {
    std::vector<double> at;
    for (std::size_t d = 0; d < dimensions_; ++d) at.push_back(unit_of(mix_of(seed_, number, d)));
    return at;
  }

 private:
  std::uint64_t seed_;
  std::size_t dimensions_;
};

/// Draws in blocks. In a block each dimension has a permutation of its own, which says in which part a draw lies.
class LatinHypercube final : public Sequence {
 public:
  LatinHypercube(std::uint64_t seed, std::size_t dimensions, std::uint32_t samples)
      : within_(seed, dimensions), seed_(seed), samples_(samples), parts_(dimensions) {}

  std::vector<double> draw(std::uint64_t number) override {
    if (number / samples_ != block_ || parts_.empty() || parts_[0].empty()) permute(number / samples_);
    std::vector<double> at = within_.draw(number);
    for (std::size_t d = 0; d < at.size(); ++d)
      at[d] = (static_cast<double>(parts_[d][number % samples_]) + at[d]) / static_cast<double>(samples_);
    return at;
  }

 private:
  void permute(std::uint64_t block) {
    block_ = block;
    for (std::size_t d = 0; d < parts_.size(); ++d) {
      auto& parts = parts_[d];
      parts.resize(samples_);
      std::iota(parts.begin(), parts.end(), 0U);
      const std::uint64_t key = mix_of(seed_ ^ 0x4c4853U, block, d);
      for (std::uint64_t i = samples_ - 1; i > 0; --i) std::swap(parts[i], parts[mix(key, i) % (i + 1)]);
    }
  }

  Random within_;
  std::uint64_t seed_;
  std::uint32_t samples_;
  std::uint64_t block_ = 0;
  std::vector<std::vector<std::uint32_t>> parts_;  ///< [dimensions][draws of the block]
};

class Sobol final : public Sequence {
 public:
  Sobol(std::uint64_t seed, std::size_t dimensions) : seed_(seed), engine_(std::max<std::size_t>(dimensions, 1)) {}

  std::vector<double> draw(std::uint64_t number) override {
    std::vector<double> at;
    if (number == 0) {  // Boost leaves out the first point, 0
      engine_.seed();
      next_ = 1;
    }
    if (number != next_ && number > 0) {
      engine_.seed();
      engine_.discard((number - 1) * engine_.dimension());
      next_ = number;
    }
    for (std::size_t d = 0; d < engine_.dimension(); ++d)
      at.push_back(unit_of(scrambled(number == 0 ? 0 : engine_(), d)));
    if (number > 0) ++next_;
    return at;
  }

 private:
  /// Flips each bit or not, as the bits above it say. Points that share their first bits still do afterwards, and so
  /// each box of binary fractions keeps its number of points.
  std::uint64_t scrambled(std::uint64_t bits, std::size_t dimension) const {
    std::uint64_t result = bits;
    for (unsigned bit = 63; bit > 10; --bit) {
      const std::uint64_t above = bit == 63 ? 0 : bits >> (bit + 1);
      result ^= (mix(mix_of(seed_, dimension, bit), above) & 1U) << bit;
    }
    return result;
  }

  std::uint64_t seed_;
  boost::random::sobol engine_;
  std::uint64_t next_ = 1;  ///< draw of the engine
};

}  // namespace

std::unique_ptr<Sequence> make_sequence(Strategy strategy, const Sampling& sampling, std::size_t dimensions) {
  switch (strategy) {
    case Strategy::latin_hypercube:
      return std::make_unique<LatinHypercube>(sampling.seed, dimensions, sampling.samples);
    case Strategy::sobol:
      return std::make_unique<Sobol>(sampling.seed, dimensions);
    default:
      return std::make_unique<Random>(sampling.seed, dimensions);
  }
}

}  // namespace orrery::explore
