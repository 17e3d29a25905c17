#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collective_timer.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/results/bandwidth.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using collective::Kind;

// The sizes of the table, and the type whose values it counts.
constexpr std::uint64_t smallest_size = std::uint64_t{1} << 10, largest_size = std::uint64_t{1} << 34;
constexpr std::string_view type = "float";
constexpr std::uint64_t type_size = 4;

/// Returns the first NPUs of the topology, as many as the command asks for; empty: all of them.
std::vector<NpuId> members_of(const ShowCollectiveCommand& command, std::uint32_t num_npus) {
  const auto count = command.npus.value_or(num_npus);
  if (count == 0 || count > num_npus)
    throw Error(ErrorCode::usage, {.key = "--npus"}, fmt::format("found {}", count), fmt::format("1 to {}", num_npus));
  std::vector<NpuId> members;
  for (std::uint32_t i = 0; count < num_npus && i < count; ++i) members.emplace_back(i);
  return members;
}

/// One line of the table, as nccl-tests has it.
struct SizedRow {
  Bytes size;               ///< size of the whole buffer
  std::uint64_t count = 0;  ///< values of what a member brings or gets, or of the whole buffer, as nccl-tests counts
  Bytes bytes;              ///< bytes of a node of the collective
  Time time = {};
  double algorithm_bandwidth = 0, bus_bandwidth = 0;  ///< bytes per second

  double time_us() const { return static_cast<double>(time.ps()) / 1e6; }
};

/// Returns the bytes per second, as /collectives/algorithm_bandwidth has them. NaN if it takes no time.
double algorithm_bandwidth(Kind kind, std::uint32_t members, Bytes bytes, Time time) {
  if (time <= Time::zero()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(results::worked_bytes(kind, members, bytes.count())) / time.seconds();
}

/// Returns the bytes of a node of a collective whose whole buffer has this size.
Bytes row_bytes(Kind kind, std::uint32_t members, Bytes size) {
  const bool brings_share = kind == Kind::all_gather || kind == Kind::gather;
  return brings_share ? std::max(size / members, Bytes(1)) : size;
}

SizedRow row_of(CollectiveTimer& timer, Kind kind, Bytes size) {
  const std::uint32_t members = timer.num_members();
  const Bytes share = std::max(size / members, Bytes(1));
  const bool is_whole = kind == Kind::all_reduce || kind == Kind::broadcast || kind == Kind::reduce;
  SizedRow row{.size = size, .bytes = row_bytes(kind, members, size)};
  row.count = (is_whole ? size : share).count() / type_size;
  row.time = timer.done(row.bytes).last;
  row.algorithm_bandwidth = algorithm_bandwidth(kind, members, row.bytes, row.time);
  row.bus_bandwidth = row.algorithm_bandwidth * results::bus_factor(kind, members);
  return row;
}

/// Returns "ring", or "NVLS with Simple on 16 channels".
std::string how_of(const collective::PhaseFigures& phase) {
  if (phase.protocol.empty()) return std::string(phase.algorithm);
  const std::string on = phase.channels > 0 ? " on " + counted(phase.channels, "channel") : "";
  return fmt::format("{} with {}{}", phase.algorithm, phase.protocol, on);
}

/// Returns "dimension 0: ring (all-reduce among 8 in 14 steps)" for each phase.
std::vector<std::string> texts_of(const collective::CollectiveFigures& figures) {
  std::vector<std::string> texts;
  for (const auto& phase : figures.phases)
    texts.push_back(fmt::format("dimension {}: {} ({} among {}{})", fmt::join(phase.dimensions, " and "), how_of(phase),
                                collective::name(phase.kind), phase.size,
                                phase.steps > 0 ? fmt::format(" in {}", counted(phase.steps, "step")) : ""));
  return texts;
}

/// Returns what a library says of a collective.
nlohmann::ordered_json library_json(const collective::LibraryFigures& figures, bool for_people) {
  const auto& [time, range, correction, ratio] = figures;
  const auto seconds = [&](double value) -> nlohmann::ordered_json {
    if (!for_people) return value;
    return readable(Time::from_ps(static_cast<std::int64_t>(value * 1e12)));
  };
  nlohmann::ordered_json json = {{"algorithm", time.algorithm}, {"bound", name(time.bound)}};
  if (time.bound.bytes > 0) {
    const auto& bound = time.bound;
    if (for_people) {
      json["bound"] =
          fmt::format("{}: {} a member at {:.3g} of {}B/s", name(bound),
                      size_text(static_cast<std::uint64_t>(bound.bytes), 0), bound.share, with_prefix(bound.capacity));
    } else {
      json["bound_bytes"] = bound.bytes;
      json["bound_capacity_bytes_per_s"] = bound.capacity;
      json["bound_share"] = bound.share;
    }
  }
  json[for_people ? "latency" : "latency_s"] = seconds(time.latency);
  json[for_people ? "ramp" : "ramp_s"] = seconds(time.ramp);
  json[for_people ? "transfer" : "transfer_s"] = seconds(time.transfer);
  json["range"] = range.reasons.empty() ? "inside" : "extrapolated";
  if (!range.reasons.empty()) json["extrapolated_because"] = range.reasons;
  if (correction.file != nullptr) {
    json["corrected"] = correction.is_near ? "near" : "yes";
    json["corrected_by"] = correction.file->file.string();
    json["corrected_ratio"] = ratio;
  }
  if (for_people)
    json["error"] = fmt::format("{:.0f} %", 100 * range.error);
  else
    json["error"] = range.error;
  return json;
}

/// Returns the phases, for people as texts.
nlohmann::ordered_json phases_of(const collective::CollectiveFigures& figures, bool as_texts = false) {
  if (as_texts) return texts_of(figures);
  auto phases = nlohmann::ordered_json::array();
  for (const auto& phase : figures.phases) {
    phases.push_back({{"dimensions", phase.dimensions},
                      {"algorithm", phase.algorithm},
                      {"kind", collective::name(phase.kind)},
                      {"members", phase.size},
                      {"bytes", phase.bytes.count()},
                      {"steps", phase.steps}});
    if (!phase.protocol.empty()) phases.back().update({{"protocol", phase.protocol}, {"channels", phase.channels}});
  }
  return phases;
}

/// Returns what holds for every size.
nlohmann::ordered_json head_of(const config::Configuration& configuration, const CollectiveTimer& timer, Kind kind) {
  return {{"kind", collective::name(kind)},
          {"members", timer.num_members()},
          {"network", configuration.execution.network.model.name()}};
}

void show_one(const ShowCollectiveCommand& command, CollectiveTimer& timer, nlohmann::ordered_json figures) {
  const auto [first, last] = timer.done(command.bytes);
  const auto parts = timer.figures(command.bytes);
  std::uint64_t steps = 0;
  for (const auto& phase : parts.phases) steps += phase.steps;
  const double bandwidth = algorithm_bandwidth(command.kind, timer.num_members(), command.bytes, last);
  figures["bytes"] = command.bytes.count();
  if (!parts.phases.empty() && parts.phases.front().experts) {
    const collective::ExpertTime& experts = *parts.phases.front().experts;
    figures["experts"] = {{"servers", experts.copies.servers},
                          {"npus", experts.copies.npus},
                          {"bytes_over_nics", experts.nic_bytes},
                          {"bytes_over_links", experts.link_bytes},
                          {"bound", experts.bound}};
  }
  figures["chunks"] = parts.chunks;
  figures["steps_of_a_chunk"] = steps;
  figures["phases"] = phases_of(parts, command.form == TableForm::text);
  if (!parts.phases.empty() && parts.phases.front().library)
    figures["library"] = library_json(*parts.phases.front().library, command.form == TableForm::text);
  figures["first_done_ps"] = first.ps();
  figures["last_done_ps"] = last.ps();
  figures["time"] = readable(last);
  figures["algorithm_bandwidth_bytes_per_s"] = bandwidth;
  figures["bus_bandwidth_bytes_per_s"] = bandwidth * results::bus_factor(command.kind, timer.num_members());
  for (const Bytes bytes : timer.traffic(command.bytes))
    figures["bytes_sent_per_member_and_dimension"].push_back(bytes.count());
  print_figures(figures, command.form == TableForm::json);
}

/// Calls `take` for each line of the table, as soon as it is known.
void for_each_row(CollectiveTimer& timer, Kind kind, const std::function<void(const SizedRow&)>& take) {
  for (std::uint64_t size = smallest_size; size <= largest_size; size *= 2) take(row_of(timer, kind, Bytes(size)));
}

/// Returns a power of two with its unit: "64 KiB".
std::string power_text(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, units[unit]);
}

/// Prints from which size on a library takes which algorithm and protocol.
void print_choices(CollectiveTimer& timer, Kind kind) {
  std::string before;
  for (std::uint64_t size = smallest_size; size <= largest_size; size *= 2) {
    const auto figures = timer.figures(row_bytes(kind, timer.num_members(), Bytes(size)));
    if (figures.phases.empty() || figures.phases.front().protocol.empty()) return;
    if (const std::string how = how_of(figures.phases.front()); how != before)
      fmt::print("# from {} on: {}\n", power_text(size), before = how);
  }
}

void show_table(const ShowCollectiveCommand& command, CollectiveTimer& timer, nlohmann::ordered_json figures) {
  if (command.form == TableForm::json) {
    figures["phases"] = phases_of(timer.figures(Bytes(largest_size)));
    for_each_row(timer, command.kind, [&](const SizedRow& row) {
      figures["rows"].push_back({{"size", row.size.count()},
                                 {"count", row.count},
                                 {"type", type},
                                 {"bytes", row.bytes.count()},
                                 {"time_ps", row.time.ps()},
                                 {"algorithm_bandwidth_bytes_per_s", row.algorithm_bandwidth},
                                 {"bus_bandwidth_bytes_per_s", row.bus_bandwidth}});
    });
    return print_figures(figures, true);
  }
  const auto print = [&]<class... Columns>(fmt::format_string<Columns...> line, Columns&&... columns) {
    fmt::print(line, std::forward<Columns>(columns)...);
    std::fflush(stdout);
  };
  if (command.form == TableForm::csv) {
    fmt::print("size (B),count (elements),type,time (us),algbw (GB/s),busbw (GB/s)\n");
    return for_each_row(timer, command.kind, [&](const SizedRow& row) {
      print("{},{},{},{:.6f},{:.6g},{:.6g}\n", row.size.count(), row.count, type, row.time_us(),
            row.algorithm_bandwidth / 1e9, row.bus_bandwidth / 1e9);
    });
  }
  fmt::print("# {} among {} in the {} network\n", collective::name(command.kind), counted(timer.num_members(), "NPU"),
             figures["network"].get<std::string>());
  fmt::print("# {}\n", fmt::join(texts_of(timer.figures(Bytes(largest_size))), "; "));
  print_choices(timer, command.kind);
  fmt::print("#{:>11} {:>13} {:>7} {:>14} {:>9} {:>9}\n", "size", "count", "type", "time", "algbw", "busbw");
  fmt::print("#{:>11} {:>13} {:>7} {:>14} {:>9} {:>9}\n", "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)");
  for_each_row(timer, command.kind, [&](const SizedRow& row) {
    print("{:>12} {:>13} {:>7} {:>14.2f} {:>9.2f} {:>9.2f}\n", row.size.count(), row.count, type, row.time_us(),
          row.algorithm_bandwidth / 1e9, row.bus_bandwidth / 1e9);
  });
}

}  // namespace

void show_collective(const ShowCollectiveCommand& command) {
  const auto configuration = config::read(command.inputs);
  CollectiveTimer timer(configuration, members_of(command, configuration.topology().num_npus()), command.kind,
                        command.at_once);
  auto head = head_of(configuration, timer, command.kind);
  if (command.is_table)
    show_table(command, timer, std::move(head));
  else
    show_one(command, timer, std::move(head));
}

}  // namespace orrery::show
