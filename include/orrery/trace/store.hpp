#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  automatic,     ///< by_name, or another one if the configuration asks for it
  by_name,       ///< those that name the same stream in the trace; nodes that name none as with by_dimension
  by_dimension,  ///< collectives that use the same dimensions of the network; sends; others as with by_count
  by_count,      ///< those of a resource: the system says how many run at once
  of_trace,      ///< those that name the same stream; nodes that name none as with by_count
};

/// Collectives that run files of their own: by the id of the node, the number of the file, from 1 on.
using CustomNodes = std::map<std::uint64_t, std::uint32_t>;

/// Which step of a recording is executed.
struct StepChoice {
  enum class Kind : std::uint8_t {
    last,  ///< the last one; all that was recorded if no steps were marked
    all,   ///< all that was recorded
    numbered,
  };
  Kind kind = Kind::last;
  std::uint64_t number = 0;

  friend bool operator==(const StepChoice&, const StepChoice&) = default;
};

/// What is taken of the recordings of a profiler (kineto).
struct RecordingOptions {
  StepChoice step = {};
  /// Number of ranks that have a recording; the others are copies of them. 0: all have one.
  std::uint32_t replicate = 0;
  /// Names of the PyTorch execution traces that belong to recordings, in which {npu} stands for the rank; empty: such a
  /// trace is looked for beside each recording.
  std::filesystem::path execution_traces = {};

  friend bool operator==(const RecordingOptions&, const RecordingOptions&) = default;
};

struct ReadOptions {
  Dependencies dependencies = Dependencies::automatic;
  Streams streams = Streams::by_count;
  RecordingOptions recording = {};
  CustomNodes custom_nodes = {};     ///< collectives of every NPU's trace that run custom files
  std::uint32_t num_npus = 0;        ///< number of NPUs of the topology
  std::uint32_t num_dimensions = 0;  ///< number of dimensions of the topology; 0: not known
  /// Precision of the arithmetic, such as "fp8". A trace that names another one is a fault. Empty: any precision.
  std::string precision = {};
  /// The local memory has a size: a tensor that is listed with different sizes is a fault, otherwise a notice.
  bool memory_has_size = false;
  /// The trace is looked at without its system: any peer and any group is accepted, whichever NPU reads it.
  bool alone = false;
  /// The given groups are not those of the system: the names that traces use are not looked up.
  bool groups_unknown = false;
  /// Says of which NPUs traces will be read, so that a file with the traces of many NPUs is read for these alone. If it
  /// is empty, the traces of all NPUs of such a file are kept.
  std::function<bool(NpuId)> hosts = {};

  std::uint32_t npu_limit() const { return alone ? ~std::uint32_t{0} : num_npus; }
};

/// Is told, while a file is read, how many of its bytes were read, and how many it has.
using WhileReading = std::function<void(std::uint64_t bytes, std::uint64_t size)>;

/// What a file says of itself.
struct FileDescription {
  std::string_view format;    ///< name of the reader that recognises it (docs/traces.md)
  std::vector<NpuId> owners;  ///< the NPUs whose traces it holds, ascending; empty: it does not say whose its trace is
};

/// Reads a file as far as is needed to say whose traces it holds. With `only_first`, the search ends at the first of
/// them. Throws Error (bad_input) for a file that is not a trace, as far as it was read. Cost O(bytes).
FileDescription describe_file(const std::filesystem::path& path, ReadOptions options, bool only_first);

/// Returns the name of the format of a trace file (docs/traces.md), by its first bytes; nothing if it is no trace.
/// Throws Error (bad_input) if the file cannot be read.
std::optional<std::string_view> format_of(const std::filesystem::path& path);

/// Says of a file that is given for a configuration what it is in truth, and where it belongs: "a trace (kineto): ...".
/// Returns nothing if it may be a configuration. Throws Error (bad_input) if the file cannot be read.
std::optional<std::string> describe_other(const std::filesystem::path& path);

/// Returns a file's text, unpacked if it is gzip, without the mark of UTF-8 before it. Throws Error (bad_input) if the
/// file cannot be read.
std::string read_unpacked(const std::filesystem::path& path);

/// Reads the text of a communicator file, `{"name": [npu, ...], ...}`; `file` names it in messages. These are faults
/// with their line: a member out of range or listed twice, an empty group, a name that is empty or defined twice.
/// Anything else is a fault that ends the reading.
NamedGroups parse_groups(std::string_view text, const std::string& file, std::uint32_t num_npus, Faults& faults);
/// Reads a communicator file. Throws its faults (Faults::raise).
NamedGroups read_group_file(const std::filesystem::path& path, std::uint32_t num_npus);

/// A file that was read.
struct ReadFile {
  std::string name;
  std::uint64_t digest;  ///< digest of its bytes
};

/// What a store has already taken over from another one.
struct Adopted {
  std::map<std::pair<const Graph*, const Labels*>,
           std::pair<std::shared_ptr<const Graph>, std::shared_ptr<const Labels>>>
      parts;
  std::map<std::uint32_t, std::uint32_t> files;
};

/// The traces of the NPUs that this rank hosts. Equal structures, labels and names are kept once.
class Store {
 public:
  Store(ReadOptions options, NamedGroups groups);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// Reads the trace of one NPU from a file of any format and closes the file. The store remembers the last 16 files:
  /// it does not read a file again that holds one trace for many NPUs, or the traces of many. Cost O(bytes). Everything
  /// that is wrong with the file by itself is a fault (docs/traces.md lists them); nothing is returned then. The groups
  /// of the result are indices into groups(). An Error that `while_reading` throws goes on, unless it is about the
  /// input.
  std::optional<NpuTrace> read(const std::filesystem::path& path, NpuId npu, Faults& faults,
                               WhileReading while_reading = {});
  /// Reads the trace of one NPU. Throws its faults (Faults::raise).
  NpuTrace read(const std::filesystem::path& path, NpuId npu);

  /// Lets the trace of a recording begin so much later: its first node, which stands for this, takes so long.
  void delay(NpuTrace& trace, Time by);
  /// Keeps a trace that was made (trace::Builder). `source` stands for its file in messages. The caller fills in the
  /// NPU's groups and peers, by slots. Cost O(nodes); copies for other NPUs share the structure.
  NpuTrace keep(Structure structure, std::string source);
  /// Returns the group of made traces with this name and these members; no members: all NPUs. Cost O(members).
  GroupId keep_group(std::string_view name, std::vector<NpuId> members);
  /// Returns the group with this name that traces use and that nobody lists: see unlisted_groups.
  friend GroupId keep_unlisted_group(Store& store, std::string_view name);
  /// Takes over a trace that another store has read or made: its graph, its labels and the name of its file. Leaves its
  /// groups and peers as they are, numbers of the other store and its NPUs. `known`: what was taken over from the same
  /// store before. O(nodes) for a structure that is new.
  friend NpuTrace adopt(Store& store, NpuTrace trace, const Store& other, Adopted& known);
  /// Replaces `ReadOptions::hosts`: from now on the store reads traces of these NPUs. Frees the structures and labels
  /// that no NpuTrace uses any more, and forgets the files that were read last. Cost O(structures).
  void host_instead(std::function<bool(NpuId)> hosts);

  /// Returns the groups that the traces read so far name, in the order of their first use, each (name, members) once.
  const std::vector<Group>& groups() const;

  /// Returns the groups that the traces read so far name, but that nobody lists, in the order of their first use.
  std::span<const GroupId> unlisted_groups() const;
  /// Says who the members of such a group are, in ascending order; then it is a group like others.
  void list_group(GroupId group, std::vector<NpuId> members);

  std::string_view name(std::uint32_t index) const;
  std::string_view name_of(const NpuTrace& trace, NodeId node) const { return name(trace.labels->names[node.index()]); }
  const std::string& file(const NpuTrace& trace) const;
  /// Returns the files that were read, in this order. A file that was read twice is there twice.
  std::vector<ReadFile> files_read() const;
  /// Returns the name of the format that the trace was read in (docs/traces.md); empty for a trace that was made.
  std::string_view format(const NpuTrace& trace) const;
  /// Returns where a node is, for messages.
  Place place(const NpuTrace& trace, NpuId npu, NodeId node) const;

  /// Returns how many traces differ in more than peers, groups, tags and a shift of the ids.
  std::size_t num_structures() const;
  /// Returns how many graphs are kept: structures that differ only in names and ids share one.
  std::size_t num_graphs() const;
  /// Returns the bytes of memory that structures, labels and names take.
  std::size_t bytes() const;
  const Notices& notices() const;
  /// Returns ReadOptions::precision; if that is empty, the precision that the traces name, or nothing if they name
  /// none. Throws Error (bad_input) if they name several.
  std::string precision() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

GroupId keep_unlisted_group(Store& store, std::string_view name);
NpuTrace adopt(Store& store, NpuTrace trace, const Store& other, Adopted& known);

/// Returns the version of protocol buffers that this was built with: "3.21.12".
std::string protobuf_version();

}  // namespace orrery::trace
