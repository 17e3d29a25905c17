#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "interner.hpp"
#include "orrery/fold/equivalence.hpp"

namespace orrery::fold {
namespace {

/// NPUs, or groups, in the classes of the moment; some of those of this rank have to be looked at again.
struct Refinable {
  std::vector<std::uint32_t> class_of;  ///< [items] of all ranks
  std::vector<std::uint32_t> sizes;     ///< [classes]
  std::uint32_t first;                  ///< item of this rank
  std::vector<std::uint32_t> pending;   ///< items of this rank to look at again
  std::vector<char> is_pending;         ///< [items of this rank]

  Refinable(std::vector<std::uint32_t> initial, std::uint32_t first_item, std::uint32_t count)
      : class_of(std::move(initial)), first(first_item), is_pending(count, 1) {
    pending.resize(count);
    std::iota(pending.begin(), pending.end(), first);
    for (const auto its : class_of) {
      if (its >= sizes.size()) sizes.resize(its + 1);
      ++sizes[its];
    }
  }
  bool has(std::uint32_t item) const { return item - first < is_pending.size(); }
  /// Returns whether the item was not to be looked at yet.
  bool look_again(std::uint32_t item) {
    if (is_pending[item - first]) return false;
    is_pending[item - first] = 1;
    pending.push_back(item);
    return true;
  }
  /// Returns the items to look at, ascending, and forgets them.
  std::vector<std::uint32_t> take_pending() {
    std::vector<std::uint32_t> taken = std::exchange(pending, {});
    std::ranges::sort(taken);
    for (const auto item : taken) is_pending[item - first] = 0;
    return taken;
  }
};

/// Pending items of one class that have equal signatures now.
struct Fragment {
  std::uint32_t old_class = 0;
  std::uint32_t first = 0;  ///< the item that came first
  std::uint32_t count = 0;
  std::uint32_t note = 0;  ///< note of its rank about the first item
  std::uint32_t new_class = 0;
};

/// The pending items of one kind, sorted into fragments.
class Fragments {
 public:
  /// Adds an item with its signature.
  void add(const Refinable& items, std::uint32_t item, Interner::Words signature, std::uint32_t note) {
    const auto fragment = signatures_.of(signature);
    if (fragment == all.size()) all.push_back({items.class_of[item], item, 0, note, 0});
    ++all[fragment].count;
    of_item.push_back(fragment);
  }
  /// Puts together the fragments of all ranks, in the order of their first items. Collective.
  void share(parallel::Communicator& world) {
    if (world.size() == 1) return;
    std::vector<std::uint32_t> words;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const auto signature = signatures_[i];
      words.insert(words.end(), {all[i].old_class, all[i].first, all[i].count, all[i].note,
                                 static_cast<std::uint32_t>(signature.size())});
      words.insert(words.end(), signature.begin(), signature.end());
    }
    const auto of_all = world.all_gather(std::span<const std::uint32_t>(words));
    std::vector<Fragment> merged;
    Interner numbers;
    for (std::size_t at = 0; at < of_all.size(); at += 5 + of_all[at + 4]) {
      const auto number = numbers.of(Interner::Words(of_all).subspan(at + 5, of_all[at + 4]));
      if (number == merged.size()) merged.push_back({of_all[at], of_all[at + 1], 0, of_all[at + 3], 0});
      merged[number].count += of_all[at + 2];
    }
    for (auto& fragment : of_item) fragment = numbers.of(signatures_[fragment]);
    all = std::move(merged);
    signatures_ = std::move(numbers);
  }
  Interner::Words signature(std::uint32_t fragment) const { return signatures_[fragment]; }

  std::vector<Fragment> all;
  std::vector<std::uint32_t> of_item;  ///< [items of this rank that were added]

 private:
  Interner signatures_;
};

/// What ranks tell each other of items that have to be looked at again.
class Messages {
 public:
  struct Message {
    std::uint32_t item = 0;
    std::uint32_t reason = 0;
  };

  explicit Messages(const Blocks& blocks) : blocks_(blocks) {}

  void put(std::uint32_t item, std::uint32_t reason) {
    const std::size_t rank = blocks_.rank_of(item);
    if (rank >= outgoing_.size()) outgoing_.resize(rank + 1);
    outgoing_[rank].push_back({item, reason});
  }
  /// Calls visit(item, reason) for what others say of the items of this rank. Collective.
  template <class Visit>
  void deliver(parallel::Communicator& world, Visit visit) {
    if (world.size() == 1) return;
    outgoing_.resize(static_cast<std::size_t>(world.size()));
    for (const auto& of_rank : world.exchange(std::exchange(outgoing_, {})))
      for (const auto& [item, reason] : of_rank) visit(item, reason);
  }

 private:
  const Blocks& blocks_;
  std::vector<std::vector<Message>> outgoing_;  // [ranks]
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
    std::uint32_t kept = SignatureGraph::none, most = 0;
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
  Refinement(const SignatureGraph& graph, parallel::Communicator& world)
      : graph_(graph),
        world_(world),
        npus_(graph.signature_of_npu, graph.npu_blocks.first(), graph.npu_blocks.count(graph.num_npus())),
        groups_(std::vector<std::uint32_t>(graph.num_groups(), 0), graph.group_blocks.first(),
                graph.group_blocks.count(graph.num_groups())),
        positions_count_(1, 0),
        positions_(1),
        reasons_(npus_.is_pending.size(), Reason::members),
        of_npus_(graph.npu_blocks),
        of_groups_(graph.group_blocks) {}

  EquivalenceClasses run() {
    for (;;) {
      std::int64_t pending[] = {groups_.pending.empty() ? 0 : 1, npus_.pending.empty() ? 0 : 1};
      world_.maximum(pending);
      const auto [any_groups, any_npus] = pending;
      if (any_groups == 0 && any_npus == 0) return finish();
      if (any_groups != 0) refine_groups();
      refine_npus();
    }
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
    const auto memberships = graph_.memberships_of(npu);
    signature = {npus_.class_of[npu], static_cast<std::uint32_t>(memberships.size())};
    for (const auto& [group, position] : memberships) {
      const auto its_class = groups_.class_of[group];
      signature.push_back(its_class);
      signature.push_back(positions_count_[its_class] ? positions_[its_class][position] : SignatureGraph::none);
    }
    for (const auto& [peer, stream] : graph_.streams_of(npu)) {
      signature.push_back(stream == SignatureGraph::none ? SignatureGraph::none : npus_.class_of[peer]);
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
    if (graph_.positions_among) return graph_.positions_among(group, labels);
    std::iota(labels.begin(), labels.end(), 0U);
    return labels;
  }

  void refine_groups() {
    const auto pending = groups_.take_pending();
    Fragments fragments;
    std::vector<std::uint32_t> signature;
    for (const auto group : pending) {
      const bool count = sign_group(group, signature);
      fragments.add(groups_, group, signature, count ? 1 : 0);
    }
    fragments.share(world_);
    std::vector<std::vector<std::uint32_t>> positions(fragments.all.size());
    std::vector<char> moved(fragments.all.size());  // members have other positions than before
    for (std::uint32_t i = 0; i < fragments.all.size(); ++i) {
      const Fragment& fragment = fragments.all[i];
      if (fragment.note == 0) continue;
      positions[i] = number_positions(fragment.first, fragments.signature(i));
      moved[i] = positions[i] != positions_[fragment.old_class];
    }
    split(
        groups_, fragments.all, [&](std::uint32_t i) { return !moved[i]; },
        [&](std::uint32_t i, std::uint32_t) {
          positions_count_.push_back(fragments.all[i].note != 0);
          positions_.push_back(std::move(positions[i]));
        });
    move(groups_, pending, fragments, [&](std::uint32_t group, std::uint32_t fragment) {
      const auto reason = moved[fragment] ? Reason::position : Reason::members;
      for (const auto& member : graph_.members_of(group)) look_again(member.npu, reason);
    });
    of_npus_.deliver(world_,
                     [&](std::uint32_t npu, std::uint32_t reason) { look_again(npu, static_cast<Reason>(reason)); });
  }

  void refine_npus() {
    const auto pending = npus_.take_pending();
    Fragments fragments;
    fragments.of_item.reserve(pending.size());
    std::vector<std::uint32_t> signature;
    for (const auto npu : pending) {
      sign_npu(npu, signature);
      fragments.add(npus_, npu, signature, static_cast<std::uint32_t>(reasons_[npu - npus_.first]));
    }
    fragments.share(world_);
    split(
        npus_, fragments.all, [](std::uint32_t) { return true; },
        [&](std::uint32_t i, std::uint32_t kept) {
          count(kept == SignatureGraph::none ? static_cast<Reason>(fragments.all[i].note)
                                             : difference(fragments.signature(i), fragments.signature(kept)));
        });
    move(npus_, pending, fragments, [&](std::uint32_t npu, std::uint32_t) {
      for (const auto& membership : graph_.memberships_of(npu)) look_again_at_group(membership.group);
      for (const auto& [peer, stream] : graph_.streams_of(npu))
        if (stream != SignatureGraph::none) look_again(peer, Reason::messages);
    });
    of_groups_.deliver(world_, [&](std::uint32_t group, std::uint32_t) { groups_.look_again(group); });
    of_npus_.deliver(world_,
                     [&](std::uint32_t npu, std::uint32_t reason) { look_again(npu, static_cast<Reason>(reason)); });
  }

  /// Gives the items that were looked at the classes of their fragments, on all ranks. Calls visit(item, fragment) for
  /// each of this rank that has another class than before. Collective.
  template <class Visit>
  void move(Refinable& items, std::span<const std::uint32_t> pending, const Fragments& fragments, Visit visit) {
    std::vector<std::uint32_t> moved;  // item and class in turn
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const auto fragment = fragments.of_item[i];
      const auto next = fragments.all[fragment].new_class;
      if (next == items.class_of[pending[i]]) continue;
      items.class_of[pending[i]] = next;
      if (world_.size() > 1) moved.insert(moved.end(), {pending[i], next});
      visit(pending[i], fragment);
    }
    if (world_.size() == 1) return;
    moved = world_.all_gather(std::span<const std::uint32_t>(moved));
    for (std::size_t i = 0; i < moved.size(); i += 2) items.class_of[moved[i]] = moved[i + 1];
  }

  void look_again(std::uint32_t npu, Reason reason) {
    if (!npus_.has(npu)) return of_npus_.put(npu, static_cast<std::uint32_t>(reason));
    if (npus_.look_again(npu)) reasons_[npu - npus_.first] = reason;
  }
  void look_again_at_group(std::uint32_t group) {
    if (!groups_.has(group)) return of_groups_.put(group, 0);
    groups_.look_again(group);
  }

  /// The first way in which the signatures of two NPUs of one class differ.
  static Reason difference(Interner::Words one, Interner::Words other) {
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
    if (at >= 2 + 2 * std::size_t{one[1]}) return Reason::messages;
    return at % 2 == 0 ? Reason::members : Reason::position;
  }
  void count(Reason reason) {
    ++(reason == Reason::members ? by_members_ : reason == Reason::position ? by_position_ : by_messages_);
  }

  EquivalenceClasses finish() {
    EquivalenceClasses classes;
    classes.by_members = by_members_;
    classes.by_position = by_position_;
    classes.by_messages = by_messages_;
    classes.of_group = std::move(groups_.class_of);
    classes.of_npu = std::move(npus_.class_of);
    std::vector<std::uint32_t> number(npus_.sizes.size(), SignatureGraph::none);
    for (std::uint32_t npu = 0; npu < graph_.num_npus(); ++npu) {
      auto& its = number[classes.of_npu[npu]];
      if (its == SignatureGraph::none) {
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
  parallel::Communicator& world_;
  Refinable npus_, groups_;
  std::vector<char> positions_count_;                  // [classes of groups] members are told apart by their positions
  std::vector<std::vector<std::uint32_t>> positions_;  // [classes of groups][members] where positions count
  std::vector<Reason> reasons_;                        // [NPUs of this rank] why it was last looked at again
  Messages of_npus_, of_groups_;
  std::uint64_t by_members_ = 0, by_position_ = 0, by_messages_ = 0;
};

}  // namespace

EquivalenceClasses refine(const SignatureGraph& graph, parallel::Communicator& world) {
  return Refinement(graph, world).run();
}

EquivalenceClasses refine(const SignatureGraph& graph) {
  const auto alone = parallel::make_serial();
  return refine(graph, *alone);
}

}  // namespace orrery::fold
