#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/workload/parallel.hpp"

namespace orrery::workload {

struct Layer;
struct ParameterCount;

/// Layers in a row, each given by its numbers.
struct LayerList {
  static constexpr std::string_view family = "layers";
  static constexpr std::string_view help = "plain layers in a row, by FLOPs or by times";

  struct Layer {
    std::string name;
    std::uint64_t parameters = 0;
    std::uint64_t flops = 0;        ///< FLOPs of the forward pass of one sample; the backward pass takes twice that
    std::uint64_t activations = 0;  ///< values of one sample that the layer hands to the next one
    /// Without flops: the times of its passes for a micro-batch, and its part of the optimizer's time.
    Time forward = {}, backward = {}, update = {};

    bool is_timed() const { return flops == 0; }
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  /// NPUs that start late: NPU i of N by first + (stride * i mod N) * step.
  struct Late {
    Time first, step;
    std::uint32_t stride = 1;

    Time of(NpuId npu, std::uint32_t num_npus) const {
      return first + step * static_cast<std::int64_t>(std::uint64_t{stride} * npu.value() % num_npus);
    }
    friend bool operator==(const Late&, const Late&) = default;
  };
  std::vector<Layer> layers;
  std::optional<Late> late = {};

  void validate(const Parallel& parallel) const;
  std::vector<workload::Layer> make_layers(const Parallel& parallel) const;
  ParameterCount count_parameters() const;
  std::uint64_t num_blocks() const { return layers.size(); }
  bool has_times() const { return late || std::ranges::any_of(layers, &Layer::is_timed); }
  Time start_of(NpuId npu, std::uint32_t num_npus) const { return late ? late->of(npu, num_npus) : Time::zero(); }

  friend bool operator==(const LayerList&, const LayerList&) = default;
};

}  // namespace orrery::workload
