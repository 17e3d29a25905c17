// The receiving side of a flow of Ultra Ethernet.
#include "uec_sink.hpp"

#include <algorithm>

namespace orrery::network {
namespace {

constexpr std::uint64_t bytes_per_acknowledgement = 16384;
constexpr std::uint32_t words_to_forget = 64;

/// Returns with which packet the bitmap of an acknowledgement begins.
std::uint32_t base_of(std::uint32_t number, std::uint32_t next) {
  return std::max(number < 63 ? 0 : number - 63, next + 1);
}

}  // namespace

bool UecSink::has(std::uint32_t number) const {
  if (number < next_) return true;
  const std::size_t word = number / 64 - first_word_;
  return word < words_.size() && (words_[word] >> (number % 64) & 1U) != 0;
}

void UecSink::put(std::uint32_t number) {
  const std::size_t word = number / 64 - first_word_;
  if (word >= words_.size()) words_.resize(word + 1);
  words_[word] |= std::uint64_t{1} << (number % 64);
  ++count_;
  if (number != next_) return;
  do ++next_;
  while (next_ / 64 - first_word_ < words_.size() && (words_[next_ / 64 - first_word_] >> (next_ % 64) & 1U) != 0);
  const std::uint32_t passed = next_ / 64 - first_word_;
  if (passed < words_to_forget) return;
  words_.erase(words_.begin(), words_.begin() + std::min<std::ptrdiff_t>(passed, std::ssize(words_)));
  first_word_ += passed;
}

bool UecSink::take(const Packet& packet, bool& is_from_it) {
  unacknowledged_ += packet.size;
  const bool asks = (packet.flags & uec_flags::asks) != 0;
  if (packet.is_last) {
    has_last_ = true;
    total_ = packet.number + 1;
  }
  if (has(packet.number)) {
    is_from_it = packet.is_marked;
    unacknowledged_ = 0;
    return true;
  }
  bool is_due = count_ == 0 || asks || packet.is_marked;
  is_asked_ = is_asked_ || asks;
  const bool was_next = packet.number == next_;
  put(packet.number);
  if (was_next && count_ == next_ && is_asked_) {
    is_due = true;
    is_asked_ = false;
  }
  is_due = is_due || unacknowledged_ >= bytes_per_acknowledgement;
  is_from_it = packet.is_marked || asks;
  if (is_due) unacknowledged_ = 0;
  return is_due;
}

void UecSink::acknowledge(Packet& packet, bool is_from_it) const {
  const std::uint32_t base = is_from_it ? packet.number : base_of(packet.number, next_);
  std::uint64_t bitmap = 0;
  for (std::uint32_t i = 0; i < 64 && count_ > next_; ++i)
    if (base + i > next_ && has(base + i)) bitmap |= std::uint64_t{1} << i;
  packet.kind = Packet::Kind::acknowledgement;
  packet.sequence = std::uint64_t{next_} << 32U | count_;
  packet.stamp = Time::from_ps(static_cast<std::int64_t>(bitmap));
  packet.out_of_order = static_cast<std::uint16_t>(std::min<std::uint32_t>(count_ - next_, 0xffffU));
  packet.is_last = is_over();
  packet.flags &= static_cast<std::uint8_t>(uec_flags::again | uec_flags::probe);
  if (is_from_it) packet.flags |= uec_flags::from_it;
  if (has_last_ && has(total_ - 1)) packet.flags |= uec_flags::has_last;
}

bool UecSink::want(std::int32_t target) {
  if (target <= target_) return false;
  target_ = target;
  return true;
}

void UecSink::serialize(Archive& archive) {
  archive(flow_, port_, next_, count_, total_, first_word_, words_, unacknowledged_, given_, target_, has_last_,
          is_asked_, notes);
}

}  // namespace orrery::network
