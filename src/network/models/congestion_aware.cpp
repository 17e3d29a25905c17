#include <algorithm>

#include "flit/servers.hpp"
#include "graph_links.hpp"
#include "orrery/network/link_servers.hpp"
#include "orrery/network/model.hpp"
#include "shape_links.hpp"

namespace orrery::network {
namespace {

/// Every directed link is a logical process.
template <class Links>
class CongestionAware final : public SimulatedNetwork {
 public:
  template <class... Of>
  explicit CongestionAware(const Options& options, const Of&... of)
      : options_(options), links_(of..., options.rules.rounding) {}

  std::uint32_t num_processes() const override { return links_.num_links(); }
  Time least_relay_delay() const override { return links_.least_pass(); }
  Time relay_delay_between_ranks(const Hosting& hosting) const override {
    return links_.least_pass_between_ranks(hosting);
  }
  std::optional<Time> notice_delay() const override {
    return options_.has_requests ? std::optional(Time::from_ps(1)) : std::nullopt;
  }
  bool keeps_within(std::span<const NpuId> members, const std::function<bool(NpuId)>& is_in) const override {
    return links_.keep_within(members, is_in);
  }
  std::optional<NpuId> owner_of(std::uint32_t process) const override {
    return links_.find(topology::LinkId(process)).owner;
  }
  std::unique_ptr<MessageNetwork> on_rank(const RankPart& part) const override {
    return std::make_unique<LinkServers<Links>>(links_, options_, part);
  }

 private:
  Options options_;
  Links links_;
};

/// The same with dimensions that are simulated flit by flit. Their groups are logical processes too.
class WithFlits final : public SimulatedNetwork {
 public:
  WithFlits(const Options& options, const topology::Topology& topology)
      : options_(options),
        regions_(topology, options.flits),
        links_(topology, nullptr, options.rules.rounding, &regions_) {}

  std::uint32_t num_processes() const override { return links_.num_links() + regions_.num_groups(); }
  Time least_relay_delay() const override { return std::min(links_.least_pass(), regions_.least_cycle()); }
  /// Throws Error (bad_input) if a group of flits has NPUs on two ranks, between which there is no such delay.
  Time relay_delay_between_ranks(const Hosting& hosting) const override {
    regions_.require_whole_groups(hosting);
    return links_.least_pass_between_ranks(hosting);
  }
  bool keeps_within(std::span<const NpuId> members, const std::function<bool(NpuId)>& is_in) const override {
    return links_.keep_within(members, is_in);  // a group of flits has one rank, which has one cell
  }
  std::optional<NpuId> owner_of(std::uint32_t process) const override {
    if (process >= links_.num_links()) return {};
    return links_.find(topology::LinkId(process)).owner;
  }
  std::unique_ptr<MessageNetwork> on_rank(const RankPart& part) const override {
    return std::make_unique<flit::Servers>(links_, regions_, options_, part);
  }

 private:
  Options options_;
  flit::Regions regions_;
  ShapeLinks links_;
};

}  // namespace

extern const ModelType congestion_aware_model;
constinit const ModelType congestion_aware_model{
    .name = "congestion-aware",
    .help = "every link serves one message at a time, first come, first served",
    .make = [](const topology::Topology& topology, const Options& options) -> std::unique_ptr<const SimulatedNetwork> {
      if (options.graph)
        return std::make_unique<CongestionAware<GraphLinks>>(options, options.graph, topology.num_npus());
      if (!options.flits.empty()) return std::make_unique<WithFlits>(options, topology);
      return std::make_unique<CongestionAware<ShapeLinks>>(options, topology, options.circuits);
    },
};

}  // namespace orrery::network
