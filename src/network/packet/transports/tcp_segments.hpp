#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "byte_ranges.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"

namespace orrery::network {

/// A segment that was sent and is not acknowledged, in 16 bytes.
struct TcpSegment {
  static constexpr Time not_recorded = Time::from_ps(-1);

  Time sent;                ///< time of its first transmission; `not_recorded` after a time-out
  std::uint32_t first = 0;  ///< lowest 32 bits of the number of its first byte
  std::uint16_t length = 0;
  bool is_sacked : 1 = false, is_lost : 1 = false, is_again : 1 = false;
};
static_assert(sizeof(TcpSegment) == 16);

/// The segments of a connection from the first unacknowledged byte on, and what is known of them: which have come,
/// which are lost, and which were sent again. Each operation takes amortised constant time for each segment that it
/// changes, and a search among the gaps for each block of a selective acknowledgement. Nothing scans the window, except
/// for a time-out.
class TcpSegments {
 public:
  explicit TcpSegments(std::uint32_t mss) : mss_(mss) {}

  bool empty() const { return begin_ == end_; }
  std::uint64_t unacknowledged() const { return una_; }
  std::uint64_t sent_end() const { return sent_end_; }
  /// Returns the bytes under way as the sender estimates them.
  std::uint64_t flight() const { return sent_end_ - una_ - sacked_.bytes() - lost_ + again_; }
  /// Returns the number of the first segment, by which other functions name it.
  std::uint64_t head() const { return begin_; }
  std::uint64_t first_byte(std::uint64_t number) const {
    return una_ + static_cast<std::uint32_t>(at(number).first - static_cast<std::uint32_t>(una_));
  }
  const TcpSegment& operator[](std::uint64_t number) const { return at(number); }

  /// Adds a segment behind all others, which is sent now. Returns its number.
  std::uint64_t append(std::uint32_t length, Time now);
  /// Notes that a segment is sent again.
  void repeat(std::uint64_t number);
  /// Returns the first segment that is lost and was not sent again since.
  std::optional<std::uint64_t> first_lost();
  /// Returns the first segment that has not come and was not sent again.
  std::optional<std::uint64_t> first_unknown();

  /// Notes a block of a selective acknowledgement, as far as it covers whole segments. Returns how many bytes were not
  /// known to have come. `find_lost` must follow the last block.
  std::uint64_t take_block(std::uint64_t begin, std::uint64_t end);
  /// Finds segments that are lost: three segments behind them have come.
  void find_lost();
  /// Returns whether the first segment from this byte on that is lost or has come is lost, and lies before one that has
  /// come.
  bool is_lost_from(std::uint64_t byte) const;
  /// Takes the first segment for lost.
  void lose_head();
  /// Takes all for lost that is not known to have come, and forgets what was sent again.
  void lose_all();

  /// What an acknowledgement covers.
  struct Covered {
    std::uint64_t delivered = 0;  ///< bytes that were not known to have come
    bool has_repeated = false;    ///< whether a segment that was sent again and had not come ends a whole number of
                                  ///< segments before the acknowledgement
    Time sent = TcpSegment::not_recorded;  ///< time at which its oldest recorded segment left
    bool is_sent_once = false;             ///< whether that segment was not sent again
  };
  /// Forgets all segments before a byte.
  Covered acknowledge(std::uint64_t byte);
  /// Returns whether one of the first three segments was sent again, has not come, and ends with this byte.
  bool has_repeated_end(std::uint64_t byte) const;
  /// Gives memory back if nothing is under way.
  void shrink();

  void serialize(Archive& archive);

 private:
  static constexpr std::size_t kept_when_idle = 16;  // segments

  TcpSegment& at(std::uint64_t number) { return ring_[number & (ring_.size() - 1)]; }
  const TcpSegment& at(std::uint64_t number) const { return ring_[number & (ring_.size() - 1)]; }
  std::uint64_t find(std::uint64_t byte) const;
  void grow();
  void note_top(std::uint64_t number);
  void mark_lost(std::uint64_t number);

  std::vector<TcpSegment> ring_;           // a power of two
  std::uint64_t begin_ = 0, end_ = 0;      // numbers of segments
  std::uint64_t una_ = 1, sent_end_ = 1;   // bytes
  ByteRanges sacked_;                      // bytes that have come
  std::uint64_t lost_ = 0, again_ = 0;     // bytes
  std::uint64_t num_todo_ = 0;             // lost segments that were not sent again
  std::uint64_t todo_ = 0, unknown_ = 0;   // no segment before these is one of first_lost, or of first_unknown
  std::uint64_t examined_ = 0;             // segments before this one are lost unless they have come
  std::array<std::uint64_t, 3> top_ = {};  // last segments that have come, descending
  std::uint32_t num_top_ = 0;
  std::uint32_t mss_;
};

}  // namespace orrery::network
