#include "flow_tables.hpp"

#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/base/time.hpp"
#include "orrery/base/utf8.hpp"

namespace orrery::show {
namespace {

using network::FlowClass;
using network::Spread;
using nlohmann::ordered_json;

constexpr std::pair<const char*, double Spread::*> spread_columns[] = {
    {"mean", &Spread::mean}, {"p50", &Spread::p50},     {"p90", &Spread::p90}, {"p95", &Spread::p95},
    {"p99", &Spread::p99},   {"p99_9", &Spread::p99_9}, {"max", &Spread::most}};

const char* kind_name(FlowClass::Kind kind) {
  return kind == FlowClass::Kind::all ? "all" : kind == FlowClass::Kind::size ? "size" : "label";
}

std::string sizes_text(const FlowClass& of) {
  const std::string least = size_text(of.least_bytes, 1), most = size_text(of.most_bytes, 1);
  return least == most ? least : fmt::format("{} to {}", least, most);
}

std::string class_text(const FlowClass& of, const FlowLabels& labels) {
  if (of.kind == FlowClass::Kind::all) return "all flows";
  return of.kind == FlowClass::Kind::size ? sizes_text(of) : printable(labels.of(of.label));
}

template <class Text>
void print_spreads(std::span<const FlowClass> classes, const FlowLabels& labels, Spread FlowClass::*spread, Text text) {
  fmt::print("  {:<28} {:>9}", "flows", "number");
  for (const char* const head : {"mean", "50 %", "90 %", "95 %", "99 %", "99.9 %", "longest"})
    fmt::print(" {:>9}", head);
  fmt::print("\n");
  for (const FlowClass& of : classes) {
    fmt::print("  {:<28} {:>9}", class_text(of, labels), of.flows);
    for (const auto& [name, value] : spread_columns) fmt::print(" {:>9}", text(of.*spread.*value));
    fmt::print("\n");
  }
}

ordered_json spread_json(const Spread& spread) {
  ordered_json json;
  for (const auto& [name, value] : spread_columns) json[name] = spread.*value;
  return json;
}

}  // namespace

std::string FlowLabels::of(std::int32_t label) const {
  const bool is_known = label >= 0 && static_cast<std::size_t>(label) < names.size();
  return is_known ? names[static_cast<std::size_t>(label)] : without;
}

void print_flow_classes(std::span<const FlowClass> classes, const FlowLabels& labels) {
  if (classes.empty()) return;
  fmt::print("time from the start of a flow to its last byte\n");
  print_spreads(classes, labels, &FlowClass::time, [](double ps) { return readable(Time::from_ps(std::llround(ps))); });
  fmt::print("slowdown: this time over that in an empty network\n");
  print_spreads(classes, labels, &FlowClass::slowdown, [](double factor) { return fmt::format("{:.2f}", factor); });
}

void print_flow_classes_as_csv(std::span<const FlowClass> classes, const FlowLabels& labels) {
  fmt::print("class,name,least_bytes,most_bytes,flows");
  for (const char* const quantity : {"time", "slowdown"})
    for (const auto& [name, value] : spread_columns)
      fmt::print(",{}_{}{}", quantity, name, quantity[0] == 't' ? "_ps" : "");
  fmt::print("\n");
  for (const FlowClass& of : classes) {
    fmt::print("{},{},{},{},{}", kind_name(of.kind), csv_cell(class_text(of, labels)), of.least_bytes, of.most_bytes,
               of.flows);
    for (const Spread* const spread : {&of.time, &of.slowdown})
      for (const auto& [name, value] : spread_columns) fmt::print(",{}", spread->*value);
    fmt::print("\n");
  }
}

ordered_json flow_classes_json(std::span<const FlowClass> classes, const FlowLabels& labels) {
  ordered_json list = ordered_json::array();
  for (const FlowClass& of : classes)
    list.push_back({{"class", kind_name(of.kind)},
                    {"name", class_text(of, labels)},
                    {"least_bytes", of.least_bytes},
                    {"most_bytes", of.most_bytes},
                    {"flows", of.flows},
                    {"time_ps", spread_json(of.time)},
                    {"slowdown", spread_json(of.slowdown)}});
  return list;
}

}  // namespace orrery::show
