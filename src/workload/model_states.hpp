#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/workload/figures.hpp"
#include "tensors.hpp"

namespace orrery::workload {

/// Parameters, gradients and optimizer state of one NPU (ZeRO calls them model states): what keeps copies of them
/// equal, what moves them between local and remote memory, and the update. Collectives among copies, on the path to
/// memory too, form a chain, so that all members do them in one order whenever they are ready. The NPU's own loads form
/// another and its own stores a third, so that each takes a communication stream at most.
class ModelStates {
 public:
  using Nodes = std::vector<NodeId>;

  /// `layers`: those of the NPU, in the order of a forward pass.
  ModelStates(const Parallel& parallel, std::vector<const Layer*> layers, trace::Builder& builder)
      : parallel_(parallel), layers_(std::move(layers)), builder_(builder) {}

  struct Fetched {
    Nodes ready;                   ///< what the pass waits for
    std::vector<Made> parameters;  ///< what it needs
  };
  /// Gets the layer's parameters for a pass, from `after` on.
  Fetched fetch(const Layer& layer, const std::string& pass, const Nodes& after);

  /// The layer's gradients of a micro-batch, which `begin` is the first to make, are there after `after`. They are
  /// summed when their bucket is full, or with `close_all`.
  void add_gradients(const Layer& layer, std::uint32_t micro_batch, std::optional<NodeId> begin, const Nodes& after,
                     bool close_all);

  /// After the last pass: what is left to sum, the optimizer, and the new parameters to where they belong. The sums
  /// come last in the order of ids, so that communication that passes wait for goes first.
  void update(const Nodes& after);

 private:
  /// Parameters of a layer whose copies are in one group.
  struct Part {
    GroupKind group{};
    std::uint64_t parameters = 0;
    std::string_view prefix;  ///< of names: "", "experts."
  };
  /// Gradients that are summed together.
  struct Bucket {
    GroupKind group{};
    std::uint64_t parameters = 0;
    std::string name;
    Nodes ready;                ///< after these
    std::vector<Made> tensors;  ///< until they are summed
  };
  /// Layers that are updated together.
  struct Portion {
    std::string name;
    std::span<const Layer* const> layers;
  };

  static std::vector<Part> parts_of(const Layer& layer);
  std::vector<Portion> portions() const;
  /// Parameters of which the NPU keeps a state that ZeRO divides from this stage on.
  std::uint64_t held(const Part& part, std::uint32_t stage) const;
  std::uint64_t updated_by_npu(const Portion& portion) const;

  // Each returns what its result waits for.

  /// A collective among copies, or on the path to memory. Without copies nothing, or an access of the NPU's own.
  Nodes together(std::string name, trace::NodeKind kind, trace::CollectiveKind collective, std::uint64_t bytes,
                 GroupKind group, Nodes after);
  /// The NPU's own load or store; nothing of 0 bytes.
  Nodes access(std::string name, trace::NodeKind kind, std::uint64_t bytes, Nodes after);
  /// Gradients that are not kept for the whole step.
  bool leaves_when_summed(GroupKind group) const;
  void close(Bucket& bucket);
  void sum(const Bucket& bucket, Nodes after);
  void tie(const Nodes& after);
  Nodes update(const Portion& portion, const Nodes& after);
  std::optional<NodeId> compute(const Portion& portion, const Nodes& after);
  void give(const Portion& portion, const Nodes& after, const Made& fresh);

  const Parallel& parallel_;
  std::vector<const Layer*> layers_;
  trace::Builder& builder_;
  std::optional<NodeId> last_together_, last_load_, last_store_;  // of the three chains
  std::optional<NodeId> last_update_;
  Bucket dense_, experts_;
  std::vector<Bucket> full_;
};

/// What an NPU with these layers keeps throughout a step, without activations: in local and in remote memory. ZeRO
/// (Rajbhandari et al., 2020, section 5): stage 1 divides the optimizer's state, 2 the gradients, 3 the parameters.
/// What is offloaded is remote, except gradients that several micro-batches add up to before they are summed.
struct Places {
  Memory local, remote;
};
Places model_states(const Parallel& parallel, std::span<const Layer* const> layers);

/// Bytes on an NPU for one parameter of its own: the state of Adam; with fp32 weights unless they are fp32 anyway.
std::uint64_t optimizer_state_bytes(Precision precision);

/// Shares of equal size, the last one padded.
constexpr std::uint64_t share(std::uint64_t whole, std::uint64_t parts) { return (whole + parts - 1) / parts; }

}  // namespace orrery::workload
