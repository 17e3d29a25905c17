#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/serving/simulate.hpp"

namespace orrery::serving {

/// One message of a transfer.
struct TransferPart {
  NpuId from, to;
  Bytes size;
};

/// Divides KV transfers into messages between NPUs.
class TransferParts {
 public:
  /// The scenario outlives it.
  explicit TransferParts(const Scenario& scenario);

  /// Returns the messages of a transfer of `all` bytes between two schedulers, or of one layer of it, which has `all`
  /// bytes: each NPU of the home sends to each NPU of the other side what both of them hold.
  std::vector<TransferPart> of(std::uint32_t home, std::uint32_t to, Bytes all,
                               std::optional<std::uint32_t> layer) const;
  /// Returns the number of messages of a whole transfer.
  std::uint32_t count(std::uint32_t home, std::uint32_t to) const;

 private:
  /// Returns the NPUs of a scheduler.
  std::span<const NpuId> npus_of(std::uint32_t number) const;

  const Scenario& scenario_;
  std::vector<std::uint32_t> instance_of_, first_;  // [schedulers], [instances] the number of its first scheduler
};

/// Returns the bytes of the parts from `first` up to `end` of `count` equal ones.
Bytes range_of(Bytes all, std::size_t first, std::size_t end, std::size_t count);
/// Returns how long the longest of some messages takes.
Time longest_delay(const network::DelayModel& delays, const std::vector<TransferPart>& parts);

}  // namespace orrery::serving
