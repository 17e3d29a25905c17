#include <algorithm>
#include <utility>
#include <vector>

#include "orrery/network/link_servers.hpp"

namespace orrery::network {

std::optional<Message> SwitchCombiner::add(LpId link, const Message& part) {
  const Message::Step& step = part.step;
  const Key key{link.value(), step.group.value(), step.ordinal, step.id.service, step.id.step};
  Parts& parts = waiting_[key];
  parts.tail = std::max(parts.tail, part.packet.tail);
  parts.last.merge(part.last);
  if (++parts.count < part.combining.parts) return {};
  Message combined = part;
  combined.size = part.combining.result;
  combined.packet.tail = parts.tail;
  combined.last = parts.last;
  waiting_.erase(key);
  return combined;
}

void SwitchCombiner::serialize(LpId link, Archive& archive) {
  std::vector<std::pair<Key, Parts>> there;
  if (!archive.reads())
    for (auto one = waiting_.lower_bound(Key{link.value()}); one != waiting_.end() && one->first[0] == link.value();
         ++one)
      there.push_back(*one);
  archive(there);
  if (archive.reads()) waiting_.insert(there.begin(), there.end());
}

}  // namespace orrery::network
