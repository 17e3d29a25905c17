#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery::serving {

/// The stages of a pipeline, and what passes between them.
struct Pipeline {
  std::uint32_t stages = 1;
  std::uint64_t row_bytes = 0;                  ///< activations of a row, in bytes
  std::vector<std::uint64_t> graph_sizes = {};  ///< numbers of rows of recorded graphs, ascending
  std::uint32_t tp = 1;                         ///< NPUs of a stage, each of which sends its part of the activations
  std::function<Time(Bytes)> hop = {};          ///< time of such a message; null: it takes none
};

/// Returns the first layer of a stage; that of stage `stages` is the number of layers. If the layers do not divide
/// evenly, the first stages have one more.
constexpr std::uint32_t first_layer_of(std::uint32_t layers, std::uint32_t stages, std::uint32_t stage) {
  return stage * (layers / stages) + (stage < layers % stages ? stage : layers % stages);
}

/// Returns the number of layers of a stage.
constexpr std::uint32_t layers_of_stage(std::uint32_t layers, std::uint32_t stages, std::uint32_t stage) {
  return first_layer_of(layers, stages, stage + 1) - first_layer_of(layers, stages, stage);
}

}  // namespace orrery::serving
