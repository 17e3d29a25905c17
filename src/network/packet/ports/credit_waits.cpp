#include "orrery/network/credit_waits.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include <fmt/format.h>

namespace orrery::network {

std::vector<CreditWait> find_circle(std::vector<CreditWait> waits) {
  std::ranges::sort(waits);
  std::map<std::uint64_t, std::size_t> of_held;
  for (std::size_t i = waits.size(); i > 0; --i) of_held[waits[i - 1].held] = i - 1;
  std::vector<std::uint32_t> visit(waits.size(), 0);  // 0: not seen yet
  for (std::size_t first = 0; first < waits.size(); ++first) {
    std::vector<CreditWait> way;
    std::size_t at = first;
    for (; visit[at] == 0;) {
      visit[at] = static_cast<std::uint32_t>(first) + 1;
      way.push_back(waits[at]);
      const auto next = of_held.find(waits[at].wanted);
      if (next == of_held.end()) break;
      at = next->second;
    }
    const auto begin = std::ranges::find(way, waits[at]);
    if (begin == way.end() || way.back().wanted != waits[at].held) continue;
    std::rotate(begin, std::ranges::min_element(begin, way.end(), {}, &CreditWait::at), way.end());
    return {begin, way.end()};
  }
  return {};
}

std::string describe_credit_waits(std::vector<CreditWait> waits,
                                  const std::function<std::string(std::int64_t)>& name_of) {
  if (waits.empty()) return {};
  constexpr std::size_t most_shown = 16;
  const std::vector<CreditWait> circle = find_circle(waits);
  std::string devices;
  for (std::size_t i = 0; i < std::min(circle.size(), most_shown); ++i)
    devices += fmt::format("{} -> ", name_of(circle[i].at));
  if (circle.size() > most_shown) devices += fmt::format("{} more -> ", circle.size() - most_shown);
  if (!circle.empty()) devices = " in a circle: " + devices + name_of(circle.front().at);
  return fmt::format(
      "packets wait for credits of each other's links{}. Give system.network.packets.credits more bytes or "
      "virtual-channels: 2 (with which Rings and Dragonflies have no circles), or take routes without circles.",
      devices.empty() ? fmt::format(": {} towards {}", name_of(waits[0].at), name_of(waits[0].to)) : devices);
}

}  // namespace orrery::network
