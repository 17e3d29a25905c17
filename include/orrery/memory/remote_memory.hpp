#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/memory/memory_server.hpp"
#include "orrery/memory/options.hpp"

namespace orrery::memory {

/// After a request a server that has several of one moment at once waits this long for others of that moment.
constexpr Time gathering_time = Time::from_ps(1);
/// From so far within a ns on, nobody waits any more to learn whether an access ends at once. What is left of the ns is
/// more than enough for the answers to those that do wait.
constexpr Time last_wait_within_ns = Time::from_ps(900);

/// Returns the begin of the ns that a time, which is not negative, is in.
constexpr Time whole_ns(Time time) { return Time::from_ps(time.ps() - time.ps() % 1000); }

/// A kind of remote memory: the NPUs that share its servers, and the time of an access. Immutable.
class RemoteMemoryModel {
 public:
  virtual ~RemoteMemoryModel() = default;

  /// Returns the number of NPUs that share a server; 0 if each NPU has its memory for itself, or none.
  virtual std::uint32_t npus_per_server() const = 0;
  /// Returns the time of one access, of a byte or more, that does not wait; max() if it does not fit. At a shared
  /// server at least one tick, unless RemoteMemoryOptions::may_take_no_time. Traps in a kind without memory.
  virtual Time access_time(Bytes size) const = 0;
  /// Returns the least time from a request to the events that follow from it.
  virtual Time service_delay() const { return access_time(Bytes(0)); }
  /// Makes a server that has served nothing. Only of a kind that shares servers. The model must outlive it.
  virtual std::unique_ptr<SharedServer> make_server() const;
};

/// Remote memory as NPUs see it (docs/model.md, 9): which server an NPU's accesses go to, and what they take there. A
/// copy shares the model.
class RemoteMemory {
 public:
  /// Throws Error (bad_input) for options that are not valid.
  RemoteMemory(const RemoteMemoryOptions& options, std::uint32_t num_npus);

  /// Returns the number of servers that NPUs share; 0 if each NPU has its own memory, or none.
  std::uint32_t num_servers() const { return num_servers_; }
  /// Returns the shared server of an NPU. Only if there are any.
  std::uint32_t server_of(NpuId npu) const;
  NpuId first_npu_of(std::uint32_t server) const;
  /// Returns one of the NPUs that a server serves: its rank hosts the server. Servers take different ones in turn, so
  /// that they are spread over ranks.
  NpuId host_of(std::uint32_t server) const;
  std::uint32_t npus_per_server() const { return model_->npus_per_server(); }

  /// See RemoteMemoryModel.
  Time access_time(Bytes size) const { return model_->access_time(size); }
  Time service_delay() const { return model_->service_delay(); }
  std::unique_ptr<SharedServer> make_server() const { return model_->make_server(); }
  RemoteMemoryKind kind() const { return kind_; }
  /// Returns whether a memory that an NPU has for itself serves one access at a time.
  bool takes_turns() const { return takes_turns_; }
  /// Returns whether an access to a memory that NPUs share can end at the time at which it begins. Its answer then
  /// comes a few ps later, within the same ns.
  bool may_take_no_time() const { return may_take_no_time_; }
  /// Returns the least that passes from an answer to what follows `time` after it. The answer may come up to 999 ps
  /// after the begin of the ns, from which `time` counts.
  Time least_after_answer(Time time) const {
    constexpr Time most = Time::from_ps(999);
    return may_take_no_time_ && time < Time::max() ? std::max(time, most) - most : time;
  }
  /// See RemoteMemoryOptions.
  bool orders_requests() const { return orders_requests_; }

 private:
  RemoteMemoryKind kind_;
  bool takes_turns_;
  bool orders_requests_;
  bool may_take_no_time_ = false;
  std::shared_ptr<const RemoteMemoryModel> model_;
  std::uint32_t num_servers_ = 0;
};

}  // namespace orrery::memory
