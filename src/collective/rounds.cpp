#include "rounds.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::collective {

RoundAlgorithm::RoundAlgorithm(const GroupTask& task, std::vector<Round> rounds)
    : SteppedAlgorithm(task), rounds_(std::move(rounds)) {
  std::uint64_t end = 0;
  for (const Round& round : rounds_) {
    ensure(round.first >= 1 && round.first <= round.last && round.last < task.size,
           "a round has distances in 1 .. n-1");
    ends_.push_back(end += round.count);
  }
}

const Round& RoundAlgorithm::round_of(std::uint64_t step) const {
  std::size_t r = 0;
  if (rounds_.size() > 2)
    r = static_cast<std::size_t>(std::ranges::upper_bound(ends_, step) - ends_.begin());
  else if (step >= ends_[0])
    r = 1;
  return rounds_[r];
}

void RoundAlgorithm::fill(std::uint32_t position, std::uint64_t k, Step& out) const {
  const Round& round = round_of(k);
  const std::uint32_t n = task().size;
  const auto step = static_cast<std::uint32_t>(k);
  out.bytes = round.bytes;
  out.reduced = round.reduced;
  out.num_reductions = round.reduced > Bytes(0) ? 1 : 0;
  for (std::uint32_t d = round.first; d <= round.last; ++d) {
    if (round.by_xor) {
      out.sends.push_back({position ^ d, step});
      out.receives.push_back(position ^ d);
    } else {
      out.sends.push_back({position + d < n ? position + d : position + d - n, step});
      out.receives.push_back(position >= d ? position - d : position + n - d);
    }
  }
}

std::uint32_t RoundAlgorithm::messages_at_once() const {
  std::uint32_t most = 0;
  for (const Round& round : rounds_) most = std::max(most, round.last - round.first + 1);
  return most;
}

std::unique_ptr<GroupEvaluator> RoundAlgorithm::evaluate(const GroupContext& context) const {
  return evaluate_rounds(rounds_, context);
}

/// Messages that together go from every position to each other are counted at once.
void RoundAlgorithm::count_bytes(std::uint64_t chunks, SentBytes& sent) const {
  const std::uint32_t n = task().size;
  struct Distances {
    std::vector<std::uint64_t> messages;  ///< [distance]
  };
  std::map<std::pair<Bytes, bool>, Distances> by_size;
  for (const Round& round : rounds_) {
    std::vector<std::uint64_t>& messages = by_size[{round.bytes, round.by_xor}].messages;
    messages.resize(n, 0);
    for (std::uint32_t d = round.first; d <= round.last; ++d) messages[d] += round.count;
  }
  for (const auto& [what, distances] : by_size) {
    const auto& [bytes, by_xor] = what;
    const std::vector<std::uint64_t>& messages = distances.messages;
    if (!by_xor &&
        std::all_of(messages.begin() + 1, messages.end(), [&](auto count) { return count == messages[1]; })) {
      sent.add_all_pairs(SentBytes::Wide{messages[1]} * chunks, bytes);
      continue;
    }
    for (std::uint32_t d = 1; d < n; ++d)
      for (std::uint32_t i = 0; messages[d] > 0 && i < n; ++i)
        sent.add(i, by_xor ? i ^ d : at(i, d), SentBytes::Wide{messages[d]} * chunks, bytes);
  }
}

/// A message is sent and received in the same step, so that every path passes all steps.
std::uint64_t RoundAlgorithm::fewest_endpoint_delays() const { return num_steps() + 1; }

Symmetry RoundAlgorithm::symmetry() const {
  const auto by_xor = std::ranges::count_if(rounds_, &Round::by_xor);
  return {.rotation = by_xor == 0, .exchange = by_xor == static_cast<std::ptrdiff_t>(rounds_.size())};
}

}  // namespace orrery::collective
