#include "orrery/config/flow_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph_reader.hpp"
#include "idle_keys.hpp"
#include "keys/keys.hpp"
#include "keys/packets.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "reduction_list.hpp"

namespace orrery::config {
namespace {

using network::FlowScenario;
using network::FlowSpec;
using network::PacketWindow;

constexpr std::uint32_t first_port = 10000, port_of_receivers = 100;

Time as_time(const Value& value, const std::string& key) {
  return Time::from_ps(std::llround(as_nanoseconds(value, key) * 1000));
}

/// Reads a graph, the rules and the flows of one file.
class FlowReader {
 public:
  FlowReader(const Value& root, std::string file, Faults& faults)
      : file_(std::move(file)), faults_(faults), sections_(Section(&root, "", root, faults)) {}

  FlowFile read() {
    read_rules();
    read_graph();
    faults_.raise();
    read_flows();
    sections_.refuse_unknown();
    faults_.raise();
    set_windows();
    return {std::move(scenario_), std::move(warnings_)};
  }

 private:
  void read_rules();
  void read_graph();
  void read_flows();
  void check_reductions();
  void read_flow(const Value& item, const std::string& path);
  std::int32_t label_of(const Value& value, const std::string& path);
  std::uint32_t as_connection(const Value& value, const std::string& path) const;
  void read_window(Section& section, std::uint32_t flow);
  void set_windows();
  std::uint32_t as_host(const Value& value, const std::string& key) const;

  std::string file_;
  Faults& faults_;
  Sections sections_;
  FlowScenario scenario_;
  std::vector<std::string> warnings_;
  std::vector<std::optional<PacketWindow>> windows_;  // [flows] of flows that have their own
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> num_of_pair_;
  std::map<std::string, std::int32_t> num_of_label_;
};

void FlowReader::read_rules() {
  Configuration configuration;
  configuration.execution.network.model = network::ModelName("packet");
  Reading reading{configuration, faults_};
  read_keys(packet_keys(), sections_, configuration, reading);
  read_keys(tcp_keys(), sections_, configuration, reading);
  scenario_.rules = configuration.execution.network.packets;
  warnings_ = std::move(configuration.warnings);
  std::ranges::move(warnings_of_idle_packet_keys(configuration, file_), std::back_inserter(warnings_));
  if (const auto rules = contradiction_of(scenario_.rules, true))
    faults_.add(Error(ErrorCode::bad_input, configuration.place_of(rules->key), rules->found, rules->expected));
  scenario_.rules = scenario_.rules.with_sizes();
}

void FlowReader::read_graph() {
  Section& network = sections_.at("system.network");
  const std::string path = network.path("graph");
  const Value* const graph = network.need("graph", "a mapping of hosts, switches and links, or a file with one");
  if (graph == nullptr) return;
  WholeGraph whole = config::read_graph(*graph, path, GraphHosts::alone, faults_);
  std::ranges::move(whole.notes, std::back_inserter(warnings_));
  network::GivenGraph& given = whole.given;
  scenario_.graph = std::move(given.graph);
  scenario_.graph.set_buffers(Bytes(scenario_.rules.buffer));
  scenario_.failures = std::move(given.failures);
  scenario_.routes = given.routes;
  if (const auto of_links = contradiction_of_links(scenario_.graph, scenario_.rules))
    faults_.add(Error(ErrorCode::bad_input, graph->place(path), of_links->found, of_links->expected));
  if (auto warning = warning_of_control(scenario_.graph, scenario_.rules)) warnings_.push_back(std::move(*warning));
}

std::uint32_t FlowReader::as_host(const Value& value, const std::string& key) const {
  return as_count(value, key, 0, scenario_.graph.num_hosts() - 1);
}

void FlowReader::read_flows() {
  Section& workload = sections_.at("workload");
  const std::string path = workload.path("flows");
  faults_.attempt([&] { read_reductions(workload, scenario_, faults_); });
  check_reductions();
  const Value* const flows = workload.find("flows");
  if (flows == nullptr) {
    if (scenario_.reductions.empty()) workload.need("flows", "a list of flows such as {from: 0, to: 1, size: 1 MB}");
    return;
  }
  faults_.attempt([&] {
    const auto& items = as_list(*flows, path, "a list of flows");
    for (std::size_t i = 0; i < items.size(); ++i)
      faults_.attempt([&] { read_flow(items[i], fmt::format("{}.{}", path, i)); });
  });
}

/// Refuses reductions in a network that may lose packets, and rules of reductions that are not there.
void FlowReader::check_reductions() {
  const auto refuse = [&](const Contradiction& fault) {
    faults_.add(Error(ErrorCode::bad_input, Place{.key = fault.key}, fault.found, fault.expected));
  };
  if (!scenario_.reductions.empty()) {
    if (const auto fault = contradiction_of_reduction(scenario_.rules)) refuse(*fault);
  } else if (scenario_.rules.reduction != network::ReductionRules()) {
    refuse({"system.network.packets.reduction", "found it without workload.reductions, where it has no effect",
            "reductions, or the default"});
  }
}

void FlowReader::read_flow(const Value& item, const std::string& path) {
  Section section(&item, path, item, faults_);
  const auto number = static_cast<std::uint32_t>(scenario_.flows.size());
  FlowSpec& flow = scenario_.flows.emplace_back();
  windows_.emplace_back();
  const Value* const from = section.need("from", "the host that sends");
  const Value* const to = section.need("to", "the host that receives");
  const Value* const bytes = section.need("size", "a size such as 1 MB");
  if (from == nullptr || to == nullptr || bytes == nullptr) return;
  flow.source = as_host(*from, section.path("from"));
  flow.destination = as_host(*to, section.path("to"));
  if (flow.source == flow.destination)
    throw Error(ErrorCode::bad_input, to->place(section.path("to")), "found the host that sends", "another host");
  flow.bytes = parse_bytes(as_text(*bytes, section.path("size"), "a size"), bytes->place(section.path("size"))).count();
  if (const Value* const start = section.find("start")) flow.start = as_time(*start, section.path("start"));
  const std::uint32_t count = num_of_pair_[{flow.source, flow.destination}]++;
  std::uint32_t port = (first_port + count) & 0xffffU;
  if (const Value* const given = section.find("port")) port = as_count(*given, section.path("port"), 0, 0xffff);
  flow.ports = port | port_of_receivers << 16U;
  if (const Value* const after = section.find("after"))
    for (const Value& before : as_list(*after, section.path("after"), "numbers of flows in this list, from 0 on"))
      flow.after.push_back(as_count(before, section.path("after"), 0, number == 0 ? 0 : number - 1));
  if (const Value* const connection = section.find("connection"))
    flow.connection = as_connection(*connection, section.path("connection"));
  if (const Value* const label = section.find("label")) flow.label = label_of(*label, section.path("label"));
  read_window(section, number);
  section.refuse_unknown();
}

/// Returns the number of a connection of TCP.
std::uint32_t FlowReader::as_connection(const Value& value, const std::string& path) const {
  if (!scenario_.rules.transport->has_connections)
    throw Error(ErrorCode::bad_input, value.place(path),
                fmt::format("found a connection with transport {}, which has none", scenario_.rules.transport.name()),
                "transport: tcp, or no connection");
  return as_count(value, path, 0, network::TcpRules::most_named);
}

/// Returns the number of a label, in the order in which the file has them first.
std::int32_t FlowReader::label_of(const Value& value, const std::string& path) {
  const std::string text = as_text(value, path, "a text such as storage");
  const auto [found, is_new] = num_of_label_.try_emplace(text, static_cast<std::int32_t>(scenario_.labels.size()));
  if (is_new) scenario_.labels.push_back(text);
  return found->second;
}

void FlowReader::read_window(Section& section, std::uint32_t flow) {
  for (const std::string_view key : {"window", "round-trip"})
    if (const Value* const given = section.find(key); given != nullptr && scenario_.rules.transport->has_connections)
      throw Error(ErrorCode::bad_input, given->place(section.path(key)),
                  "found it with transport tcp, whose connections have windows of their own",
                  "system.network.packets.tcp.receive-buffer, or none of it");
  const std::string path = section.path("window");
  if (const Value* const given = section.find("window"))
    windows_[flow] =
        as_text(*given, path, "none or a size") == "none"
            ? PacketWindow{PacketWindow::Kind::none, 0}
            : PacketWindow{PacketWindow::Kind::fixed, parse_bytes(given->text, given->place(path)).count()};
  if (const Value* const given = section.find("round-trip"))
    scenario_.flows[flow].round_trip = as_time(*given, section.path("round-trip"));
}

/// Computes the windows and round trips that are not given.
void FlowReader::set_windows() {
  const network::PacketRouter router(scenario_.graph, scenario_.failures, scenario_.routes);
  const network::FlowWindows windows(scenario_.graph, router, scenario_.rules);
  for (std::size_t i = 0; i < scenario_.flows.size(); ++i) {
    FlowSpec& flow = scenario_.flows[i];
    const auto found = windows.find({flow.source, flow.destination, flow.ports});
    if (flow.round_trip == Time::zero()) flow.round_trip = found.round_trip;
    flow.window = windows_[i] ? windows_[i]->bytes : found.bytes;
  }
}

}  // namespace

FlowFile read_flows(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Faults faults;
  Value root =
      parse_yaml(read_text(file), std::make_shared<const Origin>(Origin{file.string(), file.parent_path()}), faults);
  for (const std::string& setting : overrides) faults.attempt([&] { apply_override(root, setting, faults); });
  faults.raise();
  return FlowReader(root, file.string(), faults).read();
}

}  // namespace orrery::config
