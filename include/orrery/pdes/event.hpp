#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::pdes {

/// The kernel knows two kinds of logical processes (LPs): clients, and servers that clients call. At one time all
/// events of clients come before the events of the servers that these clients call at that time.
enum class Stage : std::uint8_t { client = 0, server = 1 };

/// The kind of the event by which a server tells a client that the request of its node `Event::node` is complete.
inline constexpr std::uint16_t completion = 0;

/// An event of one LP, 40 bytes. It is trivially copyable, because it travels between ranks as it is.
/// An LP handles its events in the order (time, stage, source LP, sequence number of the source). Neither the rank nor
/// the order of arrival has an influence.
struct Event {
  Time time;
  std::uint64_t order = 0;   ///< stage (4 bits) | source (28 bits) | sequence number (32 bits)
  std::uint64_t detail = 0;  ///< the model's
  LpId target;
  std::uint32_t node = 0;   ///< the model's
  std::uint32_t depth = 0;  ///< events on the longest chain of causes that ends here; the kernel sets it
  std::uint16_t kind = 0;   ///< the model's
  std::uint16_t reserved = 0;

  Stage stage() const { return static_cast<Stage>(order >> 60); }
  LpId source() const { return LpId(static_cast<std::uint32_t>(order >> 32) & max_source); }
  std::uint32_t sequence() const { return static_cast<std::uint32_t>(order); }

  static constexpr std::uint32_t max_source = (1U << 28) - 1;
  static constexpr std::uint16_t waiting = 0xffff;  ///< kind that the kernel alone uses: Scheduler::wait_until_certain

  /// Returns the value of `order`. Throws Error (internal) if the source or the sequence number does not fit.
  static std::uint64_t make_order(Stage stage, LpId source, std::uint64_t sequence) {
    ensure(source.value() <= max_source, "an LP id does not fit the event key");
    ensure(sequence <= 0xffffffffU, "the sequence number of an LP does not fit the event key");
    return static_cast<std::uint64_t>(stage) << 60 | static_cast<std::uint64_t>(source.value()) << 32 | sequence;
  }

  /// Returns an event of kind 0. `sequence` is the source's own count of its events.
  static Event make(Time time, Stage stage, LpId source, std::uint64_t sequence, LpId target) {
    Event event;
    event.time = time;
    event.order = make_order(stage, source, sequence);
    event.target = target;
    return event;
  }
};
static_assert(sizeof(Event) == 40 && std::is_trivially_copyable_v<Event>);

/// Returns whether `a` is handled before `b`. Two events of one LP are never equal, since (source, sequence) differ.
inline bool before(const Event& a, const Event& b) {
  using Wide = unsigned __int128;
  const auto key = [](const Event& e) {
    return static_cast<Wide>(static_cast<std::uint64_t>(e.time.ps())) << 64 | e.order;
  };
  return key(a) < key(b);
}

}  // namespace orrery::pdes
