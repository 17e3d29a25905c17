#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// Which dependency fields of a node order it.
enum class Dependencies : std::uint8_t {
  automatic,  ///< both, unless ctrl_deps make a cycle (then data) or no node has data_deps (then ctrl)
  data,
  ctrl,
  both,
};

/// Process groups by name, as a communicator file gives them.
using NamedGroups = std::map<std::string, std::vector<NpuId>, std::less<>>;

/// Which nodes of an NPU take turns.
enum class Streams : std::uint8_t {
  by_count,  ///< those of a resource, whose places the system counts
  of_trace,  ///< those that name one stream; who names none, as above
};

/// Collectives that run files of their own: by the id of the node, the number of the file, from 1 on.
using CustomNodes = std::map<std::uint64_t, std::uint32_t>;

struct ReadOptions {
  Dependencies dependencies = Dependencies::automatic;
  Streams streams = Streams::by_count;
  CustomNodes custom_nodes = {};  ///< of every NPU's trace; a node that is no collective is not meant
  std::uint32_t num_npus = 0;     ///< of the topology
  /// A trace is looked at without its system: peers and groups are taken as they stand, whoever reads it.
  bool alone = false;
  /// The groups given are not those of the system: the names that traces use are not looked up.
  bool groups_unknown = false;

  std::uint32_t npu_limit() const { return alone ? ~std::uint32_t{0} : num_npus; }
};

/// Reads the text of a communicator file, `{"name": [npu, ...], ...}`; `file` names it in messages. Faults with their
/// line: a member out of range or listed twice, an empty group, a name that is empty or defined twice. Anything else
/// is a fault that ends the reading.
NamedGroups parse_groups(std::string_view text, const std::string& file, std::uint32_t num_npus, Faults& faults);
/// The same with the file read; throws the faults (Faults::raise).
NamedGroups read_group_file(const std::filesystem::path& path, std::uint32_t num_npus);

/// The traces of the NPUs that this rank hosts. Equal structures, labels and names are kept once.
class Store {
 public:
  Store(ReadOptions options, NamedGroups groups);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Reads one Chakra execution trace for one NPU and closes the file. One of the last 16 files is not parsed again if
  /// `path` is the same (one file for many NPUs). Cost O(bytes).
  /// Faults are all that this file shows by itself (docs/traces.md lists them); nothing is returned then.
  /// Groups of NpuTrace are indices into groups() of this store until `renumber_groups`.
  std::optional<NpuTrace> read(const std::filesystem::path& path, NpuId npu, Faults& faults);
  /// The same; throws the faults (Faults::raise).
  NpuTrace read(const std::filesystem::path& path, NpuId npu);

  /// A trace that was made (trace::Builder). `source` stands for its file in messages. The NPU's own groups and peers
  /// are still to be filled in, by slots. Cost O(nodes); copies for other NPUs share the structure.
  NpuTrace keep(Structure structure, std::string source);
  /// A group of made traces; no members: all NPUs. Cost O(members).
  GroupId keep_group(std::string_view name, std::vector<NpuId> members);
  /// Frees the structures and labels that no NpuTrace uses any more, and forgets the files that were read last. Cost
  /// O(structures).
  void free_unused();

  /// The groups that the traces read so far name, in order of first use; distinct in (name, members).
  const std::vector<Group>& groups() const;

  std::string_view name(std::uint32_t index) const;
  std::string_view name_of(const NpuTrace& trace, NodeId node) const { return name(trace.labels->names[node.index()]); }
  const std::string& file(const NpuTrace& trace) const;
  /// Where a node is, for messages.
  Place place(const NpuTrace& trace, NpuId npu, NodeId node) const;

  /// How many traces differ in more than peers, groups, tags and a shift of the ids.
  std::size_t num_structures() const;
  /// How many graphs are kept: structures that differ in names and ids only share one.
  std::size_t num_graphs() const;
  std::size_t bytes() const;  ///< memory held by structures, labels and names
  const Notices& notices() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "3.21.12", of the headers that this was built with.
std::string protobuf_version();

}  // namespace orrery::trace
