#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string_view>
#include <vector>

#include "keys/keys.hpp"
#include "keys/validation.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/cost/cost.hpp"

namespace orrery::config {
namespace {

std::string precisions_of(const std::map<workload::Precision, double>& peaks) {
  std::vector<std::string_view> words;
  for (const auto& [precision, peak] : peaks) words.push_back(text_of(precisions(), precision));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Returns the key that gives the precision of the workload whose precision decides the peak.
std::string_view precision_key(const Configuration& c) {
  return c.workloads().front()->generated ? "workload.parallel.precision" : "workload.precision";
}

}  // namespace

void Validation::run() {
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

void Validation::validate_workload() {
  validate_streams();
  validate_recorded_communication();
  validate_traces();
  if (workload_->generated && attempt([&] { workload_->generated->validate(); })) validate_generated();
}

Place Validation::located(Place place) const {
  if (!job_.empty() && place.file.empty() && place.key.starts_with("workload.")) place.key.insert(0, job_);
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
           fmt::format("found one peak, with {}: {}", precision_key(c_), text_of(precisions(), c_.precision())),
           "the peaks of both precisions, such as {bf16: 989 TFLOPS, fp8: 1979 TFLOPS}");
  const bool is_peak_known = c_.execution.compute.peak_flops > 0;  // that of the precision, or one that stands for it
  const bool knows_peak = c_.peaks.empty() || is_peak_known || !c_.execution.compute.model->uses_operations;
  if (!knows_peak)
    refuse("system.compute.peak", fmt::format("found peaks of {}", precisions_of(c_.peaks)),
           fmt::format("one of {}, the precision of the {} ({})", text_of(precisions(), c_.precision()),
                       c_.workloads().front()->generated ? "workload" : "traces", precision_key(c_)));
  if (knows_peak) attempt([&] { c_.execution.validate(); });
  attempt([&] { c_.remote_memory.validate(topology_.num_npus()); });
  attempt([&] { cost::tiers_of(c_.prices, c_.dimensions.size()); });
  attempt([&] { c_.run.partition.validate(topology_, c_.place_of("run.partition")); });
}

void Configuration::validate(Faults& faults) const { Validation(*this, faults).run(); }

}  // namespace orrery::config
