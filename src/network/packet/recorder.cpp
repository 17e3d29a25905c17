#include "recorder.hpp"

#include <algorithm>
#include <utility>

namespace orrery::network {

// ---- One queue ----

/// Returns the interval of a time, for which it makes room.
QueueHistory::Bin& QueueHistory::bin_at(Time time) {
  while (static_cast<std::uint64_t>(time.ps()) >> shift_ >= most_bins_) {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const Bin whole = std::exchange(bins_[i], {});
      Bin& joined = bins_[i / 2];
      joined.waiting += whole.waiting;
      joined.deepest = std::max(joined.deepest, whole.deepest);
      joined.stopped += whole.stopped;
      joined.marks += whole.marks;
    }
    bins_.resize((bins_.size() + 1) / 2);
    ++shift_;
  }
  const auto number = static_cast<std::size_t>(time.ps() >> shift_);
  if (number >= bins_.size()) bins_.resize(number + 1);
  return bins_[number];
}

template <class Add>
void QueueHistory::spread(Time from, Time to, Add add) {
  if (from >= to) return;
  bin_at(to);
  while (from < to) {
    const Time end = std::min(to, Time::from_ps(((from.ps() >> shift_) + 1) << shift_));
    add(bin_at(from), end - from);
    from = end;
  }
}

void QueueHistory::set_depth(Time now, std::uint64_t bytes) {
  if (depth_ > 0)
    spread(since_, now, [&](Bin& bin, Time part) {
      bin.waiting += static_cast<unsigned __int128>(depth_) * static_cast<std::uint64_t>(part.ps());
      bin.deepest = std::max(bin.deepest, depth_);
    });
  depth_ = bytes;
  since_ = now;
}

void QueueHistory::pause(Time now) {
  if (pauses_.pauses++ == 0) pauses_.first = now;
  if (is_stopped_) return;
  is_stopped_ = true;
  stopped_since_ = now;
}

void QueueHistory::resume(Time now) {
  if (!std::exchange(is_stopped_, false)) return;
  spread(stopped_since_, now, [](Bin& bin, Time part) { bin.stopped += part; });
  const Time took = now - stopped_since_;
  pauses_.total += took;
  pauses_.longest = std::max(pauses_.longest, took);
  pauses_.last = now;
}

void QueueHistory::serialize(Archive& archive) {
  archive(shift_, bins_, depth_, since_, stopped_since_, is_stopped_, pauses_);
}

// ---- All ports ----

PacketRecorder::PortHistory& PacketRecorder::at(const Port& port) {
  auto& history = ports_[table_.index_of(port)];
  if (!history) history = std::make_unique<PortHistory>(what_.queue_bins);
  return *history;
}

/// Returns the record of the message of a packet at a port; null for packets without data.
PacketRecorder::Use* PacketRecorder::use_of(const Port& port, const Packet& packet) {
  if (!what_.flows || !packet.is_data()) return nullptr;
  return &at(port).uses[flow_key(packet.source, packet.flow)];
}

void PacketRecorder::enqueues(const Port& port, const Packet& packet) {
  const Time now = events_.now();
  if (what_.queue_bins > 0) at(port).queue.set_depth(now, port.queue.bytes + packet.size);
  if (what_.flows) at(port).came.push_back(now);
}

void PacketRecorder::dequeued(const Port& port, const Packet& packet) {
  const Time now = events_.now();
  if (what_.queue_bins > 0) at(port).queue.set_depth(now, port.queue.bytes);
  if (!what_.flows) return;
  const Time came = at(port).came.front();
  at(port).came.pop_front();
  if (Use* const use = use_of(port, packet)) {
    use->waited += now - came;
    use->first = std::min(use->first, came);
  }
}

void PacketRecorder::took_last(const Port& port) {
  if (what_.queue_bins > 0) at(port).queue.set_depth(events_.now(), port.queue.bytes);
  if (what_.flows) at(port).came.pop_back();
}

void PacketRecorder::overtook(const Port& port, std::size_t place) {
  if (!what_.flows) return;
  auto& came = at(port).came;
  const auto found = came.begin() + static_cast<std::ptrdiff_t>(place);
  std::rotate(came.begin(), found, found + 1);
}

void PacketRecorder::transmits(const Port& port, const Packet& packet) {
  Use* const use = use_of(port, packet);
  if (use == nullptr) return;
  ++use->packets;
  use->first = std::min(use->first, events_.now());
  use->last = std::max(use->last, port.free);
}

void PacketRecorder::marked(const Port& port) {
  if (what_.queue_bins > 0) at(port).queue.add_mark(events_.now());
}

void PacketRecorder::paused(const Port& port, bool begins) {
  if (what_.queue_bins == 0) return;
  if (begins)
    at(port).queue.pause(events_.now());
  else
    at(port).queue.resume(events_.now());
}

void PacketRecorder::collect(const Port& port, std::uint32_t link, PacketRecords& records) const {
  const auto& found = ports_[table_.index_of(port)];
  if (!found) return;
  const PortHistory& history = *found;
  for (const auto& [key, use] : history.uses)
    records.links.push_back({.link = link,
                             .source = static_cast<std::uint32_t>(key >> 32U),
                             .number = static_cast<std::uint32_t>(key),
                             .packets = use.packets,
                             .first = use.first,
                             .last = std::max(use.first, use.last),
                             .waited = use.waited});
  const auto& bins = history.queue.bins();
  for (std::uint32_t i = 0; i < bins.size(); ++i) {
    const QueueHistory::Bin& bin = bins[i];
    if (bin.waiting == 0 && bin.marks == 0 && bin.stopped == Time::zero()) continue;
    records.queues.push_back({.link = link,
                              .bin = i,
                              .shift = history.queue.shift(),
                              .marks = bin.marks,
                              .deepest = bin.deepest,
                              .stopped = bin.stopped,
                              .waiting = bin.waiting});
  }
  if (history.queue.pauses().pauses == 0) return;
  PauseRecord pauses = history.queue.pauses();
  pauses.link = link;
  records.pauses.push_back(pauses);
}

void PacketRecorder::serialize(const Port& port, Archive& archive) {
  bool is_there = ports_[table_.index_of(port)] != nullptr;
  archive(is_there);
  if (!is_there) return;
  PortHistory& history = at(port);
  history.queue.serialize(archive);
  std::vector<Time> came(history.came.begin(), history.came.end());
  std::vector<std::pair<std::uint64_t, Use>> uses(history.uses.begin(), history.uses.end());
  std::ranges::sort(uses, {}, [](const auto& use) { return use.first; });
  archive(came, uses);
  if (!archive.reads()) return;
  history.came.assign(came.begin(), came.end());
  history.uses.insert(uses.begin(), uses.end());
}

}  // namespace orrery::network
