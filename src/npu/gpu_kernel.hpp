#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu_collectives.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/gpu/device.hpp"

namespace orrery::npu {

/// Returns whether a request is carried out by a switch.
constexpr bool is_for_switch(gpu::RequestKind kind) {
  return kind == gpu::RequestKind::switch_load || kind == gpu::RequestKind::switch_store;
}
/// Returns the request that a message carries.
gpu::Request request_of(const network::Message& message);
/// Returns the message that carries a request, without its ends and its collective.
network::Message message_of(const gpu::Request& request, const gpu::Parameters& parameters);

/// What has happened to the thread blocks of a kernel, in its order. They are coroutines, whose state cannot be
/// written. What they do follows from this alone, so a run that goes on lets it happen to them again.
struct KernelHistory {
  enum class Kind : std::uint8_t {
    begin,   ///< the kernel has begun
    take,    ///< request `number` has come
    left,    ///< a store of block `number` with `bytes` has left
    resume,  ///< coroutine `number` has gone on
    moved,   ///< Simulation::move_memory has returned `time`
  };
  struct Entry {
    Time time;
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;
    Kind kind = Kind::begin;
  };

  std::vector<Entry> entries;
  std::vector<gpu::Request> requests;

  void serialize(Archive& archive) { archive(entries, requests); }
};

/// The kernel that carries out the part of this NPU in a collective.
class GpuCollectives::Kernel final : public gpu::Simulation {
 public:
  /// What it is of.
  struct Collective {
    GroupId group;
    std::uint32_t ordinal = 0;
    NodeId node;
    communicator::Membership membership;
  };

  /// Throws Error (bad_input) if this GPU is in a group that no switch joins.
  Kernel(GpuCollectives& owner, const Collective& collective, std::shared_ptr<const gpu::Program> program);

  // What happens to it; `go_on` must follow.
  void begin();
  void take(const gpu::Request& request);
  void left(std::uint32_t block, std::uint64_t bytes);
  void resume(std::uint32_t coroutine);
  /// Lets coroutines go on that have asked to do so at once.
  void go_on();

  // Of gpu::Simulation.
  Time now() const override { return is_repeating_ ? repeated_.time : owner_.now_; }
  void resume_at(Time time, std::uint32_t gpu, std::coroutine_handle<> coroutine) override;
  void send(Time time, const gpu::Request& request) override;
  Time holds(std::uint32_t gpu, std::uint32_t to, std::uint64_t wire) override;
  Time move_memory(std::uint32_t gpu, std::uint64_t bytes) override;
  void finish(std::uint32_t gpu, Time time) override;
  void hold_sms(std::uint32_t gpu, std::uint32_t sms) override;

  gpu::KernelRecord record() const;
  std::vector<std::string> waits() const { return device_.waits(); }
  /// Returns whether nothing will happen to it any more.
  bool is_quiet() const { return has_left && suspended_.in_use() == 0 && device_.is_quiet(); }

  /// Writes the state of a kernel, or reads it into one that has not begun.
  void serialize(Archive& archive);

  const Collective of;
  std::uint32_t slot = 0;
  LastArrival last;  ///< last arrival of the members, as far as their requests have told
  Time end = Time::max();
  bool has_left = false;

 private:
  using Kind = KernelHistory::Kind;

  const gpu::Gpu& gpu() const { return program_->gpus[of.membership.position]; }
  NpuId member(std::uint32_t position) const {
    return owner_.npu_->context().services.communicators.member(of.membership, position);
  }
  std::uint32_t beside(std::uint32_t group) const;
  void require_switches() const;
  void note(Kind kind, Time time, std::uint32_t number = 0, std::uint64_t bytes = 0);
  void repeat(const KernelHistory& history);

  /// Where a kernel is in the history that it repeats.
  struct Repeated {
    const KernelHistory* history = nullptr;
    std::size_t next = 0;  ///< entry
    Time time;
  };

  GpuCollectives& owner_;
  std::shared_ptr<const gpu::Program> program_;
  Time start_;
  std::uint32_t sms_ = 0;
  Slots<std::coroutine_handle<>> suspended_;  // that will be resumed at a time
  std::deque<std::uint32_t> soon_;            // of these, those that go on in the call in progress
  KernelHistory history_;                     // empty if no checkpoints are written
  bool is_repeating_ = false;
  Repeated repeated_;
  gpu::Device device_;
};

}  // namespace orrery::npu
