#include "reduction_list.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/quantity_text.hpp"

namespace orrery::config {
namespace {

using network::FlowScenario;
using network::ReductionSpec;
using network::ReductionTrees;

/// Kind of an operation of a list.
enum class ReductionKind : std::uint8_t { all_reduce, reduce, broadcast };

const Words<ReductionKind>& reduction_kinds() {
  static const Words<ReductionKind> words = {
      {"all-reduce", ReductionKind::all_reduce, "all hosts get the sum of what all of them contribute"},
      {"reduce", ReductionKind::reduce, "as all-reduce: the result is how a host learns that slots are free"},
      {"broadcast", ReductionKind::broadcast, "all hosts get what `root` contributes"}};
  return words;
}

constexpr std::string_view late_expected = "rows [host, time] such as [3, 5 us]";
constexpr std::string_view branch_expected = "rows [node, next node towards the root] such as [0, 8]";

const std::vector<Value>& as_pair(const Value& value, const std::string& key, std::string_view expected) {
  if (value.kind == Value::Kind::sequence && value.items.size() == 2) return value.items;
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), expected);
}

Time as_start(const Value& value, const std::string& key) {
  return Time::from_ps(std::llround(as_nanoseconds(value, key) * 1000));
}

class ReductionReader {
 public:
  ReductionReader(FlowScenario& scenario, Faults& faults) : scenario_(scenario), faults_(faults) {}

  void read_trees(const Value& list, const std::string& path);
  void read_reduction(const Value& item, const std::string& path);

 private:
  std::vector<std::uint32_t> hosts_of(const Value* given, const std::string& path) const;
  void read_kind(Section& section, ReductionSpec& reduction) const;
  void read_late(const Value& rows, const std::string& path, ReductionSpec& reduction) const;
  std::size_t index_of(const ReductionSpec& reduction, const Value& host, const std::string& path) const;

  FlowScenario& scenario_;
  Faults& faults_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> num_of_hosts_;  // number of reductions of each communicator
};

void ReductionReader::read_trees(const Value& list, const std::string& path) {
  for (const Value& tree : as_list(list, path, "a list of trees")) {
    ReductionTrees::Branches branches;
    for (const Value& row : as_list(tree, path, branch_expected)) {
      const auto& pair = as_pair(row, path, branch_expected);
      const std::uint32_t most = scenario_.graph.num_nodes() - 1;
      const std::uint32_t node = as_count(pair[0], path, 0, most), next = as_count(pair[1], path, 0, most);
      if (!branches.emplace(node, next).second)
        throw Error(ErrorCode::bad_input, row.place(path), fmt::format("found a second branch from node {}", node),
                    "one branch from each node but the root");
    }
    scenario_.trees.push_back(std::move(branches));
  }
}

std::vector<std::uint32_t> ReductionReader::hosts_of(const Value* given, const std::string& path) const {
  std::vector<std::uint32_t> hosts;
  const std::uint32_t count = scenario_.graph.num_hosts();
  if (given == nullptr) {
    hosts.resize(count);
    std::iota(hosts.begin(), hosts.end(), 0U);
    return hosts;
  }
  for (const Value& host : as_list(*given, path, "a list of hosts"))
    hosts.push_back(as_count(host, path, 0, count - 1));
  std::ranges::sort(hosts);
  if (std::ranges::adjacent_find(hosts) != hosts.end())
    throw Error(ErrorCode::bad_input, given->place(path), "found a host twice", "hosts that differ");
  return hosts;
}

std::size_t ReductionReader::index_of(const ReductionSpec& reduction, const Value& host,
                                      const std::string& path) const {
  const std::uint32_t number = as_count(host, path, 0, scenario_.graph.num_hosts() - 1);
  const auto found = std::ranges::find(reduction.hosts, number);
  if (found == reduction.hosts.end())
    throw Error(ErrorCode::bad_input, host.place(path), fmt::format("found host {}, which takes no part", number),
                "a host of the reduction");
  return static_cast<std::size_t>(found - reduction.hosts.begin());
}

void ReductionReader::read_kind(Section& section, ReductionSpec& reduction) const {
  ReductionKind kind = ReductionKind::all_reduce;
  if (const Value* const given = section.find("kind")) kind = as_word(*given, section.path("kind"), reduction_kinds());
  const Value* const root = section.find("root");
  if ((kind == ReductionKind::broadcast) != (root != nullptr))
    throw Error(ErrorCode::bad_input, section.place("root"),
                root == nullptr ? "found a broadcast without root" : "found it without kind: broadcast",
                "root, the host that sends, with kind: broadcast");
  if (root != nullptr) reduction.source = reduction.hosts[index_of(reduction, *root, section.path("root"))];
}

void ReductionReader::read_late(const Value& rows, const std::string& path, ReductionSpec& reduction) const {
  std::set<std::size_t> late;
  for (const Value& row : as_list(rows, path, late_expected)) {
    const auto& pair = as_pair(row, path, late_expected);
    const std::size_t index = index_of(reduction, pair[0], path);
    if (!late.insert(index).second)
      throw Error(ErrorCode::bad_input, row.place(path), fmt::format("found host {} twice", reduction.hosts[index]),
                  "one row for each host that is late");
    reduction.starts[index] += as_start(pair[1], path);
  }
}

void ReductionReader::read_reduction(const Value& item, const std::string& path) {
  Section section(&item, path, item, faults_);
  ReductionSpec reduction;
  const Value* const bytes = section.need("size", "a size such as 1 MB");
  reduction.hosts = hosts_of(section.find("hosts"), section.path("hosts"));
  if (bytes != nullptr)
    reduction.bytes =
        parse_bytes(as_text(*bytes, section.path("size"), "a size"), bytes->place(section.path("size"))).count();
  constexpr std::uint64_t most_packets = 0xffff'fff0;
  if (bytes != nullptr && reduction.bytes / std::max<std::uint64_t>(scenario_.rules.payload, 1) > most_packets)
    throw Error(ErrorCode::bad_input, bytes->place(section.path("size")), "found a size of more than 2^32 packets",
                "a smaller size, or a larger system.network.packets.payload");
  Time start;
  if (const Value* const given = section.find("start")) start = as_start(*given, section.path("start"));
  reduction.starts.assign(reduction.hosts.size(), start);
  if (const Value* const late = section.find("late")) read_late(*late, section.path("late"), reduction);
  read_kind(section, reduction);
  const auto num_trees =
      scenario_.trees.empty() ? scenario_.rules.reduction.trees : static_cast<std::uint32_t>(scenario_.trees.size());
  reduction.tree = num_of_hosts_[reduction.hosts]++ % num_trees;
  if (const Value* const tree = section.find("tree"))
    reduction.tree = as_count(*tree, section.path("tree"), 0, num_trees - 1);
  section.refuse_unknown();
  scenario_.reductions.push_back(std::move(reduction));
}

}  // namespace

void read_reductions(Section& workload, FlowScenario& scenario, Faults& faults) {
  ReductionReader reader(scenario, faults);
  const Value* const list = workload.find("reductions");
  const Value* const trees = workload.find("trees");
  if (trees != nullptr) {
    if (list == nullptr)
      throw Error(ErrorCode::bad_input, workload.place("trees"), "found trees without workload.reductions",
                  "reductions that use them");
    if (scenario.rules.reduction.trees != 1)
      throw Error(ErrorCode::bad_input, workload.place("trees"),
                  "found trees beside system.network.packets.reduction.trees", "one of them");
    reader.read_trees(*trees, workload.path("trees"));
  }
  if (list == nullptr) return;
  const std::string path = workload.path("reductions");
  const auto& items = as_list(*list, path, "a list of reductions such as {size: 1 MB}");
  for (std::size_t i = 0; i < items.size(); ++i)
    faults.attempt([&] { reader.read_reduction(items[i], fmt::format("{}.{}", path, i)); });
}

}  // namespace orrery::config
