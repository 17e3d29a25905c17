#include "own_signatures.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "group_signatures.hpp"
#include "interner.hpp"

namespace orrery::fold {
namespace {

using Signature = std::vector<std::uint32_t>;

constexpr std::uint32_t most_compared_steps = 64;  // iterations of which the factors of NPUs are compared

void append(Signature& signature, double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  signature.push_back(static_cast<std::uint32_t>(bits));
  signature.push_back(static_cast<std::uint32_t>(bits >> 32U));
}

/// Writes the signature of each NPU: what it executes, then its compute speed, then the tables of its groups and
/// streams.
class SignatureWriter {
 public:
  SignatureWriter(const npu::RunContext& context, const StreamTable* streams)
      : context_(context),
        streams_(streams),
        shares_memory_(context.memory.num_servers() > 0 && !folds_servers(context)),
        orders_all_(context.options.one_by_one && !context.options.replay_only && context.accesses_servers &&
                    !context.communicators.empty()) {}

  OwnSignatures run() {
    OwnSignatures result;
    Interner without_speeds, without_routes, whole;
    Signature signature;
    for (const npu::NpuSpec& npu : context_.npus) {
      const Structure& structure = structure_of(*npu.program);
      const bool is_noisy = draws_for_itself(structure);
      const bool is_sharing = orders_all_ || (shares_memory_ && structure.accesses_memory);
      result.counts.noisy += is_noisy;
      result.counts.sharing += is_sharing;
      signature = {structure.number, is_noisy || is_sharing ? npu.id.value() + 1 : 0};
      (void)without_speeds.of(signature);
      append(signature, structure.takes_time ? context_.options.speed_of(npu.id) : 1);
      if (!is_noisy && structure.takes_time) append_steps(npu.id, signature);
      (void)without_routes.of(signature);
      if (streams_ != nullptr) append_tables(npu, signature);
      result.of_npu.push_back(whole.of(signature));
    }
    result.counts.structures = structures_.size();
    result.counts.by_speeds = without_routes.size() - without_speeds.size();
    result.counts.by_routes = whole.size() - without_routes.size();
    return result;
  }

 private:
  struct Structure {
    std::uint32_t number = 0;
    bool takes_time = false, accesses_memory = false, sends = false;
  };

  /// Says whether what is drawn for NPUs of this structure tells each of them apart. Factors of steps do not where they
  /// are few: NPUs for which the same ones are drawn are alike.
  bool draws_for_itself(const Structure& structure) const {
    const npu::Options& options = context_.options;
    const Variations& variations = options.noise.variations;
    const bool draws_steps = variations.has(DrawnPer::step) && options.iterations > most_compared_steps;
    const bool draws_compute = options.noise.amplitude > 0 || variations.has(DrawnPer::node) || draws_steps;
    return (structure.takes_time && draws_compute) || (structure.sends && variations.has(DrawnPer::message));
  }

  void append_steps(NpuId npu, Signature& signature) const {
    const npu::Options& options = context_.options;
    if (!options.noise.variations.has(DrawnPer::step)) return;
    for (std::uint32_t iteration = 0; iteration < options.iterations; ++iteration)
      append(signature, options.noise.variations.factor(DrawnPer::step, {npu.value(), iteration}));
  }

  const Structure& structure_of(const npu::Program& program) {
    const auto [found, added] = structures_.try_emplace(&program);
    if (!added) return found->second;
    auto& structure = found->second;
    structure.number = static_cast<std::uint32_t>(structures_.size() - 1);
    if (context_.options.replay_only) return structure;
    structure.takes_time = std::ranges::any_of(program.durations, [](Time time) { return time > Time::zero(); });
    structure.accesses_memory = accesses_memory(program);
    for (const auto& node : program.graph->nodes) structure.sends |= node.kind == trace::NodeKind::send;
    return structure;
  }

  /// Which of its uses are one communicator, which of its streams have one peer and tag, and the route of each stream.
  void append_tables(const npu::NpuSpec& npu, Signature& signature) {
    for (const GroupId group : npu.groups)
      signature.push_back(static_cast<std::uint32_t>(std::ranges::find(npu.groups, group) - npu.groups.begin()));
    const auto id = npu.id.value();
    for (std::uint32_t s = 0; s < streams_->count(id); ++s) {
      signature.push_back(streams_->find(id, streams_->key_of(id, s)));
      signature.push_back(number_of_route(npu.id, streams_->peer(id, s)));
    }
    if (context_.options.one_by_one) append_order_of_peers(id, signature);
  }

  /// Which of the NPUs that it exchanges messages with, and itself, have lower numbers than others: this decides
  /// between events of one time.
  void append_order_of_peers(std::uint32_t npu, Signature& signature) const {
    std::vector<NpuId> all{NpuId(npu)};
    for (std::uint32_t s = 0; s < streams_->count(npu); ++s) all.push_back(streams_->peer(npu, s));
    std::vector<NpuId> ascending = all;
    std::ranges::sort(ascending);
    const auto repeated = std::ranges::unique(ascending);
    ascending.erase(repeated.begin(), repeated.end());
    for (const NpuId one : all)
      signature.push_back(static_cast<std::uint32_t>(std::ranges::lower_bound(ascending, one) - ascending.begin()));
  }

  /// Numbers what the delay of a message, and what it adds to the network's figures, depend on besides its size.
  std::uint32_t number_of_route(NpuId from, NpuId to) {
    route_.clear();
    context_.delays.for_each_leg(from, to, [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
      route_.insert(route_.end(), {d, hops});
      append(route_, port.bandwidth);
      append(route_, port.latency);
    });
    return routes_.of(route_);
  }

  const npu::RunContext& context_;
  const StreamTable* streams_;
  bool shares_memory_;  ///< with NPUs that its position among them does not tell apart
  /// Numbers of NPUs decide in which order collectives end for them, and so in which order they come to a memory.
  bool orders_all_;
  std::map<const npu::Program*, Structure> structures_;
  Interner routes_;
  Signature route_;
};

}  // namespace

OwnSignatures own_signatures(const npu::RunContext& context, const StreamTable* streams) {
  return SignatureWriter(context, streams).run();
}

}  // namespace orrery::fold
