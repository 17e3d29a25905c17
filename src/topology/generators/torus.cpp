#include <fmt/format.h>

#include "fabric_builder.hpp"

namespace orrery::topology {
namespace {

/// The positions of a torus, numbered with the first coordinate fastest.
class Torus {
 public:
  explicit Torus(const GraphParameters& given) : sizes_(given.list("sizes")), twist_(given.count("twist")) {
    for (const std::uint32_t size : sizes_) {
      if (size < 2) given.refuse("sizes", fmt::format("found {}", size), "2 or more in each dimension");
      num_positions_ *= size;
      if (num_positions_ > most_generated_nodes)
        given.refuse("sizes", "found too many positions", fmt::format("{} at the most", most_generated_nodes));
    }
    if (twist_ > 0 && sizes_.size() < 2)
      given.refuse("twist", fmt::format("found {} with one dimension", twist_), "0, or two dimensions or more");
    if (twist_ >= sizes_[0])
      given.refuse("twist", fmt::format("found {}", twist_), fmt::format("less than {}, the first size", sizes_[0]));
  }

  std::uint32_t num_positions() const { return static_cast<std::uint32_t>(num_positions_); }
  const std::vector<std::uint32_t>& sizes() const { return sizes_; }
  std::uint32_t twist() const { return twist_; }

  /// Calls join(a, b) for each link: those from each position upwards in each dimension.
  template <class Join>
  void for_each_link(Join join) const {
    std::uint32_t stride = 1;
    for (std::size_t d = 0; d < sizes_.size(); stride *= sizes_[d], ++d)
      for (std::uint32_t at = 0; at < num_positions_; ++at) {
        const std::uint32_t coordinate = at / stride % sizes_[d];
        if (coordinate + 1 < sizes_[d]) {
          join(at, at + stride);
          continue;
        }
        const bool is_twisted = twist_ > 0 && d + 1 == sizes_.size();
        if (sizes_[d] == 2 && !is_twisted) continue;  // one link joins the two
        const std::uint32_t around = at - coordinate * stride, first = around % sizes_[0];
        join(at, is_twisted ? around - first + (first + twist_) % sizes_[0] : around);
      }
  }

 private:
  std::vector<std::uint32_t> sizes_;
  std::uint32_t twist_ = 0;
  std::uint64_t num_positions_ = 1;
};

GeneratedGraph make_torus(const GraphParameters& given) {
  const Torus torus(given);
  const std::uint32_t hosts = given.count("hosts-per-switch"), positions = torus.num_positions();
  if (hosts > 0) {
    FabricBuilder builder(given, std::uint64_t{positions} * hosts);
    const std::uint32_t first = builder.add_switches("router", positions);
    builder.attach_all(first, positions, hosts);
    torus.for_each_link([&](std::uint32_t a, std::uint32_t b) { builder.join(first + a, first + b, "torus"); });
    return builder.take();
  }
  if (!given.servers.empty())
    given.refuse("servers", "found servers in a torus of NPUs", "hosts-per-switch: N for a torus of switches");
  FabricBuilder builder(given, positions);
  torus.for_each_link([&](std::uint32_t a, std::uint32_t b) { builder.join(a, b, "torus"); });
  GeneratedGraph made = builder.take();
  made.hosts_forward = true;
  for (const std::uint32_t size : torus.sizes()) made.dimensions.push_back({"Ring", size});
  if (torus.twist() > 0) made.dimensions.back().shape = "Switch";  // its lines are no rings of their own
  return made;
}

constexpr GraphParameter torus_parameters[] = {
    {.name = "sizes",
     .help = "positions in each dimension, the first one fastest",
     .default_text = "",
     .is_list = true},
    {.name = "twist",
     .help = "how much farther in the first dimension the links lead that wrap around in the last one",
     .default_text = "0",
     .otherwise = 0,
     .least = 0},
    {.name = "hosts-per-switch",
     .help = "places for hosts at a position, which is then a switch; 0: positions are NPUs, which forward",
     .default_text = "0",
     .otherwise = 0,
     .least = 0},
};

}  // namespace

extern const GraphGenerator torus_generator;
constinit const GraphGenerator torus_generator{
    .name = "torus",
    .help = "NPUs or switches in a grid that wraps around, with a twist if wanted",
    .parameters = torus_parameters,
    .make = make_torus,
};

}  // namespace orrery::topology
