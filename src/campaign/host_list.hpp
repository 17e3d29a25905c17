#pragma once

#include <cstdint>
#include <vector>

namespace orrery::campaign {

/// An ordered list of hosts, each at most once. All changes take constant time.
class HostList {
 public:
  explicit HostList(std::uint32_t num_hosts) : next_(num_hosts + 1, absent), previous_(num_hosts + 1, absent) {
    next_[end()] = previous_[end()] = end();
  }

  std::uint32_t size() const { return size_; }
  bool has(std::uint32_t host) const { return next_[host] != absent; }
  std::uint32_t first() const { return next_[end()]; }
  std::uint32_t after(std::uint32_t host) const { return next_[host]; }
  /// Returns what stands after the last host.
  std::uint32_t end() const { return static_cast<std::uint32_t>(next_.size() - 1); }

  void append(std::uint32_t host) {
    const std::uint32_t last = previous_[end()];
    next_[last] = host;
    previous_[host] = last;
    next_[host] = end();
    previous_[end()] = host;
    ++size_;
  }
  void remove(std::uint32_t host) {
    next_[previous_[host]] = next_[host];
    previous_[next_[host]] = previous_[host];
    next_[host] = absent;
    --size_;
  }

 private:
  static constexpr std::uint32_t absent = ~std::uint32_t{0};

  std::vector<std::uint32_t> next_, previous_;
  std::uint32_t size_ = 0;
};

}  // namespace orrery::campaign
