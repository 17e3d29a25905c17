#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/network/flow_records.hpp"

namespace orrery::network {
namespace {

/// Returns what met on one link.
LinkMeeting meeting_on(std::span<const FlowLinkRecord> uses) {
  LinkMeeting meeting{.link = uses.front().link, .flows = uses.size()};
  std::vector<std::pair<Time, int>> changes;  // at one time those that leave come before those that come
  for (const FlowLinkRecord& use : uses) {
    meeting.waited += use.waited;
    changes.emplace_back(use.first, 1);
    changes.emplace_back(use.last, -1);
  }
  std::ranges::sort(changes);
  int there = 0;
  for (const auto& [time, change] : changes) {
    there += change;
    if (there <= static_cast<int>(meeting.at_once)) continue;
    meeting.at_once = static_cast<std::uint32_t>(there);
    meeting.when = time;
  }
  for (const FlowLinkRecord& use : uses)
    if (use.first <= meeting.when && meeting.when < use.last) meeting.met.push_back(use);
  return meeting;
}

}  // namespace

std::vector<LinkMeeting> find_meetings(const std::vector<FlowLinkRecord>& links, std::size_t most_links) {
  std::vector<LinkMeeting> found;
  for (std::size_t first = 0, end = 0; first < links.size(); first = end) {
    while (end < links.size() && links[end].link == links[first].link) ++end;
    LinkMeeting meeting = meeting_on(std::span(links).subspan(first, end - first));
    if (meeting.at_once > 1) found.push_back(std::move(meeting));
  }
  std::ranges::stable_sort(found, [](const LinkMeeting& a, const LinkMeeting& b) {
    return std::tuple(b.at_once, b.waited, a.link) < std::tuple(a.at_once, a.waited, b.link);
  });
  found.resize(std::min(found.size(), most_links));
  return found;
}

}  // namespace orrery::network
