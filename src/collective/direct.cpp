#include <algorithm>

#include "line.hpp"
#include "steps.hpp"

namespace orrery::collective {
namespace {

// In a round every place sends to those at the round's distances behind it, and ends the round when all that are sent
// to it are there:
//
//   next[i] = max over d in first .. last of max(s[i-d] + L(i-d, i), s[i] + D(i-d, i) + L(i-d, i), s[i]) + e + p
//
// (the middle term with rendezvous only). One round has all distances unless a window limits it.

struct Round {
  std::uint32_t first = 1;  ///< distances, both included
  std::uint32_t last = 1;
  Ps cost = 0;  ///< e + p
  Ps stay = 0;  ///< circulant lines: the longest of D + L, 0 without rendezvous
};

std::vector<Round> rounds_of(const PhaseShape& shape, const LineContext& context) {
  const Steps steps(shape, context.axis.size, context.rules);
  std::vector<Round> rounds;
  for (std::uint64_t k = 0; k < steps.count(); ++k) {
    const Step step = steps.at(k);
    rounds.push_back({step.first, step.last, plus(context.endpoint_delay, context.reduction(step.reduced)), 0});
  }
  return rounds;
}

/// Delays that depend on the distance only.
class CirculantDirect final : public LineProgram {
 public:
  CirculantDirect(const LineContext& context, std::vector<Round> rounds, Bytes message)
      : size_(context.axis.size), endpoint_delay_(context.endpoint_delay), rounds_(std::move(rounds)), delays_(size_) {
    std::vector<Ps> words(size_, 0);
    for (std::uint32_t d = 1; d < size_; ++d) {
      if (2 * d > size_) {
        delays_[d] = delays_[size_ - d];
        words[d] = words[size_ - d];
      } else {
        delays_[d] = context.link(0, d, message);
        words[d] = context.rendezvous ? plus(delays_[d], context.control(0, d)) : 0;
      }
    }
    uniform_ = std::all_of(delays_.begin() + 1, delays_.end(), [this](Ps delay) { return delay == delays_[1]; });
    duration_ = endpoint_delay_;
    for (Round& round : rounds_) {
      Ps longest = 0;
      for (std::uint32_t d = round.first; d <= round.last; ++d) {
        round.stay = std::max(round.stay, words[d]);
        longest = std::max(longest, delays_[d]);
      }
      duration_ = plus(duration_, plus(std::max(longest, round.stay), round.cost));
    }
    if (uniform_) delays_.resize(2);
  }

  bool alike() const override { return true; }
  Ps duration(std::uint64_t) const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + delays_.size() * sizeof(Ps) + rounds_.size() * sizeof(Round);
  }

  void run(std::uint64_t, std::span<Ps> times, Scratch& scratch) const override {
    scratch.first.resize(2 * std::size_t{size_});
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* line = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) line[i] += endpoint_delay_;
      for (const Round& round : rounds_) {
        if (uniform_ && round.last - round.first + 2 == size_)
          run_uniform(line, round);
        else
          run_distances(line, round, scratch.first.data());
      }
    }
  }

 private:
  /// All delays alike, all distances in one round: the last of the others is the last of all, for the last the one
  /// before.
  void run_uniform(Ps* line, const Round& round) const {
    std::size_t last = 0;
    Ps second = std::numeric_limits<Ps>::min();
    for (std::size_t i = 1; i < size_; ++i) {
      if (line[i] > line[last]) {
        second = line[last];
        last = i;
      } else {
        second = std::max(second, line[i]);
      }
    }
    const Ps top = line[last];
    for (std::size_t i = 0; i < size_; ++i)
      line[i] = std::max((i == last ? second : top) + delays_[1], line[i] + round.stay) + round.cost;
  }

  void run_distances(Ps* line, const Round& round, Ps* twice) const {
    const std::size_t n = size_;
    std::copy(line, line + n, twice);
    std::copy(line, line + n, twice + n);
    for (std::size_t i = 0; i < n; ++i) line[i] += round.stay;
    for (std::size_t d = round.first; d <= round.last; ++d) {
      const Ps delay = delays_[uniform_ ? 1 : d];
      const Ps* sender = twice + n - d;
      for (std::size_t i = 0; i < n; ++i) line[i] = std::max(line[i], sender[i] + delay);
    }
    for (std::size_t i = 0; i < n; ++i) line[i] += round.cost;
  }

  std::uint32_t size_;
  Ps endpoint_delay_;
  std::vector<Round> rounds_;
  std::vector<Ps> delays_;  ///< by distance; only of distance 1 where all are alike
  bool uniform_ = false;
  Ps duration_ = 0;
};

/// Delay of one message between any two places of a regular line, from one table per dimension by the difference of
/// coordinates.
class PairDelays {
 public:
  PairDelays(const LineContext& context, Bytes message)
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

  /// None is longer. Throws OutOfRange if that does not fit.
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
  Ps operator()(std::uint32_t i, std::uint32_t j) const {
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

/// Delay of one message between any two places of a line whose links differ.
class LinkDelays {
 public:
  LinkDelays(const LineContext& context, Bytes message) : context_(context), message_(message) {
    const std::uint32_t n = context.axis.size;
    if (n > most_kept) return;
    kept_.resize(std::size_t{n} * n);
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t j = 0; j < n; ++j)
        if (i != j) kept_[std::size_t{i} * n + j] = context.link(i, j, message);
  }

  Ps bound() const {
    Ps longest = 0;
    for (std::uint32_t i = 0; i < context_.axis.size; ++i)
      for (std::uint32_t j = 0; j < context_.axis.size; ++j)
        if (i != j) longest = std::max(longest, (*this)(i, j));
    return longest;
  }
  std::size_t memory() const { return kept_.size() * sizeof(Ps); }
  Ps operator()(std::uint32_t i, std::uint32_t j) const {
    return kept_.empty() ? context_.link(i, j, message_) : kept_[std::size_t{i} * context_.axis.size + j];
  }

 private:
  static constexpr std::uint32_t most_kept = 256;  // places; of longer lines delays are computed each time

  LineContext context_;
  Bytes message_;
  std::vector<Ps> kept_;  ///< [from][to]
};

/// Any delays: O(n^2) in all.
template <class Delays>
class GeneralDirect final : public LineProgram {
 public:
  GeneralDirect(const LineContext& context, std::vector<Round> rounds, Bytes message)
      : size_(context.axis.size),
        endpoint_delay_(context.endpoint_delay),
        rounds_(std::move(rounds)),
        delays_(context, message),
        rendezvous_(context.rendezvous),
        words_(context, control_message) {
    const bool one_round = rounds_[0].last - rounds_[0].first + 2 == size_;
    alike_ = context.is_transitive() && one_round;
    Ps longest = plus(delays_.bound(), rendezvous_ ? words_.bound() : 0);
    if (alike_) longest = 0;
    for (std::uint32_t d = 1; alike_ && d < size_; ++d)
      longest = std::max(longest, delays_(0, d) + (rendezvous_ ? words_(d, 0) : 0));
    duration_ = endpoint_delay_;
    for (const Round& round : rounds_) duration_ = plus(duration_, plus(longest, round.cost));
    if (!alike_) duration_ = last_finish(*this, 0, size_);
  }

  bool alike() const override { return alike_; }
  Ps duration(std::uint64_t) const override { return duration_; }

  std::size_t memory() const override { return sizeof(*this) + 2 * delays_.memory() + rounds_.size() * sizeof(Round); }

  void run(std::uint64_t, std::span<Ps> times, Scratch& scratch) const override {
    scratch.first.resize(size_);
    Ps* sends = scratch.first.data();
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* line = times.data() + at;
      for (std::size_t i = 0; i < size_; ++i) line[i] += endpoint_delay_;
      for (const Round& round : rounds_) {
        std::copy(line, line + size_, sends);
        for (std::uint32_t i = 0; i < size_; ++i) line[i] = finish(sends, i, round);
      }
    }
  }

 private:
  Ps finish(const Ps* sends, std::uint32_t i, const Round& round) const {
    Ps latest = sends[i];
    for (std::uint32_t d = round.first; d <= round.last; ++d) {
      const std::uint32_t j = i >= d ? i - d : i + size_ - d;
      const Ps sent = rendezvous_ ? std::max(sends[j], sends[i] + words_(j, i)) : sends[j];
      latest = std::max(latest, sent + delays_(j, i));
    }
    return latest + round.cost;
  }

  std::uint32_t size_;
  Ps endpoint_delay_;
  std::vector<Round> rounds_;
  Delays delays_;
  bool rendezvous_;
  Delays words_;
  bool alike_ = false;
  Ps duration_ = 0;
};

}  // namespace

std::unique_ptr<LineProgram> make_direct(const PhaseShape& shape, const LineContext& given) {
  LineContext context = given;
  const Bytes message = message_size(shape, context.axis.size);
  std::vector<Round> rounds = rounds_of(shape, context);
  if (context.rules.share_bandwidth) context.at_once = rounds[0].last - rounds[0].first + 1;
  if (context.is_circulant()) return std::make_unique<CirculantDirect>(context, std::move(rounds), message);
  if (context.is_regular() && context.hops_follow_distances())
    return std::make_unique<GeneralDirect<PairDelays>>(context, std::move(rounds), message);
  return std::make_unique<GeneralDirect<LinkDelays>>(context, std::move(rounds), message);
}

}  // namespace orrery::collective
