#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// Writes one NPU's execution trace in Chakra's current schema (version "0.0.4"), as any Chakra tool reads it. Every
/// function throws Error (output) if the file cannot be written.
class Writer {
 public:
  struct Tensor {
    std::string_view name;
    Bytes size;
  };
  /// The tensors of a node. Both lists are written, even if they are empty.
  struct Tensors {
    std::span<const Tensor> inputs;
    std::span<const Tensor> outputs;
  };
  /// What nodes of all kinds have. Dependencies are ids of this file.
  struct Common {
    std::uint64_t id = 0;
    std::string_view name;
    std::span<const std::uint64_t> data_deps;
    std::optional<Tensors> tensors = {};
    /// The field duration_micros has it rounded, and the attribute duration_ps exactly if it is no whole number of
    /// microseconds.
    Time recorded = Time::zero();
    std::optional<std::uint32_t> stream = {};
    std::int32_t priority = 0;
  };
  /// Who takes part in a collective, or in an access of a group.
  struct Members {
    std::string_view group;                     ///< empty: all NPUs
    std::uint64_t dimensions = all_dimensions;  ///< bit d is set if dimension d takes part
  };

  /// Opens the file. It is complete only after `close`; without that, the destructor removes it. The metadata name a
  /// `precision` of the arithmetic, if there is one.
  explicit Writer(const std::filesystem::path& path, std::string_view precision = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void compute(const Common& node, std::uint64_t num_ops, Bytes tensor_size);
  /// Writes work of the host, which takes its recorded duration.
  void cpu(const Common& node);
  /// Writes a node that does nothing but wait for others.
  void instant(const Common& node);
  void collective(const Common& node, CollectiveKind kind, Bytes size, const Members& members);
  /// Writes an access to remote memory by this NPU alone. `kind` is mem_load or mem_store.
  void access(const Common& node, NodeKind kind, Bytes size);
  /// Writes an access by all members of a group, with the collective that switches on the path carry out
  /// (docs/memory.md).
  void access(const Common& node, NodeKind kind, Bytes size, CollectiveKind collective, const Members& members);
  void send(const Common& node, NpuId from, NpuId to, std::uint64_t tag, Bytes size);
  void receive(const Common& node, NpuId from, NpuId to, std::uint64_t tag, Bytes size);
  void close();

 private:
  struct State;
  void members(CollectiveKind collective, const Members& members);
  void message(NpuId from, NpuId to, std::uint64_t tag, Bytes size);

  std::unique_ptr<State> state_;
};

class Store;

/// Returns a name for each group of a store, by GroupId: its own, or one with a number behind it if another group has
/// the same name and other members. The group of all NPUs without a name has none. O(groups).
std::vector<std::string> distinct_names(const Store& store);

/// Writes the trace of one NPU of a store to a file. `group_names` is by GroupId. If the trace has tensors, the lists
/// of every node are written. What is read from the file is the same, but for the numbers of streams and for nodes that
/// do nothing, which are METADATA. Cost O(nodes + dependencies + listings).
void write_trace(const Store& store, std::span<const std::string> group_names, const NpuTrace& trace, NpuId npu,
                 const std::filesystem::path& path);

/// Writes the traces of NPUs 0, 1, ... of a store to PREFIX.<npu>.et, and the groups that they use to PREFIX.json, a
/// communicator file. Writes nothing if one of the files exists, without `force`, or cannot be written. Throws Error
/// (output).
void write_traces(const Store& store, std::span<const NpuTrace> traces, const std::filesystem::path& prefix,
                  bool force);

}  // namespace orrery::trace
