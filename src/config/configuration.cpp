#include "orrery/config/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "keys/keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/precision_name.hpp"
#include "tiers.hpp"

namespace orrery::config {

std::filesystem::path Workload::trace_of(NpuId npu) const {
  const auto after = std::ranges::upper_bound(traces, npu.value(), {}, &TraceFiles::first);
  ensure(after != traces.begin() && npu.value() <= std::prev(after)->last, "an NPU without a trace");
  const std::uint32_t recorded = recording.replicate == 0 ? npu.value() : npu.value() % recording.replicate;
  return name_for_npu(std::prev(after)->pattern, recorded);
}

std::uint32_t Job::num_npus() const {
  std::uint32_t count = 0;
  for (const NpuRange& range : allocation) count += range.last - range.first + 1;
  return count;
}

std::vector<NpuId> Job::npus() const {
  std::vector<NpuId> all;
  for (const NpuRange& range : allocation)
    for (std::uint32_t npu = range.first; npu <= range.last; ++npu) all.emplace_back(npu);
  return all;
}

workload::Precision Configuration::precision() const { return workloads().front()->precision(); }

std::string Configuration::required_precision(const Workload& of) const {
  return peaks.empty() ? "" : std::string(name_of(of.precision()));
}

std::vector<const Workload*> Configuration::workloads() const {
  std::vector<const Workload*> all;
  for (const Job& job : workload.jobs) all.push_back(&job.workload);
  if (workload.jobs.empty()) all.push_back(&workload);
  return all;
}

std::vector<Workload*> Configuration::own_workloads() {
  std::vector<Workload*> all;
  for (Job& job : workload.jobs) all.push_back(&job.workload);
  if (workload.jobs.empty()) all.push_back(&workload);
  return all;
}

void Configuration::follow(RuleSet rules) {
  rule_set = rules;
  const bool astra_sim = rules == RuleSet::astra_sim;
  const Rounding rounding = astra_sim ? Rounding::down_to_ns : Rounding::up_to_ps;
  execution.network.rules = {.rounding = rounding,
                             .charge_every_dimension = !astra_sim,
                             .clears_first = astra_sim,
                             .orders_messages = astra_sim};
  execution.compute.rounding = rounding;
  execution.one_by_one = astra_sim;
  execution.compute.ignore_nodes_without_bytes = astra_sim;
  remote_memory.rounding = rounding;
  remote_memory.own_memory_takes_turns = !astra_sim;
  remote_memory.orders_requests = astra_sim;
  collectives.rules = {.reduce_every_message = !astra_sim,
                       .fixed_subgroup_endpoint_delay = astra_sim,
                       .subgroup_is_ring = astra_sim,
                       .two_directions = astra_sim,
                       .turns_go_on = astra_sim,
                       .sliding_windows = astra_sim,
                       .share_bandwidth = !astra_sim,
                       .bare_custom_collectives = astra_sim,
                       .chunks_begin_in_order = astra_sim,
                       .uneven_all_to_all = !astra_sim};
}

bool are_tiers(const topology::Dimension& a, const topology::Dimension& b) {
  const auto may_be_tier = [](const topology::Dimension& dimension) {
    return dimension.shape->sends_over_one_link && dimension.in_switch_operations == 0;
  };
  return may_be_tier(a) && may_be_tier(b) && a.bandwidth_of_links() == b.bandwidth_of_links();
}

void settle_ports(Configuration& configuration) {
  if (configuration.rule_set == RuleSet::astra_sim || configuration.execution.network.graph) return;
  auto& dimensions = configuration.dimensions;
  const collective::LibraryOptions& library = configuration.collectives.library;
  const std::size_t first_outer = library.library ? library.node_dimensions : 0;
  // Links within the nodes of a library are no tier of the network between them.
  const auto may_share = [&](std::size_t a, std::size_t b) {
    return (a < first_outer) == (b < first_outer) && are_tiers(dimensions[a], dimensions[b]);
  };
  std::string port = "nic";
  const auto is_named = [&] {
    return std::ranges::find(dimensions, port, &topology::Dimension::port) != dimensions.end();
  };
  for (std::size_t first = 0, end = 0; first < dimensions.size(); first = std::max(end, first + 1)) {
    end = first;
    if (dimensions[first].size == 1) continue;
    std::size_t tiers = 0;
    for (; end < dimensions.size(); ++end) {
      if (dimensions[end].size == 1) continue;
      if (!dimensions[end].port.empty() || !may_share(first, end)) break;
      ++tiers;
    }
    if (tiers < 2) continue;
    for (std::size_t d = first; is_named(); ++d) port = fmt::format("nic {}", d);
    for (std::size_t d = first; d < end; ++d)
      if (dimensions[d].size > 1) dimensions[d].port = port;
  }
}

/// Chooses the streams where none were chosen: NPUs of ASTRA-sim count theirs, as those do that are told how many they
/// have or in which order nodes take them. What a collective may use of a switch rests on turns that traces do not
/// have.
void Configuration::settle_streams() {
  using trace::Streams;
  const bool is_counted = rule_set == RuleSet::astra_sim || execution.replay_only ||
                          places.contains("system.communication.streams") ||
                          execution.comm_order != npu::CommOrder::lowest_id;
  const bool uses_switches = collectives.uses_switch_operations();
  for (Workload* const each : own_workloads())
    if (each->streams == Streams::automatic)
      each->streams = is_counted ? Streams::by_count : uses_switches ? Streams::by_dimension : Streams::by_name;
  execution.dimension_streams = workloads().front()->counts_by_dimension();
}

/// Lets devices cut messages through where nothing was chosen and links are simulated: a message of MBs that each
/// switch stores whole takes its time once for each hop.
void Configuration::settle_switching() {
  if (rule_set == RuleSet::astra_sim || places.contains("system.network.switching")) return;
  const network::ModelType& model = *execution.network.model;
  const bool has_links = model.simulates_links() && !model.sends_packets;
  execution.network.switching = has_links ? network::Switching::cut_through : network::Switching::store_and_forward;
}

/// Chooses how plans of GPUs are simulated where nothing was chosen, and hands them to who does so.
void Configuration::settle_gpu() {
  using gpu::Evaluation;
  if (!gpu.profile) return;
  const bool has_links = execution.network.model->simulates_links();
  if (gpu.evaluation == Evaluation::automatic) gpu.evaluation = has_links ? Evaluation::in_network : Evaluation::alone;
  if (gpu.plans.empty()) return;
  if (gpu.evaluation == Evaluation::alone) {
    collectives.custom.whole = gpu::plan_durations(gpu);
  } else {
    execution.gpu = std::make_shared<const gpu::Options>(gpu);
    execution.network.has_requests = true;
  }
}

/// Chooses how tokens travel to experts where nothing was chosen, and gives the routing of the models to the options of
/// exchanges. A library means GPUs, whose kernels send a token to each server once.
void Configuration::settle_experts() {
  using workload::ExpertExchange;
  collective::ExpertOptions& options = collectives.library.experts;
  std::uint32_t npus_of_node = 1;
  for (std::size_t d = 0; d < std::min<std::size_t>(dimensions.size(), collectives.library.node_dimensions); ++d)
    npus_of_node *= std::max(dimensions[d].size, 1U);
  const bool has_kernels = collectives.library.library.has_value();
  // Traces may exchange tokens, if a key says so.
  const bool has_traces = std::ranges::any_of(own_workloads(), [](const Workload* each) { return !each->generated; });
  bool exchanges =
      has_traces && (places.contains("system.collectives.experts.kernels") || options.sm_share.has_value());
  for (Workload* const each : own_workloads()) {
    if (!each->generated) continue;
    const auto* const model = std::get_if<workload::Transformer>(&each->generated->model);
    if (model == nullptr || model->mlp.experts == 0) continue;
    workload::Parallel& parallel = each->generated->parallel;
    auto& exchange = parallel.experts.exchange;
    if (exchange == ExpertExchange::automatic)
      exchange = has_kernels && workload::exchanges_over_nodes(parallel, npus_of_node) ? ExpertExchange::once_per_server
                                                                                       : ExpertExchange::all_to_all;
    if (!parallel.has_expert_kernels()) continue;
    exchanges = true;
    options.top_k = model->mlp.top_k;
    options.servers = model->mlp.servers;
    if (exchange == ExpertExchange::low_latency) options.kernels = collective::ExpertKernelsName("deepep-low-latency");
  }
  const double units = execution.compute.products.processor.value_or(compute::ProcessorName())->num_units;
  if (execution.compute.products.processor) execution.compute.collectives_share.of_channel = 1 / units;
  if (exchanges && !execution.network.model->simulates_links())
    execution.compute.experts_share = options.sm_share.value_or(std::min(options.kernels->sms / units, 0.9));
}

compute::Options Configuration::compute_in(workload::Precision precision) const {
  compute::Options options = execution.compute;
  if (!peaks.empty()) {
    auto peak = peaks.find(precision);
    if (peak == peaks.end() && precision == workload::Precision::mxfp8) peak = peaks.find(workload::Precision::fp8);
    options.peak_flops = peak == peaks.end() ? 0 : peak->second;
    const auto bf16 = peaks.find(workload::Precision::bf16);
    options.bf16_peak_flops = bf16 == peaks.end() ? 0 : bf16->second;
  }
  options.operand_bytes = workload::operand_size(precision);
  options.table.precision = text_of(precisions(), precision);
  return options;
}

void Configuration::share_settings() {
  collectives.local_memory = execution.compute.local_memory;
  settle_streams();
  settle_experts();
  settle_switching();
  settle_ports(*this);
  for (Workload* const each : own_workloads())
    if (each->generated) each->generated->parallel.sharding.sums_apart = execution.dimension_streams;
  collectives.collectives_at_a_time = execution.dimension_streams ? 1 : execution.comm_streams;
  collectives.rendezvous = execution.rendezvous;
  collectives.switches_send_packets = execution.network.model->sends_packets;
  remote_memory.may_take_no_time = rule_set == RuleSet::astra_sim && !execution.goes_over_links();
  settle_gpu();
  execution.compute = compute_in(precision());
  Faults of_compute;
  const bool estimates =
      std::ranges::any_of(workloads(), [](const auto* each) { return each->generated.has_value(); }) &&
      execution.compute.model->estimates_operations && of_compute.attempt([this] { execution.compute.validate(); });
  for (Workload* const each : own_workloads())
    if (estimates && each->generated) each->estimates = compute::make_model(execution.compute);
  execution.noise.variations.seed = execution.noise.seed;
  if (const std::uint32_t num_npus = count_npus(dimensions); num_npus > 0 && num_npus <= most_npus)
    execution.compute_speed = compute_speeds(perturbation, execution.noise.variations, num_npus);
}

void Configuration::draw_with(std::uint32_t seed) {
  execution.noise.seed = execution.noise.variations.seed = seed;
  if (execution.noise.variations.has(DrawnPer::machine) || execution.noise.variations.has(DrawnPer::npu))
    execution.compute_speed = compute_speeds(perturbation, execution.noise.variations, count_npus(dimensions));
}

namespace {

/// Lets the dimensions between the nodes of a library share the port `nic`, but for those that name a port. Where links
/// are simulated, only NPUs with one link into each of them can have such a port.
void share_nic(const Configuration& c, std::vector<topology::Dimension>& dimensions) {
  const std::size_t first = std::min<std::size_t>(c.collectives.library.node_dimensions, dimensions.size());
  const std::span outer = std::span(dimensions).subspan(first);
  const bool may_share = !c.execution.network.model->simulates_links() ||
                         std::ranges::all_of(outer, [](const topology::Dimension& dimension) {
                           return dimension.shape->sends_over_one_link && dimension.in_switch_operations == 0;
                         });
  for (topology::Dimension& dimension : outer)
    if (may_share && dimension.port.empty()) dimension.port = "nic";
}

/// Lets switches choose among routes where nothing says otherwise and every link is simulated. Rules of ASTRA-sim know
/// minimal routes only, and pieces of a message (packet-size) take one route.
void choose_routing(const Configuration& c, std::vector<topology::Dimension>& dimensions) {
  using topology::Routing;
  for (topology::Dimension& dimension : dimensions)
    if (dimension.routing == Routing::automatic)
      dimension.routing =
          dimension.shape->has_alternatives && c.may_choose_routes() ? Routing::adaptive : Routing::minimal;
}

}  // namespace

bool Configuration::may_choose_routes() const {
  const network::Options& network = execution.network;
  return network.model->simulates_links() && !network.model->sends_packets && rule_set == RuleSet::physical &&
         network.packet == Bytes(0) && !network.circuits && !network.graph;
}

topology::Topology Configuration::topology() const {
  std::vector<topology::Dimension> wired = dimensions;
  choose_routing(*this, wired);
  if (collectives.library.library) share_nic(*this, wired);
  if (perturbation.links.empty()) return topology::Topology(std::move(wired), {}, port_rates);
  topology::Links links(wired);
  for (const auto& entry : perturbation.links) links.add(link_fault(entry));
  return topology::Topology(std::move(wired), std::move(links), port_rates);
}

collective::Options Configuration::collective_options() const {
  collective::Options options = collectives;
  const network::Options& network = execution.network;
  options.circuits = network.circuits;
  if (network.model->sends_packets) {
    // Members receive what they send, and acknowledge it.
    const network::PacketRules packets = network.packets.with_sizes();
    const double with_overhead = static_cast<double>(packets.full_packet() + packets.acknowledgement);
    options.library.goodput = static_cast<double>(packets.payload) / with_overhead;
  }
  const bool has_cuts = network.graph || std::ranges::any_of(dimensions, [](const topology::Dimension& dimension) {
                          return dimension.shape->is_of_links_only;
                        });
  if (options.library.library && options.library.relative && has_cuts)
    options.library.cuts =
        network::cuts_of(network::arcs_of(topology(), network), dimensions, options.library.node_dimensions);
  return options;
}

Place Configuration::place_of(std::string_view path) const {
  const auto found = places.find(path);
  return found == places.end() ? Place{.key = std::string(path)} : found->second;
}

std::string Configuration::to_yaml(bool with_run) const {
  Writer writer;
  const bool has_jobs = !workload.jobs.empty();
  for (const auto* const keys : configuration_keys()) {
    const bool is_of_workload = keys == &workload_keys() || keys == &generated_workload_keys();
    const bool is_left_out = (keys == &run_keys() && !with_run) || (is_of_workload && has_jobs);
    if (!is_left_out) write_keys(*keys, *this, writer);
  }
  // Of the run's keys it alone decides whether there are results.
  if (!with_run && run.memory != RunOptions().memory) find_key("run.memory")->write(this, writer);
  return writer.block();
}

bool operator==(const Configuration& a, const Configuration& b) {
  return std::ranges::all_of(configuration_keys(), [&](const auto* keys) { return are_same(*keys, a, b); });
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
