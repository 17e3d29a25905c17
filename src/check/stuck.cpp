#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/check/stuck.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::check {
namespace {

constexpr std::size_t most_shown = 10;

/// A collective, or an access of a group, that somebody waits in.
struct Call {
  GroupId group;
  std::uint32_t ordinal = 0;
  bool is_access = false;

  friend auto operator<=>(const Call&, const Call&) = default;
};

/// One wait as rank 0 prints it; for a collective, who is missing is asked of all ranks.
struct Line {
  std::uint32_t npu = 0;
  std::string text;
  bool in_collective = false;
  Call call;
  std::uint32_t members = 0;
};

std::string describe(const npu::Wait& wait, const npu::RunContext& run, const trace::Store& store) {
  const auto spec = std::find_if(run.npus.begin(), run.npus.end(), [&](const auto& npu) { return npu.id == wait.npu; });
  const auto& trace = *spec->trace;
  const auto& node = trace.graph->nodes[wait.node.index()];
  std::string text = fmt::format("{}: NPU {}, node {} '{}' waits since {} ps for ", store.file(trace), wait.npu.value(),
                                 trace.id_of(wait.node), store.name_of(trace, wait.node), wait.since.ps());
  if (wait.in_collective)
    text += fmt::format("{} number {} of {} ({})", trace::name(node.kind, node.collective), wait.ordinal + 1,
                        trace::describe(*run.communicators[wait.group.index()].group), counted(node.size, "byte"));
  else
    text += fmt::format("{} NPU {} with tag {} ({})",
                        node.kind == trace::NodeKind::send ? "the receive of" : "a message from", wait.partner.value(),
                        wait.tag, counted(node.size, "byte"));
  return text;
}

std::vector<Line> gather_lines(const model::RankModel& model, const trace::Store& store, std::vector<npu::Wait> waits,
                               parallel::Communicator& world) {
  std::stable_sort(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.npu < b.npu; });
  if (waits.size() > most_shown) waits.resize(most_shown);
  parallel::Packer packer;
  for (const auto& wait : waits) {
    packer.put(wait.npu.value());
    packer.put_text(describe(wait, model.run(), store));
    packer.put(wait.in_collective);
    packer.put(Call{wait.group, wait.ordinal, wait.is_access});
    packer.put(wait.members);
  }
  const std::vector<std::byte> bytes = packer.take();
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  std::vector<Line> lines;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    Line& line = lines.emplace_back();
    line.npu = unpacker.get<std::uint32_t>();
    line.text = unpacker.get_text();
    line.in_collective = unpacker.get<bool>();
    line.call = unpacker.get<Call>();
    line.members = unpacker.get<std::uint32_t>();
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.npu < b.npu; });
  if (lines.size() > most_shown) lines.resize(most_shown);
  return lines;
}

}  // namespace

std::string report_stuck(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world) {
  auto waits = model.npus().waits();
  std::int64_t num_waits = static_cast<std::int64_t>(waits.size());
  world.sum(std::span(&num_waits, 1));
  const auto lines = gather_lines(model, store, std::move(waits), world);
  std::set<Call> distinct;
  for (const Line& line : lines)
    if (line.in_collective) distinct.insert(line.call);
  std::vector<Call> calls(distinct.begin(), distinct.end());
  world.broadcast(calls, Rank(0));
  std::string report;
  std::map<Call, std::vector<NpuId>> missing;
  for (const Call& call : calls) {
    const auto here = model.communicators().not_joined(call.group, call.ordinal, call.is_access);
    missing[call] = world.gather(std::span<const NpuId>(here), Rank(0));
    std::ranges::sort(missing[call]);
  }
  if (!world.is_root()) return {};
  for (const Line& line : lines) {
    report += "  " + line.text;
    if (line.in_collective) {
      const auto& absent = missing[line.call];
      report += fmt::format(": {} of {} are there, missing NPU {}", line.members - absent.size(),
                            counted(line.members, "member"), list(absent));
    }
    report += "\n";
  }
  const auto shown = static_cast<std::int64_t>(lines.size());
  if (num_waits > shown) report += fmt::format("  and {} more\n", num_waits - shown);
  if (num_waits == 0) report += "  no node of theirs is under way\n";
  return report +
         "Correct what these nodes wait for in the traces (--dependencies=data leaves control dependencies out; "
         "docs/user-guide.md, Stuck, lists usual causes).";
}

}  // namespace orrery::check
