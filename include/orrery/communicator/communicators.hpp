#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/communicator/host_side.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/communicator/setup.hpp"

namespace orrery::communicator {

/// The communicators of a rank: the member side of those that it has participants in, the host side of those that it
/// hosts, and the posts that carry reports between the sides on different ranks. A collective is a pure function of its
/// arrivals, so the order in which reports of different ranks come has no influence. That is why reports are posts of
/// the kernel and not events.
class Communicators {
 public:
  Communicators(const Setup& setup, MemberSide::Announce announce);
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  MemberSide& members() { return members_; }
  const MemberSide& members() const { return members_; }
  HostSide& hosts() { return host_; }

  // See MemberSide and HostSide.
  void settle() { members_.settle(); }
  Time pending_reply(Rank to) const { return host_.pending_reply(to); }
  const std::vector<CollectiveRecord>& records() const { return host_.records(); }
  std::vector<CollectiveSum> sums() const { return host_.sums(); }
  const std::vector<Divergence>& divergences() const { return host_.divergences(); }
  std::vector<NpuId> not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const {
    return members_.not_joined(group, ordinal, is_access);
  }

  /// Takes in a post of another rank's communicators.
  void receive(Rank from, std::span<const std::byte> message);

 private:
  void send(Rank to, const Report& report, std::span<const Time> times);
  void deliver(Rank from, const Report& report, std::span<const Time> times);

  pdes::Scheduler& kernel_;
  Rank here_;
  MemberSide members_;
  HostSide host_;
  std::vector<std::byte> message_;  // scratch
  std::vector<Time> received_;      // scratch
};

}  // namespace orrery::communicator
