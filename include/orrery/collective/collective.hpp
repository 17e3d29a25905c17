#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::trace {
struct Group;
}

namespace orrery::collective {

/// A communicator as collectives see it: its members, and the dimension groups in which they carry out phases. Opaque,
/// immutable; made by Engine::layout. Communicators that behave alike share one layout, and one memo of results.
class GroupLayout;
class CustomCollective;  // custom_collective.hpp
class MessageProgram;    // message_program.hpp

/// Bytes that one member sends in each dimension in a collective: [num_dimensions], the mean over the members.
using CollectiveTraffic = std::vector<Bytes>;

/// Every dimension of the world takes part: the value of `dimensions` for an ordinary communicator.
constexpr std::uint64_t all_dimensions = ~std::uint64_t{0};

/// Share of its bandwidth that a dimension gains in LibraryEffect::savings.
constexpr double bandwidth_step = 0.1;

/// What a collective of a library does to the rest of a step.
struct LibraryEffect {
  std::uint32_t num_channels = 0;  ///< compute units of an NPU on which it runs; 0: not known
  /// [num_dimensions] share of its time that it saves if the links of a dimension have `bandwidth_step` more bandwidth
  std::vector<double> savings = {};
};

/// What a library says of a collective.
struct LibraryFigures {
  LibraryTime time;
  LibraryRange range;
  Correction correction;  ///< whose file the engine's options hold
  double ratio = 1;       ///< corrected time over that of the library
};

/// What carries out a chunk of a collective in the dimension groups of one kind.
struct PhaseFigures {
  std::vector<std::uint32_t> dimensions;  ///< dimensions of the groups; several if all members form one group
  std::uint32_t size = 0;                 ///< members of a group
  std::string algorithm;                  ///< as configurations spell it; of a custom collective "custom"
  Kind kind = Kind::all_reduce;           ///< kind that the algorithm carries out
  Bytes bytes;                            ///< size of the chunk as it enters the phase
  std::uint64_t steps = 0;                ///< steps that follow each other
  /// The members are one ring because they form no grid of the dimensions, whatever the options say.
  bool is_fallback = false;
  /// What NCCL's tuning model chooses: "LL", "LL128" or "Simple"; empty without a library.
  std::string protocol = {};
  std::uint32_t channels = 0;
  std::optional<ExpertTime> experts = {};  ///< time of an exchange by kernels of experts
  std::optional<LibraryFigures> library = {};
};

/// A collective as the options have it carried out.
struct CollectiveFigures {
  std::uint64_t chunks = 1;
  std::vector<PhaseFigures> phases;  ///< phases of the first chunk, in order; none for one member
};

/// Computes when members complete collectives, as a pure function of the members' arrivals (docs/model.md, 5 to 8). It
/// needs no event, message or rank. Not thread-safe: it memoises.
class Engine {
 public:
  /// Throws Error (bad_input) if the options do not fit the topology: see Options::validate.
  Engine(const network::DelayModel& delays, Options options);
  ~Engine();

  const Rules& rules() const;
  /// See Options::endpoint_delay_of.
  Time endpoint_delay(bool is_subgroup) const;
  Time endpoint_delay(const GroupLayout& layout) const;

  /// Sets BandwidthSharing::sharers. Call it before asking for anything that depends on sizes.
  void share_among(std::vector<std::vector<std::uint32_t>> sharers);

  /// Returns the layout of a communicator, which lives as long as the engine.
  ///
  /// With `all_dimensions`: an ordinary communicator of `members` in the order listed; empty means the world. It uses
  /// the grid of its members' coordinates. If they form no grid, or if Rules::subgroup_is_ring holds and the
  /// communicator is smaller than the world, it is one ring in the order listed. With any other mask, `members` are one
  /// of the sub-grids of the world that `split` gives for the mask, with dimension groups along the mask's dimensions
  /// only and the world's endpoint delay. With `custom` from 1 on, the collectives of the communicator run
  /// CustomCollectives::of_nodes[custom - 1], whatever else the options say.
  ///
  /// Throws Error (internal) if a member appears twice or the members are no sub-grid. Cost O(members * dimensions).
  std::shared_ptr<const GroupLayout> layout(std::span<const NpuId> members, std::uint64_t dimensions,
                                            std::uint32_t custom = 0);

  /// Returns the NPUs that take part together with `npu` if only `dimensions` of the world are involved (bit d:
  /// dimension d), in ascending order.
  std::vector<NpuId> split(NpuId npu, std::uint64_t dimensions) const;

  /// Throws Error (bad_input) if an algorithm that this collective would use cannot carry it out; the message says
  /// which dimension, algorithm, kind and size, and what is possible. The cost does not depend on the bytes.
  void validate(const GroupLayout& layout, Kind kind) const;

  /// Returns the custom collective that carries out collectives of this kind in place of algorithms; null if there is
  /// none.
  const CustomCollective* custom_collective(const GroupLayout& layout, Kind kind) const;

  /// Returns whether the collective's duration fits Time, and the bytes that a member sends in a dimension fit
  /// Bytes::most(). What `validate` refuses must not get here. Memoised.
  bool fits(const GroupLayout& layout, Kind kind, Bytes size);

  /// Computes completions[i] for arrivals[i], in the order of the members. What `validate` or `fits` refuses must not
  /// get here.
  ///
  /// A completion is at least one tick after the last arrival for two members or more, and equals the arrival for one.
  /// A later arrival makes no completion earlier, unless Rules::turns_go_on lets members serve chunks in different
  /// orders. No completion comes less than least_duration after the first arrival. A shift of all arrivals shifts all
  /// completions. All completions are Time::max() if the last may not fit Time.
  ///
  /// Cost: for equal arrivals O(1) in the number of members after the first call with a kind and size (memo); for
  /// unequal arrivals O(members * chunks * phases) for rings and for direct over links that are all alike, else
  /// O(messages).
  void finish(const GroupLayout& layout, Kind kind, Bytes size, std::span<const Time> arrivals,
              std::span<Time> completions, Turn turn = {});

  /// Returns whether chunks take queues or trees in turns that go on from one collective to the next.
  bool turns_go_on() const;
  /// Returns whether the members of a collective must agree on whose turn it is, because it decides over which tree or
  /// which way round their chunks go, and they could wait for each other.
  friend bool turn_decides_way(const Engine& engine, const GroupLayout& layout, Kind kind);
  /// Returns the number of queues of each dimension.
  friend std::uint32_t num_queues(const Engine& engine);
  /// Returns whether a library decides how collectives are carried out.
  friend bool has_library(const Engine& engine);
  /// Returns the members of each dimension group of a communicator whose all-reduces, reduces or broadcasts a switch
  /// carries out, as numbers of members. O(members * dimensions).
  friend std::vector<std::vector<std::uint32_t>> groups_in_switches(const Engine& engine, const GroupLayout& layout);
  /// Returns the layout of a group of traces, in its configuration of the circuits: its members are at the positions
  /// where they stand then. Arguments and cost: as `layout`.
  friend std::shared_ptr<const GroupLayout> layout_of(Engine& engine, const trace::Group& group,
                                                      std::uint64_t dimensions, std::uint32_t custom);
  /// Returns what a collective of a library does besides taking its time; nothing for one that no library carries out.
  /// Memoised until the next share_among; at first O(dimensions * cost of library_time).
  friend const LibraryEffect& effect_of(const Engine& engine, const GroupLayout& layout, Kind kind, Bytes size);
  /// Returns whose turn it is after a collective of the communicator that begins with `turn`.
  Turn next_turn(Turn turn, const GroupLayout& layout, Kind kind, Bytes size) const;
  /// Returns the kinds, a bit each, whose collectives are among all NPUs if they name the first dimension, whatever
  /// others they name: under the rules of ASTRA-sim those of `one*`, which makes one dimension of all NPUs.
  std::uint32_t kinds_of_all() const;
  /// Returns turns at which a collective of this kind may begin: those that are alike in all dimensions, as far as its
  /// times depend on them.
  std::vector<Turn> turns(const GroupLayout& layout, Kind kind) const;

  /// Returns the class of each member: if all members with equal signatures arrive together, then those with equal
  /// signatures and equal classes complete together, in collectives of these kinds and of any size. `signatures` and
  /// the result: [members]. The classes follow from the algorithms' symmetry; they do not depend on the values of the
  /// signatures, only on which are equal. What `validate` refuses must not get here.
  /// Cost O(members * dimensions * divisors of their sizes).
  std::vector<std::uint32_t> equivalence_classes(const GroupLayout& layout, std::span<const Kind> kinds,
                                                 std::span<const std::uint32_t> signatures) const;

  /// Returns the least time between the last arrival and any completion, whatever kind and size: the endpoint delays on
  /// a path through the fewest steps, at least one tick; 0 for one member. Memoised.
  Time minimum_duration(const GroupLayout& layout);

  /// Returns the least time between the first arrival and any completion: what the first member to complete takes if
  /// all arrive together, whose turn ever it is. Memoised.
  Time least_duration(const GroupLayout& layout, Kind kind, Bytes size);

  /// Returns what a member sends in the whole collective, all chunks and steps. The mean over the members is rounded
  /// down. A message that crosses several dimensions counts in each that the rules charge. Memoised.
  const CollectiveTraffic& traffic(const GroupLayout& layout, Kind kind, Bytes size);

  /// Returns how the collective is carried out. What `validate` refuses must not get here. O(members + chunks *
  /// axes^2).
  CollectiveFigures figures(const GroupLayout& layout, Kind kind, Bytes size) const;

  /// Returns the collective message by message, for networks that carry each message. For two members or more. What
  /// `validate` or `fits` refuses must not get here. The program must not outlive the engine. Memoised.
  std::shared_ptr<const MessageProgram> message_program(const GroupLayout& layout, Kind kind, Bytes size,
                                                        Turn turn = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

bool turn_decides_way(const Engine& engine, const GroupLayout& layout, Kind kind);
std::uint32_t num_queues(const Engine& engine);
bool has_library(const Engine& engine);
std::vector<std::vector<std::uint32_t>> groups_in_switches(const Engine& engine, const GroupLayout& layout);
const LibraryEffect& effect_of(const Engine& engine, const GroupLayout& layout, Kind kind, Bytes size);

std::shared_ptr<const GroupLayout> layout_of(Engine& engine, const trace::Group& group, std::uint64_t dimensions,
                                             std::uint32_t custom);

}  // namespace orrery::collective
