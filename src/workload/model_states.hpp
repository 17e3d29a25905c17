#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/workload/figures.hpp"
#include "tensor_lifetimes.hpp"

namespace orrery::workload {

/// Adds the nodes that keep the model states of one NPU (ZeRO's word for parameters, gradients and optimizer state):
/// the collectives that keep copies equal, the accesses that move states between local and remote memory, and the
/// update. Collectives among copies form a chain, also those on the path to memory, so that all members execute them in
/// one order whenever they are ready. Sums over replicas form a second chain, the NPU's own loads a third and its own
/// stores a fourth, so that each chain takes at most one communication stream. With Sharding::sums_apart, sums of
/// gradients form a fifth chain, which yields to the gathers of ZeRO 3.
class ModelStates {
 public:
  using Nodes = std::vector<NodeId>;

  /// `layers` are those of the NPU, in the order of a forward pass.
  ModelStates(const Parallel& parallel, std::vector<const Layer*> layers, trace::Builder& builder)
      : parallel_(parallel), sharding_(parallel.sharding), layers_(std::move(layers)), builder_(builder) {}

  struct Fetched {
    Nodes ready;                         ///< the nodes for which the pass waits
    std::vector<MadeTensor> parameters;  ///< the tensors that the pass needs
  };
  /// Fetches the parameters of a layer for a pass, after the nodes of `after`.
  Fetched fetch_parameters(const Layer& layer, const std::string& pass, const Nodes& after);
  /// Fetches the part of them that Sharding::exposed_share names; the pass waits for the nodes that this returns.
  Nodes fetch_rest(const Layer& layer, const std::string& pass, const Nodes& after);
  /// Gathers the parameters that the last step has updated (Sharding::gather_before_forward).
  void gather_updated(const Layer& layer, const Nodes& after);
  /// Returns the nodes of this gather for which the layer's first pass waits, once.
  Nodes take_updated(const Layer& layer) { return std::exchange(updated_[&layer], {}); }
  /// Returns the reductions for which the next node of the chain waits, once: parts that nothing hides.
  Nodes take_exposed() { return std::exchange(awaited_.exposed, {}); }
  /// Returns the reductions for whose buffers the next pass of a layer waits, once. The parameters that it fetches do
  /// not wait.
  Nodes take_awaited_for_buffers() { return std::exchange(awaited_.for_buffers, {}); }

  /// Takes the gradients of a layer and micro-batch. `begin` is the first node that makes them; they are complete after
  /// `after`. Buckets of `full` bytes or more are reduced.
  void add_gradients(const Layer& layer, std::uint32_t micro_batch, std::optional<NodeId> begin, const Nodes& after,
                     std::uint64_t full);

  /// Ends the step after the last pass: reduces the gradients that are left, updates, and distributes the new
  /// parameters. The reductions have the highest ids, so that communication for which passes wait goes first.
  void update(const Nodes& after);

 private:
  // Priorities: collectives among copies yield to those of passes, and sums apart yield to gathers too.
  static constexpr std::int32_t yielding = -1, yielding_more = -2;

  /// Parameters of a layer whose copies are in one group.
  struct ParameterGroup {
    GroupKind kind{};
    std::uint64_t parameters = 0;
    std::string_view prefix;  ///< prefix of names: "", "experts."
  };
  /// Gradients that are reduced together.
  struct Bucket {
    GroupKind group{};
    std::uint64_t parameters = 0;
    std::string name;
    Nodes ready;                      ///< the nodes after which they are complete
    std::vector<MadeTensor> tensors;  ///< gradients that are needed until they are reduced
    const Layer* first_layer = nullptr;
  };
  /// Layers that are updated together.
  struct UpdateUnit {
    std::string name;
    std::span<const Layer* const> layers;
  };

  static std::vector<ParameterGroup> groups_of(const Layer& layer);
  /// Returns the part of these bytes or parameters for which compute waits.
  std::uint64_t rest_of(std::uint64_t all) const {
    return static_cast<std::uint64_t>(static_cast<double>(all) * sharding_.exposed_share);
  }
  std::vector<UpdateUnit> update_units() const;
  /// Returns for how many parameters the NPU keeps a state that ZeRO divides from this stage on.
  std::uint64_t held(const ParameterGroup& group, std::uint32_t stage) const;
  std::uint64_t updated_by_npu(const UpdateUnit& unit) const;

  /// Reductions of gradients for which passes wait.
  struct Awaited {
    Nodes exposed, for_buffers;
    std::map<GroupKind, std::deque<NodeId>> in_use;  ///< the nodes that free the buffers of earlier buckets
  };

  /// Collectives that all members execute in one order.
  struct Chain {
    std::int32_t priority;  ///< comm_priority
    std::optional<NodeId> last = {};
  };
  /// Returns the chain of the sums of gradients.
  Chain& sums();

  // Each of these returns the nodes for which whoever needs its result waits.

  /// Adds a collective among copies, or an access with a collective on the path to memory. Without copies it adds
  /// nothing, or an access of the NPU alone.
  Nodes add_among_copies(std::string name, trace::NodeKind kind, trace::CollectiveKind collective, std::uint64_t bytes,
                         GroupKind group, Nodes after, Chain& chain);
  /// Adds a collective among copies, with ZeRO 3 in as many parts as Sharding::calls says, each after the host has
  /// called it. The NPU computes nothing meanwhile.
  Nodes add_calls(const std::string& name, trace::CollectiveKind collective, std::uint64_t bytes, GroupKind group,
                  Nodes after, Chain& chain);
  /// Adds the NPU's own load or store; none of 0 bytes.
  Nodes add_access(std::string name, trace::NodeKind kind, std::uint64_t bytes, Nodes after);
  Nodes update(const UpdateUnit& unit, const Nodes& after);

  /// Says whether gradients are not kept for the whole step.
  bool leaves_when_reduced(GroupKind group) const;
  void close(Bucket& bucket);
  /// Reduces a bucket and returns the node that needs its gradients last, if there is one.
  std::optional<NodeId> reduce(const Bucket& bucket, Nodes after, Chain& chain);
  /// Lets passes wait until a buffer is free. `freed` frees the one that was filled just now.
  void wait_for_buffer(GroupKind group, std::optional<NodeId> freed);
  /// Sums the NPU's share of the gradients of a bucket over the replicas.
  Nodes sum_over_replicas(const Bucket& bucket, Nodes after);
  Nodes sum_norms(Nodes after);
  void reduce_tied_embedding(const Nodes& after);
  std::optional<NodeId> add_optimizer(const UpdateUnit& unit, const Nodes& after);
  Nodes broadcast_by_owners(const Layer& layer, const ParameterGroup& group, const std::string& name, Nodes after);
  void distribute(const UpdateUnit& unit, const Nodes& after, const MadeTensor& fresh);

  const Parallel& parallel_;
  const Sharding& sharding_;
  std::vector<const Layer*> layers_;
  trace::Builder& builder_;
  Chain among_copies_{yielding}, apart_{yielding_more}, among_replicas_{yielding};
  std::optional<NodeId> last_load_, last_store_;  ///< last nodes of the chains of accesses
  std::optional<NodeId> last_update_;
  Bucket dense_, experts_;
  std::vector<Bucket> full_;
  Awaited awaited_;
  std::map<const Layer*, Nodes> updated_;
};

/// What an NPU keeps in its local and in its remote memory.
struct MemoryUses {
  MemoryUse local, remote;
};
/// Returns what an NPU with these layers keeps throughout a step, without activations. ZeRO (Rajbhandari et al., 2020,
/// section 5) divides the optimizer's state from stage 1 on, gradients from 2 on, parameters with 3. What is offloaded
/// is remote, except gradients that several micro-batches add up to before they are reduced.
MemoryUses model_states(const Parallel& parallel, std::span<const Layer* const> layers);

/// Returns the bytes that Adam's state takes for one parameter. The state has fp32 weights unless the parameters are
/// fp32.
std::uint64_t optimizer_state_bytes(Precision precision);

/// Returns the size of equal shares, of which the last one is padded.
constexpr std::uint64_t share(std::uint64_t whole, std::uint64_t shares) { return (whole + shares - 1) / shares; }

}  // namespace orrery::workload
