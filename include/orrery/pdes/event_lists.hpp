#pragma once

#include <cstdint>
#include <vector>

#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// Lists of events in one store, the last that came first. No allocation once it has grown.
class EventLists {
 public:
  /// The place of its first event. Also: that of any event, for `next`.
  using List = std::uint32_t;
  static constexpr List empty = ~0U;

  void prepend(List& list, const Event& event) {
    List place = free_;
    if (place == empty) {
      place = static_cast<List>(places_.size());
      places_.emplace_back();
    } else {
      free_ = places_[place].next;
    }
    places_[place] = {event, list};
    list = place;
  }

  /// Calls take(event) for all events of a list, which is empty then. `take` must not touch the lists.
  template <class Take>
  void drain(List& list, Take&& take) {
    while (list != empty) {
      Place& place = places_[list];
      take(place.event);
      const List next = place.next;
      place.next = free_;
      free_ = list;
      list = next;
    }
  }

  /// The rest of a list that is not empty, fetched into the cache.
  List next(List list) const {
    const List rest = places_[list].next;
    if (rest != empty) __builtin_prefetch(&places_[rest]);
    return rest;
  }

 private:
  struct Place {
    Event event;
    List next = empty;
  };

  std::vector<Place> places_;
  List free_ = empty;
};

}  // namespace orrery::pdes
