#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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
  };

  /// Opens the file. It is complete only after `close`; without that, the destructor removes it.
  explicit Writer(const std::filesystem::path& path);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Writes a compute node. `recorded` is cut to whole microseconds.
  void compute(const Common& node, std::uint64_t num_ops, Bytes tensor_size, Time recorded = Time::zero());
  void collective(const Common& node, CollectiveKind kind, Bytes size, std::string_view group);
  /// Writes an access to remote memory by this NPU alone. `kind` is mem_load or mem_store.
  void access(const Common& node, NodeKind kind, Bytes size);
  /// Writes an access by all members of a group, with the collective that switches on the path carry out
  /// (docs/memory.md).
  void access(const Common& node, NodeKind kind, Bytes size, CollectiveKind collective, std::string_view group);
  void send(const Common& node, NpuId from, NpuId to, std::uint32_t tag, Bytes size);
  void receive(const Common& node, NpuId from, NpuId to, std::uint32_t tag, Bytes size);
  void close();

 private:
  struct State;
  void message(NpuId from, NpuId to, std::uint32_t tag, Bytes size);

  std::unique_ptr<State> state_;
};

class Store;

/// Writes the trace of one NPU of a store to a file. It may have compute nodes, collectives, accesses to memory, sends
/// and receives. If it has tensors, the lists of every node are written. Cost O(nodes + dependencies + listings).
void write_trace(const Store& store, const NpuTrace& trace, NpuId npu, const std::filesystem::path& path);

}  // namespace orrery::trace
