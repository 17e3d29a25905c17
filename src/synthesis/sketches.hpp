#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/synthesis/model.hpp"

namespace orrery::synthesis {

/// Sizes that nodes have, each of so many NPUs.
struct SizeSample {
  Sizes sizes;
  std::uint64_t support = 1;
};

/// Sizes of the nodes of one slot.
struct SlotSizes {
  std::uint32_t family = 0;
  std::vector<SizeSample> samples = {};
};

struct Sketches {
  std::vector<Sketch> sketches = {};
  std::vector<std::uint32_t> of_slot = {};       ///< [slots]
  std::vector<std::uint32_t> rank_of_slot = {};  ///< [slots] number among those of its sketch, by mean size
  std::uint32_t merged = 0;                      ///< slots that were pooled with others
};

/// Returns a sketch of sizes: quantiles of the sizes ordered by FLOPs, bytes and duration, whose weighted mean is that
/// of the samples. Each point stands for `min_support` nodes or more, if there are as many. O(samples log samples).
Sketch sketch_of(std::vector<SizeSample> samples, std::uint64_t min_support = 1);

/// Sketches the sizes of slots. A slot with less support than `min_support` is pooled with the slot of its family whose
/// mean size is nearest, until the pool has enough, or no other slot of the family is left. O(slots^2) for slots of one
/// family that lack support.
Sketches sketch_slots(std::span<const SlotSizes> slots, std::uint64_t min_support);

}  // namespace orrery::synthesis
