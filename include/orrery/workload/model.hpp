#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <variant>

#include "orrery/workload/dlrm.hpp"
#include "orrery/workload/layer_list.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::workload {

/// The registry of model families. A family is a struct whose members are the keys of `workload.model`, and these:
///
/// - `family` and `help`: the name of the family, which is the word for `workload.model.kind`, and one line of help;
/// - `validate(parallel)`: throws Error (bad_input), which names the key, for what the model cannot be or cannot be
///   divided into;
/// - `make_layers(parallel)`: the layers of the whole model, in order, as one NPU executes each for one micro-batch; or
///   `make_layers(parallel, part)` if the layers of NPUs differ: by their part of the experts, or by what
///   `kinds_of_npus(parallel)` says of each NPU;
/// - `count_parameters()`: the parameters of the whole model;
/// - `num_blocks()`: the number of layers that pipeline stages share;
/// - if it applies, `tokens_per_sample()`;
/// - if it applies, `has_times()`: says whether the model gives times in place of FLOPs;
/// - if it applies, `start_of(npu, num_npus)`: the time at which an NPU starts.
using Model = std::variant<Transformer, Dlrm, LayerList>;

struct ModelFamily {
  std::string_view name;  ///< as configurations spell it
  std::string_view help;  ///< one line
};

/// Returns the families in the order of the alternatives of Model.
std::span<const ModelFamily> model_families();
/// Returns the model of a family with the defaults of its keys. `number` is that of the alternative.
Model default_model(std::size_t number);

}  // namespace orrery::workload
