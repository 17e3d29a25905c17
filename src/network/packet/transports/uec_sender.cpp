// The sending side of a flow of Ultra Ethernet. The rules come from uet-htsim (docs/packet-network.md, UEC).
#include "uec_sender.hpp"

#include <algorithm>

#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

using Feedback = Entropies::Feedback;

// SLEEK: what is beyond this many windows, or packets, is lost; round trips before a probe and before the next one.
constexpr double windows_before_loss = 1.5;
constexpr std::int64_t packets_before_loss = 5, trips_before_probe = 3, trips_between_probes = 5;

}  // namespace

UecSender::UecSender(const UecRun& run, const FlowId& flow, PortOfFlow port, std::uint64_t bytes, Time now)
    : run_(&run),
      flow_(flow),
      port_(port),
      nscc_(run.nscc_at(port.rate), now),
      entropies_(run.rules.spraying, mix(run.rules.seed, flow_key(flow.source, flow.number))) {
  progress_.bytes = bytes;
  progress_.count =
      static_cast<std::uint32_t>(std::max<std::uint64_t>((bytes + run.rules.payload - 1) / run.rules.payload, 1));
  credit_.left = most_credit();
}

std::int64_t UecSender::most_credit() const { return run_->most_credit(nscc_.parameters()); }

std::uint32_t UecSender::size_of(std::uint32_t number) const {
  const std::uint64_t payload = run_->rules.payload;
  const std::uint64_t left = progress_.bytes - std::min(progress_.bytes, number * payload);
  return static_cast<std::uint32_t>(std::min(left, payload)) + run_->rules.header;
}

bool UecSender::may_send() const {
  if (progress_.num_lost == 0 && progress_.next == progress_.count) return false;
  if (run_->by_credit) return credit_.left > 0;
  if (recovery_.is_on != 0 && progress_.num_lost > 0) return true;
  std::uint32_t size = run_->mtu();
  if (progress_.num_lost == 0) size = size_of(progress_.next);
  return nscc_.window() >= progress_.in_flight + size;
}

UecSender::Next UecSender::send(Time now, std::size_t num_active) {
  const bool is_again = progress_.num_lost > 0;
  Next next;
  next.number = progress_.next;
  if (is_again) {
    const auto lost = std::ranges::find(records_, Record::State::lost, &Record::state);
    next.number = progress_.first + static_cast<std::uint32_t>(lost - records_.begin());
  } else {
    records_.emplace_back();
  }
  next.size = size_of(next.number);
  Record& record = records_[next.number - progress_.first];
  if (run_->by_credit) credit_.left -= next.size;
  progress_.in_flight += next.size;
  if (is_again) {
    --progress_.num_lost;
    progress_.lost_bytes -= next.size;
    ++record.resent;
  }
  next.entropy = entropies_.next();
  if (!is_again) ++progress_.next;
  record.sent = now;
  record.state = Record::State::out;
  record.is_timed = 1;
  record.entropy = static_cast<std::uint8_t>(next.entropy);
  next.pull_target = run_->by_credit ? pull_target(num_active) : 0;
  const bool is_held = run_->by_credit ? credit_.left <= 0 : progress_.in_flight + next.size >= nscc_.window();
  if (is_again || progress_.next == progress_.count || is_held) next.flags |= uec_flags::asks;
  if (is_again) next.flags |= uec_flags::again;
  return next;
}

/// Returns up to which credit the flow wants to be granted, in units of credit.
std::int32_t UecSender::pull_target(std::size_t num_active) const {
  std::int64_t wanted = progress_.lost_bytes;
  if (progress_.next < progress_.count)
    wanted += static_cast<std::int64_t>(progress_.bytes - std::uint64_t{progress_.next} * run_->rules.payload) +
              std::int64_t{progress_.count - progress_.next} * run_->rules.header;
  wanted = std::min(wanted, most_credit()) - credit_.left;
  if (credit_.is_speculative != 0 && wanted < run_->mtu() && progress_.next < progress_.count) wanted = run_->mtu();
  if (num_active > 1) wanted /= static_cast<std::int64_t>(num_active);
  const std::int64_t target = credit_.granted * UecRun::credit_unit + wanted;
  return static_cast<std::int32_t>((target + UecRun::credit_unit - 1) / UecRun::credit_unit);
}

/// Returns a packet that is under way as far as is known; null if it is not.
UecSender::Record* UecSender::out(std::uint32_t number) {
  if (number < progress_.first || number >= progress_.first + records_.size()) return nullptr;
  Record& record = records_[number - progress_.first];
  return record.state == Record::State::out ? &record : nullptr;
}

/// Puts a packet that is out among those that are to be sent again.
void UecSender::lose(std::uint32_t number) {
  records_[number - progress_.first].state = Record::State::lost;
  ++progress_.num_lost;
  progress_.lost_bytes += size_of(number);
}

/// Notes that a packet has reached the receiver.
void UecSender::find(std::uint32_t number) {
  if (number < progress_.first || number >= progress_.first + records_.size()) return;
  Record& record = records_[number - progress_.first];
  if (record.state == Record::State::lost) {
    --progress_.num_lost;
    progress_.lost_bytes -= size_of(number);
    progress_.in_flight += size_of(number);  // its bytes were taken off twice: as lost, and as received
  }
  record.state = Record::State::there;
}

void UecSender::acknowledge(const Packet& packet, Time now) {
  const auto count = static_cast<std::uint32_t>(packet.sequence);
  std::int64_t received = std::int64_t{count} * run_->mtu();
  if ((packet.flags & uec_flags::has_last) != 0) received -= run_->mtu() - size_of(progress_.count - 1);
  const std::int64_t newly = std::max<std::int64_t>(received - progress_.received, 0);
  progress_.received += newly;
  progress_.in_flight -= newly;
  nscc_.count(newly);
  const Time delay = take_delay(packet, now);
  take_positions(packet);
  const auto entropy = static_cast<std::uint16_t>(packet.ports);
  entropies_.feed_back(entropy, packet.is_marked ? Feedback::mark : Feedback::good, now);
  if (!run_->by_credit) {
    nscc_.acknowledge(now, packet.is_marked, delay, newly, progress_.in_flight);
    if (!run_->rules.trimming) recover(packet, now, delay);
  }
  stop_speculating();
}

/// Returns the delay of the packet that is acknowledged beyond the least round trip: the mean if it is not known, as
/// when the packet was sent several times.
Time UecSender::take_delay(const Packet& packet, Time now) {
  if ((packet.flags & uec_flags::probe) != 0) {
    if (packet.number != recovery_.probe) return nscc_.mean_delay();
    const Time delay = now - recovery_.probe_sent - nscc_.base();
    if (delay < Time::zero()) return Time::zero();
    nscc_.see_delay(delay, packet.is_marked);
    return delay;
  }
  const Record* const record = out(packet.number);
  const int resent = (packet.flags & uec_flags::again) != 0 ? 1 : 0;
  if (record == nullptr || record->resent != resent) return nscc_.mean_delay();
  const Time sample = now - record->sent;
  nscc_.see_round_trip(sample);
  const Time delay = sample - nscc_.base();
  nscc_.see_delay(delay, packet.is_marked);
  return delay;
}

/// Notes which packets have reached the receiver.
void UecSender::take_positions(const Packet& packet) {
  const auto next = static_cast<std::uint32_t>(packet.sequence >> 32U);
  while (progress_.first < next && !records_.empty()) {
    find(progress_.first);
    records_.pop_front();
    ++progress_.first;
  }
  std::uint32_t number = packet.number;
  if ((packet.flags & uec_flags::from_it) == 0)
    number = std::max(packet.number < 63 ? 0 : packet.number - 63, next + 1);
  for (auto bitmap = static_cast<std::uint64_t>(packet.stamp.ps()); bitmap != 0; bitmap >>= 1U, ++number)
    if ((bitmap & 1U) != 0) find(number);
}

/// Finds packets that were dropped: when many have overtaken them, or when a probe has come back fast.
void UecSender::recover(const Packet& packet, Time now, Time delay) {
  const bool all_is_sent = progress_.next == progress_.count;
  probing.due = Time::max();
  if (progress_.first < progress_.next || !all_is_sent)
    probing.due = now + (all_is_sent ? nscc_.base() + nscc_.parameters().target : nscc_.base() * trips_before_probe);
  if ((packet.flags & uec_flags::probe) != 0 && delay < nscc_.parameters().target) {
    recovery_.is_on = 1;
    recovery_.end = progress_.next;
    recovery_.next = progress_.first;
  }
  const std::int64_t size = run_->rules.payload;
  const std::int64_t limit = std::max(
      std::min(static_cast<std::int64_t>(windows_before_loss * static_cast<double>(nscc_.window())), nscc_.most()),
      packets_before_loss * size);
  if (progress_.first >= recovery_.end) recovery_.is_on = 0;
  if (packet.out_of_order < limit / size && recovery_.is_on == 0) return;
  if (recovery_.is_on == 0 && progress_.num_lost == 0) {
    recovery_.is_on = 1;
    recovery_.end = progress_.next;
  }
  const auto end = std::min<std::int64_t>(recovery_.end, progress_.first + nscc_.window() / size);
  for (std::uint32_t number = std::max(progress_.first, recovery_.next); number < end; ++number) {
    if (out(number) == nullptr) continue;
    progress_.in_flight -= size_of(number);
    lose(number);
    recovery_.next = number + 1;
  }
}

void UecSender::reject(const Packet& packet, Time now) {
  const Record* const record = out(packet.number);
  if (record == nullptr) return;
  const std::uint32_t size = size_of(packet.number);
  nscc_.see_round_trip(now - record->sent);
  if (!run_->by_credit) nscc_.reject(now, size, progress_.in_flight);
  progress_.in_flight -= size;
  stop_speculating();
  lose(packet.number);
  Feedback feedback = Feedback::loss;
  if ((packet.flags & uec_flags::last_hop) != 0) feedback = packet.is_marked ? Feedback::mark : Feedback::good;
  entropies_.feed_back(static_cast<std::uint16_t>(packet.ports), feedback, now);
}

void UecSender::grant(const Packet& packet) {
  stop_speculating();
  const auto granted = static_cast<std::int32_t>(packet.sequence);
  if (granted <= credit_.granted) return;
  credit_.left = std::min(credit_.left + (granted - credit_.granted) * UecRun::credit_unit, most_credit());
  credit_.granted = granted;
}

/// Once the receiver has answered, only its credit counts.
void UecSender::stop_speculating() {
  if (credit_.is_speculative != 0) credit_.left = std::min<std::int64_t>(credit_.left, 0);
  credit_.is_speculative = 0;
}

Time UecSender::overdue() const {
  Time first = Time::max();
  for (const Record& record : records_)
    if (record.state == Record::State::out && record.is_timed != 0) first = std::min(first, record.sent);
  return first == Time::max() ? first : first + run_->figures.time_out;
}

bool UecSender::time_out(Time now) {
  bool is_any = false;
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    Record& record = records_[i];
    const bool is_overdue =
        record.state == Record::State::out && record.is_timed != 0 && record.sent + run_->figures.time_out <= now;
    if (!is_overdue) continue;
    const std::uint32_t number = progress_.first + i;
    if (recovery_.is_on != 0) {  // which sends it again, and again if need be
      record.is_timed = 0;
      if (record.resent > 0) recovery_.next = std::min(recovery_.next, number);
      continue;
    }
    entropies_.feed_back(record.entropy, Feedback::time_out, now);
    if (!run_->by_credit) {
      progress_.in_flight -= size_of(number);
      nscc_.time_out(size_of(number));
    }
    lose(number);
    is_any = true;
  }
  if (is_any && run_->by_credit) stop_speculating();
  return is_any;
}

bool UecSender::wants_credit(Time now) {
  if (!run_->by_credit || credit_.left > 0) return false;
  const Time last = credit_.last_request;
  if (last >= Time::zero() && now - last < run_->figures.round_trip) return false;
  credit_.last_request = now;
  return true;
}

UecSender::Next UecSender::probe(Time now) {
  Next next;
  next.number = ++recovery_.probe;
  next.entropy = entropies_.next();
  next.flags = uec_flags::probe;
  next.size = run_->rules.header;
  recovery_.probe_sent = now;
  probing.due = now + nscc_.base() * trips_between_probes;
  return next;
}

void UecSender::serialize(Archive& archive) {
  std::vector<Record> records(records_.begin(), records_.end());
  archive(flow_, port_);
  if (archive.reads()) nscc_ = Nscc(run_->nscc_at(port_.rate), Time::zero());
  archive(progress_, records, nscc_, entropies_, recovery_, credit_, waits, retransmission, probing);
  records_.assign(records.begin(), records.end());
}

}  // namespace orrery::network
