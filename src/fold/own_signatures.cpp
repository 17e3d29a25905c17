#include "own_signatures.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "group_signatures.hpp"
#include "interner.hpp"
#include "shared_numbers.hpp"

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
  SignatureWriter(const npu::RunContext& context, const Structures& structures, const StreamTable* streams)
      : context_(context),
        structures_(structures),
        streams_(streams),
        shares_memory_(context.memory.num_servers() > 0 && !folds_servers(context)),
        orders_all_(context.options.one_by_one && !context.options.replay_only && context.of_all.accesses_servers &&
                    (!context.communicators.empty() || context.of_all.sends_messages)) {}

  OwnSignatures run(parallel::Communicator& world) {
    number_routes(world);
    OwnSignatures result;
    Interner without_speeds, without_routes, whole;
    Signature signature;
    for (std::uint32_t i = 0; i < context_.npus.size(); ++i) {
      const npu::NpuSpec& npu = context_.npus[i];
      const Traits& structure = traits_of(*npu.program);
      const bool is_noisy = draws_for_itself(structure);
      const bool is_sharing = orders_all_ || (shares_memory_ && structure.accesses_memory);
      result.counts.noisy += is_noisy;
      result.counts.sharing += is_sharing;
      signature = {structure.number, is_noisy || is_sharing ? npu.id.value() + 1 : 0};
      (void)without_speeds.of(signature);
      append(signature, structure.takes_time ? context_.options.speed_of(npu.id) : 1);
      if (!is_noisy && structure.takes_time) append_steps(npu.id, signature);
      (void)without_routes.of(signature);
      if (streams_ != nullptr) append_tables(i, signature);
      result.of_npu.push_back(whole.of(signature));
    }
    const SharedNumbers shared = share_numbers(std::move(whole), world);
    for (auto& number : result.of_npu) number = shared.of_own[number];
    for (std::uint32_t i = 0; i < shared.all.size(); ++i) result.structure_of_signature.push_back(shared.all[i][0]);
    const auto num_speeds = share_numbers(std::move(without_routes), world).all.size();
    result.counts.structures = structures_.all.size();
    result.counts.by_speeds = num_speeds - share_numbers(std::move(without_speeds), world).all.size();
    result.counts.by_routes = shared.all.size() - num_speeds;
    std::int64_t sums[] = {static_cast<std::int64_t>(result.counts.noisy),
                           static_cast<std::int64_t>(result.counts.sharing)};
    world.sum(sums);
    result.counts.noisy = static_cast<std::uint64_t>(sums[0]);
    result.counts.sharing = static_cast<std::uint64_t>(sums[1]);
    return result;
  }

 private:
  struct Traits {
    std::uint32_t number = 0;
    bool takes_time = false, accesses_memory = false, sends = false;
  };

  /// Says whether what is drawn for NPUs of this structure tells each of them apart. Factors of steps do not where they
  /// are few: NPUs for which the same ones are drawn are alike.
  bool draws_for_itself(const Traits& structure) const {
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

  const Traits& traits_of(const npu::Program& program) {
    const auto [found, added] = traits_.try_emplace(&program);
    if (!added) return found->second;
    auto& structure = found->second;
    structure.number = structures_.number_of.at(&program);
    if (context_.options.replay_only) return structure;
    structure.takes_time = std::ranges::any_of(program.durations, [](Time time) { return time > Time::zero(); });
    structure.accesses_memory = structures_.all[structure.number].accesses_memory;
    for (const auto& node : program.graph->nodes) structure.sends |= node.kind == trace::NodeKind::send;
    return structure;
  }

  /// Which of its uses are one communicator, which of its streams have one peer and tag, and the route of each stream.
  void append_tables(std::uint32_t own, Signature& signature) const {
    const npu::NpuSpec& npu = context_.npus[own];
    for (const GroupId group : npu.groups)
      signature.push_back(static_cast<std::uint32_t>(std::ranges::find(npu.groups, group) - npu.groups.begin()));
    for (std::uint32_t s = 0; s < streams_->count(own); ++s) {
      signature.push_back(streams_->find(own, streams_->key_of(own, s)));
      signature.push_back(routes_[streams_->first()[own] + s]);
    }
    if (!context_.of_all.positions.empty()) signature.push_back(context_.of_all.positions[npu.id.index()]);
  }

  /// Numbers what the delay of a message, and what it adds to the network's figures, depend on besides its size: the
  /// route of each stream. Collective.
  void number_routes(parallel::Communicator& world) {
    if (streams_ == nullptr) return;
    Interner numbers;
    Signature route;
    for (std::uint32_t i = 0; i < context_.npus.size(); ++i)
      for (std::uint32_t s = 0; s < streams_->count(i); ++s) {
        route.clear();
        context_.delays.for_each_leg(context_.npus[i].id, streams_->peer(i, s),
                                     [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
                                       route.insert(route.end(), {d, hops});
                                       append(route, port.bandwidth);
                                       append(route, port.latency);
                                     });
        routes_.push_back(numbers.of(route));
      }
    const SharedNumbers shared = share_numbers(std::move(numbers), world);
    for (auto& number : routes_) number = shared.of_own[number];
  }

  const npu::RunContext& context_;
  const Structures& structures_;
  const StreamTable* streams_;
  bool shares_memory_;  ///< with NPUs that its position among them does not tell apart
  /// Numbers of NPUs decide in which order collectives end for them and messages come to them, and so in which order
  /// they come to a memory.
  bool orders_all_;
  std::map<const npu::Program*, Traits> traits_;
  std::vector<std::uint32_t> routes_;  // [streams of this rank's NPUs]
};

}  // namespace

OwnSignatures own_signatures(const npu::RunContext& context, const Structures& structures, const StreamTable* streams,
                             parallel::Communicator& world) {
  return SignatureWriter(context, structures, streams).run(world);
}

}  // namespace orrery::fold
