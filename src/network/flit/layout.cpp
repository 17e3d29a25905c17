#include "layout.hpp"

#include <algorithm>

namespace orrery::network::flit {
namespace {

std::uint32_t distance(std::uint32_t a, std::uint32_t b, std::uint32_t size, bool is_ring) {
  const std::uint32_t apart = a > b ? a - b : b - a;
  return is_ring ? std::min(apart, size - apart) : apart;
}

}  // namespace

std::vector<std::uint32_t> Layout::opposite_ports() const {
  std::vector<std::uint32_t> opposite(std::size_t{num_routers()} * ports());
  if (is_crossbar()) return opposite;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const std::uint32_t peers[] = {y * width + (x + 1) % width, y * width + (x + width - 1) % width,
                                     (y + 1) % height * width + x, (y + height - 1) % height * width + x};
      for (std::uint32_t port = 0; port < npu_port; ++port)
        opposite[(y * width + x) * ports() + port] = peers[port] * ports() + (port ^ 1U);
    }
  }
  return opposite;
}

std::uint32_t Layout::hops(std::uint32_t from, std::uint32_t to) const {
  if (is_crossbar()) return 0;
  const bool is_ring = shape == FlitShape::torus;
  return distance(from % width, to % width, width, is_ring) + distance(from / width, to / width, height, is_ring);
}

}  // namespace orrery::network::flit
