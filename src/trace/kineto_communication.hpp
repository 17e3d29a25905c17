#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kineto_recording.hpp"
#include "parsed_trace.hpp"
#include "reader.hpp"

namespace orrery::trace {

/// Returns the collective that a name of PyTorch or NCCL stands for: "allreduce", "nccl:_all_gather_base".
std::optional<CollectiveKind> collective_named(std::string_view name);

/// Says what the communication kernels of a recording are, and writes them as nodes of an NPU.
class KinetoCommunication {
 public:
  /// The NPU may be a copy of the rank that was recorded.
  KinetoCommunication(const Recording& recording, const ReadOptions& options, std::uint64_t npu, ParsedTrace& trace);

  /// Writes what a communication kernel does into its node. A kernel that does not tell enough becomes a compute node,
  /// which the notices count. Throws Error (bad_input) for a process group whose members cannot be known.
  void write(const GpuOperation& operation, ParsedNode& node);

 private:
  enum class Message : std::uint8_t { none, send, receive };

  /// What a kernel does: a collective or a message.
  struct Action {
    std::optional<CollectiveKind> collective;
    Message message = Message::none;
  };

  static Action action_of(const CommunicationRecord& record, std::string_view kernel);
  CommunicationRecord record_of(const GpuOperation& operation) const;
  void complete_group(CommunicationRecord& record) const;
  void set_group(const CommunicationRecord& record, const GpuOperation& operation, ParsedNode& node);
  std::optional<std::uint64_t> peer_of(const CommunicationRecord& record) const;
  void write_message(const CommunicationRecord& record, bool sends, ParsedNode& node);
  std::optional<std::uint64_t> bytes_of(const CommunicationRecord& record, CollectiveKind kind) const;
  void keep_as_kernel(ParsedNode& node);
  std::vector<std::uint64_t> own_members(std::vector<std::uint64_t> members) const;
  std::uint64_t world_size() const;
  [[noreturn]] void fail(const GpuOperation& operation, std::string_view found, std::string_view expected) const;

  const Recording& recording_;
  const ReadOptions& options_;
  std::uint64_t npu_;
  ParsedTrace& trace_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> operators_of_thread_;  ///< by their start
};

}  // namespace orrery::trace
