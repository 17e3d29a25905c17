#include "words.hpp"

#include <fmt/format.h>

#include "orrery/base/suggestion.hpp"
#include "orrery/collective/registry.hpp"
#include "orrery/config/precision_name.hpp"

namespace orrery::config {

namespace {

/// Returns the names of all entries of a registry.
template <class Name>
Words<Name> words_of() {
  Words<Name> words;
  for (const Name entry : Name::all()) words.push_back({entry.name(), entry, entry->help});
  return words;
}

}  // namespace

collective::Algorithm parse_algorithm(std::string_view text, const Place& place) {
  if (const auto found = collective::find_algorithm(text)) return *found;
  const std::vector<std::string_view> names = collective::algorithm_names();
  const auto near = nearest(text, names);
  throw Error(ErrorCode::bad_input, place, fmt::format("found '{}'", cited(text)),
              list(names) + " (direct2: at most 2 sends in flight)",
              near.empty() ? std::string() : fmt::format("Did you mean '{}'?", near));
}

std::vector<WordInfo> algorithm_words() {
  std::vector<WordInfo> words;
  for (const auto& entry : collective::algorithms()) words.push_back({entry.name, entry.summary});
  for (const auto& entry : collective::algorithms())
    if (!entry.whole_name.empty()) words.push_back({entry.whole_name, "the same over the whole communicator"});
  return words;
}

const Words<RuleSet>& rule_sets() {
  static const Words<RuleSet> words = {
      {"physical", RuleSet::physical, "whole picoseconds, every link and reduction is charged"},
      {"astra-sim", RuleSet::astra_sim, "agrees with ASTRA-sim 2 to the nanosecond"}};
  return words;
}

std::string_view name(RuleSet rules) { return text_of(rule_sets(), rules); }

const Words<network::ModelName>& network_models() {
  static const Words<network::ModelName> words = words_of<network::ModelName>();
  return words;
}

const Words<compute::ModelName>& compute_models() {
  static const Words<compute::ModelName> words = words_of<compute::ModelName>();
  return words;
}

const Words<compute::Dataflow>& dataflows() {
  using compute::Dataflow;
  static const Words<Dataflow> words = {{"weight-stationary", Dataflow::weight_stationary, "weights stay in the array"},
                                        {"output-stationary", Dataflow::output_stationary, "results stay in the array"},
                                        {"input-stationary", Dataflow::input_stationary, "inputs stay in the array"}};
  return words;
}

const Words<compute::ProcessorName>& processors() {
  static const Words<compute::ProcessorName> words = words_of<compute::ProcessorName>();
  return words;
}

const Words<compute::AttentionKernelName>& attention_kernels() {
  static const Words<compute::AttentionKernelName> words = words_of<compute::AttentionKernelName>();
  return words;
}

const Words<network::Switching>& network_switchings() {
  using network::Switching;
  static const Words<Switching> words = {
      {name(Switching::store_and_forward), Switching::store_and_forward, "a message goes on when all of it is there"},
      {name(Switching::cut_through), Switching::cut_through, "a message goes on when its first byte is there"}};
  return words;
}

const Words<topology::Routing>& shape_routings() {
  using topology::Routing;
  static const Words<Routing> words = {
      {"adaptive", Routing::adaptive, "a switch sends a message another way once, where messages wait for less time"},
      {"minimal", Routing::minimal, "the destination alone chooses a shortest route"}};
  return words;
}

const Words<network::FlitFlowControl>& flit_flow_controls() {
  using network::FlitFlowControl;
  static const Words<FlitFlowControl> words = {
      {"wormhole", FlitFlowControl::wormhole, "a flit goes on when there is room for it"},
      {"virtual-cut-through", FlitFlowControl::virtual_cut_through,
       "a packet goes on when there is room for all of it"}};
  return words;
}

const Words<network::FlitRouting>& flit_routings() {
  using network::FlitRouting;
  static const Words<FlitRouting> words = {
      {"dor", FlitRouting::dor, "x before y"},
      {"adaptive-xy-yx", FlitRouting::adaptive_xy_yx,
       "Mesh2D only: x before y or y before x, whichever has more credit at the first router"}};
  return words;
}

const Words<collective::LibraryName>& collective_libraries() {
  static const Words<collective::LibraryName> words = words_of<collective::LibraryName>();
  return words;
}

const Words<gpu::ProfileName>& gpu_profiles() {
  static const Words<gpu::ProfileName> words = words_of<gpu::ProfileName>();
  return words;
}

const Words<gpu::Arbitration>& gpu_arbitrations() {
  using gpu::Arbitration;
  static const Words<Arbitration> words = {
      {"fair", Arbitration::fair, "requests, acknowledgements and signals pass data that wait"},
      {"fifo", Arbitration::fifo, "they wait like data"}};
  return words;
}

const Words<gpu::Noc>& gpu_nocs() {
  using gpu::Noc;
  static const Words<Noc> words = {{"none", Noc::none, "nothing but latencies, `sm-rate` and `outstanding`"},
                                   {"ports", Noc::ports, "the ports of memory and those to the links, as servers"}};
  return words;
}

const Words<gpu::GranularityKind>& gpu_granularities() {
  using gpu::GranularityKind;
  static const Words<GranularityKind> words = {
      {"burst", GranularityKind::burst, "in `bursts` pieces of each operation at most"},
      {"line", GranularityKind::line, "each iteration of a block by itself"}};
  return words;
}

const Words<gpu::Evaluation>& gpu_evaluations() {
  using gpu::Evaluation;
  static const Words<Evaluation> words = {
      {"automatic", Evaluation::automatic, "in the congestion-aware network as in-network, else alone"},
      {"in-network", Evaluation::in_network, "in the run itself: members come and go, and requests meet other traffic"},
      {"alone", Evaluation::alone, "once for each group, plan and size, as if all members joined together"}};
  return words;
}

const Words<collective::FabricName>& fabrics() {
  static const Words<collective::FabricName> words = words_of<collective::FabricName>();
  return words;
}

const Words<collective::LinkRates>& link_rates() {
  using collective::LinkRates;
  static const Words<LinkRates> words = {
      {"data-sheet", LinkRates::data_sheet, "the rates of data sheets, of which a library reaches a share"},
      {"reached", LinkRates::reached, "what rings reach already"}};
  return words;
}

const Words<collective::ExpertKernelsName>& expert_kernels() {
  static const Words<collective::ExpertKernelsName> words = words_of<collective::ExpertKernelsName>();
  return words;
}

const Words<collective::Kind>& collective_kinds() {
  using collective::Kind;
  static const Words<Kind> words = {{"all-reduce", Kind::all_reduce, "all have the sum"},
                                    {"all-gather", Kind::all_gather, "all have the parts of all"},
                                    {"reduce-scatter", Kind::reduce_scatter, "each has a part of the sum"},
                                    {"all-to-all", Kind::all_to_all, "each has a part from each"},
                                    {"broadcast", Kind::broadcast, "all have what one has"},
                                    {"reduce", Kind::reduce, "one has the sum"},
                                    {"gather", Kind::gather, "one has the parts of all"},
                                    {"scatter", Kind::scatter, "each has a part from one"},
                                    {"barrier", Kind::barrier, "all wait for all"},
                                    {"expert-dispatch", Kind::expert_dispatch, "tokens go to their experts"},
                                    {"expert-combine", Kind::expert_combine, "tokens come back from them"}};
  return words;
}

const Words<collective::Optimization>& collective_optimizations() {
  using collective::Optimization;
  static const Words<Optimization> words = {
      {"localBWAware", Optimization::local_bw_aware, "reduce-scatter up the dimensions, all-gather down"},
      {"baseline", Optimization::baseline, "one all-reduce in each dimension"}};
  return words;
}

const Words<collective::DimensionOrder>& dimension_orders() {
  using collective::DimensionOrder;
  static const Words<DimensionOrder> words = {
      {"ascending", DimensionOrder::ascending, "from the lowest dimension on"},
      {"round-robin", DimensionOrder::round_robin, "each chunk begins one dimension later"},
      {"themis", DimensionOrder::themis, "by the load that the chunks before it put on the dimensions"},
      {"all-axes", DimensionOrder::all_axes, "from the lowest dimension on, but Rings and Meshes in a row at once"}};
  return words;
}

const Words<collective::Directions>& directions() {
  using collective::Directions;
  static const Words<Directions> words = {{"both", Directions::both, "up and down at the same time"},
                                          {"one", Directions::one, "up only"}};
  return words;
}

const Words<collective::ChunkOrder>& chunk_orders() {
  using collective::ChunkOrder;
  static const Words<ChunkOrder> words = {
      {"fifo", ChunkOrder::fifo, "the chunk that came first"},
      {"smallest-chunk-first", ChunkOrder::smallest_first, "the chunk with the fewest bytes"},
      {"fewest-phases-first", ChunkOrder::fewest_phases_first,
       "the chunk with the fewest phases left, this one included"}};
  return words;
}

const Words<npu::CommOrder>& communication_orders() {
  using npu::CommOrder;
  static const Words<CommOrder> words = {
      {"lowest-id", CommOrder::lowest_id, "the node with the lowest id"},
      {"fifo", CommOrder::fifo, "the node that was ready first"},
      {"lifo", CommOrder::lifo, "the node that was ready last"},
      {"priority", CommOrder::priority, "the node with the highest comm_priority in the trace"}};
  return words;
}

const Words<bool>& communication_durations() {
  static const Words<bool> words = {
      {"network", false, "the network"},
      {"recorded", true,
       "the shortest duration that a member recorded, from when the last one is ready; the network where one recorded "
       "none"}};
  return words;
}

const Words<memory::RemoteMemoryKind>& remote_memory_kinds() {
  static const Words<memory::RemoteMemoryKind> words = words_of<memory::RemoteMemoryKind>();
  return words;
}

const Words<trace::Dependencies>& dependency_policies() {
  using trace::Dependencies;
  static const Words<Dependencies> words = {
      {"auto", Dependencies::automatic, "both, unless ctrl_deps make a cycle or no node has data_deps"},
      {"data", Dependencies::data, "data_deps"},
      {"ctrl", Dependencies::ctrl, "ctrl_deps"},
      {"both", Dependencies::both, "data_deps and ctrl_deps"}};
  return words;
}

const Words<trace::Streams>& stream_policies() {
  using trace::Streams;
  static const Words<Streams> words = {
      {"auto", Streams::automatic,
       "counted with `rules: astra-sim`, or if communication.streams or communication.order is given; dimension with "
       "inSwitch; else named"},
      {"named", Streams::by_name,
       "as trace for nodes that name a stream in the trace, and as dimension for all others"},
      {"dimension", Streams::by_dimension,
       "collectives that use the same dimensions take turns, and sends do; others run beside them"},
      {"counted", Streams::by_count, "as many at a time as compute.streams and communication.streams say"},
      {"trace", Streams::of_trace, "one at a time of those that name the same stream in the trace"}};
  return words;
}

const Words<workload::Precision>& precisions() {
  using workload::Precision;
  static const Words<Precision> words = {{"bf16", Precision::bf16, "2 bytes for each value"},
                                         {"fp8", Precision::fp8, "operands and results of products in 1 byte"},
                                         {"mxfp8", Precision::mxfp8, "as fp8, with a scale for each 32 values"},
                                         {"nvfp4", Precision::nvfp4, "half a byte, with a scale for each 16 values"},
                                         {"fp32", Precision::fp32, "4 bytes for each value"}};
  return words;
}

std::string_view name_of(workload::Precision precision) { return text_of(precisions(), precision); }

const Words<workload::ContextExchange>& context_exchanges() {
  using workload::ContextExchange;
  static const Words<ContextExchange> words = {
      {"gather", ContextExchange::gather, "all are gathered before the core of attention"},
      {"ring", ContextExchange::ring, "they are passed on beside the core of attention"}};
  return words;
}

const Words<workload::Phase>& phases() {
  using workload::Phase;
  static const Words<Phase> words = {{"training", Phase::training, "forward and backward passes, and the update"},
                                     {"prefill", Phase::prefill, "inference: prompts are read"},
                                     {"decode", Phase::decode, "inference: one more token of each sequence"},
                                     {"request", Phase::request, "inference: prompts are read, then tokens are made"}};
  return words;
}

const Words<workload::TableSharding>& table_shardings() {
  using workload::TableSharding;
  static const Words<TableSharding> words = {
      {"even", TableSharding::even, "each NPU has an equal share of memory and work"},
      {"table", TableSharding::table, "one NPU has the whole table"},
      {"row", TableSharding::row, "each NPU has an equal share of the rows"},
      {"column", TableSharding::column, "NPUs have parts of so many columns as if they were tables"}};
  return words;
}

const Words<workload::TableBalance>& table_balances() {
  using workload::TableBalance;
  static const Words<TableBalance> words = {{"bytes", TableBalance::bytes, "memory"},
                                            {"lookups", TableBalance::lookups, "values that are looked up"}};
  return words;
}

const Words<workload::Schedule>& schedules() {
  using workload::Schedule;
  static const Words<Schedule> words = {
      {"1f1b", Schedule::one_forward_one_backward, "one forward and one backward pass in turn"},
      {"gpipe", Schedule::gpipe, "all forward passes first"},
      {"zb-h1", Schedule::zb_h1, "1f1b with delayed gradients of weights, in the memory of 1f1b"},
      {"zb-v", Schedule::zb_v, "zero bubble: two chunks on each NPU, down the stages and back up"},
      {"dualpipe", Schedule::dual_pipe, "two directions, each with its copy of the parameters"}};
  return words;
}

const Words<workload::Recompute>& recompute_policies() {
  using workload::Recompute;
  static const Words<Recompute> words = {{"none", Recompute::none, "nothing"},
                                         {"selective", Recompute::selective, "the core of the attention"},
                                         {"full", Recompute::full, "every layer"}};
  return words;
}

const Words<bool workload::RecomputedModules::*>& recomputed_modules() {
  using workload::RecomputedModules;
  static const Words<bool RecomputedModules::*> words = {
      {"norms", &RecomputedModules::norms, "results of norms"},
      {"swiglu", &RecomputedModules::activation, "results of the function between the products of an MLP"},
      {"latent", &RecomputedModules::latent, "queries, keys and values of latent attention"},
      {"mlp", &RecomputedModules::mlp, "MLPs of layers without experts"},
      {"moe", &RecomputedModules::experts, "MLPs of layers with experts, with their exchanges"}};
  return words;
}

const Words<workload::ExpertExchange>& expert_exchanges() {
  using workload::ExpertExchange;
  static const Words<ExpertExchange> words = {
      {"all-to-all", ExpertExchange::all_to_all, "each expert gets a copy of a token by an all-to-all"},
      {"once-per-server", ExpertExchange::once_per_server, "each server gets a token once and forwards it"},
      {"low-latency", ExpertExchange::low_latency, "each expert gets a copy by kernels that take no SMs"}};
  return words;
}

const Words<workload::ExpertOverlap>& expert_overlaps() {
  using workload::ExpertOverlap;
  static const Words<ExpertOverlap> words = {
      {"false", ExpertOverlap::none, "nothing"},
      {"true", ExpertOverlap::shared, "experts that every token passes"},
      {"batches", ExpertOverlap::batches, "another micro-batch: forward and backward passes in pairs"}};
  return words;
}

const Words<workload::Detail>& details() {
  using workload::Detail;
  static const Words<Detail> words = {{"block", Detail::block, "one for each stretch between communications"},
                                      {"operator", Detail::op, "one for each operator"}};
  return words;
}

const Words<Progress>& progress_kinds() {
  static const Words<Progress> words = {
      {"auto", Progress::automatic, "one line that renews itself on a terminal, else plain"},
      {"plain", Progress::plain, "a line every interval"},
      {"none", Progress::none, "no line"}};
  return words;
}

const Words<Colours>& colour_choices() {
  static const Words<Colours> words = {{"auto", Colours::automatic, "on a terminal, unless NO_COLOR is set"},
                                       {"always", Colours::always, "wherever it is printed"},
                                       {"never", Colours::never, "nowhere"}};
  return words;
}

const Words<ExcessPolicy>& excess_policies() {
  static const Words<ExcessPolicy> words = {{"error", ExcessPolicy::error, "the run ends with an error"},
                                            {"report", ExcessPolicy::report, "the results and the summary tell"}};
  return words;
}

const Words<DrawnPer>& drawn_per() {
  static const Words<DrawnPer> words = {
      {"machine", DrawnPer::machine, "once for all NPUs of a machine: the time of their compute nodes"},
      {"npu", DrawnPer::npu, "once for each NPU: the time of its compute nodes"},
      {"step", DrawnPer::step, "for each NPU and iteration: the time of its compute nodes and of its host work"},
      {"node", DrawnPer::node, "for each NPU, node and iteration: the time of the compute node or of the host work"},
      {"collective", DrawnPer::collective, "for each collective of a communicator: its time from the last arrival on"},
      {"message", DrawnPer::message, "for each two NPUs, tag and iteration: the time of messages between them"}};
  return words;
}

const Words<DistributionKind>& distribution_kinds() {
  static const Words<DistributionKind> words = {
      {"uniform", DistributionKind::uniform, "all factors from `least` to `most` alike"},
      {"normal", DistributionKind::normal, "a normal distribution, cut off at `least` and `most`"},
      {"lognormal", DistributionKind::lognormal, "factors whose logarithm is normal, cut off at `least` and `most`"},
      {"tail", DistributionKind::tail, "`factor` with `probability`, else 1"},
      {"exponential", DistributionKind::exponential,
       "with `probability` 1 plus an exponential distribution, cut off at `most`; else 1"},
      {"values", DistributionKind::values, "one of the measured factors in `values`, all alike"}};
  return words;
}

const Words<ShapeWord>& shapes() {
  using topology::Shape;
  static const Words<ShapeWord> words = [] {
    Words<ShapeWord> all;
    for (const Shape shape : Shape::all()) all.push_back({shape.name(), {shape}, shape->help});
    for (const Shape shape : Shape::all())
      for (const topology::ShapeShorthand& shorthand : shape->shorthands)
        all.push_back({shorthand.name, {shape, shorthand.dimensions, shorthand.is_one_router}, shorthand.help});
    return all;
  }();
  return words;
}

}  // namespace orrery::config
