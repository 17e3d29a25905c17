#include <fmt/format.h>

#include <charconv>

#include "formats.hpp"
#include "section.hpp"
#include "suggestion.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using collective::AlgorithmKind;

struct NamedAlgorithm {
  std::string_view name;
  Algorithm algorithm;
};

constexpr NamedAlgorithm named_algorithms[] = {
    {"ring", {AlgorithmKind::ring, 0, false}},
    {"direct", {AlgorithmKind::direct, 0, false}},
    {"halvingDoubling", {AlgorithmKind::halving_doubling, 0, false}},
    {"doubleBinaryTree", {AlgorithmKind::double_binary_tree, 0, false}},
    {"binomialTree", {AlgorithmKind::binomial_tree, 0, false}},
    {"inSwitch", {AlgorithmKind::in_switch, 0, false}},
    {"oneRing", {AlgorithmKind::ring, 0, true}},
    {"oneDirect", {AlgorithmKind::direct, 0, true}},
    {"oneHalvingDoubling", {AlgorithmKind::halving_doubling, 0, true}},
};

/// The w of "direct<w>"; 0 if it is none.
std::uint32_t window(std::string_view digits) {
  std::uint32_t value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  return error == std::errc() && end == last && !digits.starts_with('0') ? value : 0;
}

}  // namespace

Algorithm parse_algorithm(std::string_view text, const Place& place) {
  for (const auto& [name, algorithm] : named_algorithms) {
    if (text == name) return algorithm;
    if (algorithm.kind != AlgorithmKind::direct || !text.starts_with(name)) continue;
    if (const auto w = window(text.substr(name.size())); w > 0)
      return {AlgorithmKind::direct, w, algorithm.whole_communicator};
  }
  std::vector<std::string_view> names;
  for (const auto& entry : named_algorithms) names.push_back(entry.name);
  const auto near = nearest(text, names);
  throw Error(ErrorCode::bad_input, place, fmt::format("found '{}'", text),
              list(names) + " (direct2: at most 2 sends in flight)",
              near.empty() ? std::string() : fmt::format("Did you mean '{}'?", near));
}

std::vector<Algorithm> parse_algorithms(const std::vector<Value>& items, const std::string& key,
                                        std::string_view expected, Faults& faults) {
  std::vector<Algorithm> algorithms(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    faults.attempt([&] { algorithms[i] = parse_algorithm(as_text(items[i], key, expected), items[i].place(key)); });
  return algorithms;
}

std::string name(const Algorithm& algorithm) {
  for (const auto& [word, known] : named_algorithms) {
    if (known.kind != algorithm.kind || known.whole_communicator != algorithm.whole_communicator) continue;
    return algorithm.window > 0 ? fmt::format("{}{}", word, algorithm.window) : std::string(word);
  }
  throw Error(ErrorCode::bad_input, "a tree or inSwitch over a whole communicator has no name in a configuration");
}

std::string_view name(RuleSet rules) { return rules == RuleSet::physical ? "physical" : "astra-sim"; }

const std::vector<std::pair<std::string_view, trace::Streams>>& stream_policies() {
  using trace::Streams;
  static const std::vector<std::pair<std::string_view, Streams>> policies = {{"counted", Streams::by_count},
                                                                             {"trace", Streams::of_trace}};
  return policies;
}

const std::vector<std::pair<std::string_view, trace::Dependencies>>& dependency_policies() {
  using trace::Dependencies;
  static const std::vector<std::pair<std::string_view, Dependencies>> policies = {{"auto", Dependencies::automatic},
                                                                                  {"data", Dependencies::data},
                                                                                  {"ctrl", Dependencies::ctrl},
                                                                                  {"both", Dependencies::both}};
  return policies;
}

const std::vector<std::pair<std::string_view, collective::DimensionOrder>>& dimension_orders() {
  using collective::DimensionOrder;
  static const std::vector<std::pair<std::string_view, DimensionOrder>> orders = {
      {"ascending", DimensionOrder::ascending},
      {"round-robin", DimensionOrder::round_robin},
      {"themis", DimensionOrder::themis}};
  return orders;
}

const std::vector<std::pair<std::string_view, collective::ChunkOrder>>& chunk_orders() {
  using collective::ChunkOrder;
  static const std::vector<std::pair<std::string_view, ChunkOrder>> orders = {
      {"fifo", ChunkOrder::fifo},
      {"smallest-chunk-first", ChunkOrder::smallest_first},
      {"fewest-phases-first", ChunkOrder::fewest_phases_first}};
  return orders;
}

const std::vector<std::pair<std::string_view, npu::CommOrder>>& comm_orders() {
  using npu::CommOrder;
  static const std::vector<std::pair<std::string_view, CommOrder>> orders = {{"lowest-id", CommOrder::lowest_id},
                                                                             {"fifo", CommOrder::fifo},
                                                                             {"lifo", CommOrder::lifo},
                                                                             {"priority", CommOrder::priority}};
  return orders;
}

const std::vector<std::pair<std::string_view, Progress>>& progress_kinds() {
  static const std::vector<std::pair<std::string_view, Progress>> kinds = {
      {"auto", Progress::automatic}, {"plain", Progress::plain}, {"none", Progress::none}};
  return kinds;
}

const std::vector<std::pair<std::string_view, ExcessPolicy>>& excess_policies() {
  static const std::vector<std::pair<std::string_view, ExcessPolicy>> policies = {{"error", ExcessPolicy::error},
                                                                                  {"report", ExcessPolicy::report}};
  return policies;
}

const std::vector<std::pair<std::string_view, network::ModelName>>& network_models() {
  static const std::vector<std::pair<std::string_view, network::ModelName>> models = [] {
    std::vector<std::pair<std::string_view, network::ModelName>> words;
    for (const network::ModelName model : network::ModelName::all()) words.emplace_back(model.name(), model);
    return words;
  }();
  return models;
}

const std::vector<std::pair<std::string_view, network::Switching>>& network_switchings() {
  using network::Switching;
  static const std::vector<std::pair<std::string_view, Switching>> switchings = {
      {network::name(Switching::store_and_forward), Switching::store_and_forward},
      {network::name(Switching::cut_through), Switching::cut_through}};
  return switchings;
}

TraceFiles traces_of_prefix(const std::string& prefix, std::uint32_t num_npus) {
  return {0, num_npus == 0 ? 0 : num_npus - 1, prefix + ".{npu}.et"};
}

std::uint32_t count_npus(const std::vector<topology::Dimension>& dimensions) {
  std::uint64_t count = dimensions.empty() ? 0 : 1;
  for (const auto& dimension : dimensions) {
    count *= dimension.size;
    if (count > std::numeric_limits<std::uint32_t>::max()) return 0;
  }
  return static_cast<std::uint32_t>(count);
}

}  // namespace orrery::config
