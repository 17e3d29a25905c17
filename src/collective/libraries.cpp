#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include "nccl_tuning.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"
#include "rccl_tuning.hpp"

namespace orrery::collective {
namespace {

// Rings within a node reach what nccl-tests show on these machines, which NCCL's own tables of links give too
// (NVIDIA/nccl at 5067397c, src/graph/topo.h: A100 12 links of 20, H100 18 of 20.6, B200 18 of 40.1 GB/s). All-reduces
// in the switch (NVLS) reach 0.61 of an H100's links and 0.53 of a B200's. The ramps are fitted to public runs of
// all_reduce_perf: A100 node; H200 node; AWS p4de, p5 and p6-B200 (aws-samples/awsome-distributed-training at 7217859)
// for EFA; GB200 of OCI. No public run tells the ramp of InfiniBand apart: its figures are assumptions.
constexpr Ramp assumed_infiniband{15e-6, 100e-6, 16e6};

constinit const Library nccl_a100{.name = "nccl-a100",
                                  .help = "NCCL on nodes of NVIDIA A100",
                                  .generation = NcclGeneration::ampere,
                                  .ring = 235e9,
                                  .within_node = {45e-6, 180e-6, 8e6},
                                  .infiniband = assumed_infiniband,
                                  .efa = {120e-6, 800e-6, 8e6}};
constinit const Library nccl_h100{.name = "nccl-h100",
                                  .help = "NCCL on nodes of NVIDIA H100 or H200",
                                  .ring = 365e9,
                                  .in_switch = 272e9,
                                  .within_node = {38e-6, 60e-6, 12e6},
                                  .infiniband = assumed_infiniband,
                                  .efa = {45e-6, 400e-6, 32e6}};
constinit const Library nccl_b200{.name = "nccl-b200",
                                  .help = "NCCL on nodes of NVIDIA B200 or GB200",
                                  .generation = NcclGeneration::blackwell,
                                  .ring = 680e9,
                                  .in_switch = 476e9,
                                  .within_node = {34e-6, 120e-6, 32e6},
                                  .infiniband = assumed_infiniband,
                                  .efa = {165e-6, 300e-6, 64e6}};

// Fitted to all_reduce_perf of rccl-tests on one node and on two nodes with RoCE at 400 Gbit/s of MI300X
// (hisohara/ai-scripts at 0780bb3c, training/01_rccl-smoketest). EFA has no public run with these GPUs: its figures are
// those of RoCE. All of its times are those of rings.
constexpr Ramp rccl_roce{206e-6, 175e-6, 1e6};
constinit const Library rccl_mi300x{.name = "rccl-mi300x",
                                    .help = "RCCL on nodes of AMD MI300X",
                                    .family = LibraryFamily::rccl,
                                    .ring = 316e9,
                                    .ring_over_nodes = 359e9,
                                    .mesh = 8,
                                    .within_node = {14e-6, 45e-6, 6e6},
                                    .infiniband = rccl_roce,
                                    .efa = rccl_roce};

constexpr std::uint32_t fewest_in_switch = 5;  ///< ranks from which on the switch is faster than a ring
constexpr double nic_share = 0.96;             ///< of the bandwidth of NICs, in rings
constexpr double tree_share = 0.85;            ///< of the bandwidth of NICs, in trees of two nodes
constexpr double in_switch_tree_share = 0.95;  ///< of `in_switch`, over two nodes
constexpr double ring_tree_share = 0.8;        ///< of `ring`, in trees without a switch that reduces
constexpr double all_to_all_share = 0.95;      ///< of `ring`
constexpr double all_to_all_nic_share = 0.7;   ///< of the bandwidth of NICs; a run on 2 x 64 GB300 reached 0.24 only

/// Returns which part of the buffer a rank sends: what nccl-tests calls the factor of the bus bandwidth.
double part_sent(Kind kind, double ranks) {
  switch (kind) {
    case Kind::all_reduce:
      return 2 * (ranks - 1) / ranks;
    case Kind::broadcast:
    case Kind::reduce:
      return 1;
    case Kind::barrier:
      return 0;
    default:
      return (ranks - 1) / ranks;
  }
}

/// Returns the bus bandwidth of rings within a node. In a mesh a group uses the links among its members only.
double ring_within(const Library& library, double of_node) {
  if (library.mesh == 0) return library.ring;
  return library.ring * std::clamp(of_node - 1, 1.0, library.mesh - 1.0) / (library.mesh - 1.0);
}

/// Returns the time of the bytes alone, by the fastest algorithm. Over two nodes with EFA a tree is faster than a ring,
/// as runs on AWS p4de show. With InfiniBand A100 reach what rings reach: 86 GB/s of 100 on two nodes with four NICs
/// each (NVIDIA/nccl-tests, issue 175), and steps of vTrain with tensor parallelism over two such nodes agree with it.
LibraryTime moving(const Library& library, Fabric fabric, Kind kind, const LibraryGroup& group, double bytes) {
  const double ranks = group.ranks, of_node = ranks / group.nodes, nics = of_node * group.nic;
  const double sent = part_sent(kind, ranks) * bytes, ring = ring_within(library, of_node);
  if (kind == Kind::all_to_all) {
    const double within = sent / (all_to_all_share * ring);
    if (group.nodes == 1) return {"direct", within};
    return {"direct", std::max(within, bytes * (1 - 1.0 / group.nodes) / (all_to_all_nic_share * group.nic))};
  }
  const double over_nodes = library.ring_over_nodes > 0 ? library.ring_over_nodes : ring;
  LibraryTime best{"ring", sent / (group.nodes == 1 ? ring : std::min(over_nodes, nic_share * nics))};
  if (kind != Kind::all_reduce || library.family == LibraryFamily::rccl) return best;
  const auto try_other = [&](std::string_view algorithm, double bandwidth) {
    if (bytes / bandwidth < best.seconds) best = {algorithm, bytes / bandwidth};
  };
  const bool has_switch = library.in_switch > 0 && of_node >= fewest_in_switch;
  if (group.nodes == 1 && has_switch) try_other("NVLS", library.in_switch);
  if (group.nodes == 2 && (has_switch || fabric == Fabric::efa || library.generation != NcclGeneration::ampere))
    try_other(has_switch ? "NVLSTree" : "tree",
              std::min(tree_share * nics,
                       has_switch ? in_switch_tree_share * library.in_switch : ring_tree_share * library.ring));
  return best;
}

/// Returns the share of an all-reduce's ramp that a collective has within a node. A ring takes n - 1 steps for
/// all-gather and reduce-scatter, and twice as many for an all-reduce, by whose runs the ramps are fitted. NCCL
/// counts 8.4 us and 3.4 us for each step over NVLink (src/graph/tuning.cc, protocol Simple).
double share_of_ramp(Kind kind, std::uint32_t ranks) {
  if (kind != Kind::all_gather && kind != Kind::reduce_scatter) return 1;
  constexpr double base = 8.4, of_step = 3.4;
  return (base + (ranks - 1) * of_step) / (base + 2 * (ranks - 1) * of_step);
}

LibraryTime uncorrected(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes) {
  const Library& library = **options.library;
  LibraryTime time = moving(library, options.fabric, kind, group, bytes);
  if (group.nodes == 1) {
    time.seconds += share_of_ramp(kind, group.ranks) * library.within_node.seconds(bytes);
  } else {  // the links between nodes are filled last
    const Ramp& between = options.fabric == Fabric::efa ? library.efa : library.infiniband;
    const double moved = time.seconds;
    time.seconds += library.within_node.latency + std::log2(group.nodes) * between.seconds(bytes);
    // The ramps are those of all-reduces, for which trees take few steps. These kinds have rings only.
    const bool has_rings_only = kind == Kind::all_gather || kind == Kind::reduce_scatter;
    if (has_rings_only && library.family == LibraryFamily::nccl)
      time.seconds = std::max(time.seconds, ring_over_nodes_seconds(group, moved));
  }
  return time;
}

/// Returns the ratio of what was measured to what the library's figures give, at a size.
double correction(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes) {
  const auto found = options.measured.find(kind);
  if (found == options.measured.end() || bytes <= 0) return 1;
  const auto distance = [&](const MeasuredSeries& series) {
    return std::pair(std::abs(std::log2(static_cast<double>(series.nodes) / group.nodes)),
                     std::abs(std::log2(static_cast<double>(series.ranks) / group.ranks)));
  };
  const MeasuredSeries& series = *std::ranges::min_element(found->second, {}, distance);
  const LibraryGroup measured{series.ranks, series.nodes, group.nic};
  const auto ratio = [&](const MeasuredCollective& point) {
    return std::log(point.seconds / uncorrected(options, kind, measured, point.bytes).seconds);
  };
  const auto& points = series.points;
  const auto above = std::ranges::lower_bound(points, bytes, {}, &MeasuredCollective::bytes);
  if (above == points.begin()) return std::exp(ratio(points.front()));
  if (above == points.end()) return std::exp(ratio(points.back()));
  const auto below = above - 1;
  const double share = std::log(bytes / below->bytes) / std::log(above->bytes / below->bytes);
  return std::exp(ratio(*below) + share * (ratio(*above) - ratio(*below)));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(" \t\r", end);
  }
  return words;
}

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

/// Says whether words are those of a line of results: size, count, type, redop, root, time and more.
bool is_result(std::span<const std::string_view> words) {
  constexpr std::size_t least = 8;
  const auto is_whole = [](std::string_view word) {
    return word.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const auto begins_with_letter = [](std::string_view word) {
    return (word.front() >= 'a' && word.front() <= 'z') || (word.front() >= 'A' && word.front() <= 'Z');
  };
  return words.size() >= least && is_whole(words[0]) && is_whole(words[1]) && begins_with_letter(words[2]) &&
         begins_with_letter(words[3]) && number(words[4]) && number(words[5]);
}

/// Returns a line without the tag that a launcher put before it, such as "[1,0]<stdout>:" (mpirun --tag-output), "12: "
/// (srun --label) or "node7: " (pdsh). Lines that are no results begin with #.
std::string_view without_tag(std::string_view line) {
  if (const auto at = line.find('#'); at != std::string_view::npos) return line.substr(at);
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool may_begin = at == 0 || std::string_view(" \t:>|]").find(line[at - 1]) != std::string_view::npos;
    if (may_begin && is_result(words_of(line.substr(at)))) return line.substr(at);
  }
  return line;
}

}  // namespace

std::span<const Library* const> Library::registry() {
  static constexpr const Library* libraries[] = {&nccl_h100, &nccl_a100, &nccl_b200, &rccl_mi300x};
  return libraries;
}

MeasuredSeries read_nccl_tests(const std::filesystem::path& file) {
  return parse_nccl_tests(read_text(file), file.string());
}

/// The lines of ranks are "#  Rank  0 Group  0 Pid 1234 on HOST device  0 ...", those of results
/// "size count type redop root time algbw busbw ...": times in microseconds, out of place first.
MeasuredSeries parse_nccl_tests(std::string_view text, const std::string& name) {
  MeasuredSeries series;
  std::set<std::string_view> hosts;
  std::uint64_t line_number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto words = words_of(without_tag(text.substr(0, end)));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
      ++series.ranks;
      if (const auto on = std::ranges::find(words, "on"); on != words.end() && on + 1 != words.end())
        hosts.insert(on[1]);
    }
    if (words.size() < 8 || !number(words[0]) || !number(words[1])) continue;
    const auto bytes = number(words[0]), us = number(words[5]);
    if (!bytes || !us || !(*us > 0))
      throw Error(ErrorCode::bad_input, {.file = name, .line = line_number}, "this is no line of results of nccl-tests",
                  "size, count, type, redop, root, time in microseconds, and more");
    if (*bytes > 0) series.points.push_back({*bytes, *us * 1e-6});
  }
  if (series.points.empty() || series.ranks < 2)
    throw Error(ErrorCode::bad_input, {.file = name},
                fmt::format("found {} and {}", counted(series.ranks, "rank"), counted(series.points.size(), "result")),
                "what nccl-tests print: a line '#  Rank ...' for each of two or more ranks, and a line for each size");
  series.nodes = static_cast<std::uint32_t>(std::max<std::size_t>(hosts.size(), 1));
  std::ranges::sort(series.points, {}, &MeasuredCollective::bytes);
  const auto same = std::ranges::unique(series.points, {}, &MeasuredCollective::bytes);
  series.points.erase(same.begin(), same.end());
  return series;
}

LibraryTime library_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes) {
  LibraryTime time = uncorrected(options, kind, group, bytes);
  time.seconds *= correction(options, kind, group, bytes);
  return time;
}

std::optional<LibraryChoice> library_choice(const LibraryOptions& options, Kind kind, const LibraryGroup& group,
                                            double bytes) {
  const Library& library = **options.library;
  if (library.family == LibraryFamily::rccl) return rccl_choice(kind, group, bytes);
  return nccl_choice(library.generation, kind, group, bytes, options.collnet);
}

}  // namespace orrery::collective
