#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"
#include "orrery/network/flit_rules.hpp"
#include "orrery/network/packet_recording.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::topology {
class Circuits;
class Topology;
}  // namespace orrery::topology

namespace orrery::network {

struct GivenGraph;
struct Options;
class SimulatedNetwork;

/// A network model of the registry.
struct ModelType {
  std::string_view name;  ///< as configurations spell it
  std::string_view help;  ///< one line
  /// Makes the network: see make_network. Null for a model without logical processes.
  std::unique_ptr<const SimulatedNetwork> (*make)(const topology::Topology& topology, const Options& options) = nullptr;

  bool sends_packets = false;  ///< messages are packets, and Options::packets are its rules

  /// Returns whether messages pass through logical processes, one link after the other, and wait for each other there.
  bool simulates_links() const { return make != nullptr; }

  /// Returns all models: the table of src/network/model_registry.cpp.
  static std::span<const ModelType* const> registry();
};

using ModelName = Registered<ModelType>;

/// Returns the name of a model as configurations spell it.
inline std::string_view name(ModelName model) { return model.name(); }

/// What a device does with a message that goes on in the same dimension.
enum class Switching : std::uint8_t {
  store_and_forward,  ///< it hands the message on when it is there whole
  cut_through,        ///< it hands the message on when its first byte is there
};
/// Returns "store-and-forward" or "cut-through".
std::string_view name(Switching switching);

/// The rules by which delays are computed (docs/model.md, 1).
struct Rules {
  Rounding rounding = Rounding::up_to_ps;
  /// A message over several dimensions pays for every one in which source and destination differ; else for the lowest
  /// of these only.
  bool charge_every_dimension = true;
  /// Over links, with rendezvous: data that may leave at once do so after the clears to send of the same step, and
  /// after all else that the NPU begins at that time.
  bool clears_first = false;
  /// Links serve messages that come at one time in the order of EventPlace; else in the order of those that hand them
  /// over.
  bool orders_messages = false;

  friend bool operator==(const Rules&, const Rules&) = default;
};

/// NPUs of a communicator that reduce in switches together.
struct ReductionGroup {
  GroupId communicator;
  std::vector<NpuId> members;  ///< ascending

  friend bool operator==(const ReductionGroup&, const ReductionGroup&) = default;
};

struct Options {
  Rules rules = {};
  ModelName model;
  Switching switching = Switching::store_and_forward;  ///< where links are simulated
  bool has_requests = false;                           ///< links tell sources of requests that these have left
  std::vector<FlitDimensions>
      flits;                       ///< dimensions that are simulated flit by flit, ascending; others as the model does
  Bytes packet;                    ///< with cut-through links serve messages in pieces of this size; 0: whole
  PacketRules packets;             ///< rules of a model that sends packets
  PacketRecording recording = {};  ///< recording of a model that sends packets
  std::vector<ReductionGroup> reduction_groups = {};  ///< groups whose collectives switches of packets carry out
  /// The network that the dimensions lie on; null: each dimension has the links of its shape.
  std::shared_ptr<const GivenGraph> graph;
  /// What optical switches join; null: the links stay as they are.
  std::shared_ptr<const topology::Circuits> circuits;

  friend bool operator==(const Options&, const Options&) = default;
};

}  // namespace orrery::network
