#pragma once

#include <cstdint>
#include <vector>

#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// Singly linked lists of events that share one store. Nothing allocates memory once it has grown.
class EventLists {
 public:
  /// A list is the index of its first event in the store. `next` also takes the index of any later event.
  using List = std::uint32_t;
  static constexpr List empty = ~0U;

  /// Puts an event before the first one of a list.
  void prepend(List& list, const Event& event) {
    List index = free_;
    if (index == empty) {
      index = static_cast<List>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[index].next;
    }
    entries_[index] = {event, list};
    list = index;
  }

  /// Calls take(event) for all events of a list, the last one prepended first, and empties the list. `take` must not
  /// touch the lists.
  template <class Take>
  void drain(List& list, Take&& take) {
    while (list != empty) {
      Entry& entry = entries_[list];
      take(entry.event);
      const List next = entry.next;
      entry.next = free_;
      free_ = list;
      list = next;
    }
  }

  /// Calls visit(event) for all events of a list, the last one prepended first.
  template <class Visit>
  void for_each(List list, Visit&& visit) const {
    for (; list != empty; list = entries_[list].next) visit(entries_[list].event);
  }

  /// Returns the rest of a list after its first event, and fetches the next event into the cache. The list must not be
  /// empty.
  List next(List list) const {
    const List rest = entries_[list].next;
    if (rest != empty) __builtin_prefetch(&entries_[rest]);
    return rest;
  }

 private:
  struct Entry {
    Event event;
    List next = empty;
  };

  std::vector<Entry> entries_;
  List free_ = empty;  // the list of entries that are free
};

}  // namespace orrery::pdes
