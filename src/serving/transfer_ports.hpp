#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/serving/options.hpp"

namespace orrery::serving {

/// A closed network of ports: a message starts when its sender and its receiver are free, and holds both for its bytes.
class TransferPorts {
 public:
  TransferPorts(const TransferOptions& options, std::uint32_t num_instances)
      : options_(options), sends_until_(num_instances), receives_until_(num_instances) {}

  /// Returns when a message that is sent now has come.
  Time send(Time now, std::uint32_t from, std::uint32_t to, Bytes size) {
    const Time start = std::max({now, sends_until_[from], receives_until_[to]});
    const Time end = start + delay(0, size, options_.bandwidth, Rounding::up_to_ps);
    sends_until_[from] = receives_until_[to] = end;
    return end + options_.latency;
  }
  Time latency() const { return options_.latency; }

 private:
  TransferOptions options_;
  std::vector<Time> sends_until_, receives_until_;  // [instances]
};

}  // namespace orrery::serving
