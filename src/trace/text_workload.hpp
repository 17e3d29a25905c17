#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "line_reader.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

// The text workloads of ASTRA-sim 1.0, which SimAI and AICB took over. The first line names the training loop and gives
// its parameters, the second the number of layers, and each further line is a layer: its name, a number that nobody
// uses, compute time in ns, collective and bytes of the forward pass, the same of the input gradient and of the weight
// gradient, and the time of the update. HYBRID_CUSTOMIZED has a loop for each layer in a last column. COMET's version
// (github.com/dkadiyala3/comet-astrasim) has more columns for each pass, by which a roofline can say its time.

/// The training loops by the names that the first line gives.
enum class TrainingLoop : std::uint8_t {
  data,
  model,
  hybrid_data_model,
  hybrid_model_data,
  hybrid_customized,
  hybrid_transformer,
  hybrid_transformer_fwd_in_bckwd,
  hybrid_dlrm,
  hybrid_dlrm_enhanced,
  micro,
  distributed_inference,
};
std::optional<TrainingLoop> find_training_loop(std::string_view name);

/// The columns of a pass, besides its collective and the bytes of that.
enum class TextLayout : std::uint8_t {
  times,       ///< ASTRA-sim 1.0: time
  operations,  ///< COMET: FLOPs, bytes moved, time
  products,    ///< COMET: time, a number that nobody uses, rows, inner size and columns of a matrix product
};

/// What a suffix of a collective names. Without one it depends on the loop and the pass.
enum class TextGroup : std::uint8_t { usual, expert, data_of_expert };

enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient };
constexpr std::array<std::string_view, 3> pass_names = {"forward", "input-gradient", "weight-gradient"};

struct TextPass {
  std::uint64_t compute_ns = 0;
  std::uint64_t flops = 0;        ///< 0 with TextLayout::times
  std::uint64_t moved_bytes = 0;  ///< the same
  std::uint64_t bytes = 0;
  std::optional<CollectiveKind> kind;  ///< nothing: no communication
  TextGroup group = TextGroup::usual;
  std::string collective;  ///< as the file has it
};

struct TextLayer {
  std::string name;
  std::uint64_t line = 0;
  std::array<TextPass, 3> passes;
  std::uint64_t update_ns = 0;
  TrainingLoop loop = TrainingLoop::data;  ///< which decides who communicates: that of the file, or of column 13

  const TextPass& operator[](Pass pass) const { return passes[static_cast<std::size_t>(pass)]; }
};

struct TextWorkload {
  TrainingLoop loop = TrainingLoop::data;
  TextLayout layout = TextLayout::times;  ///< layout of all layers
  std::uint64_t model_parallel = 1;
  std::uint64_t expert_parallel = 1;
  std::uint64_t pipeline = 1;
  std::uint64_t all_gpus = 0;           ///< 0: the file does not say it
  std::uint64_t pipeline_bytes = 0;     ///< pp_comm
  std::uint64_t last_bottom_layer = 0;  ///< number of the last bottom layer of a DLRM
  std::set<std::uint64_t> checkpoints;  ///< layers
  std::set<std::uint64_t> initiates;    ///< layers before whose gradient the forward pass is repeated
  std::vector<TextLayer> layers;
};

/// Reads a workload. Throws Error (bad_input) with the line. Cost O(bytes).
TextWorkload read_text_workload(LineReader& lines, Notices& notices);

}  // namespace orrery::trace
