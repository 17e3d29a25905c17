// Evaluates algorithms in rounds. In a step every position sends to those at the distances d of the round, and ends the
// step when all messages that are sent to it have been delivered:
//
//   next[i] = max over d of max(s[j] + L(j, i), s[i] + D(j, i) + L(j, i), s[i]) + e + p        j sends to i over d
//
// The middle term is there with rendezvous only: D is the delay of the clear to send. p is the reduction.
#include <algorithm>
#include <tuple>
#include <utility>

#include "evaluation.hpp"
#include "link_loads.hpp"
#include "rounds.hpp"

namespace orrery::collective {
namespace {

/// A round, and the context in which its messages share links.
struct ChargedRound {
  const Round& round;
  GroupContext context;

  bool meets_alike() const { return context.loads == nullptr || context.loads->is_uniform(); }
};

/// Counts the messages on links, once for all rounds over the same distances.
std::vector<ChargedRound> charge(std::span<const Round> rounds, const GroupContext& context) {
  std::vector<ChargedRound> charged;
  const bool may_share = may_share_links(context);
  for (const Round& round : rounds) {
    const auto known = std::ranges::find_if(charged, [&](const ChargedRound& other) {
      return !may_share || std::tie(other.round.first, other.round.last, other.round.by_xor) ==
                               std::tie(round.first, round.last, round.by_xor);
    });
    charged.push_back({round, known == charged.end() ? with_loads(context, round) : known->context});
  }
  return charged;
}

/// What the delays of the messages of a round depend on: their size, and where they share links the distances that they
/// go.
struct MessageKind {
  MessageKind(const Round& round, bool shares_links)
      : bytes(round.bytes),
        first(shares_links ? round.first : 0),
        last(shares_links ? round.last : 0),
        by_xor(shares_links && round.by_xor) {}

  Bytes bytes;
  std::uint32_t first, last;
  bool by_xor;

  friend bool operator==(const MessageKind&, const MessageKind&) = default;
};

/// Steps in which positions exchange in pairs, i with i xor d.
class ExchangeRounds final : public GroupEvaluator {
 public:
  ExchangeRounds(std::span<const ChargedRound> rounds, const GroupContext& context)
      : size_(context.axis.size),
        endpoint_delay_(context.endpoint_delay),
        uniform_(context.is_transitive() && std::ranges::all_of(rounds, &ChargedRound::meets_alike)) {
    for (const ChargedRound& round : rounds) exchanges_.push_back(make_exchange(round.round, round.context));
    duration_ = endpoint_delay_;
    for (const Exchange& exchange : exchanges_) {
      const Ps longest = std::max(*std::ranges::max_element(exchange.link), *std::ranges::max_element(exchange.stay));
      duration_ = plus(duration_, times(plus(longest, exchange.cost), exchange.count));
    }
    if (uniform_) return;
    const std::vector<Ps> finishes = finishes_from_zero(*this, size_);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + exchanges_.size() * (sizeof(Exchange) + 2 * exchanges_[0].link.size() * sizeof(Ps));
  }

  void run(std::span<Ps> times, Scratch&) const override {
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* group = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) group[i] += endpoint_delay_;
      for (const Exchange& exchange : exchanges_)
        for (std::uint64_t k = 0; k < exchange.count; ++k) {
          if (uniform_)  // in local variables, because stores to `group` do not change these
            run_exchange(
                group, exchange, [link = exchange.link[0]](std::size_t) { return link; },
                [stay = exchange.stay[0]](std::size_t) { return stay; });
          else
            run_exchange(
                group, exchange, [&](std::size_t i) { return exchange.link[i]; },
                [&](std::size_t i) { return exchange.stay[i]; });
        }
    }
  }

 private:
  struct Exchange {
    std::uint64_t count = 1;
    std::uint32_t distance = 1;  ///< a power of two
    Ps cost = 0;                 ///< e + p
    std::vector<Ps> link;        ///< L by the sender; one value if all are alike
    std::vector<Ps> stay;        ///< D + L in the same way; 0 without rendezvous
  };

  Exchange make_exchange(const Round& round, const GroupContext& context) const {
    Exchange exchange{round.count, round.first, plus(context.endpoint_delay, context.reduction(round.reduced)), {}, {}};
    const std::uint32_t num_positions = uniform_ ? 1 : context.axis.size;
    for (std::uint32_t i = 0; i < num_positions; ++i) {
      const std::uint32_t partner = i ^ round.first;
      exchange.link.push_back(context.link(i, partner, round.bytes));
      exchange.stay.push_back(context.rendezvous ? plus(exchange.link.back(), context.clear_to_send(i, partner)) : 0);
    }
    return exchange;
  }

  template <class Link, class Stay>
  void run_exchange(Ps* group, const Exchange& exchange, Link link_of, Stay stay_of) const {
    const std::size_t size = size_, distance = exchange.distance;
    const Ps cost = exchange.cost;
    for (std::size_t block = 0; block < size; block += 2 * distance) {
      for (std::size_t i = block; i < block + distance; ++i) {
        const std::size_t j = i + distance;
        const Ps low = group[i], high = group[j];
        group[i] = std::max(high + link_of(j), low + stay_of(j)) + cost;
        group[j] = std::max(low + link_of(i), high + stay_of(i)) + cost;
      }
    }
  }

  std::uint32_t size_;
  Ps endpoint_delay_;
  bool uniform_;
  bool finishes_together_ = true;
  std::vector<Exchange> exchanges_;
  Ps duration_ = 0;
};

/// A round among delays that depend on the distance only.
struct CirculantRound {
  std::uint64_t count = 1;
  std::uint32_t first = 1, last = 1;
  std::uint32_t message = 0;  ///< index of the kind of its messages
  Ps cost = 0;                ///< e + p
  Ps stay = 0;                ///< the longest of D + L; 0 without rendezvous
};

/// Delays between positions depend on (i - j) mod n only.
class CirculantRounds final : public GroupEvaluator {
 public:
  CirculantRounds(std::span<const ChargedRound> rounds, const GroupContext& context)
      : size_(context.axis.size), endpoint_delay_(context.endpoint_delay) {
    std::vector<MessageKind> kinds;
    std::vector<std::vector<Ps>> stays;
    for (const auto& [round, charged] : rounds) {
      const MessageKind kind(round, may_share_links(context));
      const auto known = std::ranges::find(kinds, kind);
      const auto message = static_cast<std::uint32_t>(known - kinds.begin());
      if (known == kinds.end()) {
        kinds.push_back(kind);
        add_message(round.bytes, charged, stays);
      }
      rounds_.push_back({round.count, round.first, round.last, message,
                         plus(context.endpoint_delay, context.reduction(round.reduced)), 0});
    }
    duration_ = endpoint_delay_;
    for (CirculantRound& round : rounds_) {
      Ps longest = 0;
      for (std::uint32_t d = round.first; d <= round.last; ++d) {
        round.stay = std::max(round.stay, stays[round.message][d]);
        longest = std::max(longest, messages_[round.message].delays[d]);
      }
      duration_ = plus(duration_, times(plus(std::max(longest, round.stay), round.cost), round.count));
    }
    for (Message& message : messages_)
      if (message.is_uniform) message.delays.resize(2);
  }

  bool finishes_together() const override { return true; }
  Ps duration() const override { return duration_; }

  std::size_t memory() const override {
    std::size_t bytes = sizeof(*this) + rounds_.size() * sizeof(CirculantRound);
    for (const Message& message : messages_) bytes += sizeof(message) + message.delays.size() * sizeof(Ps);
    return bytes;
  }

  void run(std::span<Ps> times, Scratch& scratch) const override {
    scratch.first.resize(2 * std::size_t{size_});
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* group = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) group[i] += endpoint_delay_;
      for (const CirculantRound& round : rounds_)
        for (std::uint64_t k = 0; k < round.count; ++k) {
          if (messages_[round.message].is_uniform && round.last - round.first + 2 == size_)
            run_uniform(group, round);
          else
            run_distances(group, round, scratch.first.data());
        }
    }
  }

 private:
  struct Message {
    std::vector<Ps> delays;  ///< [distance] of all distances, or of distance 1 where all are alike
    bool is_uniform = false;
  };

  void add_message(Bytes bytes, const GroupContext& context, std::vector<std::vector<Ps>>& stays) {
    Message message{std::vector<Ps>(size_)};
    std::vector<Ps> stay(size_, 0);
    for (std::uint32_t d = 1; d < size_; ++d) {
      if (2 * d > size_ && context.loads == nullptr) {
        message.delays[d] = message.delays[size_ - d];
        stay[d] = stay[size_ - d];
      } else {
        message.delays[d] = context.link(0, d, bytes);
        stay[d] = context.rendezvous ? plus(message.delays[d], context.clear_to_send(0, d)) : 0;
      }
    }
    message.is_uniform = std::all_of(message.delays.begin() + 1, message.delays.end(),
                                     [&](Ps delay) { return delay == message.delays[1]; });
    messages_.push_back(std::move(message));
    stays.push_back(std::move(stay));
  }

  /// All delays are alike and all distances are in one round. So a position waits for the last of all positions; the
  /// last one waits for the one before it.
  void run_uniform(Ps* group, const CirculantRound& round) const {
    std::size_t last = 0;
    Ps second = std::numeric_limits<Ps>::min();
    for (std::size_t i = 1; i < size_; ++i) {
      if (group[i] > group[last]) {
        second = group[last];
        last = i;
      } else {
        second = std::max(second, group[i]);
      }
    }
    const Ps top = group[last];
    const Ps delay = messages_[round.message].delays[1];
    for (std::size_t i = 0; i < size_; ++i)
      group[i] = std::max((i == last ? second : top) + delay, group[i] + round.stay) + round.cost;
  }

  void run_distances(Ps* group, const CirculantRound& round, Ps* twice) const {
    const std::size_t n = size_;
    const Message& message = messages_[round.message];
    std::copy(group, group + n, twice);
    std::copy(group, group + n, twice + n);
    for (std::size_t i = 0; i < n; ++i) group[i] += round.stay;
    for (std::size_t d = round.first; d <= round.last; ++d) {
      const Ps delay = message.delays[message.is_uniform ? 1 : d];
      const Ps* sender = twice + n - d;
      for (std::size_t i = 0; i < n; ++i) group[i] = std::max(group[i], sender[i] + delay);
    }
    for (std::size_t i = 0; i < n; ++i) group[i] += round.cost;
  }

  std::uint32_t size_;
  Ps endpoint_delay_;
  std::vector<CirculantRound> rounds_;
  std::vector<Message> messages_;  ///< one for each kind of messages
  Ps duration_ = 0;
};

/// The delay of one message between any two positions of a regular group, from one table per dimension by the
/// difference of coordinates.
class RegularDelays {
 public:
  static constexpr bool is_of_round = false;  ///< messages of other rounds have these delays too

  RegularDelays(const GroupContext& context, Bytes message, const Round&)
      : axis_(context.axis), every_dimension_(context.delays.rules().charge_every_dimension) {
    for (std::size_t k = 0; k < axis_.dimensions.size(); ++k) {
      const auto begin = axis_.coordinates.begin() + static_cast<std::ptrdiff_t>(k * axis_.size);
      const std::uint32_t widest = *std::max_element(begin, begin + axis_.size);
      std::vector<Ps> table(widest + 1, 0);
      for (std::uint32_t difference = 1; difference <= widest; ++difference)
        table[difference] = context.hop_delay(k, difference, message);
      tables_.push_back(std::move(table));
    }
  }

  /// Returns a time that no delay exceeds. Throws OutOfRange if it does not fit.
  Ps bound() const {
    Ps total = 0;
    for (const std::vector<Ps>& table : tables_) {
      const Ps longest = *std::ranges::max_element(table);
      total = every_dimension_ ? plus(total, longest) : std::max(total, longest);
    }
    return total;
  }
  std::size_t memory() const {
    std::size_t entries = 0;
    for (const std::vector<Ps>& table : tables_) entries += table.size();
    return entries * sizeof(Ps);
  }
  Ps operator()(std::uint32_t i, std::uint32_t j, std::uint32_t) const {
    Ps total = 0;
    for (std::size_t k = 0; k < tables_.size(); ++k) {
      const std::uint32_t a = axis_.coordinate(k, i);
      const std::uint32_t b = axis_.coordinate(k, j);
      if (a == b) continue;
      total += tables_[k][a > b ? a - b : b - a];
      if (!every_dimension_) break;
    }
    return total;
  }

 private:
  const Axis& axis_;
  bool every_dimension_;
  std::vector<std::vector<Ps>> tables_;
};

/// The delays of the messages of a round in a group whose links differ, or whose messages share links.
class IrregularDelays {
 public:
  static constexpr bool is_of_round = true;

  /// `round`: over whose distances messages go.
  IrregularDelays(const GroupContext& context, Bytes message, const Round& round)
      : context_(context), message_(message), first_(round.first), width_(round.last - round.first + 1) {
    const std::uint32_t n = context.axis.size;
    if (n > most_kept) return;
    kept_.resize(std::size_t{n} * width_);
    for (std::uint32_t from = 0; from < n; ++from)
      for (std::uint32_t d = round.first; d <= round.last; ++d)
        kept_[std::size_t{from} * width_ + d - first_] =
            context.link(from, round.by_xor ? from ^ d : (from + d) % n, message);
  }

  Ps bound() const {
    if (!kept_.empty()) return std::ranges::max(kept_);
    Ps longest = 0;
    for (std::uint32_t i = 0; i < context_.axis.size; ++i)
      for (std::uint32_t j = 0; j < context_.axis.size; ++j)
        if (i != j) longest = std::max(longest, context_.link(i, j, message_));
    return longest;
  }
  std::size_t memory() const { return kept_.size() * sizeof(Ps); }
  Ps operator()(std::uint32_t from, std::uint32_t to, std::uint32_t distance) const {
    return kept_.empty() ? context_.link(from, to, message_) : kept_[std::size_t{from} * width_ + distance - first_];
  }

 private:
  static constexpr std::uint32_t most_kept = 256;  // positions; delays of larger groups are computed each time

  GroupContext context_;
  Bytes message_;
  std::uint32_t first_, width_;  ///< distances
  std::vector<Ps> kept_;         ///< [from][distances]
};

/// Any rounds and any delays: O(n * messages of a position) for each round.
template <class Delays>
class GeneralRounds final : public GroupEvaluator {
 public:
  GeneralRounds(std::span<const ChargedRound> rounds, const GroupContext& context)
      : size_(context.axis.size), endpoint_delay_(context.endpoint_delay), rendezvous_(context.rendezvous) {
    std::vector<MessageKind> kinds;
    bool to_all = true;
    for (const auto& [round, charged] : rounds) {
      const MessageKind kind(round, Delays::is_of_round || may_share_links(context));
      const auto known = std::ranges::find(kinds, kind);
      rounds_.push_back({round.count, round.first, round.last, round.by_xor,
                         static_cast<std::size_t>(known - kinds.begin()),
                         plus(context.endpoint_delay, context.reduction(round.reduced))});
      to_all = to_all && round.last - round.first + 2 == size_;
      if (known != kinds.end()) continue;
      kinds.push_back(kind);
      delays_.emplace_back(charged, round.bytes, round);
      if (rendezvous_) clears_.emplace_back(charged, clear_to_send_bytes, round);
    }
    set_duration(context.is_transitive() && to_all);
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }

  std::size_t memory() const override {
    std::size_t bytes = sizeof(*this) + rounds_.size() * sizeof(GeneralRound);
    for (const Delays& delays : delays_) bytes += delays.memory();
    for (const Delays& delays : clears_) bytes += delays.memory();
    return bytes;
  }

  void run(std::span<Ps> times, Scratch& scratch) const override {
    scratch.first.resize(size_);
    Ps* starts = scratch.first.data();
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* group = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) group[i] += endpoint_delay_;
      for (const GeneralRound& round : rounds_)
        for (std::uint64_t k = 0; k < round.count; ++k) {
          std::copy(group, group + size_, starts);
          for (std::uint32_t i = 0; i < size_; ++i) group[i] = finish(starts, i, round);
        }
    }
  }

 private:
  struct GeneralRound {
    std::uint64_t count = 1;
    std::uint32_t first = 1, last = 1;
    bool by_xor = false;
    std::size_t message = 0;  ///< index of the kind of its messages
    Ps cost = 0;              ///< e + p
  };

  /// `alike`: every position sends to all others in every round, over the same set of delays.
  void set_duration(bool alike) {
    duration_ = endpoint_delay_;
    for (const GeneralRound& round : rounds_) {
      const Delays& delays = delays_[round.message];
      Ps longest = plus(delays.bound(), rendezvous_ ? clears_[round.message].bound() : 0);
      if (alike) longest = 0;
      for (std::uint32_t d = 1; alike && d < size_; ++d)
        longest = std::max(longest, delays(0, d, d) + (rendezvous_ ? clears_[round.message](0, d, d) : 0));
      duration_ = plus(duration_, times(plus(longest, round.cost), round.count));
    }
    finishes_together_ = alike;
    if (alike) return;
    const std::vector<Ps> finishes = finishes_from_zero(*this, size_);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  Ps finish(const Ps* starts, std::uint32_t i, const GeneralRound& round) const {
    const Delays& delays = delays_[round.message];
    Ps latest = starts[i];
    for (std::uint32_t d = round.first; d <= round.last; ++d) {
      const std::uint32_t j = round.by_xor ? i ^ d : i >= d ? i - d : i + size_ - d;
      const Ps sent = rendezvous_ ? std::max(starts[j], starts[i] + clears_[round.message](j, i, d)) : starts[j];
      latest = std::max(latest, sent + delays(j, i, d));
    }
    return latest + round.cost;
  }

  std::uint32_t size_;
  Ps endpoint_delay_;
  std::vector<GeneralRound> rounds_;
  std::vector<Delays> delays_;  ///< one for each kind of messages
  std::vector<Delays> clears_;  ///< with rendezvous: of the clears to send for these
  bool rendezvous_;
  bool finishes_together_ = false;
  Ps duration_ = 0;
};

bool exchanges_in_pairs(const Round& round) {
  return round.by_xor && round.first == round.last && (round.first & (round.first - 1)) == 0;
}

}  // namespace

std::unique_ptr<GroupEvaluator> evaluate_rounds(std::span<const Round> rounds, const GroupContext& given) {
  GroupContext context = given;
  std::uint32_t at_once = 1;
  for (const Round& round : rounds) at_once = std::max(at_once, round.last - round.first + 1);
  if (context.rules.share_bandwidth) context.at_once = at_once;
  const std::vector<ChargedRound> charged = charge(rounds, context);
  const bool meet_alike = std::ranges::all_of(charged, &ChargedRound::meets_alike);
  if (std::ranges::all_of(rounds, exchanges_in_pairs)) return std::make_unique<ExchangeRounds>(charged, context);
  if (context.is_circulant() && std::ranges::none_of(rounds, &Round::by_xor) &&
      (meet_alike || context.is_evenly_spaced()))
    return std::make_unique<CirculantRounds>(charged, context);
  if (context.is_regular() && context.hops_follow_distances() && meet_alike)
    return std::make_unique<GeneralRounds<RegularDelays>>(charged, context);
  return std::make_unique<GeneralRounds<IrregularDelays>>(charged, context);
}

}  // namespace orrery::collective
