#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocation.hpp"
#include "keys/keys.hpp"
#include "keys/serving.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/partition/strategy.hpp"
#include "resolution.hpp"

namespace orrery::config {
namespace {

/// Reads the keys of a target that stand below `root_path`.
template <class Target>
void read_rooted(const Keys<Target>& keys, std::string_view root_path, const Value& root, Sections& top, Target& target,
                 Reading& reading) {
  const Value* const value = top.at("").find(root_path);
  if (value == nullptr) return;
  Sections sections(Section(value, std::string(root_path), root, reading.faults));
  read_keys(keys, sections, target, reading);
  sections.refuse_unknown();
}

/// Adds faults for what a run of requests does not have.
void refuse_beside_serving(const Value& root, const Configuration& configuration, Faults& faults) {
  const auto refuse = [&](bool is_found, std::string_view key, std::string_view expected) {
    if (is_found)
      faults.add(Error(ErrorCode::bad_input, configuration.place_of(key), "found it beside serving", expected));
  };
  refuse(configuration.run.fold, "run.fold", "a run without folding");
  refuse(!configuration.run.checkpoint.empty(), "run.checkpoint", "a run without checkpoints");
  refuse(!configuration.run.restart.empty(), "run.restart", "a run from the start");
  refuse(configuration.perturbation.repetitions > 1, "perturbation.repetitions", "one run");
  const Value* const slo = root.find("serving")->find("slo");
  if (slo != nullptr && slo->find("ttft") == nullptr && slo->find("tpot") == nullptr)
    faults.add(
        Error(ErrorCode::bad_input, slo->place("serving.slo"), "found neither ttft nor tpot", "one of them, or both"));
}

/// Adds a fault for what cannot share the network of the system. Returns false if there is one.
bool require_network(const ServingConfiguration& result, std::uint32_t num_npus, Faults& faults) {
  const Configuration& configuration = result.system;
  const serving::Description& serving = result.serving;
  const auto& network = configuration.execution.network.model;
  const auto refuse = [&](std::string_view key, const std::string& found, const std::string& expected) {
    faults.add(Error(ErrorCode::bad_input, configuration.place_of(key), found, expected));
    return false;
  };
  if (!result.has_system || num_npus == 0)
    return refuse(serving.transfer.over_network ? "serving.transfer.network" : "serving.step.network",
                  "found simulated, and no system", "system.network with dimensions");
  if (serving.step.over_network && !network->simulates_links())
    return refuse("serving.step.network", fmt::format("found simulated in the network {}", network.name()),
                  "closed, or a network that simulates links, because messages do not meet in this one");
  if (serving.step.over_network && serving.transfer.by_layer)
    return refuse("serving.transfer.send", "found layers with serving.step.network: simulated",
                  "whole, or step.network: closed, where it is known when layers are complete");
  if (!configuration.workload.jobs.empty() && !network->simulates_links())
    return refuse("jobs", fmt::format("there are jobs beside serving in the network {}", network.name()),
                  "a network that simulates links, because messages do not meet in this one");
  if (configuration.run.partition.strategy().needs_traces)
    return refuse("run.partition", fmt::format("found {}", configuration.run.partition.text()),
                  "a strategy that needs no traces beside serving");
  return true;
}

/// Gives the instances their NPUs, if transfers pass the network of the system: lists first, and then what is free.
void place_instances(ServingConfiguration& result, std::uint32_t num_npus, Faults& faults) {
  Configuration& configuration = result.system;
  serving::Description& serving = result.serving;
  const bool has_jobs = !configuration.workload.jobs.empty();
  const auto refuse = [&](std::string_view key, const std::string& found, const std::string& expected) {
    faults.add(Error(ErrorCode::bad_input, configuration.place_of(key), found, expected));
  };
  if (!serving.transfer.over_network && !serving.step.over_network) {
    if (has_jobs)
      refuse("jobs", "there are jobs beside serving, which share nothing with it",
             "serving.transfer.network: simulated, so that both use the links of the system");
    for (serving::InstanceOptions& entry : serving.instances) entry.npus.clear();  // a warning names the key
    return;
  }
  if (!require_network(result, num_npus, faults)) return;
  std::vector<AllocationRequest> requests;
  for (const Job& job : configuration.workload.jobs)
    requests.push_back({job.name, job.num_npus(), {Allocation::Kind::listed, job.allocation}, {.key = "jobs"}});
  for (std::size_t e = 0; e < serving.instances.size(); ++e) {
    const serving::InstanceOptions& entry = serving.instances[e];
    const std::uint64_t count = std::uint64_t{entry.count} * entry.parallel.npus();
    const std::string path = fmt::format("serving.instances.{}", e);
    const auto wanted = [&] {
      return fmt::format("{} of {}", counted(entry.count, "instance"), counted(entry.parallel.npus(), "NPU"));
    };
    if (!entry.npus.empty() && entry.npus.size() != count)
      return refuse(path + ".allocation", fmt::format("it lists {}", counted(entry.npus.size(), "NPU")),
                    fmt::format("{}: {}", count, wanted()));
    if (count > num_npus)
      return refuse(path, fmt::format("found {}", wanted()),
                    fmt::format("at most the {} of the system", counted(num_npus, "NPU")));
    Allocation how;
    if (!entry.npus.empty()) how.kind = Allocation::Kind::listed;
    for (const NpuId npu : entry.npus) {
      if (npu.value() >= num_npus)
        return refuse(path + ".allocation", fmt::format("found NPU {}", npu.value()),
                      fmt::format("NPUs below {}", num_npus));
      how.listed.push_back({npu.value(), npu.value()});
    }
    requests.push_back({entry.name, static_cast<std::uint32_t>(count), how, configuration.place_of(path)});
  }
  const auto found = allocate(requests, num_npus, faults);
  if (found.empty()) return;
  for (std::size_t e = 0; e < serving.instances.size(); ++e) {
    auto& npus = serving.instances[e].npus;
    npus.clear();
    for (const NpuRange& range : found[configuration.workload.jobs.size() + e])
      for (std::uint32_t npu = range.first; npu <= range.last; ++npu) npus.emplace_back(npu);
  }
}

/// Returns the precision of products with weights of a format: that of the weights where the system has a peak for it,
/// else bf16, to which the weights are converted.
workload::Precision precision_of_products(const ServingConfiguration& result) {
  const std::string_view weights = result.serving.weights.name();
  const auto precision = weights == "fp8"   ? workload::Precision::fp8
                         : weights == "fp4" ? workload::Precision::nvfp4
                                            : workload::Precision::bf16;
  return result.system.peaks.contains(precision) ? precision : workload::Precision::bf16;
}

/// Fills in what `serving` takes from the system where it does not say it itself.
void take_system(ServingConfiguration& result) {
  if (!result.has_system) return;
  const npu::Options& execution = result.system.execution;
  if (result.serving.memory == Bytes(0)) result.serving.memory = execution.local_memory.size;
  if (result.serving.step.memory == Bandwidth()) result.serving.step.memory = execution.compute.local_memory;
  const bool estimates = execution.compute.model->estimates_operations || execution.compute.model->uses_operations;
  if (result.serving.step.model != serving::StepModelName() || !estimates) return;
  /// A compute model with the options that it refers to.
  struct Holder {
    compute::Options options;
    std::unique_ptr<const compute::ComputeModel> model;
  };
  auto holder = std::make_shared<Holder>();
  result.serving.step.products = precision_of_products(result);
  holder->options = result.system.compute_in(result.serving.step.products);
  holder->options.validate();
  holder->model = compute::make_model(holder->options);
  result.serving.step.compute = {holder, holder->model.get()};
}

}  // namespace

bool is_serving(const Inputs& inputs) {
  if (inputs.file.empty()) return false;
  Faults unused;
  bool found = false;
  unused.attempt([&] {
    const Origin origin{inputs.file.string(), inputs.file.parent_path()};
    const Value root = parse_yaml(read_text(inputs.file), std::make_shared<const Origin>(origin), unused);
    found = root.kind == Value::Kind::mapping && root.find("serving") != nullptr;
  });
  return found;
}

Faults faults_of_serving(const Inputs& inputs) {
  Faults faults;
  faults.attempt([&] { static_cast<void>(read_serving(inputs)); });
  return faults;
}

ServingConfiguration read_serving(const Inputs& inputs) {
  Faults faults;
  ServingConfiguration result;
  Configuration& configuration = result.system;
  faults.attempt([&] {
    const Value root = read_root(inputs, configuration, faults);
    configuration.warnings = root.all_notes();
    result.has_system = root.find("system") != nullptr;
    Reading reading{configuration, faults, true};
    Sections sections(Section(&root, "", root, faults));
    if (const Value* const value = sections.at("").find("workload"))
      faults.add(Error(ErrorCode::bad_input, value->place("workload"), "serving is given too", "one of them"));
    if (result.has_system)
      for (const auto* const keys : configuration_keys())
        if (keys != &workload_keys() && keys != &generated_workload_keys())
          read_keys(*keys, sections, configuration, reading);
    if (!result.has_system) read_keys(run_keys(), sections, configuration, reading);
    read_rooted(serving_keys(), "serving", root, sections, result.serving, reading);
    sections.refuse_unknown();
    apply_flags(inputs.flags, configuration, faults);
    refuse_beside_serving(root, configuration, faults);
    if (result.has_system) configuration.share_settings();
    if (faults.empty()) place_instances(result, reading.num_npus(), faults);
  });
  faults.raise();
  for (std::string& warning : warnings_of_idle_serving_keys(result, inputs.file.string()))
    configuration.warnings.push_back(std::move(warning));
  take_system(result);
  return result;
}

}  // namespace orrery::config
