#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"
#include "tensor_lifetimes.hpp"

namespace orrery::workload {

/// The passes of one NPU as nodes that follow each other: each node waits for the one before it, for what joined the
/// chain since, and for nothing else. Beside the chain are asynchronous collectives, up to their wait.
class PassChain {
 public:
  using Nodes = std::vector<NodeId>;

  /// With Detail::op each operator becomes a node, otherwise each block of operators.
  PassChain(Detail detail, trace::Builder& builder) : detail_(detail), builder_(builder) {}

  /// Lets a node follow that waits for after().
  void extend(NodeId node);
  /// Lets a node follow that receives a tensor. The next node but receives needs it.
  void extend_with_receive(NodeId node, MadeTensor tensor);
  /// Adds the nodes of operators, whose names begin so, and returns the first one, if there is one. Operators without
  /// FLOPs at the end wait for products of the next call.
  std::optional<NodeId> add(const std::vector<Operator>& operators, const std::string& prefix);
  /// Begins the nodes of which first() is the first.
  void begin() { first_.reset(); }
  /// Returns the first node since then, if there is one.
  std::optional<NodeId> first() const { return first_; }
  /// Adds the nodes of operators from the first on, up to one that waits for an exchange of tokens. Leaves the
  /// operators from that one on in `operators` and returns true; the next call waits. Returns false if all have been
  /// added.
  bool add_until_exchange(std::span<const Operator>& operators, const std::string& prefix);
  /// Makes a node of the compute operators that were merged so far.
  void finish_compute_node();

  /// Lets the next node wait for these too.
  void wait_for(std::span<const NodeId> nodes) { after_.insert(after_.end(), nodes.begin(), nodes.end()); }
  /// Lets the next node wait for all asynchronous collectives.
  void wait_for_collectives();

  /// Returns the nodes for which the next node waits.
  const Nodes& after() const { return after_; }
  /// Returns the last node.
  std::optional<NodeId> last() const { return last_; }
  /// Copies the ids of all nodes that follow to this list, if it is not null.
  void note(Nodes* nodes) { noted_ = nodes; }

 private:
  /// Compute operators that are not a node yet.
  struct Merged {
    Operator sum;
    std::string name;
  };

  void add_operator(const Operator& op, const std::string& prefix);
  void add_compute(const Operator& op, const std::string& prefix);
  void add_collective(const Operator& op, const std::string& prefix);
  bool has_product() const { return merged_.sum.flops > 0 || merged_.sum.duration > Time::zero(); }
  /// Finishes the node if it has a product. Operators without FLOPs are merged with the products after them, across
  /// communication, so that a block is one node.
  void finish_products();

  Detail detail_;
  trace::Builder& builder_;
  Nodes after_;
  Nodes asynchronous_;      ///< collectives for which nothing waits so far
  bool exchanges_ = false;  ///< one of these is an exchange of tokens that add_until_exchange has not stopped for
  Merged merged_;
  std::optional<NodeId> last_;
  std::optional<NodeId> first_;       ///< the first node since add began
  std::vector<MadeTensor> received_;  ///< tensors that the next node other than a receive needs
  Nodes* noted_ = nullptr;
};

}  // namespace orrery::workload
