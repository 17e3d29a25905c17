#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

// Each is in a file of its own in src/network/packet/ports.
extern const DisciplineType shared_buffer_discipline, trimming_discipline, drop_tail_discipline, red_discipline;

std::span<const DisciplineType* const> DisciplineType::registry() {
  static constexpr const DisciplineType* disciplines[] = {&shared_buffer_discipline, &trimming_discipline,
                                                          &drop_tail_discipline, &red_discipline};
  return disciplines;
}

}  // namespace orrery::network
