#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "group_layout.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::collective {

/// The collectives of an engine that a library carries out. It keeps what libraries see of the layouts.
class LibraryCollectives {
 public:
  /// Both must outlive it. The options name a library wherever anything is asked.
  LibraryCollectives(const network::DelayModel& delays, const Options& options) : delays_(delays), options_(options) {}

  /// Forgets what it has seen of layouts: BandwidthSharing has changed.
  void forget_groups() {
    groups_.clear();
    effects_.clear();
  }
  LibraryTime time(const GroupLayout& layout, Kind kind, Bytes size);
  std::optional<LibraryChoice> choice(const GroupLayout& layout, Kind kind, Bytes size);
  LibraryFigures figures(const GroupLayout& layout, Kind kind, Bytes size);
  /// Returns what effect_of does.
  const LibraryEffect& effect(const GroupLayout& layout, Kind kind, Bytes size);
  /// Returns what Engine::traffic does.
  CollectiveTraffic traffic(const GroupLayout& layout, Kind kind, Bytes size);
  /// Returns what Engine::message_program does.
  std::shared_ptr<const MessageProgram> program(const GroupLayout& layout, Kind kind, Bytes size);

 private:
  const LibraryGroup& group(const GroupLayout& layout);
  /// Returns the group on a network whose first dimensions have other bandwidths.
  LibraryGroup make_group(const GroupLayout& layout, std::span<const Bandwidth> bandwidths) const;

  const network::DelayModel& delays_;
  const Options& options_;
  std::unordered_map<const GroupLayout*, LibraryGroup> groups_;
  std::map<std::tuple<const GroupLayout*, Kind, Bytes>, LibraryEffect> effects_;
};

/// Returns the slowest ports of the members in each dimension; nothing if no port differs from its dimension.
std::vector<topology::Port> slowest_ports(const topology::Topology& topology, std::span<const NpuId> members);

}  // namespace orrery::collective
