#include <fmt/format.h>

#include "formats.hpp"
#include "orrery/collective/registry.hpp"
#include "section.hpp"
#include "suggestion.hpp"

namespace orrery::config {

using collective::Algorithm;

Algorithm parse_algorithm(std::string_view text, const Place& place) {
  if (const auto found = collective::find_algorithm(text)) return *found;
  const std::vector<std::string_view> names = collective::algorithm_names();
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

const std::vector<std::pair<std::string_view, network::Model>>& network_models() {
  using network::Model;
  static const std::vector<std::pair<std::string_view, Model>> models = {
      {network::name(Model::congestion_unaware), Model::congestion_unaware},
      {network::name(Model::congestion_aware), Model::congestion_aware}};
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
