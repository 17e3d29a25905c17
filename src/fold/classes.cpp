#include "orrery/fold/classes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "interner.hpp"

namespace orrery::fold {
namespace {

/// Things with colours, of which some have to be looked at again.
struct Coloured {
  std::vector<std::uint32_t> colours;  ///< [things]
  std::vector<std::uint32_t> sizes;    ///< [colours]
  std::vector<std::uint32_t> dirty;
  std::vector<char> is_dirty;  ///< [things]

  explicit Coloured(std::vector<std::uint32_t> initial) : colours(std::move(initial)), is_dirty(colours.size(), 1) {
    dirty.resize(colours.size());
    std::iota(dirty.begin(), dirty.end(), 0U);
    for (const auto colour : colours) {
      if (colour >= sizes.size()) sizes.resize(colour + 1);
      ++sizes[colour];
    }
  }
  void soil(std::uint32_t thing) {
    if (is_dirty[thing]) return;
    is_dirty[thing] = 1;
    dirty.push_back(thing);
  }
};

/// Dirty things of one colour that look alike now.
struct Part {
  std::uint32_t colour = 0;
  std::uint32_t first = 0;  ///< the thing that came first
  std::uint32_t count = 0;
  std::uint32_t next = 0;  ///< its colour from now on
};

class Refinement {
 public:
  explicit Refinement(const Likeness& likeness)
      : in_(likeness),
        npus_(likeness.colours),
        groups_(std::vector<std::uint32_t>(likeness.num_groups(), 0)),
        is_placed_(1, 0),
        places_(likeness.members.size(), Likeness::nobody),
        reasons_(likeness.num_npus(), Reason::members) {}

  Classes run() {
    while (!groups_.dirty.empty() || !npus_.dirty.empty()) {
      refine_groups();
      refine_npus();
    }
    return finish();
  }

 private:
  enum class Reason : std::uint8_t { members, place, messages };

  /// What a group looks like now. One that is all of one class and use, and whose members complete together, needs no
  /// places.
  bool describe_group(std::uint32_t group, std::vector<std::uint32_t>& text) const {
    const auto members = in_.members_of(group);
    const auto colour_of = [&](const Likeness::Member& m) { return npus_.colours[m.npu]; };
    bool is_placed = !in_.together[group];
    for (std::size_t i = 1; i < members.size() && !is_placed; ++i)
      is_placed = colour_of(members[i]) != colour_of(members[0]) || members[i].use != members[0].use;
    text = {groups_.colours[group], in_.shapes[group], is_placed ? 1U : 0U};
    for (const auto& member : is_placed ? members : members.first(std::min<std::size_t>(members.size(), 1))) {
      text.push_back(colour_of(member));
      text.push_back(member.use);
    }
    return is_placed;
  }

  void describe_npu(std::uint32_t npu, std::vector<std::uint32_t>& text) const {
    text = {npus_.colours[npu]};
    for (const auto& place : in_.places_of(npu)) {
      const auto colour = groups_.colours[place.group];
      text.push_back(colour);
      text.push_back(is_placed_[colour] ? places_[in_.first_member[place.group] + place.position] : Likeness::nobody);
    }
    for (const auto& stream : in_.streams_of(npu)) {
      text.push_back(stream.stream == Likeness::nobody ? Likeness::nobody : npus_.colours[stream.peer]);
      text.push_back(stream.stream);
    }
  }

  /// The places in a group whose text is known: those whom its algorithms tell apart.
  std::vector<std::uint32_t> places_in(std::uint32_t group, Interner::Words text) const {
    const auto members = text.subspan(3);  // class and use in turn
    std::vector<std::uint32_t> marks;
    Interner known;
    for (std::size_t i = 0; i < members.size(); i += 2) marks.push_back(known.of(members.subspan(i, 2)));
    if (in_.places_among) return in_.places_among(group, in_.members_of(group).front(), marks);
    std::iota(marks.begin(), marks.end(), 0U);
    return marks;
  }

  /// Gives new colours to all parts of a colour but the largest, which keeps it; what is not dirty is a part too.
  /// `may_keep(part)`; `tell(part, kept)` for each with a new colour, kept = none: what is not dirty.
  template <class MayKeep, class Tell>
  void recolour(Coloured& things, std::vector<Part>& parts, MayKeep may_keep, Tell tell) {
    std::vector<std::uint32_t> order(parts.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return parts[i].colour; });
    for (auto begin = order.begin(); begin != order.end();) {
      const auto colour = parts[*begin].colour;
      const auto end = std::find_if(begin, order.end(), [&](std::uint32_t i) { return parts[i].colour != colour; });
      std::uint32_t rest = things.sizes[colour];
      for (auto i = begin; i != end; ++i) rest -= parts[*i].count;
      std::uint32_t kept = none, most = rest;
      for (auto i = begin; i != end; ++i)
        if (parts[*i].count > most && may_keep(parts[*i])) {
          kept = *i;
          most = parts[*i].count;
        }
      for (auto i = begin; i != end; ++i) {
        Part& part = parts[*i];
        part.next = colour;
        if (*i == kept) continue;
        part.next = static_cast<std::uint32_t>(things.sizes.size());
        things.sizes.push_back(part.count);
        things.sizes[colour] -= part.count;
        tell(*i, kept);
      }
      begin = end;
    }
  }

  void refine_groups() {
    const auto dirty = std::exchange(groups_.dirty, {});
    Interner texts;
    std::vector<Part> parts;
    std::vector<char> placed;  // [parts]
    std::vector<std::uint32_t> part_of, text;
    for (const auto group : dirty) {
      groups_.is_dirty[group] = 0;
      const bool is_placed = describe_group(group, text);
      const auto part = texts.of(text);
      if (part == parts.size()) {
        parts.push_back({groups_.colours[group], group, 0, 0});
        placed.push_back(is_placed);
      }
      ++parts[part].count;
      part_of.push_back(part);
    }
    std::vector<char> newly_placed(parts.size());
    std::vector<std::vector<std::uint32_t>> places(parts.size());
    for (std::uint32_t i = 0; i < parts.size(); ++i) {
      if (!placed[i]) continue;
      places[i] = places_in(parts[i].first, texts[i]);
      newly_placed[i] = !std::ranges::equal(places[i], places_of(parts[i].first));
    }
    recolour(
        groups_, parts, [&](const Part& part) { return !newly_placed[static_cast<std::size_t>(&part - parts.data())]; },
        [&](std::uint32_t part, std::uint32_t) { is_placed_.push_back(placed[part]); });
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      const Part& part = parts[part_of[i]];
      if (part.next == groups_.colours[dirty[i]]) continue;
      groups_.colours[dirty[i]] = part.next;
      std::ranges::copy(places[part_of[i]], places_of(dirty[i]).begin());
      const auto reason = newly_placed[part_of[i]] ? Reason::place : Reason::members;
      for (const auto& member : in_.members_of(dirty[i])) soil(member.npu, reason);
    }
  }

  void refine_npus() {
    const auto dirty = std::exchange(npus_.dirty, {});
    Interner texts;
    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of, text;
    part_of.reserve(dirty.size());
    for (const auto npu : dirty) {
      npus_.is_dirty[npu] = 0;
      describe_npu(npu, text);
      const auto part = texts.of(text);
      if (part == parts.size()) parts.push_back({npus_.colours[npu], npu, 0, 0});
      ++parts[part].count;
      part_of.push_back(part);
    }
    recolour(
        npus_, parts, [](const Part&) { return true; },
        [&](std::uint32_t part, std::uint32_t kept) {
          count(kept == none ? reasons_[parts[part].first] : difference(parts[part].first, texts[part], texts[kept]));
        });
    for (std::size_t i = 0; i < dirty.size(); ++i) {
      const auto npu = dirty[i];
      const auto next = parts[part_of[i]].next;
      if (next == npus_.colours[npu]) continue;
      npus_.colours[npu] = next;
      for (const auto& place : in_.places_of(npu)) groups_.soil(place.group);
      for (const auto& stream : in_.streams_of(npu))
        if (stream.stream != Likeness::nobody) soil(stream.peer, Reason::messages);
    }
  }

  std::span<std::uint32_t> places_of(std::uint32_t group) {
    return std::span(places_).subspan(in_.first_member[group], in_.members_of(group).size());
  }

  void soil(std::uint32_t npu, Reason reason) {
    if (!npus_.is_dirty[npu]) reasons_[npu] = reason;
    npus_.soil(npu);
  }

  /// The first way in which the texts of two NPUs of one colour differ.
  Reason difference(std::uint32_t npu, Interner::Words one, Interner::Words other) const {
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
    if (at > 2 * in_.places_of(npu).size()) return Reason::messages;
    return at % 2 == 1 ? Reason::members : Reason::place;
  }
  void count(Reason reason) {
    ++(reason == Reason::members ? by_members_ : reason == Reason::place ? by_place_ : by_messages_);
  }

  Classes finish() const {
    Classes classes;
    classes.by_members = by_members_;
    classes.by_place = by_place_;
    classes.by_messages = by_messages_;
    classes.of_group = groups_.colours;
    classes.of_npu.resize(in_.num_npus());
    std::vector<std::uint32_t> number(npus_.sizes.size(), none);
    for (std::uint32_t npu = 0; npu < in_.num_npus(); ++npu) {
      auto& its = number[npus_.colours[npu]];
      if (its == none) {
        its = classes.count();
        classes.first.push_back(npu);
        classes.sizes.push_back(0);
      }
      classes.of_npu[npu] = its;
      ++classes.sizes[its];
    }
    return classes;
  }

  static constexpr std::uint32_t none = ~0U;

  const Likeness& in_;
  Coloured npus_, groups_;
  std::vector<char> is_placed_;        // [group colours] members are told apart by their places
  std::vector<std::uint32_t> places_;  // [members] of groups that are placed
  std::vector<Reason> reasons_;        // [npus] why it was last looked at again
  std::uint64_t by_members_ = 0, by_place_ = 0, by_messages_ = 0;
};

}  // namespace

Classes classes_of(const Likeness& likeness) { return Refinement(likeness).run(); }

}  // namespace orrery::fold
