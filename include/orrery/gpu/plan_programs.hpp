#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "orrery/gpu/options.hpp"
#include "orrery/gpu/plan.hpp"
#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// Returns the plan for collectives of a kind among so many GPUs: that whose range of sizes has `whole`, rounded up to
/// the size that the plan can carry out. Null if there is none. `whole`: bytes of the larger buffer
/// (collective::whole_buffer). Cost O(plans).
const Plan* find_plan(const Options& options, collective::Kind kind, std::uint32_t members, Bytes whole);

/// The programs of plans, each made once.
class PlanPrograms {
 public:
  /// The options must outlive it.
  explicit PlanPrograms(const Options& options) : options_(options) {}

  /// Returns the program of a collective that a plan carries out; null if none does. Cost of make_program the first
  /// time, then O(log programs).
  std::shared_ptr<const Program> find(collective::Kind kind, std::uint32_t members, Bytes whole);

 private:
  const Options& options_;
  std::map<std::tuple<const Plan*, std::uint64_t>, std::shared_ptr<const Program>> made_;
};

}  // namespace orrery::gpu
