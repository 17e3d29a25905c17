#include <fmt/format.h>

#include <algorithm>

#include "circuits.hpp"
#include "keys/keys.hpp"
#include "keys/packets.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/fabric.hpp"
#include "system_size.hpp"

namespace orrery::config {
namespace {

/// Looks at a configuration as a whole. Faults name the key, and where it was given.
class Validation {
 public:
  Validation(const Configuration& configuration, Faults& faults)
      : c_(configuration), faults_(faults), topology_(configuration.topology()) {}

  void run() {
    validate_modules();
    validate_network();
    validate_library();
    validate_gpu();
    validate_jobs();
    const auto all = c_.workloads();
    for (std::size_t i = 0; i < all.size(); ++i) {
      workload_ = all[i];
      if (!c_.workload.jobs.empty()) job_ = fmt::format("jobs.{}.", i);
      num_npus_ = c_.workload.jobs.empty() ? topology_.num_npus() : c_.workload.jobs[i].num_npus();
      validate_workload();
    }
  }

  /// Looks at one workload, in the system that it runs on.
  void validate_workload() {
    validate_streams();
    validate_recorded_communication();
    validate_traces();
    if (workload_->generated && attempt([&] { workload_->generated->validate(); })) validate_generated();
  }

 private:
  /// Runs `action`; a fault that it throws gets the line of its key, or of the mapping that holds the key.
  template <class Action>
  bool attempt(Action action) {
    return faults_.attempt([&] {
      try {
        action();
      } catch (const Error& error) {
        throw Error(error.code(), located(error.place()), error.text());
      }
    });
  }

  void require(bool holds, std::string_view key, std::string_view found, std::string_view expected) {
    if (!holds) refuse(key, found, expected);
  }
  /// The same where texts are made for a fault only, because studies read many configurations.
  void refuse(std::string_view key, std::string_view found, std::string_view expected) {
    faults_.add(Error(ErrorCode::bad_input, located({.key = std::string(key)}), found, expected));
  }
  /// Returns the place of a key as that of the job at hand, if it is one of a workload.
  Place of_job(Place place) const {
    if (!job_.empty() && place.file.empty() && place.key.starts_with("workload.")) place.key.insert(0, job_);
    return place;
  }

  /// Returns a place that is only a key with the file and the line where the key was given.
  Place located(Place place) const {
    place = of_job(std::move(place));
    if (!place.file.empty() || place.key.empty()) return place;
    if (const auto given = c_.places.find(place.key); given != c_.places.end()) return given->second;
    for (auto dot = place.key.rfind('.'); dot != std::string::npos && dot > 0; dot = place.key.rfind('.', dot - 1))
      if (const auto holder = c_.places.find(place.key.substr(0, dot)); holder != c_.places.end()) {
        place.file = holder->second.file;
        place.line = holder->second.line;
        return place;
      }
    return place;
  }

  void validate_uses();
  void validate_compute_share();
  void validate_modules();
  void validate_network();
  void validate_ports();
  void validate_graph();
  void validate_packets();
  void validate_recording();
  void validate_recorded_communication();
  void validate_library();
  void validate_gpu();
  void validate_streams();
  void validate_traces();
  void validate_generated();
  void validate_experts(const workload::Description& generated);
  void validate_load();
  void validate_jobs();

  const Configuration& c_;
  Faults& faults_;
  topology::Topology topology_;
  // The workload at hand, its job's key with a dot behind it (empty: the only workload), and its NPUs.
  const Workload* workload_ = nullptr;
  std::string job_;
  std::uint32_t num_npus_ = 0;
};

std::string precisions_of(const std::map<workload::Precision, double>& peaks) {
  std::vector<std::string_view> words;
  for (const auto& [precision, peak] : peaks) words.push_back(text_of(precisions(), precision));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Refuses keys of one compute model beside another one, and keys of a library without one.
void Validation::validate_uses() {
  constexpr std::string_view of_products[] = {"system.compute.attention", "system.compute.elementwise",
                                              "system.compute.fp8", "system.compute.kernel"};
  const auto require_use = [this](std::string_view key, bool is_used, std::string_view user) {
    if (is_used || !c_.places.contains(key)) return;
    refuse(key, "found without what alone uses it", fmt::format("{} with it", user));
  };
  for (const std::string_view key : of_products)
    require_use(key, c_.execution.compute.model == compute::ModelName("products"), "system.compute.model: products");
  require_use("system.compute.table", c_.execution.compute.model == compute::ModelName("table"),
              "system.compute.model: table");
  for (const std::string_view key : {"system.compute.array.rows", "system.compute.array.columns",
                                     "system.compute.array.cycle", "system.compute.array.dataflow"})
    require_use(key, c_.execution.compute.model == compute::ModelName("systolic"), "system.compute.model: systolic");
  for (const auto& [key, place] : c_.places)
    if (key.starts_with("system.collectives.library.") && key != "system.collectives.library.name")
      require_use(key, c_.collectives.library.library.has_value(), "system.collectives.library.name");
}

void Validation::validate_compute_share() {
  const compute::CollectivesShare& share = c_.execution.compute.collectives_share;
  constexpr std::string_view key = "system.collectives.compute-share";
  require(c_.rule_set == RuleSet::physical || !share.any(), key, "found a share with ASTRA-sim's rules", "0");
  if (!share.of_channels) return;
  const auto& library = c_.collectives.library.library;
  require(library && (*library)->channels.count > 0, key, "found `library`, but no library whose channels are known",
          "a number from 0 to below 1, or system.collectives.library.name: nccl-h100 and the like");
  require(share.of_channel > 0, key, "found `library`, but the units of an NPU are not known",
          "a number from 0 to below 1, or system.compute.processor: h100 and the like");
}

void Validation::validate_modules() {
  validate_uses();
  validate_compute_share();
  validate_load();
  attempt([&] { c_.collectives.validate(topology_); });
  // Products below bf16 take shares of their peak that are relative to those of bf16.
  const bool needs_both = workload::is_below_bf16(c_.precision()) && c_.peaks.empty() &&
                          c_.execution.compute.model == compute::ModelName("products");
  if (needs_both)
    refuse("system.compute.peak",
           fmt::format("found one peak, with workload.parallel.precision: {}", text_of(precisions(), c_.precision())),
           "the peaks of both precisions, such as {bf16: 989 TFLOPS, fp8: 1979 TFLOPS}");
  const bool is_peak_known = c_.execution.compute.peak_flops > 0;  // that of the precision, or one that stands for it
  const bool knows_peak = c_.peaks.empty() || is_peak_known || !c_.execution.compute.model->uses_operations;
  if (!knows_peak)
    refuse("system.compute.peak", fmt::format("found peaks of {}", precisions_of(c_.peaks)),
           fmt::format("one of {}, {}", text_of(precisions(), c_.precision()),
                       c_.workload.generated ? "the precision of the workload (workload.parallel.precision)"
                                             : "the precision of the traces (workload.precision)"));
  if (knows_peak) attempt([&] { c_.execution.validate(); });
  attempt([&] { c_.remote_memory.validate(topology_.num_npus()); });
  attempt([&] { cost::tiers_of(c_.prices, c_.dimensions.size()); });
  attempt([&] { c_.run.partition.validate(topology_, c_.place_of("run.partition")); });
}

/// A load is that of all NPUs, from the beginning.
void Validation::validate_load() {
  if (!c_.run.record_load) return;
  require(!c_.run.fold, "run.record-load", "found true in a folded run, which does not simulate all NPUs",
          "false, or run.fold: false (no --fold)");
  require(c_.run.restart.empty() && c_.run.checkpoint.empty(), "run.record-load",
          "found true with checkpoints, which do not keep the load", "false, or neither --checkpoint nor --restart");
  require(!c_.execution.goes_over_links() || !c_.execution.network.model->sends_packets, "run.record-load",
          "found true in the packet network, where ranks tell each other of messages by events of their own",
          "false, or another system.network.model");
}

void Validation::validate_network() {
  const auto& network = c_.execution.network;
  require(network.packet == Bytes(0) || network.switching == network::Switching::cut_through,
          "system.network.packet-size", "found a size, but messages are stored and forwarded whole",
          "system.network.switching: cut-through, or no packet size");
  for (const DrawnPer per : {DrawnPer::collective, DrawnPer::message})
    require(
        !network.model->simulates_links() || !c_.execution.noise.variations.has(per), "perturbation.distributions",
        fmt::format("found a distribution per {} in the congestion-aware network, where times follow from the links",
                    text_of(drawn_per(), per)),
        "distributions of compute (per machine, npu, step and node), or system.network.model: congestion-unaware");
  if (network.graph) validate_graph();
  if (network.circuits)
    for (const Contradiction& one : contradictions_of_circuits(c_)) refuse(one.key, one.found, one.expected);
  validate_ports();
  validate_recording();
  if (network.model->sends_packets) validate_packets();
  if (network.model->simulates_links()) {
    if (!network.graph) attempt([&] { const topology::Fabric links(topology_); });
    for (const auto& [kind, files] : c_.collectives.custom.of_kind)
      for (const auto& custom : files)
        require(!custom->uses_switch(), fmt::format("system.collectives.custom.{}", collective::name(kind)),
                fmt::format("found {}, which lets the switch add up and multiply data", custom->file().string()),
                "a plan with memory or port channels, or system.network.model: congestion-unaware");
    require(!c_.run.fold, "run.fold",
            "found true with the congestion-aware network, where NPUs that are alike still meet at different links",
            "false (no --fold), or the network model congestion-unaware");
    return;
  }
  for (std::size_t d = 0; d < c_.dimensions.size(); ++d)
    if (c_.dimensions[d].shape->is_of_links_only)
      faults_.add(Error(ErrorCode::bad_input,
                        fmt::format("topology, dimension {} ({}): the congestion-unaware network does not have this "
                                    "shape; expected {}, or system.network.model: congestion-aware",
                                    d, c_.dimensions[d].shape.name(), topology::shapes_of_any_network())));
}

/// Returns whether a dimension leads through the port; those between the nodes of a library share one unasked.
bool leads_through(const topology::Topology& topology, std::string_view port) {
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).port == port) return true;
  return false;
}

/// Ports are of NPUs with one link into a dimension where links are simulated, so that it is known which link is behind
/// the port.
void Validation::validate_ports() {
  for (const auto& [port, rate] : c_.port_rates)
    require(leads_through(topology_, port), fmt::format("system.network.ports.{}", port),
            fmt::format("no dimension leads through a port '{}'", port),
            "the name of a port that a dimension has (system.network.dimensions.port)");
  for (std::uint32_t d = 0; d < c_.dimensions.size(); ++d) {
    const topology::Dimension& dimension = c_.dimensions[d];
    if (dimension.port.empty()) continue;
    const std::string key = fmt::format("system.network.dimensions.{}.port", d);
    require(c_.rule_set == RuleSet::physical, key, "found a port with ASTRA-sim's rules, which know none",
            "no port, or rules: physical");
    const topology::SharedPort* const port = topology_.ports().of(d);
    if (!c_.execution.network.model->simulates_links() || port == nullptr || !port->is_contended) continue;
    const std::string_view network = name(c_.execution.network.model);
    require(
        dimension.shape->sends_over_one_link, key,
        fmt::format("found a port that dimensions share on a {} in the {} network", dimension.shape.name(), network),
        fmt::format("a {}, or system.network.model: congestion-unaware",
                    names_where<topology::ShapeType>(
                        [](const topology::ShapeType& shape) { return shape.sends_over_one_link; })));
    require(dimension.in_switch_operations == 0, key,
            fmt::format("found a port that dimensions share beside in-switch-operations in the {} network", network),
            "one of the two, or system.network.model: congestion-unaware");
  }
}

/// The delay model takes the routes of a graph for its dimensions, and messages over links take them one by one.
void Validation::validate_graph() {
  const std::string_view key = "system.network.graph";
  const auto& network = c_.execution.network;
  const bool fails_later =
      std::ranges::any_of(network.graph->failures, [](const auto& failure) { return failure.time > Time::zero(); });
  require(network.model->simulates_links() || !fails_later, key,
          fmt::format("found failures after the start in the {} network, whose links stay as they are",
                      name(network.model)),
          "failures at 0 s, or system.network.model: congestion-aware or packet");
  require(network.model->sends_packets || !fails_later || network.packet == Bytes(0), key,
          "found failures after the start beside system.network.packet-size: the pieces of a message take one route",
          "failures at 0 s, no packet-size, or system.network.model: packet");
  require(c_.perturbation.links.empty(), "perturbation.links",
          "found faults of links by dimension, but the links are those of system.network.graph",
          "system.network.graph.failures, or links of that rate");
}

/// Refuses what only a network that sends packets can record.
void Validation::validate_recording() {
  const network::PacketRecording& recording = c_.execution.network.recording;
  const bool has_packets = c_.execution.goes_over_links() && c_.execution.network.model->sends_packets;
  require(!recording.flows || has_packets, "run.record-flows", "found true without the packet network",
          "false, or system.network.model: packet");
  require(recording.queue_bins == 0 || has_packets, "run.queue-bins",
          fmt::format("found {} without the packet network", recording.queue_bins),
          "0, or system.network.model: packet");
}

/// Switches that work on data, and links without two equal directions, are not there.
void Validation::validate_packets() {
  require(c_.execution.network.switching == network::Switching::store_and_forward, "system.network.switching",
          "found cut-through in the packet network, where packets are stored and forwarded", "store-and-forward");
  require(c_.rule_set == RuleSet::physical, "system.rules",
          "found astra-sim in the packet network, whose times are in ps",
          "physical; system.network.packets.preset: astra-sim-ns3 has the rules of ASTRA-sim's ns-3");
  if (const auto rules = contradiction_of(c_.execution.network.packets, c_.execution.network.graph != nullptr))
    refuse(rules->key, rules->found, rules->expected);
  for (std::size_t d = 0; d < c_.dimensions.size(); ++d) {
    const auto& dimension = c_.dimensions[d];
    const auto refuse = [&](std::string_view found, std::string_view expected) {
      faults_.add(
          Error(ErrorCode::bad_input, fmt::format("topology, dimension {} ({}): found {} in the packet network; "
                                                  "expected {}",
                                                  d, dimension.shape.name(), found, expected)));
    };
    if (dimension.in_switch_operations > 0) refuse("in-switch-operations", "0: its switches only forward");
    if (dimension.oversubscription > 1 && topology_.wiring(static_cast<std::uint32_t>(d)).core_bandwidth() > 0)
      refuse("an oversubscribed switch", "oversubscription 1, or a FatTree");
  }
}

/// A library's times are of whole collectives, whatever goes over which link.
void Validation::validate_library() {
  const auto& library = c_.collectives.library;
  if (!library.library) return;
  const std::string_view key = "system.collectives.library.name";
  require(c_.rule_set == RuleSet::physical, key, "found a library with ASTRA-sim's rules, which know algorithms only",
          "no library, or rules: physical");
  require(c_.collectives.custom.of_kind.empty() && c_.collectives.custom.of_nodes.empty(), key,
          "found a library beside custom collectives, which it would replace", "one of the two");
  require(library.node_dimensions <= topology_.num_dimensions(), "system.collectives.library.node-dimensions",
          fmt::format("found {}", library.node_dimensions),
          fmt::format("at most the {} of the network", counted(topology_.num_dimensions(), "dimension")));
}

/// Plans that are simulated alone say what whole collectives take, whatever else is on the links. Others need links
/// that cut their requests through.
void Validation::validate_gpu() {
  if (!c_.gpu.profile) return;
  const std::string_view key = "system.gpu.profile";
  attempt([&] { c_.gpu.validate(); });
  require(c_.rule_set == RuleSet::physical, key, "found GPUs with ASTRA-sim's rules, which know algorithms only",
          "no GPUs, or rules: physical");
  const network::Options& network = c_.execution.network;
  if (c_.gpu.evaluation == gpu::Evaluation::alone) {
    require(
        !network.model->simulates_links(), "system.gpu.evaluate",
        fmt::format("found alone in the {} network, whose links a collective that was simulated by itself would not "
                    "hold, and whose traffic it would not meet",
                    name(network.model)),
        "in-network, or system.network.model: congestion-unaware for a whole run without queues at links");
  } else {
    require(
        network.model->simulates_links() && !network.model->sends_packets, key,
        fmt::format("found GPUs whose thread blocks send requests over links in the {} network", name(network.model)),
        "system.network.model: congestion-aware, or system.gpu.evaluate: alone with congestion-unaware");
    require(network.switching == network::Switching::cut_through, key,
            "found GPUs in a network that stores messages whole at each switch",
            "system.network.switching: cut-through");
    require(!network.graph, key, "found GPUs whose thread blocks send requests over links of a graph",
            "the links of shapes (no system.network.graph), or system.gpu.evaluate: alone with congestion-unaware");
  }
  require(!c_.collectives.library.library, key, "found GPUs beside a library, which decides the same times",
          "one of the two");
}

/// Recorded durations leave nothing to the links, to rounds of a generated workload, and to a replay.
void Validation::validate_recorded_communication() {
  if (!c_.execution.recorded_communication) return;
  const std::string_view key = "system.communication.durations";
  require(!c_.execution.network.model->simulates_links(), key,
          "found recorded, but the congestion-aware network simulates every message",
          "network, or system.network.model: congestion-unaware");
  require(!workload_->generated, key, "found recorded, but a generated workload has no recorded durations", "network");
  require(!c_.execution.replay_only, key,
          "found recorded, but workload.replay-only takes node by node what was recorded",
          "network, or workload.replay-only: false");
}

void Validation::validate_streams() {
  const bool by_trace = workload_->streams == trace::Streams::of_trace;
  if (!by_trace && !c_.execution.dimension_streams) return;
  require(c_.execution.comm_order == npu::CommOrder::lowest_id, "system.communication.order",
          "found an order of the nodes that wait for the communication resource, but without workload.streams: counted "
          "they wait for their streams",
          "lowest-id, or workload.streams: counted");
  require(!by_trace || !workload_->generated, "workload.streams",
          "found trace, but the nodes of a generated workload name no stream", "counted");
  const bool uses_names = by_trace || workload_->streams == trace::Streams::by_name;
  require(!uses_names || !c_.collectives.uses_switch_operations(), "workload.streams",
          "found streams of traces, but what a collective may use of a switch (inSwitch) depends on how many an NPU is "
          "in at a "
          "time, which traces do not limit",
          "counted, with communication.streams; or no inSwitch");
}

void Validation::validate_traces() {
  std::uint64_t next = 0;
  for (const auto& files : workload_->traces) {
    require(files.first == next && files.last >= files.first, "workload.traces",
            fmt::format("no single trace for NPU {}", next), "ascending ranges that hold every NPU once");
    next = std::uint64_t{files.last} + 1;
  }
  require(workload_->traces.empty() || next == num_npus_, "workload.traces",
          fmt::format("traces for {}", counted(next, "NPU")), fmt::format("traces for {}", num_npus_));
}

void Validation::validate_generated() {
  const auto& generated = *workload_->generated;
  const bool has_recorded = c_.execution.compute.model->uses_recorded;
  const bool takes_times = has_recorded || c_.execution.compute.model->estimates_operations;
  if (generated.parallel.num_npus() != num_npus_) {
    const Contradiction product = contradiction_of_product(c_, generated.parallel, num_npus_);
    refuse(product.key, product.found, product.expected);
  }
  const bool is_timed = generated.has_times();
  if (is_timed && !takes_times)
    refuse(
        "workload.model",
        fmt::format("times are given, but the compute model {} does not use them", c_.execution.compute.model.name()),
        "layers with flops and no late, or system.compute.model: recorded");
  require(is_timed || !has_recorded || c_.execution.replay_only, "system.compute.roofline",
          "found false, but the workload is generated from a model in FLOPs, which would take no time",
          "true, with system.compute.peak and system.compute.local-memory.bandwidth");
  const auto& offload = generated.parallel.sharding.offload;
  require(!offload.any() || c_.remote_memory.kind->has_memory, "workload.parallel.offload",
          "found model states in remote memory, but the system has none",
          "system.remote-memory with a kind, or nothing offloaded");
  require(!offload.on_path || c_.remote_memory.kind->combines_on_path, "workload.parallel.offload-collectives",
          "found path, but the remote memory has no switches that gather and add up",
          "network, or system.remote-memory.kind: hierarchical-pool");
  validate_experts(generated);
  require(workload_->custom_nodes.empty(), "system.collectives.custom.nodes",
          "found ids of nodes, but the workload is generated",
          "traces (workload.traces), or collectives by kind (system.collectives.custom.KIND)");
  require(!c_.execution.replay_only, "workload.replay-only",
          "found true, but the nodes of a generated workload have no recorded durations", "false");
}

/// Kernels of experts are of GPUs, and all jobs have the same ones.
void Validation::validate_experts(const workload::Description& generated) {
  const auto* const model = std::get_if<workload::Transformer>(&generated.model);
  if (model == nullptr || !generated.parallel.has_expert_kernels()) return;
  const std::string_view key = "workload.parallel.expert-exchange", expected = "all-to-all";
  require(c_.rule_set == RuleSet::physical, key, "found kernels of experts with ASTRA-sim's rules", expected);
  const auto& options = c_.collectives.library.experts;
  const bool is_low_latency = generated.parallel.experts.exchange == workload::ExpertExchange::low_latency;
  require(is_low_latency != options.kernels->sends_once, key,
          fmt::format("found {}, but the kernels are {}", is_low_latency ? "low-latency" : "once-per-server",
                      options.kernels.name()),
          "the kernels of this exchange, in all jobs (system.collectives.experts.kernels)");
  require(options.top_k == model->mlp.top_k && options.servers == model->mlp.servers, "workload.model.top-k",
          "jobs send tokens to different numbers of experts or servers by kernels of experts",
          "equal numbers, or workload.parallel.expert-exchange: all-to-all");
}

/// What all jobs have in common, and what runs of several jobs cannot do.
void Validation::validate_jobs() {
  const auto all = c_.workloads();
  require(!c_.workload.jobs_alone || !c_.workload.jobs.empty(), "run.jobs-alone", "found true without jobs",
          "jobs, or false");
  if (c_.workload.jobs.empty()) return;
  require(!c_.run.fold, "run.fold", "found true with jobs, whose NPUs are not folded", "false (no --fold)");
  require(!c_.workload.jobs_alone || (c_.run.checkpoint.empty() && c_.run.restart.empty()), "run.jobs-alone",
          "found true with checkpoints, which hold one run only", "false, or neither --checkpoint nor --restart");
  require(!c_.workload.jobs_alone || c_.perturbation.repetitions == 1, "run.jobs-alone",
          "found true with perturbation.repetitions, of which each would be another comparison",
          "false, or perturbation.repetitions: 1");
  require(c_.workload.custom_nodes.empty(), "system.collectives.custom.nodes",
          "found ids of nodes, but jobs have traces of their own, in which the same ids mean other nodes",
          "collectives by kind (system.collectives.custom.KIND)");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto precision = all[i]->precision();
    const bool matters = !c_.peaks.empty() || c_.execution.compute.model == compute::ModelName("table");
    if (matters && precision != c_.precision())
      refuse(fmt::format("jobs.{}.workload", i), fmt::format("found {}", text_of(precisions(), precision)),
             fmt::format("{}, as in the first job, since the compute rates depend on it",
                         text_of(precisions(), c_.precision())));
    if (all[i]->counts_by_dimension() != c_.execution.dimension_streams)
      refuse(fmt::format("jobs.{}.workload.streams", i), "found streams of another kind than in the first job",
             "`named` and `dimension` in all jobs, or `counted` and `trace` in all");
  }
}

}  // namespace

void Configuration::validate(Faults& faults) const { Validation(*this, faults).run(); }

}  // namespace orrery::config
