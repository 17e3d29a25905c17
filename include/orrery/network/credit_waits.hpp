#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace orrery::network {

/// Packets that wait at a device: they hold credit of the link by which they came, and want credit of another link.
struct CreditWait {
  std::uint64_t held = 0, wanted = 0;     ///< numbers of channels of links, over all links
  std::int64_t from = 0, at = 0, to = 0;  ///< devices: where they came from, where they are, where they go next
  std::uint32_t channel = 0;              ///< channel that they want

  friend auto operator<=>(const CreditWait&, const CreditWait&) = default;
};

/// Returns waits each of which wants what the next one holds, and the last one what the first one holds. It begins
/// at its lowest device. Empty if there is none. O(waits log waits).
std::vector<CreditWait> find_circle(std::vector<CreditWait> waits);

/// Returns the message that packets wait for each other, which names the devices of a circle; empty if none waits.
std::string describe_credit_waits(std::vector<CreditWait> waits,
                                  const std::function<std::string(std::int64_t)>& name_of);

}  // namespace orrery::network
