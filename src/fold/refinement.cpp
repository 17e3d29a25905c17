#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "interner.hpp"
#include "orrery/fold/equivalence.hpp"

namespace orrery::fold {
namespace {

constexpr std::uint32_t none = SignatureGraph::none;

/// NPUs, or groups, in the classes of the moment; some of them have to be looked at again.
struct Refinable {
  std::vector<std::uint32_t> class_of;  ///< [items]
  std::vector<std::uint32_t> sizes;     ///< [classes]
  std::vector<std::uint32_t> pending;   ///< items to look at again
  std::vector<char> is_pending;         ///< [items]

  explicit Refinable(std::vector<std::uint32_t> initial)
      : class_of(std::move(initial)), is_pending(class_of.size(), 1) {
    pending.resize(class_of.size());
    std::iota(pending.begin(), pending.end(), 0U);
    for (const auto its : class_of) {
      if (its >= sizes.size()) sizes.resize(its + 1);
      ++sizes[its];
    }
  }
  void look_again(std::uint32_t item) {
    if (is_pending[item]) return;
    is_pending[item] = 1;
    pending.push_back(item);
  }
};

/// Pending items of one class that have equal signatures now.
struct Fragment {
  std::uint32_t old_class = 0;
  std::uint32_t first = 0;  ///< the item that came first
  std::uint32_t count = 0;
  std::uint32_t new_class = 0;
};

/// The pending items of one kind, sorted into fragments.
class Fragments {
 public:
  /// Adds an item with its signature. Returns whether its fragment is new.
  bool add(const Refinable& items, std::uint32_t item, Interner::Words signature) {
    const auto fragment = signatures_.of(signature);
    const bool is_new = fragment == all.size();
    if (is_new) all.push_back({items.class_of[item], item, 0, 0});
    ++all[fragment].count;
    of_item.push_back(fragment);
    return is_new;
  }
  Interner::Words signature(std::uint32_t fragment) const { return signatures_[fragment]; }

  std::vector<Fragment> all;
  std::vector<std::uint32_t> of_item;  ///< [items added]

 private:
  Interner signatures_;
};

/// Gives new classes to all fragments of a class but one. The items that are not pending keep the class. If there are
/// none, the largest fragment keeps it for which `may_keep(fragment)` holds. `tell(fragment, kept)` is called for each
/// with a new class; kept = none: no fragment keeps it.
template <class MayKeep, class Tell>
void split(Refinable& items, std::vector<Fragment>& fragments, MayKeep may_keep, Tell tell) {
  std::vector<std::uint32_t> order(fragments.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return fragments[i].old_class; });
  for (auto begin = order.begin(); begin != order.end();) {
    const auto old_class = fragments[*begin].old_class;
    const auto end = std::find_if(begin, order.end(), [&](auto i) { return fragments[i].old_class != old_class; });
    std::uint32_t rest = items.sizes[old_class];
    for (auto i = begin; i != end; ++i) rest -= fragments[*i].count;
    std::uint32_t kept = none, most = 0;
    for (auto i = begin; rest == 0 && i != end; ++i)
      if (fragments[*i].count > most && may_keep(*i)) {
        kept = *i;
        most = fragments[*i].count;
      }
    for (auto i = begin; i != end; ++i) {
      Fragment& fragment = fragments[*i];
      fragment.new_class = old_class;
      if (*i == kept) continue;
      fragment.new_class = static_cast<std::uint32_t>(items.sizes.size());
      items.sizes.push_back(fragment.count);
      items.sizes[old_class] -= fragment.count;
      tell(*i, kept);
    }
    begin = end;
  }
}

class Refinement {
 public:
  explicit Refinement(const SignatureGraph& graph)
      : graph_(graph),
        npus_(graph.signature_of_npu),
        groups_(std::vector<std::uint32_t>(graph.num_groups(), 0)),
        positions_count_(1, 0),
        positions_(graph.members.size(), none),
        reasons_(graph.num_npus(), Reason::members) {}

  EquivalenceClasses run() {
    while (!groups_.pending.empty() || !npus_.pending.empty()) {
      refine_groups();
      refine_npus();
    }
    return finish();
  }

 private:
  enum class Reason : std::uint8_t { members, position, messages };

  /// Writes the signature that a group has now. Returns whether the positions of members count: not where all members
  /// are of one class and use and complete together, and not where equal ones are taken to complete together.
  bool sign_group(std::uint32_t group, std::vector<std::uint32_t>& signature) const {
    const auto members = graph_.members_of(group);
    const auto class_of = [&](const SignatureGraph::Member& m) { return npus_.class_of[m.npu]; };
    const auto labels = graph_.divergences.of(group);
    const bool is_told_apart = !graph_.completes_together[group] || labels != 0;
    bool is_mixed = is_told_apart;
    for (std::size_t i = 1; i < members.size() && !is_mixed; ++i)
      is_mixed = class_of(members[i]) != class_of(members[0]) || members[i].use != members[0].use;
    const bool positions_count = is_told_apart || (is_mixed && !graph_.assumes_completing_together);
    signature = {groups_.class_of[group], graph_.layouts[group], labels, is_mixed ? 1U : 0U};
    for (const auto& member : is_mixed ? members : members.first(std::min<std::size_t>(members.size(), 1))) {
      signature.push_back(class_of(member));
      signature.push_back(member.use);
    }
    return positions_count;
  }

  /// Writes the signature that an NPU has now.
  void sign_npu(std::uint32_t npu, std::vector<std::uint32_t>& signature) const {
    signature = {npus_.class_of[npu]};
    for (const auto& [group, position] : graph_.memberships_of(npu)) {
      const auto its_class = groups_.class_of[group];
      signature.push_back(its_class);
      signature.push_back(positions_count_[its_class] ? positions_[graph_.first_member[group] + position] : none);
    }
    for (const auto& [peer, stream] : graph_.streams_of(npu)) {
      signature.push_back(stream == none ? none : npus_.class_of[peer]);
      signature.push_back(stream);
    }
  }

  /// Numbers the positions in a group of this signature: positions that its algorithms do not tell apart get one
  /// number, or those that are known not to diverge.
  std::vector<std::uint32_t> number_positions(std::uint32_t group, Interner::Words signature) const {
    const auto members = signature.subspan(4);  // class and use in turn
    std::vector<std::uint32_t> labels;
    Interner known;
    for (std::size_t i = 0; i < members.size(); i += 2) labels.push_back(known.of(members.subspan(i, 2)));
    if (const auto diverging = graph_.divergences.of(group); diverging != 0) {
      Interner both;
      for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = both.of(std::array{labels[i], graph_.divergences.labels[diverging][i]});
      return labels;
    }
    if (graph_.positions_among) return graph_.positions_among(group, graph_.members_of(group).front(), labels);
    std::iota(labels.begin(), labels.end(), 0U);
    return labels;
  }

  void refine_groups() {
    const auto pending = std::exchange(groups_.pending, {});
    Fragments fragments;
    std::vector<char> positions_count;  // [fragments]
    std::vector<std::uint32_t> signature;
    for (const auto group : pending) {
      groups_.is_pending[group] = 0;
      const bool count = sign_group(group, signature);
      if (fragments.add(groups_, group, signature)) positions_count.push_back(count);
    }
    std::vector<std::vector<std::uint32_t>> positions(fragments.all.size());
    std::vector<char> moved(fragments.all.size());  // members have other positions than before
    for (std::uint32_t i = 0; i < fragments.all.size(); ++i) {
      if (!positions_count[i]) continue;
      positions[i] = number_positions(fragments.all[i].first, fragments.signature(i));
      moved[i] = !std::ranges::equal(positions[i], positions_of(fragments.all[i].first));
    }
    split(
        groups_, fragments.all, [&](std::uint32_t i) { return !moved[i]; },
        [&](std::uint32_t i, std::uint32_t) { positions_count_.push_back(positions_count[i]); });
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const auto fragment = fragments.of_item[i];
      const auto next = fragments.all[fragment].new_class;
      if (next == groups_.class_of[pending[i]]) continue;
      groups_.class_of[pending[i]] = next;
      std::ranges::copy(positions[fragment], positions_of(pending[i]).begin());
      const auto reason = moved[fragment] ? Reason::position : Reason::members;
      for (const auto& member : graph_.members_of(pending[i])) look_again(member.npu, reason);
    }
  }

  void refine_npus() {
    const auto pending = std::exchange(npus_.pending, {});
    Fragments fragments;
    fragments.of_item.reserve(pending.size());
    std::vector<std::uint32_t> signature;
    for (const auto npu : pending) {
      npus_.is_pending[npu] = 0;
      sign_npu(npu, signature);
      fragments.add(npus_, npu, signature);
    }
    split(
        npus_, fragments.all, [](std::uint32_t) { return true; },
        [&](std::uint32_t i, std::uint32_t kept) {
          const auto first = fragments.all[i].first;
          count(kept == none ? reasons_[first] : difference(first, fragments.signature(i), fragments.signature(kept)));
        });
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const auto npu = pending[i];
      const auto next = fragments.all[fragments.of_item[i]].new_class;
      if (next == npus_.class_of[npu]) continue;
      npus_.class_of[npu] = next;
      for (const auto& membership : graph_.memberships_of(npu)) groups_.look_again(membership.group);
      for (const auto& [peer, stream] : graph_.streams_of(npu))
        if (stream != none) look_again(peer, Reason::messages);
    }
  }

  std::span<std::uint32_t> positions_of(std::uint32_t group) {
    return std::span(positions_).subspan(graph_.first_member[group], graph_.members_of(group).size());
  }

  void look_again(std::uint32_t npu, Reason reason) {
    if (!npus_.is_pending[npu]) reasons_[npu] = reason;
    npus_.look_again(npu);
  }

  /// The first way in which the signatures of two NPUs of one class differ.
  Reason difference(std::uint32_t npu, Interner::Words one, Interner::Words other) const {
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
    if (at > 2 * graph_.memberships_of(npu).size()) return Reason::messages;
    return at % 2 == 1 ? Reason::members : Reason::position;
  }
  void count(Reason reason) {
    ++(reason == Reason::members ? by_members_ : reason == Reason::position ? by_position_ : by_messages_);
  }

  EquivalenceClasses finish() const {
    EquivalenceClasses classes;
    classes.by_members = by_members_;
    classes.by_position = by_position_;
    classes.by_messages = by_messages_;
    classes.of_group = groups_.class_of;
    classes.of_npu.resize(graph_.num_npus());
    std::vector<std::uint32_t> number(npus_.sizes.size(), none);
    for (std::uint32_t npu = 0; npu < graph_.num_npus(); ++npu) {
      auto& its = number[npus_.class_of[npu]];
      if (its == none) {
        its = classes.count();
        classes.representatives.push_back(npu);
        classes.sizes.push_back(0);
      }
      classes.of_npu[npu] = its;
      ++classes.sizes[its];
    }
    return classes;
  }

  const SignatureGraph& graph_;
  Refinable npus_, groups_;
  std::vector<char> positions_count_;     // [classes of groups] members are told apart by their positions
  std::vector<std::uint32_t> positions_;  // [members] of groups in which positions count
  std::vector<Reason> reasons_;           // [npus] why it was last looked at again
  std::uint64_t by_members_ = 0, by_position_ = 0, by_messages_ = 0;
};

}  // namespace

EquivalenceClasses refine(const SignatureGraph& graph) { return Refinement(graph).run(); }

}  // namespace orrery::fold
