#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/communicator/event_places.hpp"
#include "orrery/communicator/report.hpp"

/// How a report and its times travel to another rank: the bytes of the report, then those of the times. Times that are
/// all equal travel as one.
namespace orrery::communicator::wire {

/// Replaces what is in `message`. There must be at least one time.
void pack(const Report& report, std::span<const Time> times, std::vector<std::byte>& message);

/// Returns the report of a message and replaces what is in `times`. Throws Error (internal) if the message has not the
/// form that `pack` gives it.
Report unpack(std::span<const std::byte> message, std::vector<Time>& times);

/// Appends the places of several events among others, JoinPlace or EndPlace, to times, as numbers of ps.
template <class Place>
void append(std::vector<Place>& places, std::vector<Time>& times) {
  Archive archive;
  archive(places);
  const std::vector<std::byte> bytes = archive.written();
  const std::size_t first = times.size();
  times.resize(first + (bytes.size() + sizeof(Time) - 1) / sizeof(Time));
  std::memcpy(&times[first], bytes.data(), bytes.size());
}

/// Returns the places that were appended to `count` times.
template <class Place>
std::vector<Place> appended(std::span<const Time> times, std::size_t count) {
  std::vector<Place> places;
  Archive archive(std::as_bytes(times.subspan(count)));
  archive(places);
  return places;
}

}  // namespace orrery::communicator::wire
