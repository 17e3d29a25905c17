#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flow_tables.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/results/read.hpp"
#include "orrery/show/commands.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using network::FlowRecord;
using nlohmann::ordered_json;

/// Returns the messages with the largest slowdown, this one first; of equal ones the first to begin.
std::vector<FlowRecord> slowest_of(std::vector<FlowRecord> flows, std::uint32_t count) {
  std::erase_if(flows, [](const FlowRecord& flow) { return flow.received == FlowRecord::never; });
  std::ranges::stable_sort(flows, [](const FlowRecord& a, const FlowRecord& b) {
    const double x = network::slowdown_of(a), y = network::slowdown_of(b);
    return x != y ? x > y : a.start < b.start;
  });
  flows.resize(std::min<std::size_t>(flows.size(), count));
  return flows;
}

/// The links where messages waited, by source and number of the message, the longest wait first.
class Waits {
 public:
  explicit Waits(const results::FlowsTable& table) : names_(table.names) {
    for (const network::FlowLinkRecord& link : table.links)
      if (link.waited > Time::zero()) of_flow_[{link.source, link.number}].push_back(link);
    for (auto& [flow, links] : of_flow_)
      std::ranges::stable_sort(links, [](const auto& a, const auto& b) { return a.waited > b.waited; });
  }
  std::span<const network::FlowLinkRecord> of(const FlowRecord& flow) const {
    const auto found = of_flow_.find({flow.source, flow.number});
    return found == of_flow_.end() ? std::span<const network::FlowLinkRecord>() : found->second;
  }
  std::string name(const network::FlowLinkRecord& link) const { return printable(names_.of(link.link)); }
  /// Returns "switch 0 to NPU 3 (12 us)": the link where the packets of a message waited the longest, and how long one
  /// did on the mean.
  std::string longest(const FlowRecord& flow) const {
    const auto links = of(flow);
    if (links.empty()) return "-";
    const network::FlowLinkRecord& link = links.front();
    const auto packets = static_cast<std::int64_t>(std::max<std::uint64_t>(link.packets, 1));
    return fmt::format("{} ({})", name(link), readable(Time::from_ps(link.waited.ps() / packets)));
  }

 private:
  const results::LinkNames& names_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<network::FlowLinkRecord>> of_flow_;
};

void print_slowest(const std::vector<FlowRecord>& flows, const FlowLabels& labels, const Waits& waits) {
  if (flows.empty()) return;
  fmt::print("flows with the largest slowdown\n");
  fmt::print("  {:>7} {:>7} {:>11} {:>11} {:>11} {:>11} {:>9}  {:<18} {}\n", "from", "to", "size", "start", "time",
             "alone", "slowdown", "group", "where a packet waited most (mean)");
  for (const FlowRecord& flow : flows)
    fmt::print("  {:>7} {:>7} {:>11} {:>11} {:>11} {:>11} {:>9.2f}  {:<18} {}\n", flow.source, flow.destination,
               size_text(flow.bytes, 1), readable(flow.start), readable(flow.received - flow.start),
               readable(flow.alone), network::slowdown_of(flow), printable(labels.of(flow.label)), waits.longest(flow));
}

ordered_json flow_json(const FlowRecord& flow, const FlowLabels& labels, const Waits& waits) {
  ordered_json waited = ordered_json::array();
  for (const network::FlowLinkRecord& link : waits.of(flow))
    waited.push_back({{"link", link.link}, {"name", waits.name(link)}, {"waited_ps", link.waited.ps()}});
  return {{"source", flow.source},
          {"destination", flow.destination},
          {"number", flow.number},
          {"group", labels.of(flow.label)},
          {"bytes", flow.bytes},
          {"start_ps", flow.start.ps()},
          {"received_ps", flow.received.ps()},
          {"alone_ps", flow.alone.ps()},
          {"slowdown", network::slowdown_of(flow)},
          {"waited", waited}};
}

/// Names the groups as other tables do: the group of all NPUs has no name of its own.
FlowLabels labels_of(std::vector<std::string> groups) {
  std::ranges::replace(groups, std::string(), std::string("world"));
  return {std::move(groups), "sends and receives"};
}

}  // namespace

void show_flows(const ShowFlowsCommand& command) {
  results::FlowsTable table = results::read_flows(command.file);
  const FlowLabels labels = labels_of(std::move(table.groups));
  const auto classes = network::classify(table.flows);
  const Waits waits(table);
  const auto slowest = slowest_of(table.flows, command.slowest);
  if (command.form == TableForm::csv) return print_flow_classes_as_csv(classes, labels);
  if (command.form == TableForm::text) {
    fmt::print("{}, of which {} have ended\n", counted(table.flows.size(), "flow"),
               classes.empty() ? 0 : classes.front().flows);
    print_flow_classes(classes, labels);
    return print_slowest(slowest, labels, waits);
  }
  ordered_json json;
  json["file"] = command.file.string();
  json["flows"] = table.flows.size();
  json["classes"] = flow_classes_json(classes, labels);
  json["slowest"] = ordered_json::array();
  for (const FlowRecord& flow : slowest) json["slowest"].push_back(flow_json(flow, labels, waits));
  print_figures(json, true);
}

}  // namespace orrery::show
