#include "reading.hpp"

#include "key_info.hpp"

namespace orrery::config {

std::uint32_t Reading::num_npus() const {
  const std::uint32_t count = count_npus(configuration.dimensions);
  return count > most_npus ? 0 : count;
}

void Reading::note_place(const KeyInfo& key, const Place& place) {
  const std::string& path = key.becomes.empty() ? key.path : key.becomes;
  if (place.key == key.path && path != "-") configuration.places[path] = place;
}

}  // namespace orrery::config
