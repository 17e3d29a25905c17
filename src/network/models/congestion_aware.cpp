#include "orrery/network/link_delays.hpp"
#include "orrery/network/link_servers.hpp"
#include "orrery/network/model.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {
namespace {

/// Every directed link of the topology is a logical process.
class CongestionAware final : public SimulatedNetwork {
 public:
  CongestionAware(const topology::Topology& topology, const Options& options)
      : options_(options), fabric_(topology), delays_(fabric_, options.rules.rounding) {}

  std::uint32_t num_processes() const override { return fabric_.num_links(); }
  Time least_relay_delay() const override { return delays_.least_pass(); }
  std::optional<Time> notice_delay() const override {
    return options_.has_requests ? std::optional(Time::from_ps(1)) : std::nullopt;
  }
  std::unique_ptr<MessageNetwork> on_rank(const RankPart& part) const override {
    return std::make_unique<LinkServers>(delays_, options_, part);
  }

 private:
  Options options_;
  topology::Fabric fabric_;
  LinkDelays delays_;
};

}  // namespace

extern const ModelType congestion_aware_model;
constinit const ModelType congestion_aware_model{
    .name = "congestion-aware",
    .help = "every link serves one message at a time, first come, first served",
    .make = [](const topology::Topology& topology, const Options& options) -> std::unique_ptr<const SimulatedNetwork> {
      return std::make_unique<CongestionAware>(topology, options);
    },
};

}  // namespace orrery::network
