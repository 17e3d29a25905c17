#pragma once

#include <algorithm>
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

  /// Returns the messages that a kernel of NCCL carries out together: a program that batches sends and receives calls
  /// all of them before the one launch, so that no operator is around it. They are in the order of the calls; nothing
  /// if the kernel or an operator around its launch says what it does.
  std::vector<CommunicationRecord> messages_of(const GpuOperation& operation) const;

  /// Writes what a communication kernel does into its node. A kernel that does not tell enough becomes a compute node,
  /// which the notices count. Throws Error (bad_input) for a process group whose members cannot be known.
  void write(const GpuOperation& operation, ParsedNode& node);
  /// Says whether a message is sent, or else received, and how many bytes it has.
  static bool sends(const CommunicationRecord& record) { return action_of(record, {}).message == Message::send; }
  static std::uint64_t message_bytes(const CommunicationRecord& record) {
    return std::max(record.in_bytes.value_or(0), record.out_bytes.value_or(0));
  }
  /// Writes one of the messages of a kernel into its node.
  void write_message(const CommunicationRecord& record, ParsedNode& node) {
    write_message(record, sends(record), node);
  }
  /// Writes a collective that a kernel of another library carries out, if the operator around its launch says how many
  /// bytes it has. Otherwise the node remains a compute node, which the notices count. Returns whether it is one.
  bool write_of_library(const GpuOperation& operation, ParsedNode& node);

 private:
  enum class Message : std::uint8_t { none, send, receive };

  /// What a kernel does: a collective or a message.
  struct Action {
    std::optional<CollectiveKind> collective;
    Message message = Message::none;
  };

  /// Operators of a thread, by their start.
  using Operators = std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>;

  static Action action_of(const CommunicationRecord& record, std::string_view kernel);
  static void complete_around(const HostCall& launch, const std::vector<CommunicationOperator>& operators,
                              const Operators& of_thread, const Recording& recording, CommunicationRecord& record);
  CommunicationRecord record_of(const GpuOperation& operation) const;
  std::vector<CommunicationRecord> called_before(const GpuOperation& operation) const;
  void add_calls_before(const GpuOperation& operation, CommunicationRecord& record) const;
  std::optional<std::vector<std::uint64_t>> only_group_of(std::uint64_t size) const;
  void complete_group(CommunicationRecord& record) const;
  void set_group(const CommunicationRecord& record, const GpuOperation& operation, ParsedNode& node);
  std::optional<std::uint64_t> peer_of(const CommunicationRecord& record) const;
  void write_message(const CommunicationRecord& record, bool sends, ParsedNode& node);
  std::optional<std::uint64_t> bytes_of(const CommunicationRecord& record, CollectiveKind kind) const;
  void keep_as_kernel(ParsedNode& node);
  static void write_collective(CollectiveKind kind, std::uint64_t bytes, ParsedNode& node);
  std::vector<std::uint64_t> own_members(std::vector<std::uint64_t> members) const;
  std::uint64_t world_size() const;
  [[noreturn]] void fail(const GpuOperation& operation, std::string_view found, std::string_view expected) const;

  const Recording& recording_;
  const ReadOptions& options_;
  std::uint64_t npu_;
  ParsedTrace& trace_;
  Operators operators_of_thread_, library_operators_of_thread_;
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> launches_of_thread_;  ///< NCCL launch times, ascending
};

}  // namespace orrery::trace
