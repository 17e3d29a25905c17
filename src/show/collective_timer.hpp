#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/run/system.hpp"

namespace orrery::show {

/// Says how long one collective takes on a system if all members arrive together, in the network that the configuration
/// names: as a run of that collective alone does.
class CollectiveTimer {
 public:
  /// When the first and the last member are done. All arrive at 0.
  struct Done {
    Time first, last;
  };

  /// `members` are ascending; empty: all NPUs. So many such collectives of an NPU share its links at a time
  /// (BandwidthSharing). The configuration must outlive it. Throws Error (bad_input) if no
  /// algorithm carries out the kind.
  CollectiveTimer(const config::Configuration& configuration, std::vector<NpuId> members, collective::Kind kind,
                  std::uint32_t at_once = 1);

  std::uint32_t num_members() const { return num_members_; }
  /// Returns how the collective is carried out, and the bytes that a member sends in each dimension. What `done`
  /// refuses must not get here.
  collective::CollectiveFigures figures(Bytes bytes) const;
  const collective::CollectiveTraffic& traffic(Bytes bytes) { return system_.engine.traffic(*layout_, kind_, bytes); }
  /// Computes the times, or simulates every message in a network that simulates links. `bytes` are those of a node:
  /// what each member brings to an all-gather or gather, else the whole buffer. Throws Error (usage) if they do not fit
  /// the range of time or of bytes.
  Done done(Bytes bytes);

 private:
  /// Simulates the members, each of which does this collective and nothing else.
  Done simulated(Bytes bytes);

  const config::Configuration& configuration_;
  run::System system_;
  std::vector<NpuId> members_;
  std::uint32_t num_members_;
  collective::Kind kind_;
  std::shared_ptr<const collective::GroupLayout> layout_;
};

}  // namespace orrery::show
