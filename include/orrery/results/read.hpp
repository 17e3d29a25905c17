#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orrery/memory/record.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/results.hpp"

namespace orrery::results {

/// How the simulation of a run went: /kernel of its results (docs/results.md).
struct KernelTable {
  std::string status;               ///< "complete", ...
  double wall_time = 0;             ///< s
  std::vector<KernelRecord> ranks;  ///< [num_ranks], at least one
};

/// Reads /kernel. Throws Error (bad_input) that names the file: it does not exist, Orrery did not write it, it has
/// another version, or the table is not whole.
KernelTable read_kernel(const std::filesystem::path& path);

/// What people call links.
struct LinkNames {
  std::map<std::uint32_t, std::pair<std::string, std::string>> ends;  ///< ends by the number of the link: from, to

  /// Returns "NPU 3 to switch 0".
  std::string of(std::uint32_t link) const;
};

/// The messages of a run on the packet network: /network/flows and /network/flow_links of its results.
struct FlowsTable {
  std::vector<network::FlowRecord> flows;      ///< flows by source and number; a label is an index into `groups`
  std::vector<network::FlowLinkRecord> links;  ///< links by link, source and number
  LinkNames names;
  std::vector<std::string> groups;  ///< names of the groups of the run
};

/// Reads them. Throws Error (bad_input) that names the file: as read_kernel, and if the run did not record
/// messages.
FlowsTable read_flows(const std::filesystem::path& path);

/// The queues of a run on the packet network: /network/queues and /network/pauses of its results.
struct QueuesTable {
  std::vector<network::QueueRecord> queues;  ///< queues by link and time
  std::vector<network::PauseRecord> pauses;  ///< pauses by link
  LinkNames names;
};

/// Reads them. Throws Error (bad_input) that names the file: as read_kernel, and if the run did not record queues.
QueuesTable read_queues(const std::filesystem::path& path);

/// Reads the timeline of a run, one NPU at a time.
class Timeline {
 public:
  /// Throws Error (bad_input) that names the file: it does not exist, Orrery did not write it, it has another version
  /// or no timeline, or a table is not whole.
  explicit Timeline(const std::filesystem::path& path);
  ~Timeline();

  std::uint32_t num_npus() const;
  /// Returns the records of one NPU by start. TimelineRecord::name and group are indices for the functions `name` and
  /// `group`. Cost O(rows of the NPU).
  std::vector<npu::TimelineRecord> rows(NpuId npu) const;
  /// Returns the size of the tensors in the local memory of one NPU by time; empty where it is not known. Cost O(rows
  /// of the NPU).
  std::vector<memory::UsageRecord> usage(NpuId npu) const;
  const std::string& name(std::uint32_t index) const;
  const std::string& group(std::uint32_t index) const;

 private:
  struct State;
  /// Adds what the rows of one NPU say of bytes, peers, tags and operations.
  void add_messages(NpuId npu, std::vector<npu::TimelineRecord>& records) const;

  std::unique_ptr<State> state_;
};

/// Returns whether a file holds results of a run that was stopped on request; false if it holds no results that can be
/// read.
bool is_interrupted(const std::filesystem::path& path);

}  // namespace orrery::results
