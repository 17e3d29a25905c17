#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/topology/topology.hpp"

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
};
std::string_view name(Kind kind);

enum class AlgorithmKind : std::uint8_t {
  ring,
  direct,
  halving_doubling,
  double_binary_tree,
  binomial_tree,
  in_switch,
  custom  ///< Options::custom
};

/// How one dimension carries a collective.
struct Algorithm {
  AlgorithmKind kind = AlgorithmKind::ring;
  std::uint32_t window = 0;         ///< direct: sends in flight, 0 = no limit
  bool whole_communicator = false;  ///< `one*`: all members form one line

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

enum class Optimization : std::uint8_t { baseline, local_bw_aware };

/// In which order each chunk takes the dimensions (docs/collectives.md): from the lowest; from the next one on with
/// every chunk; by the load that the chunks before it leave there.
enum class DimensionOrder : std::uint8_t { ascending, round_robin, themis };

/// Which of the chunks that wait for a dimension comes first: who came first; who has the fewest bytes; who has the
/// fewest phases before it. Among equals, who came first.
enum class ChunkOrder : std::uint8_t { fifo, smallest_first, fewest_phases_first };

class CustomCollective;  // custom_collective.hpp

/// The rules by which collectives go (docs/model.md, 1).
struct Rules {
  /// Halving-doubling pays the reduction of every received message; else it skips the first step's
  /// (docs/model.md, 6.3).
  bool reduce_every_message = true;
  /// Inside a communicator smaller than the world the endpoint delay is 10 ns whatever is configured.
  bool fixed_subgroup_endpoint_delay = false;
  /// A communicator smaller than the world is one ring over its members in the order listed.
  bool subgroup_is_ring = false;
  /// Chunks in service together share the bandwidth of their dimension; else each has all of it.
  bool share_bandwidth = true;
  /// Custom collectives cost what ASTRA-sim charges: no endpoint delays, a computation its recorded duration or 1 ns,
  /// and a send is over when its message is there; else docs/collectives.md, Custom collectives.
  bool bare_custom_collectives = false;
};

/// Everything of the system that a collective depends on, besides the topology.
struct Options {
  /// One per dimension of the topology; a single `one*` stands for all. Empty: no collective of that kind is possible.
  std::vector<Algorithm> all_reduce, all_gather, reduce_scatter, all_to_all;
  /// The same for these two kinds; empty: they go the way of an all-reduce.
  std::vector<Algorithm> broadcast, reduce;
  /// Collectives that files spell out, in place of the algorithms: of each kind, one for each size of communicators
  /// that have it.
  std::map<Kind, std::vector<std::shared_ptr<const CustomCollective>>> custom;
  /// Those that nodes of traces name for themselves, whatever their kind: Engine::layout.
  std::vector<std::shared_ptr<const CustomCollective>> custom_nodes;
  Optimization optimization = Optimization::local_bw_aware;
  DimensionOrder dimension_order = DimensionOrder::ascending;
  ChunkOrder chunk_order = ChunkOrder::fifo;
  /// A chunk holds its place in a dimension for the time that its bytes take; its latencies and endpoint delays delay
  /// it, but not who comes next.
  bool overlap_latency = false;
  std::uint32_t splits = 1;         ///< chunks of a collective (preferred-dataset-splits)
  std::uint32_t active_chunks = 1;  ///< per dimension
  std::uint32_t queues = 1;         ///< per dimension
  /// That an NPU may be in (comm-streams): those of its switch's operations that one collective may use depend on it.
  std::uint32_t collectives_at_a_time = 1;
  /// [num_dimensions] of an NPU that may be in service at once in a dimension, whose bandwidth they share where the
  /// rules say so; empty: 1.
  std::vector<std::uint32_t> sharers = {};
  Time endpoint_delay = Time::from_ns(10);
  Bandwidth local_memory = Bandwidth::from_bytes_per_ns(0);  ///< 0: reductions are free
  bool rendezvous = false;
  Rules rules = {};

  /// Some dimension has this algorithm for some kind.
  bool use(AlgorithmKind algorithm) const;
  /// Throws Error (bad_input) naming the key: a zero where one is not allowed, lists that do not match the dimensions.
  void validate(const topology::Topology& topology) const;
};

/// A communicator as collectives see it: members, and the lines in which each dimension joins them. Opaque, immutable;
/// built by Engine::layout. Layouts that behave alike share one memo of results.
class GroupLayout;
class MessageProgram;  // script.hpp

/// What one collective does to the network: [num_dimensions] bytes that one member sends in each (mean over members).
using Traffic = std::vector<Bytes>;

/// Every dimension of the world takes part: the value of `dimensions` for an ordinary communicator.
constexpr std::uint64_t all_dimensions = ~std::uint64_t{0};

/// Completion times of collectives as a pure function of the members' arrivals (docs/model.md, 5 to 8). Needs no event,
/// message or rank. Not thread-safe (it memoises).
class Engine {
 public:
  Engine(const network::DelayModel& delays, Options options);
  ~Engine();

  /// Sets Options::sharers. Before anything that depends on sizes is asked.
  void share_among(std::vector<std::uint32_t> sharers);

  /// With `all_dimensions`: an ordinary communicator of `members` in the order listed; empty = the world. It uses the
  /// grid of its members' coordinates, or else (always, under Rules::subgroup_is_ring, if smaller than the world) one
  /// ring in the order listed. With any other mask, `members` are one of the sub-grids of the world that `split` gives
  /// for it, with lines along the mask's dimensions only and the world's endpoint delay. The layout lives as long as
  /// the engine. With `custom` from 1 on, the collectives of the communicator run Options::custom_nodes[custom - 1],
  /// whatever else the options say. Throws Error (internal) if a member appears twice or the members are no sub-grid.
  /// Cost O(members * dimensions).
  std::shared_ptr<const GroupLayout> layout(std::span<const NpuId> members, std::uint64_t dimensions,
                                            std::uint32_t custom = 0);

  /// The NPUs that take part together with `npu` when only `dimensions` of the world are involved (bit d: dimension d):
  /// ascending.
  std::vector<NpuId> split(NpuId npu, std::uint64_t dimensions) const;

  /// Throws Error (bad_input) if an algorithm that this collective would use has no rule for it; says which dimension,
  /// algorithm, kind, size, and what is possible. Cost independent of the bytes.
  void validate(const GroupLayout& layout, Kind kind) const;

  /// What spells out collectives of this kind in place of algorithms (Options::custom, or custom_nodes); null if
  /// nothing does.
  const CustomCollective* custom_collective(const GroupLayout& layout, Kind kind) const;

  /// Whether the collective's duration fits Time, and the bytes that a member sends in a dimension fit Bytes::most().
  /// What `validate` refuses must not get here. Memoised.
  bool fits(const GroupLayout& layout, Kind kind, Bytes size);

  /// completions[i] for arrivals[i], in the order of the members. completion >= max(arrivals) + one tick for two
  /// members or more, = arrival for one. Equal arrivals cost O(1) in the number of members after the first call of a
  /// kind (memo), unequal ones O(members * chunks * phases) for rings and lines in which all pairs are alike, O(members
  /// * steps) for the others. Monotone in every arrival; a shift of all arrivals shifts all completions. What
  /// `validate` or `fits` refuses must not get here. All completions are Time::max() if the last may not fit Time.
  void finish(const GroupLayout& layout, Kind kind, Bytes size, std::span<const Time> arrivals,
              std::span<Time> completions);

  /// What the algorithms' symmetry says for collectives of these kinds, whatever their sizes: if all members of one
  /// mark arrive together, then those of one mark and one place complete together. [members] numbers of places; the
  /// same for the same layout, kinds and marks (up to their names). What `validate` refuses must not get here.
  /// O(members * dimensions * divisors of their sizes).
  std::vector<std::uint32_t> equivalence_classes(const GroupLayout& layout, std::span<const Kind> kinds,
                                                 std::span<const std::uint32_t> marks) const;

  /// No member completes earlier than the last arrival plus this, whatever kind and size: the endpoint delays on a path
  /// through the fewest steps, at least one tick. For one member 0.
  Time minimum_duration(const GroupLayout& layout) const;

  /// No member completes earlier than the first arrival plus this: what the first to complete takes if all arrive
  /// together. Memoised.
  Time least_duration(const GroupLayout& layout, Kind kind, Bytes size);

  /// What a member sends in the whole collective, all chunks and steps: [num_dimensions] bytes, the mean over the
  /// members rounded down. A message that crosses several dimensions counts in each that the rules charge. Memoised.
  const Traffic& traffic(const GroupLayout& layout, Kind kind, Bytes size);

  /// The collective message by message, for networks that carry each of them. For two members or more. What `validate`
  /// or `fits` refuses must not get here. Memoised.
  std::shared_ptr<const MessageProgram> message_program(const GroupLayout& layout, Kind kind, Bytes size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::collective
