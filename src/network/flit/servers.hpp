#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/network/link_servers.hpp"
#include "regions.hpp"
#include "routers.hpp"
#include "shape_links.hpp"

namespace orrery::network::flit {

/// The links of one rank, of which some dimensions are simulated flit by flit. Each group of these is a logical
/// process. It has an event for each cycle while something is under way in it, and the cycle is simulated when all
/// messages of its time are there. All other links are those of the congestion-aware network.
class Servers final : public MessageNetwork {
 public:
  /// `links` and `regions` must outlive it.
  Servers(const ShapeLinks& links, const Regions& regions, const Options& options, const RankPart& part);

  void send(const Message& message, pdes::Event call) override { links_.send(message, call); }
  void multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) override {
    links_.multicast(message, std::move(destinations), call);
  }
  void serve(const pdes::Event& event) override;
  pdes::Scope scope(const pdes::Event& event) const override;
  void settle() override;
  Message take(const pdes::Event& event) override { return links_.take(event); }
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override { links_.unpack(event, bytes); }
  Rank host_of(LpId process) const override;
  std::vector<LpId> used() override;
  std::vector<std::byte> pack(const pdes::Event& event) const override;
  void serialize(LpId process, Archive& archive) override;
  std::vector<LinkRecord> records() const override { return links_.records(); }
  std::vector<FlitRecord> flit_records() const override;
  std::string find_leak() const override;

 private:
  /// A message of which packets are under way.
  struct Transit {
    Message message;
    std::uint64_t packets = 0;
  };
  struct Group {
    const Region* region;
    std::uint32_t number;
    Routers routers;
    Slots<Transit> messages = {};
    std::uint32_t sequence = 0;
    bool is_scheduled = false;  ///< an event for its next cycle is pending, or it is among `due_`
    std::uint32_t leaving = 0;  ///< messages that may lead to events on other ranks
  };

  std::optional<std::uint32_t> group_of(LpId process) const;
  Group& local(std::uint32_t group);
  LpId process_of(std::uint32_t group) const;
  void enter(Group& group, const pdes::Event& event);
  void announce_departure(Group& group, Time now);
  void plan(Group& group, Time now);
  void step(Group& group);
  void pass_on(Group& group, const Message& message, Time there);
  void deliver(Group& group, const Message& message, Time there);
  void hand_over(pdes::Event event, const Message& message, Rank to);
  pdes::Event event(Group& group, Time time, pdes::Stage stage, LpId target);

  const ShapeLinks& shape_;
  const Regions& regions_;
  RankPart part_;
  LinkServers<ShapeLinks> links_;
  std::vector<std::uint32_t> place_;            // [groups] index of a group that is here
  std::vector<std::unique_ptr<Group>> groups_;  // ascending
  std::vector<Group*> due_;                     // those whose cycle is simulated at the end of this time
};

}  // namespace orrery::network::flit
