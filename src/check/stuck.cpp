#include "orrery/check/stuck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::check {
namespace {

constexpr std::size_t most_shown = 10;

/// A collective, or an access of a group, in which an NPU waits.
struct OpenCollective {
  GroupId group;
  std::uint32_t ordinal = 0;
  bool is_access = false;

  friend auto operator<=>(const OpenCollective&, const OpenCollective&) = default;
};

/// One wait as rank 0 prints it. All ranks are asked which members of a collective are missing.
struct WaitLine {
  std::uint32_t npu = 0;
  std::string text;
  std::string blocks;  ///< lines on thread blocks
  bool in_collective = false;
  OpenCollective collective;
  std::uint32_t members = 0;
};

std::string describe(const npu::Wait& wait, const npu::RunContext& run, const trace::Store& store) {
  const auto& trace = *std::ranges::find(run.npus, wait.npu, &npu::NpuSpec::id)->trace;
  const auto& node = trace.graph->nodes[wait.node.index()];
  std::string text =
      fmt::format("{}: NPU {}, node {} '{}' waits {} for ", store.file(trace), wait.npu.value(), trace.id_of(wait.node),
                  store.name_of(trace, wait.node),
                  wait.since == Time::zero() ? "from the start" : fmt::format("since {}", readable(wait.since)));
  if (wait.in_collective)
    text += fmt::format("{} number {} of {} ({})", trace::name(node.kind, node.collective), wait.ordinal + 1,
                        trace::describe(*run.communicators[wait.group.index()].group), counted(node.size, "byte"));
  else
    text += fmt::format("{} NPU {} with tag {} ({})",
                        node.kind == trace::NodeKind::send ? "the receive of" : "a message from", wait.partner.value(),
                        wait.tag, counted(node.size, "byte"));
  return text;
}

/// Returns lines on what thread blocks wait for.
std::string describe_blocks(const npu::Wait& wait) {
  std::string text;
  for (std::size_t i = 0; i < std::min(wait.blocks.size(), most_shown); ++i) text += "    " + wait.blocks[i] + "\n";
  if (wait.blocks.size() > most_shown) text += fmt::format("    and {} more\n", wait.blocks.size() - most_shown);
  return text;
}

std::vector<std::byte> packed(const std::vector<npu::Wait>& waits, const model::RankModel& model,
                              const trace::Store& store) {
  parallel::Packer packer;
  for (const auto& wait : waits) {
    packer.put(wait.npu.value());
    packer.put_text(describe(wait, model.run(), store));
    packer.put_text(describe_blocks(wait));
    packer.put(wait.in_collective);
    packer.put(OpenCollective{wait.group, wait.ordinal, wait.is_access});
    packer.put(wait.members);
  }
  return packer.take();
}

/// Gathers the lines of the lowest NPUs on rank 0. Collective.
std::vector<WaitLine> gather_lines(const model::RankModel& model, const trace::Store& store,
                                   std::vector<npu::Wait> waits, parallel::Communicator& world) {
  std::ranges::stable_sort(waits, {}, &npu::Wait::npu);
  if (waits.size() > most_shown) waits.resize(most_shown);
  const std::vector<std::byte> bytes = packed(waits, model, store);
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  std::vector<WaitLine> lines;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    WaitLine& line = lines.emplace_back();
    line.npu = unpacker.get<std::uint32_t>();
    line.text = unpacker.get_text();
    line.blocks = unpacker.get_text();
    line.in_collective = unpacker.get<bool>();
    line.collective = unpacker.get<OpenCollective>();
    line.members = unpacker.get<std::uint32_t>();
  }
  std::ranges::stable_sort(lines, {}, &WaitLine::npu);
  if (lines.size() > most_shown) lines.resize(most_shown);
  return lines;
}

using MissingMembers = std::map<OpenCollective, std::vector<NpuId>>;

/// Gathers on rank 0 which members are missing in the collectives of the lines. Collective.
MissingMembers gather_missing(const model::RankModel& model, const std::vector<WaitLine>& lines,
                              parallel::Communicator& world) {
  std::set<OpenCollective> distinct;
  for (const WaitLine& line : lines)
    if (line.in_collective) distinct.insert(line.collective);
  std::vector<OpenCollective> collectives(distinct.begin(), distinct.end());
  world.broadcast(collectives, Rank(0));
  MissingMembers missing;
  for (const OpenCollective& open : collectives) {
    const auto here = model.communicators().not_joined(open.group, open.ordinal, open.is_access);
    missing[open] = world.gather(std::span<const NpuId>(here), Rank(0));
    std::ranges::sort(missing[open]);
  }
  return missing;
}

/// Returns how messages name a device of the results' numbers.
std::string name_of_device(std::int64_t device) {
  return device >= 0 ? fmt::format("NPU {}", device) : fmt::format("switch {}", -1 - device);
}

}  // namespace

void require_no_credit_circle(const model::RankModel& model, parallel::Communicator& world) {
  const std::vector<network::CreditWait> waits = model::credit_waits_of(model);
  auto num_waits = static_cast<std::int64_t>(waits.size());
  world.sum(std::span(&num_waits, 1));
  if (num_waits == 0) return;
  const auto all = world.gather(std::span<const network::CreditWait>(waits), Rank(0));
  world.agree([&] {
    if (world.is_root())
      throw Error(ErrorCode::stuck,
                  "the simulated system is stuck: " + network::describe_credit_waits(all, name_of_device));
  });
}

std::string report_stuck(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world) {
  auto waits = model.npus().waits();
  std::int64_t num_waits = static_cast<std::int64_t>(waits.size());
  world.sum(std::span(&num_waits, 1));
  const auto lines = gather_lines(model, store, std::move(waits), world);
  const auto missing = gather_missing(model, lines, world);
  if (!world.is_root()) return {};
  std::string report;
  for (const WaitLine& line : lines) {
    report += "  " + line.text;
    if (line.in_collective) {
      const auto& absent = missing.at(line.collective);
      report += fmt::format(": {} of {} are there, missing NPU {}", line.members - absent.size(),
                            counted(line.members, "member"), list(absent));
    }
    report += "\n" + line.blocks;
  }
  const auto shown = static_cast<std::int64_t>(lines.size());
  if (num_waits > shown) report += fmt::format("  and {} more\n", num_waits - shown);
  if (num_waits == 0) report += "  no node of theirs is under way\n";
  return report +
         "Correct what these nodes wait for in the traces (--dependencies=data leaves control dependencies out), or "
         "let "
         "NPUs be in several collectives at a time (--set system.communication.streams=2). docs/user-guide.md, Stuck, "
         "lists usual causes.";
}

}  // namespace orrery::check
