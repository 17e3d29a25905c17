#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/compute/model.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/gpu/options.hpp"
#include "orrery/memory/options.hpp"
#include "orrery/network/options.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/topology/dimension.hpp"
#include "orrery/trace/store.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::config {

/// How configurations spell one value of an enumeration, with one line of help.
template <class T>
struct Word {
  std::string_view text;
  T value;
  std::string_view help;
};
template <class T>
using Words = std::vector<Word<T>>;

/// A word without its value.
struct WordInfo {
  std::string_view text, help;
};

/// Returns the words without their values.
template <class T>
std::vector<WordInfo> info_of(const Words<T>& words) {
  std::vector<WordInfo> info;
  for (const auto& word : words) info.push_back({word.text, word.help});
  return info;
}

/// Returns how a value is spelled; empty if it has no word.
template <class T>
std::string_view text_of(const Words<T>& words, const T& value) {
  for (const auto& word : words)
    if (word.value == value) return word.text;
  return {};
}

// The words of each enumeration, in one function each.
const Words<RuleSet>& rule_sets();
const Words<network::ModelName>& network_models();
const Words<network::Switching>& network_switchings();
const Words<topology::Routing>& shape_routings();
const Words<network::FlitFlowControl>& flit_flow_controls();
const Words<network::FlitRouting>& flit_routings();
const Words<collective::Kind>& collective_kinds();
const Words<collective::LibraryName>& collective_libraries();
const Words<collective::ExpertKernelsName>& expert_kernels();
const Words<collective::FabricName>& fabrics();
const Words<collective::LinkRates>& link_rates();
const Words<gpu::ProfileName>& gpu_profiles();
const Words<gpu::Arbitration>& gpu_arbitrations();
const Words<gpu::Noc>& gpu_nocs();
const Words<gpu::GranularityKind>& gpu_granularities();
const Words<gpu::Evaluation>& gpu_evaluations();
const Words<collective::Optimization>& collective_optimizations();
const Words<collective::DimensionOrder>& dimension_orders();
const Words<collective::Directions>& directions();
const Words<collective::ChunkOrder>& chunk_orders();
const Words<compute::ModelName>& compute_models();
const Words<compute::ProcessorName>& processors();
const Words<compute::AttentionKernelName>& attention_kernels();
const Words<compute::Dataflow>& dataflows();
const Words<npu::CommOrder>& communication_orders();
const Words<bool>& communication_durations();
const Words<memory::RemoteMemoryKind>& remote_memory_kinds();
const Words<trace::Dependencies>& dependency_policies();
const Words<trace::Streams>& stream_policies();
const Words<workload::Precision>& precisions();
const Words<workload::Schedule>& schedules();
const Words<workload::ContextExchange>& context_exchanges();
const Words<workload::Phase>& phases();
const Words<workload::TableSharding>& table_shardings();
const Words<workload::TableBalance>& table_balances();
const Words<workload::Recompute>& recompute_policies();
const Words<bool workload::RecomputedModules::*>& recomputed_modules();
const Words<workload::ExpertExchange>& expert_exchanges();
const Words<workload::ExpertOverlap>& expert_overlaps();
const Words<workload::Detail>& details();
const Words<Progress>& progress_kinds();
const Words<ExcessPolicy>& excess_policies();
const Words<Colours>& colour_choices();
const Words<DrawnPer>& drawn_per();
const Words<DistributionKind>& distribution_kinds();

/// What an entry of system.network.dimensions may be called: a shape, or a shorthand for several dimensions of a shape,
/// such as a torus, which stands for so many Rings.
struct ShapeWord {
  topology::Shape shape;
  std::uint32_t rings = 1;
  bool is_one_router = false;  ///< ShapeShorthand::is_one_router

  friend bool operator==(const ShapeWord&, const ShapeWord&) = default;
};
const Words<ShapeWord>& shapes();

/// Returns the algorithm that a configuration names: "ring", "direct2", ... Throws Error (bad_input) at `place` with
/// the known names.
collective::Algorithm parse_algorithm(std::string_view text, const Place& place);
/// Returns the names of the algorithms, for tables and messages.
std::vector<WordInfo> algorithm_words();

}  // namespace orrery::config
