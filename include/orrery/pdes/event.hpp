#pragma once

#include <compare>
#include <cstdint>
#include <type_traits>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery::pdes {

/// At one time the events of NPUs come before those of the servers that NPUs call at that time.
enum class Stage : std::uint8_t { npu = 0, server = 1 };

/// The kind of the event by which a server tells a client that a request of its node `Event::node` is complete.
inline constexpr std::uint16_t completion = 0;

/// An event of one logical process. Trivially copyable: it travels between ranks as it is. 40 bytes.
/// Events of one LP are handled in the order (time, stage, source LP, sequence number of that source), never by rank or
/// arrival.
struct Event {
  Time time;
  std::uint64_t order = 0;   ///< stage (4 bits) | source (28) | sequence (32)
  std::uint64_t detail = 0;  ///< the model's
  LpId target;
  std::uint32_t node = 0;   ///< the model's
  std::uint32_t depth = 0;  ///< events on the longest chain of causes that ends here; set by the kernel
  std::uint16_t kind = 0;   ///< the model's
  std::uint16_t reserved = 0;

  Stage stage() const { return static_cast<Stage>(order >> 60); }
  LpId source() const { return LpId(static_cast<std::uint32_t>(order >> 32) & max_source); }
  std::uint32_t sequence() const { return static_cast<std::uint32_t>(order); }

  static constexpr std::uint32_t max_source = (1U << 28) - 1;
  static constexpr std::uint16_t lingering = 0xffff;  ///< a kind of the kernel's own, see Kernel::linger

  /// Traps a source or a sequence number that does not fit.
  static std::uint64_t make_order(Stage stage, LpId source, std::uint64_t sequence) {
    ensure(source.value() <= max_source, "an LP id does not fit the event key");
    ensure(sequence <= 0xffffffffU, "the sequence number of an LP does not fit the event key");
    return static_cast<std::uint64_t>(stage) << 60 | static_cast<std::uint64_t>(source.value()) << 32 | sequence;
  }

  /// The sequence number is that of the source.
  static Event make(Time time, Stage stage, LpId source, std::uint64_t sequence, LpId target) {
    Event event;
    event.time = time;
    event.order = make_order(stage, source, sequence);
    event.target = target;
    return event;
  }
};
static_assert(sizeof(Event) == 40 && std::is_trivially_copyable_v<Event>);

/// The fixed order. Events of one LP are never equal here: (source, sequence) differ.
inline bool before(const Event& a, const Event& b) {
  using Wide = unsigned __int128;
  const auto key = [](const Event& e) {
    return static_cast<Wide>(static_cast<std::uint64_t>(e.time.ps())) << 64 | e.order;
  };
  return key(a) < key(b);
}

}  // namespace orrery::pdes
