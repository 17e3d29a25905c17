#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/library.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::topology {
class Circuits;
}

namespace orrery::collective {

enum class Kind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  barrier,
  expert_dispatch,
  expert_combine,
};
constexpr Kind last_kind = Kind::expert_combine;
/// Says whether kernels of their own carry out collectives of a kind (expert_exchange.hpp).
constexpr bool is_of_experts(Kind kind) { return kind == Kind::expert_dispatch || kind == Kind::expert_combine; }
std::string_view name(Kind kind);
/// Returns the kind whose phases and algorithms a kind uses (docs/collectives.md, Other kinds): the first four are
/// their own.
Kind parent(Kind kind);

/// The algorithm of one dimension, as a configuration names it. find_algorithm (registry.hpp) makes one from a text.
struct Algorithm {
  std::string_view name = "ring";   ///< name of an entry of the registry, whose storage it refers to
  std::uint32_t window = 0;         ///< messages that a position sends at a time, 0: no limit
  bool whole_communicator = false;  ///< `one*`: all members form one dimension group

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};
/// Returns the name of an algorithm as configurations spell it, such as "direct2" or "oneRing".
std::string name(const Algorithm& algorithm);

enum class Optimization : std::uint8_t { baseline, local_bw_aware };

/// In which order a chunk takes the dimensions (docs/collectives.md, Schedulers): from the lowest; from the next one on
/// with every chunk; by the load that the chunks before it leave there; from the lowest, but rings in a row at once.
enum class DimensionOrder : std::uint8_t { ascending, round_robin, themis, all_axes };

/// Returns whether all chunks take the dimensions in ascending order.
constexpr bool is_ascending(DimensionOrder order) {
  return order == DimensionOrder::ascending || order == DimensionOrder::all_axes;
}

/// The directions of the links of a Ring or Mesh that the algorithm ring uses (docs/collectives.md, Rings and tori).
enum class Directions : std::uint8_t { one, both };

/// Which of the chunks that wait for a dimension is served first: the one that came first; the one with the fewest
/// bytes; the one with the fewest phases left. Ties go to the one that came first.
enum class ChunkOrder : std::uint8_t { fifo, smallest_first, fewest_phases_first };

/// How a collective is cut into chunks, and how dimensions serve them.
struct ChunkScheduling {
  Optimization optimization = Optimization::local_bw_aware;
  DimensionOrder dimension_order = DimensionOrder::ascending;
  Directions directions = Directions::one;
  ChunkOrder chunk_order = ChunkOrder::fifo;
  /// A chunk holds its slot in a dimension for the time that its bytes take. Its latencies and endpoint delays delay
  /// the chunk, but not the chunk that follows.
  bool overlap_latency = false;
  std::uint32_t splits = 1;  ///< chunks of a collective (preferred-dataset-splits)
  Bytes least;               ///< least bytes of a chunk at a member: a smaller collective has fewer chunks. 0: no limit
  std::uint32_t active_chunks = 1;  ///< chunks in service at a time in each dimension
  std::uint32_t queues = 1;         ///< queues per dimension
};

/// Whose turn it is when a collective begins (Rules::turns_go_on).
struct Turn {
  /// A digit for each dimension, to the base of twice ChunkScheduling::queues: twice the queue of the first chunk, plus
  /// one if that chunk goes over the tree of odd chunks.
  std::uint64_t digits = 0;

  /// Returns the weight of a dimension's digit; 0 for dimensions so high that they do not fit.
  static std::uint64_t weight(std::uint32_t dimension, std::uint32_t num_queues);
  std::uint32_t queue(std::uint32_t dimension, std::uint32_t num_queues) const {
    return digit(dimension, num_queues) / 2;
  }
  bool is_odd_tree(std::uint32_t dimension, std::uint32_t num_queues) const {
    return digit(dimension, num_queues) % 2 == 1;
  }

  /// Returns the place, among all queues of all dimensions, of a queue that a collective counts from its own first one
  /// in its dimension.
  std::uint32_t place_of(std::uint32_t own, std::uint32_t num_queues) const {
    const std::uint32_t dimension = own / num_queues;
    return dimension * num_queues + (own + queue(dimension, num_queues)) % num_queues;
  }
  /// Does the opposite.
  std::uint32_t own_at(std::uint32_t place, std::uint32_t num_queues) const {
    const std::uint32_t dimension = place / num_queues;
    return dimension * num_queues + (place + num_queues - queue(dimension, num_queues)) % num_queues;
  }

  friend auto operator<=>(const Turn&, const Turn&) = default;

 private:
  std::uint32_t digit(std::uint32_t dimension, std::uint32_t num_queues) const {
    const std::uint64_t its = weight(dimension, num_queues);
    return its == 0 ? 0 : static_cast<std::uint32_t>(digits / its % (std::uint64_t{2} * num_queues));
  }
};

class CustomCollective;  // custom_collective.hpp
class WholeDurations;    // whole_durations.hpp

/// What takes the place of algorithms: collectives that files spell out, and what computes some collectives as a whole.
struct CustomCollectives {
  using List = std::vector<std::shared_ptr<const CustomCollective>>;

  std::map<Kind, List> of_kind;  ///< one for each size of communicators
  List of_nodes;                 ///< those that nodes of traces name, whatever their kind: see Engine::layout
  std::shared_ptr<const WholeDurations> whole = {};
};

/// The rules by which collectives go (docs/model.md, 1).
struct Rules {
  /// Halving-doubling pays the reduction of every received message; else it skips that of the first step.
  bool reduce_every_message = true;
  /// Inside a communicator smaller than the world the endpoint delay is 10 ns, whatever is configured.
  bool fixed_subgroup_endpoint_delay = false;
  /// A communicator smaller than the world is one group of its members in the order listed. It is a ring, but keeps
  /// direct and halving-doubling where the list of algorithms has one entry.
  bool subgroup_is_ring = false;
  /// With several queues, chunks in the second half of the queues go round the other way in ring and direct. So does
  /// the way back down of an all-reduce.
  bool two_directions = false;
  /// Turns go on from one collective of a communicator to the next (Turn), and a member begins its next chunk over a
  /// tree when one of its own is over, whatever the other members do.
  bool turns_go_on = false;
  /// A position of direct sends its next message when one has come and has been reduced; else it sends in rounds.
  bool sliding_windows = false;
  /// Chunks in service together share the bandwidth of their dimension; else each has all of it.
  bool share_bandwidth = true;
  /// Custom collectives cost what ASTRA-sim charges: no endpoint delays, the recorded duration or 1 ns for a
  /// computation, and a send ends when its message has been delivered. Else docs/collectives.md, Custom collectives.
  bool bare_custom_collectives = false;
  /// Over links, a member begins chunk by chunk what several of its queues may begin at once; else queue by queue.
  bool chunks_begin_in_order = false;
  /// Members of an all-to-all may give different sizes, of which it has the largest. Not over links.
  bool uneven_all_to_all = true;
};

/// By how many collectives of an NPU the bandwidth is shared.
struct BandwidthSharing {
  /// [sets of NPUs][num_dimensions] collectives of an NPU that may be in service at once in a dimension. They share its
  /// bandwidth where the rules say so. Empty: 1 each.
  std::vector<std::vector<std::uint32_t>> sharers = {};
  /// [num_npus] index into `sharers`; empty: all NPUs are one set. The members of a communicator are of one set.
  std::vector<std::uint32_t> set_of = {};
};

/// Everything of the system that a collective depends on, besides the topology.
struct Options {
  /// One algorithm per dimension of the topology; a single `one*` stands for all of them. An empty list: collectives of
  /// this kind are refused.
  std::vector<Algorithm> all_reduce, all_gather, reduce_scatter, all_to_all;
  /// The same for these two kinds. An empty list: they take the algorithms of all-reduce.
  std::vector<Algorithm> broadcast, reduce;
  CustomCollectives custom = {};
  ChunkScheduling chunks = {};
  /// Collectives that an NPU may be in at a time (comm-streams). The share of a switch's operations that one collective
  /// may use depends on it.
  std::uint32_t collectives_at_a_time = 1;
  BandwidthSharing sharing = {};
  Time endpoint_delay = Time::from_ns(10);
  Bandwidth local_memory = Bandwidth::from_bytes_per_ns(0);  ///< 0: reductions are free
  bool rendezvous = false;
  /// Switches reduce packet by packet, and carry out all-reduce, reduce and broadcast only.
  bool switches_send_packets = false;
  std::shared_ptr<const topology::Circuits> circuits = {};  ///< as in network::Options
  LibraryOptions library = {};  ///< library that decides the times in place of algorithms, if one is named
  Rules rules = {};

  /// Returns the endpoint delay in a communicator that is, or is not, a subgroup (Rules).
  Time endpoint_delay_of(bool is_subgroup) const {
    return is_subgroup && rules.fixed_subgroup_endpoint_delay ? Time::from_ns(10) : endpoint_delay;
  }
  /// Returns whether some dimension has an algorithm that the switch carries out.
  bool uses_switch_operations() const;
  /// Throws Error (bad_input) that names the key: a zero where one is not allowed, a list that does not match the
  /// dimensions.
  void validate(const topology::Topology& topology) const;
};

}  // namespace orrery::collective
