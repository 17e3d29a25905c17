#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "orrery/base/ids.hpp"

namespace orrery::parallel {

/// Thrown by `agree` on a rank that need not speak, because another one does.
struct FailedElsewhere {
  int exit_code = 1;
};

/// The ranks that carry out a job. A serial program is just another implementation, in which no MPI call is made.
/// Every function is collective unless it says otherwise; MPI errors are thrown as Error (internal).
class Communicator {
 public:
  virtual ~Communicator() = default;

  Rank rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_.value() == 0; }

  /// Returns on every rank when all ranks have called it. Collective.
  virtual void barrier() = 0;
  /// Replaces each element by its sum over the ranks. `minimum` and `maximum` work in this way too. All ranks give as
  /// many elements. Collective.
  virtual void sum(std::span<std::int64_t> values) = 0;
  virtual void minimum(std::span<std::int64_t> values) = 0;
  virtual void maximum(std::span<std::int64_t> values) = 0;
  /// Replaces `bytes` on every rank by those of `root`. Collective.
  virtual void broadcast_bytes(std::vector<std::byte>& bytes, Rank root) = 0;
  /// Returns on `root` the concatenation in rank order, and sets `sizes` to the bytes of each rank. Returns nothing
  /// elsewhere. Collective; any size (64-bit).
  virtual std::vector<std::byte> gather_bytes(std::span<const std::byte> mine, Rank root,
                                              std::vector<std::size_t>& sizes) = 0;
  /// Sends outgoing[r] to rank r. Returns the data received from each rank. Collective.
  virtual std::vector<std::vector<std::byte>> exchange_bytes(const std::vector<std::vector<std::byte>>& outgoing) = 0;

  /// Returns a communicator of ranks 0 to `count` - 1 on these ranks. Collective among them; other ranks do not call
  /// it.
  virtual std::unique_ptr<Communicator> first(int count) = 0;

  /// Returns on `root` the values of all ranks, in rank order, and nothing elsewhere. Sets `counts`, if given, to the
  /// number of values of each rank. Collective.
  template <class T>
  std::vector<T> gather(std::span<const T> mine, Rank root, std::vector<std::size_t>* counts = nullptr) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::size_t> sizes;
    const auto bytes = gather_bytes(std::as_bytes(mine), root, sizes);
    if (counts) {
      counts->clear();
      for (const auto size : sizes) counts->push_back(size / sizeof(T));
    }
    return from_bytes<T>(bytes);
  }
  /// Returns the concatenation in rank order on every rank. Collective.
  template <class T>
  std::vector<T> all_gather(std::span<const T> mine, std::vector<std::size_t>* counts = nullptr) {
    auto all = gather<T>(mine, Rank(0), counts);
    broadcast(all, Rank(0));
    if (counts) broadcast(*counts, Rank(0));
    return all;
  }
  /// Replaces the values on every rank by those of `root`. Collective.
  template <class T>
  void broadcast(std::vector<T>& values, Rank root) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto span = std::as_bytes(std::span(values));
    std::vector<std::byte> bytes(span.begin(), span.end());
    broadcast_bytes(bytes, root);
    values = from_bytes<T>(bytes);
  }
  void broadcast(std::string& text, Rank root);
  /// Sends outgoing[r] to rank r. Returns the values that came from each rank. Collective.
  template <class T>
  std::vector<std::vector<T>> exchange(const std::vector<std::vector<T>>& outgoing) {
    std::vector<std::vector<std::byte>> bytes;
    for (const auto& values : outgoing) {
      const auto span = std::as_bytes(std::span(values));
      bytes.emplace_back(span.begin(), span.end());
    }
    std::vector<std::vector<T>> incoming;
    for (const auto& values : exchange_bytes(bytes)) incoming.push_back(from_bytes<T>(values));
    return incoming;
  }
  /// Runs `body`. If it throws on some ranks, every rank throws: the lowest failing one its own error, the others
  /// FailedElsewhere. Collective. So ranks agree on a failure before they enter the next collective call.
  void agree(const std::function<void()>& body);
  /// Returns whether `agree` has thrown: then all ranks know of the failure, so the job can end in order.
  bool failure_is_agreed() const { return failure_is_agreed_; }

 protected:
  Communicator(Rank rank, int size) : rank_(rank), size_(size) {}

 private:
  template <class T>
  static std::vector<T> from_bytes(std::span<const std::byte> bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }

  Rank rank_;
  int size_;
  bool failure_is_agreed_ = false;
};

/// Makes a communicator of one rank, without MPI.
std::unique_ptr<Communicator> make_serial();

}  // namespace orrery::parallel
