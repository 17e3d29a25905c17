#pragma once

#include <cstdint>

#include "orrery/base/archive.hpp"
#include "orrery/gpu/device.hpp"
#include "orrery/gpu/profile.hpp"

namespace orrery::gpu {

/// The ports of memory and those to the links of a GPU (Noc::ports), each kind as one server: first come, first served,
/// at the rate of all ports together. That is exact to one line for each port if lines are spread evenly over them.
/// Data pass them cut through. Without Noc::ports nothing takes time. Calls are made in the order of their times.
class Ports {
 public:
  /// The parameters outlive it.
  explicit Ports(const Parameters& parameters) : parameters_(&parameters) {}

  /// Lets blocks read or write memory. Returns when the last byte is through.
  Time move(Time now, std::uint64_t bytes);
  /// Lets in a request whose last byte has come from a link. Returns when it takes effect: data that are stored are in
  /// memory, and what a load asks for leaves memory.
  Time come(Time now, const Request& request);
  /// Lets a request out whose first link it will hold for `held`. Returns when it is handed to this link, so that its
  /// last byte is there in time.
  Time leave(Time now, const Request& request, Time held);

  void serialize(Archive& archive) { archive(memory_free_, in_free_, out_free_); }

 private:
  Time memory_time(std::uint64_t bytes) const;
  Time io_time(std::uint64_t bytes) const;

  const Parameters* parameters_;
  Time memory_free_, in_free_, out_free_;
};

}  // namespace orrery::gpu
