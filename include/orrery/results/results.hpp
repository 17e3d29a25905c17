#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/gpu/record.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/network/flit_records.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/packet_recording.hpp"
#include "orrery/network/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/load_record.hpp"
#include "orrery/pdes/statistics.hpp"
#include "orrery/results/breakdown.hpp"
#include "orrery/results/critical_path.hpp"
#include "orrery/results/jobs.hpp"
#include "orrery/results/metrics.hpp"
#include "orrery/results/npu_records.hpp"
#include "orrery/results/repetitions.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::results {

/// What a library says of a collective (collective::LibraryFigures).
struct LibraryRecord {
  std::uint8_t algorithm = 0;  ///< index into library_algorithms
  std::uint8_t bound = 0;      ///< collective::ResourceKind
  bool is_extrapolated = false;
  std::uint32_t dimension = 0;                 ///< dimension of the resource that binds, if it is a dimension
  double bytes = 0, capacity = 0, share = 0;   ///< figures of the resource that binds: collective::Resource
  double latency = 0, ramp = 0, transfer = 0;  ///< seconds
  double error = 0;                            ///< relative standard error
};
/// Returns the names of the algorithms of libraries.
std::vector<std::string> library_algorithms();

enum class Status : std::uint8_t { complete, stuck, interrupted };

/// What the kernel did on one rank (docs/results.md, /kernel), and the largest resident memory of the rank.
struct KernelRecord : pdes::Statistics {
  std::uint64_t peak_memory_bytes = 0;
};

struct NetworkRecord {
  std::vector<Bytes> bytes;           ///< [num_dimensions] sent by the NPUs of this rank
  std::vector<SumOfTimes> busy_time;  ///< [num_dimensions] serialisation times, summed over links
  std::vector<orrery::network::FlitRecord> flits = {};  ///< links of this rank in dimensions of flits
};

/// A communicator whose members are in several blocks of NPUs.
struct LoadCommunicator {
  std::uint32_t id = 0;
  std::uint32_t host = 0;             ///< block of the NPU that the host of the communicator has
  std::vector<std::uint32_t> blocks;  ///< blocks of its members, ascending, each once
};

/// What blocks of NPUs did when (docs/results.md, /load).
struct Load {
  pdes::LoadRecord record;
  bool runs_ahead = false;     ///< an NPU may be ahead of others; else ranks handle events in the order of time
  std::uint32_t num_npus = 0;  ///< number of NPUs, in contiguous blocks
  std::vector<LoadCommunicator> communicators;  ///< ascending in id
};

/// What a library says of the collectives of one rank.
struct LibraryResults {
  bool has_library = false;            ///< a library carried them out, on all ranks
  std::vector<LibraryRecord> library;  ///< [RankResults::collectives] if one did, else empty
  std::vector<LibrarySum> library_sums;
};

/// What one rank knows when the run has ended.
struct RankResults : LibraryResults {
  std::vector<npu::NpuRecord> npus;                          ///< simulated on this rank, ascending in NPU
  std::vector<communicator::CollectiveRecord> collectives;   ///< recorded, of the communicators hosted here
  std::vector<communicator::CollectiveSum> collective_sums;  ///< sums of these communicators, recorded or not
  std::vector<npu::TimelineRecord> timeline;                 ///< grouped by NPU ascending, by start then node inside
  std::vector<memory::UsageRecord> usage;   ///< use of local memories, grouped by NPU ascending, by time
  std::vector<std::string> timeline_names;  ///< names that TimelineRecord::name indexes
  NetworkRecord network;
  std::vector<orrery::network::LinkRecord> links;         ///< links of this rank that carried data
  orrery::network::PacketRecords packets;                 ///< messages and queues of this rank
  std::vector<orrery::memory::MemoryStageRecord> memory;  ///< stages of a hierarchical pool hosted here
  std::vector<orrery::gpu::KernelRecord> gpu_kernels;     ///< kernels of simulated thread blocks, by NPU of this rank
  std::vector<orrery::gpu::RequestRecord> gpu_requests;   ///< requests of these NPUs
  KernelRecord kernel;
  std::optional<Load> load;  ///< if it was recorded; with the communicators of all ranks
  std::string host;
};

/// Names and texts of input files, verbatim.
using InputTexts = std::vector<std::pair<std::string, std::string>>;

/// What was run.
struct RunInputs {
  std::string command_line;
  std::string resolved_configuration;  ///< YAML
  InputTexts texts;                    ///< texts that define the simulation
  InputTexts kernel_texts = {};        ///< texts that control its execution, such as a rank map: kept in /kernel/inputs
};

/// The network of the simulated system.
struct NetworkDescription {
  std::vector<std::uint32_t> dimension_sizes;
  /// [num_dimensions] links, each direction counted; empty: one for each NPU.
  std::vector<std::uint64_t> links = {};
  /// [num_dimensions] collectives among which the bandwidth is divided; empty: 1.
  std::vector<std::uint32_t> sharers = {};
  bool has_links = false;                               ///< the network was simulated link by link
  bool has_packets = false;                             ///< and packet by packet
  bool has_flits = false;                               ///< and flit by flit in some dimensions
  orrery::network::PacketRecording recording = {};      ///< records kept of such a network
  bool lies_on_graph = false;                           ///< links are those of a graph, which dimensions share
  std::vector<topology::Fabric::Switch> switches = {};  ///< switches of such a network; only rank 0 needs them
};

/// What a run was, the same on all ranks.
struct RunDescription {
  Status status = Status::complete;
  bool force = true;  ///< the results replace a file that is there at the end
  std::uint32_t num_npus = 0;
  std::optional<std::uint32_t> num_classes = {};  ///< number of NPUs simulated for all in a folded run
  /// [num_npus] of a folded run: the class of each NPU, numbered in the order of their first NPUs, whose records those
  /// of the class are. Empty: each NPU was simulated.
  std::vector<std::uint32_t> class_of_npu = {};
  std::vector<trace::Group> groups;  ///< groups in order of GroupId; only rank 0 needs them
  NetworkDescription network;
  RunInputs inputs;
  double preparation_time = 0;  ///< wall-clock seconds from the start of the program to that of the simulation
  double wall_time = 0;         ///< s, of the simulation
  std::uint32_t iterations = 1;
  std::vector<Repetition> repetitions = {};  ///< repetitions of a repeated run, the first one included
  std::vector<JobDescription> jobs = {};     ///< if several jobs share the system; only rank 0 needs their times alone
  std::optional<TrainingStep> step = {};     ///< step of a generated workload; only rank 0 needs it
  std::optional<cost::Hardware> hardware = {};  ///< if there are prices; only rank 0 needs it
};

/// Does what orrery::check_output does, but lets results of an interrupted run be replaced without `force`. Not
/// collective; rank 0 calls it before the run.
void check_output(const std::filesystem::path& path, bool force);

/// The critical path as a summary tells it.
struct PathFigures {
  /// Consecutive segments on one NPU.
  struct Stretch {
    Time start, finish;
    NpuId npu;
    Breakdown parts{};
    std::string longest_node;  ///< its name
  };
  Time length;
  Breakdown parts{};
  std::vector<Stretch> longest;  ///< ten at most, the longest first
};

/// What rank 0 knows of all ranks once their results are written; empty on others.
struct Gathered {
  std::filesystem::path file;  ///< where the results are; empty: in no file
  NpuRecords npus;
  std::vector<KernelRecord> ranks;                 ///< [num_ranks]; peak memory with the writing of the results
  std::vector<orrery::network::LinkRecord> links;  ///< links of all ranks that carried data, each once, in order
  std::vector<JobFigures> jobs;                    ///< if there are jobs
  std::optional<Metrics> metrics;                  ///< metrics of a complete run in which time has passed
  PathFigures path;                                ///< path of a complete run with a timeline
};

/// Gathers the results of all ranks in global order on rank 0, which writes the file of docs/results.md beside `path`,
/// syncs it and renames it; with an empty path it writes none. Without RunDescription::force it keeps a file that has
/// come there during the run, and takes a name beside it. Collective. Throws Error (output) on all ranks if rank 0
/// cannot write. Cost O(num_npus) on rank 0.
Gathered write(const std::filesystem::path& path, const RunDescription& run, const RankResults& mine,
               parallel::Communicator& world);

/// Gathers the results as `write` does, and keeps none of them in a file. Collective.
inline Gathered gather(const RunDescription& run, const RankResults& mine, parallel::Communicator& world) {
  return write({}, run, mine, world);
}

/// Returns the version of the HDF5 library, such as "1.10.8".
std::string hdf5_version();

}  // namespace orrery::results
