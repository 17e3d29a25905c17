#include "print_graph.hpp"

#include <fmt/format.h>
#include <tinyxml2.h>

#include <array>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/base/time.hpp"
#include "orrery/base/utf8.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;
using trace::NodeKind;

/// How a kind of node is printed.
struct KindText {
  std::string_view name;
  std::string_view chakra;  ///< node type of Chakra's schema
  const char* colour;
};
constexpr std::array kinds{
    KindText{"instant", "METADATA_NODE", "#eeeeee"},  KindText{"cpu", "COMP_NODE", "#fff2b3"},
    KindText{"compute", "COMP_NODE", "#b7e1b0"},      KindText{"collective", "COMM_COLL_NODE", "#a9c8f0"},
    KindText{"send", "COMM_SEND_NODE", "#f7c6a3"},    KindText{"receive", "COMM_RECV_NODE", "#f3a6a0"},
    KindText{"mem_load", "MEM_LOAD_NODE", "#d8c2ec"}, KindText{"mem_store", "MEM_STORE_NODE", "#c3a7dd"},
    KindText{"host", "COMP_NODE", "#fff2b3"}};

const KindText& kind_of(NodeKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

/// Returns JSON in which bytes that are not UTF-8, and what would control a terminal, are replaced.
std::string dumped(const ordered_json& value) {
  return orrery::printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// Returns a text as UTF-8 without control characters.
std::string printable(std::string_view text) {
  std::string clean = nlohmann::json::parse(dumped(std::string(text))).get<std::string>();
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return clean;
}

/// A node with what belongs to it.
struct Entry {
  const trace::Store& store;
  const trace::LoneTrace& shown;
  NodeId number;
  bool is_single;  ///< it is of the only trace that is printed

  const trace::Node& node() const { return shown.trace.graph->nodes[number.index()]; }
  std::string name() const { return printable(store.name_of(shown.trace, number)); }
  Time duration() const { return shown.trace.graph->duration_of(number); }
  /// Returns the id of the trace; if there are several traces, behind the number of the NPU.
  std::string key_of(NodeId other) const {
    const std::uint64_t id = shown.trace.id_of(other);
    return is_single ? fmt::to_string(id) : fmt::format("{}.{}", shown.npu.value(), id);
  }
  std::string key() const { return key_of(number); }
  std::string group() const { return printable(store.groups()[shown.trace.groups[node().slot].index()].name); }
  std::string operation() const {
    if (node().is_of_group()) return trace::name(node().kind, node().collective);
    return std::string(kind_of(node().kind).name);
  }
};

template <class Take>
void for_each_node(const trace::Store& store, std::span<const trace::LoneTrace> traces, Take take) {
  for (const trace::LoneTrace& shown : traces)
    for (std::uint32_t i = 0; i < shown.trace.graph->num_nodes(); ++i)
      take(Entry{store, shown, NodeId(i), traces.size() == 1});
}

// ---- JSON ----

/// Collects the attributes of a node as protocol buffers print them.
class Attributes {
 public:
  void add(std::string_view name, std::uint64_t value) { add(name, "int64Val", fmt::to_string(value)); }
  void add(std::string_view name, const char* field, ordered_json value) {
    list_.push_back({{"name", name}, {field, std::move(value)}});
  }
  ordered_json take() { return std::move(list_); }

 private:
  ordered_json list_ = ordered_json::array();
};

void add_group(const Entry& entry, Attributes& attributes) {
  const trace::Node& node = entry.node();
  attributes.add("comm_type", static_cast<std::uint64_t>(node.collective));
  if (const std::string group = entry.group(); !group.empty()) attributes.add("pg_name", "stringVal", group);
  if (node.detail == trace::all_dimensions) return;
  std::vector<bool> flags;
  const int listed = std::min(64, 65 - std::countl_zero(node.detail));
  for (int d = 0; d < listed; ++d) flags.push_back((node.detail >> d & 1) != 0);
  attributes.add("involved_dim", "boolList", {{"values", flags}});
}

void add_tensors(const Entry& entry, std::string_view name, bool makes, Attributes& attributes) {
  const trace::NpuTrace& trace = entry.shown.trace;
  std::vector<std::string> texts;
  for (const trace::Listing listing : trace.graph->tensors.of(entry.number)) {
    if (makes ? !listing.makes : !listing.needs) continue;
    texts.push_back(printable(entry.store.name(trace.labels->tensors[listing.tensor])));
    texts.push_back(fmt::to_string(trace.graph->tensors.sizes[listing.tensor]));
  }
  if (!texts.empty()) attributes.add(name, "stringList", {{"values", texts}});
}

ordered_json attributes_of(const Entry& entry) {
  const trace::Node& node = entry.node();
  const trace::NpuTrace& trace = entry.shown.trace;
  Attributes attributes;
  attributes.add("is_cpu_op", "boolVal", node.kind == NodeKind::cpu);
  if (entry.duration().ps() % ps_per_us != 0)
    attributes.add("duration_ps", static_cast<std::uint64_t>(entry.duration().ps()));
  if (node.stream > 0) attributes.add("stream", node.stream);
  if (const auto priority = trace.graph->priority_of(entry.number); priority != 0)
    attributes.add("comm_priority", "int64Val", fmt::to_string(priority));
  add_tensors(entry, "inputs", false, attributes);
  add_tensors(entry, "outputs", true, attributes);
  if (node.is_of_group()) add_group(entry, attributes);
  if (node.kind == NodeKind::compute) attributes.add("num_ops", node.detail);
  if (node.kind == NodeKind::compute || node.is_access()) attributes.add("tensor_size", node.size);
  if (node.kind == NodeKind::send || node.kind == NodeKind::receive) {
    attributes.add(node.kind == NodeKind::send ? "comm_dst" : "comm_src", "uint32Val", trace.peers[node.slot].value());
    attributes.add("comm_tag", trace.tags[node.detail]);
  }
  if (node.kind == NodeKind::collective || node.kind == NodeKind::send || node.kind == NodeKind::receive)
    attributes.add("comm_size", node.size);
  return attributes.take();
}

/// Returns the ids of the nodes on which each node depends.
std::vector<std::vector<std::string>> dependencies_of(const trace::NpuTrace& trace) {
  std::vector<std::vector<std::string>> lists(trace.graph->num_nodes());
  for (std::uint32_t i = 0; i < trace.graph->num_nodes(); ++i)
    for (const auto successor : trace.graph->successors_of(NodeId(i)))
      lists[successor].push_back(fmt::to_string(trace.id_of(NodeId(i))));
  return lists;
}

// ---- DOT ----

/// Returns a text within the quotation marks of DOT.
std::string dot_text(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped + '"';
}

/// Returns the lines in a node: its name, what it is and how large, and its recorded duration.
std::string label_of(const Entry& entry) {
  std::string what = entry.operation();
  if (entry.node().size > 0) what += fmt::format(" {}", size_text(entry.node().size, entry.node().size));
  std::string label = dot_text(entry.name());
  label.insert(label.size() - 1, "\\n" + what);
  if (entry.duration() > Time::zero()) label.insert(label.size() - 1, "\\n" + readable(entry.duration()));
  return label;
}

// ---- GraphML ----

void declare_key(tinyxml2::XMLPrinter& printer, const char* name, const char* type) {
  printer.OpenElement("key");
  printer.PushAttribute("id", name);
  printer.PushAttribute("for", "node");
  printer.PushAttribute("attr.name", name);
  printer.PushAttribute("attr.type", type);
  printer.CloseElement();
}

void put(tinyxml2::XMLPrinter& printer, const char* key, const std::string& value) {
  printer.OpenElement("data", true);
  printer.PushAttribute("key", key);
  printer.PushText(value.c_str());
  printer.CloseElement(true);
}

void put_node(tinyxml2::XMLPrinter& printer, const Entry& entry) {
  const trace::Node& node = entry.node();
  printer.OpenElement("node");
  printer.PushAttribute("id", entry.key().c_str());
  put(printer, "npu", fmt::to_string(entry.shown.npu.value()));
  put(printer, "name", entry.name());
  put(printer, "kind", std::string(kind_of(node.kind).name));
  put(printer, "colour", kind_of(node.kind).colour);
  put(printer, "bytes", fmt::to_string(node.size));
  put(printer, "duration_ps", fmt::to_string(entry.duration().ps()));
  if (node.is_of_group()) {
    put(printer, "operation", entry.operation());
    put(printer, "group", entry.group());
  }
  printer.CloseElement();
}

void put_edges(tinyxml2::XMLPrinter& printer, const Entry& entry) {
  const std::string source = entry.key();
  for (const auto successor : entry.shown.trace.graph->successors_of(entry.number)) {
    printer.OpenElement("edge");
    printer.PushAttribute("source", source.c_str());
    printer.PushAttribute("target", entry.key_of(NodeId(successor)).c_str());
    printer.CloseElement();
  }
}

}  // namespace

std::string_view name_of(NodeKind kind) { return kind_of(kind).name; }

void print_nodes(const trace::Store& store, std::span<const trace::LoneTrace> traces) {
  for (const trace::LoneTrace& shown : traces) {
    ordered_json version{{"version", "0.0.4"}};
    if (traces.size() > 1) version["npu"] = shown.npu.value();
    fmt::print("{}\n", dumped(version));
    const auto dependencies = dependencies_of(shown.trace);
    for_each_node(store, std::span(&shown, 1), [&](const Entry& entry) {
      ordered_json line{{"id", fmt::to_string(shown.trace.id_of(entry.number))},
                        {"name", entry.name()},
                        {"type", kind_of(entry.node().kind).chakra}};
      if (const auto& ids = dependencies[entry.number.index()]; !ids.empty()) line["dataDeps"] = ids;
      if (const auto micros = (entry.duration().ps() + ps_per_us / 2) / ps_per_us; micros > 0)
        line["durationMicros"] = fmt::to_string(micros);
      line["attr"] = attributes_of(entry);
      fmt::print("{}\n", dumped(line));
    });
  }
}

void print_dot(const trace::Store& store, std::span<const trace::LoneTrace> traces) {
  fmt::print("digraph trace {{\n  node [shape=box, style=filled];\n");
  for_each_node(store, traces, [](const Entry& entry) {
    fmt::print("  {} [label={}, fillcolor=\"{}\"];\n", dot_text(entry.key()), label_of(entry),
               kind_of(entry.node().kind).colour);
    for (const auto successor : entry.shown.trace.graph->successors_of(entry.number))
      fmt::print("  {} -> {};\n", dot_text(entry.key()), dot_text(entry.key_of(NodeId(successor))));
  });
  fmt::print("}}\n");
}

void print_graphml(const trace::Store& store, std::span<const trace::LoneTrace> traces) {
  tinyxml2::XMLPrinter printer(stdout);
  printer.PushHeader(false, true);
  printer.OpenElement("graphml");
  printer.PushAttribute("xmlns", "http://graphml.graphdrawing.org/xmlns");
  for (const char* const text : {"name", "kind", "colour", "operation", "group"}) declare_key(printer, text, "string");
  for (const char* const number : {"npu", "bytes", "duration_ps"}) declare_key(printer, number, "long");
  printer.OpenElement("graph");
  printer.PushAttribute("edgedefault", "directed");
  for_each_node(store, traces, [&](const Entry& entry) { put_node(printer, entry); });
  for_each_node(store, traces, [&](const Entry& entry) { put_edges(printer, entry); });
  printer.CloseElement();
  printer.CloseElement();
  fmt::print("\n");
}

}  // namespace orrery::show
