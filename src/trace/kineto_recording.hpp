#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace_file.hpp"

namespace orrery::trace {

// What a Kineto trace holds of a rank, in the words of CUDA; HIP's are the same. Times are nanoseconds of the clock of
// the recording.

/// A communication as the profiler describes it, at its kernel or at the operator around its launch.
struct CommunicationRecord {
  std::string name;                       ///< "allreduce", "nccl:all_to_all", ...; empty: not said
  std::optional<std::uint64_t> in_bytes;  ///< bytes that the rank contributes
  std::optional<std::uint64_t> out_bytes;
  std::optional<std::string> group;                   ///< its name
  std::optional<std::vector<std::uint64_t>> members;  ///< empty: all ranks
  bool is_cut = false;                                ///< the recording lists some of the members only
  std::optional<std::uint64_t> group_size;
  std::optional<std::uint64_t> peer;  ///< position of the peer of a message in the group

  /// Takes from `other` what is not said here.
  void complete_with(const CommunicationRecord& other);
};

/// What a call of the runtime has to do with the GPU. Calls that only take time on the host are `other`.
enum class CallKind : std::uint8_t { other, copy, event_record, stream_wait, stream_sync, event_sync, device_sync };

struct HostCall {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t position = 0;  ///< position in the file
  std::uint64_t correlation = 0;
  std::uint32_t thread = 0;
  CallKind kind = CallKind::other;
};

/// A kernel, copy or set.
struct GpuOperation {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t position = 0;
  std::uint64_t correlation = 0;
  std::uint64_t stream = 0;
  std::string name;
  bool communicates = false;                  ///< a kernel of NCCL or RCCL
  std::uint32_t record = 0;                   ///< then its own, an index into Recording::records
  bool may_communicate = false;               ///< a kernel of another library whose name tells communication
  static constexpr std::uint32_t none = ~0U;  ///< number of no call
  std::uint32_t launch = none;                ///< the call that launched it, an index into Recording::calls
};

/// An operator on the host that says what a communication launched within it, or after it in a batch, is.
struct CommunicationOperator {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint64_t function = 0;  ///< its record function id; 0: not recorded
  std::uint32_t thread = 0;
  std::uint32_t record = 0;
};

/// Which streams a call is about, in recordings that say so ("cuda_sync").
struct SyncRecord {
  std::optional<std::uint64_t> stream;         ///< stream that waits, or that is waited for
  std::optional<std::uint64_t> waited_stream;  ///< whose event is waited for
  std::optional<std::uint64_t> event_record;   ///< the correlation of the call that recorded the event
};

struct RecordedStep {
  std::uint64_t number = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint32_t thread = 0;
};

struct Recording {
  std::optional<std::uint64_t> rank;
  std::optional<std::uint64_t> world_size;
  std::int64_t clock_base = 0;  ///< base from which all times are counted
  std::vector<HostCall> calls;  ///< calls in the order of their starts
  std::vector<GpuOperation> operations;
  std::vector<CommunicationOperator> operators;  ///< operators of PyTorch's process groups: nccl:*, record_param_comms
  std::vector<CommunicationOperator> library_operators;  ///< others whose names tell a collective
  std::vector<CommunicationRecord> records;
  std::unordered_map<std::uint64_t, SyncRecord> syncs;  ///< synchronisations by correlation
  std::vector<RecordedStep> steps;
  std::unordered_map<std::string, std::vector<std::uint64_t>> groups;  ///< members by name, as the file lists them
};

/// Reads a Kineto trace. Throws Error (bad_input) with the byte for what cannot be one. Cost O(bytes).
Recording read_recording(TraceFile& file);

/// Returns the members that a text such as "[0, 1, 2]" lists, and whether it leaves some out ("...").
std::optional<std::pair<std::vector<std::uint64_t>, bool>> members_in(std::string_view text);

}  // namespace orrery::trace
