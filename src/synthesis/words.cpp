#include "words.hpp"

#include <algorithm>
#include <map>

namespace orrery::synthesis {
namespace {

/// A loop that stands somewhere in a program.
struct Found {
  std::uint32_t role = 0;
  std::uint32_t count = 0;
  std::uint64_t length = 0;
  bool crosses = false;     ///< messages between roles are in it
  bool is_outer = false;    ///< no loop is around it
  std::uint64_t inner = 0;  ///< symbols of its body, of all iterations, that are in loops
};

bool crosses_in(const Part& part, const std::vector<bool>& crosses) {
  if (!part.is_loop()) return crosses[part.symbol];
  return std::ranges::any_of(*part.body, [&](const Part& inner) { return crosses_in(inner, crosses); });
}

/// Returns the symbols of a loop, of all iterations, that are in loops.
std::uint64_t in_loops(const Part& loop) {
  std::uint64_t sum = 0;
  for (const Part& inner : *loop.body)
    if (inner.is_loop()) sum += std::uint64_t{inner.length} * loop.count;
  return sum;
}

void collect(std::span<const Part> parts, std::uint32_t role, bool is_outer, std::uint64_t times,
             const std::vector<bool>& crosses, std::vector<Found>& out) {
  for (const Part& part : parts) {
    if (!part.is_loop()) continue;
    const Found found{
        role, part.count, part.length * times, crosses_in(part, crosses), is_outer, in_loops(part) * times};
    out.push_back(found);
    collect(*part.body, role, false, times * part.count, crosses, out);
  }
}

/// Says which loops are over micro-batches, from those of all roles.
class Judge {
 public:
  explicit Judge(std::span<const Found> found) {
    for (const Found& loop : found) {
      any_crosses_ |= loop.crosses;
      if (loop.is_outer) outer_ += loop.length;
    }
    // Loops around loops that make up most of them repeat whole passes.
    std::uint64_t nested = 0;
    std::map<std::uint32_t, std::uint32_t> outer_in_role;
    for (const Found& loop : found) {
      if (!loop.is_outer) continue;
      ++outer_in_role[loop.role];
      if (2 * loop.inner >= loop.length) nested += loop.length;
    }
    outer_is_nested_ = 2 * nested >= outer_ && outer_ > 0;
    outer_is_single_ = !outer_in_role.empty() &&
                       std::ranges::all_of(outer_in_role, [](const auto& entry) { return entry.second == 1; });
  }

  bool is_micro_batches(const Part& loop, bool is_outer, const std::vector<bool>& crosses) const {
    if (any_crosses_) return crosses_in(loop, crosses);
    return is_outer && (outer_is_nested_ ? 2 * in_loops(loop) >= loop.length : outer_is_single_);
  }

 private:
  bool any_crosses_ = false, outer_is_nested_ = false, outer_is_single_ = false;
  std::uint64_t outer_ = 0;
};

/// Returns the key with the most weight; 0 if there is none.
std::uint32_t heaviest(const std::map<std::uint32_t, std::uint64_t>& weights) {
  std::uint32_t best = 0;
  std::uint64_t most = 0;
  for (const auto& [key, weight] : weights)
    if (weight > most) {
      best = key;
      most = weight;
    }
  return best;
}

/// Writes a program as words.
class Writer {
 public:
  Writer(const Judge& judge, const std::vector<bool>& crosses, std::uint32_t layers)
      : judge_(judge), crosses_(crosses), layers_(layers) {}

  void write(std::span<const Part> parts, bool is_outer) {
    for (const Part& part : parts) {
      if (!part.is_loop()) {
        word({part.symbol}, 1, false);
        continue;
      }
      if (judge_.is_micro_batches(part, is_outer, crosses_) || !is_over_layers(part)) {
        for (std::uint32_t i = 0; i < part.count; ++i) write(*part.body, false);
        continue;
      }
      std::vector<std::uint32_t> body;
      flatten(*part.body, body);
      most_ = std::max(most_, part.whole);
      word(std::move(body), part.count, true);
    }
  }
  Words take() {
    words_.layers = most_;
    return std::move(words_);
  }

 private:
  /// A stage may have a layer that differs from the others, so that a loop has one less. A body of one node may be
  /// anything that is done a few times, and has to be done for each layer.
  bool is_over_layers(const Part& loop) const {
    const bool is_near = layers_ > 0 && loop.whole + 1 >= layers_ && loop.whole <= layers_ + 1;
    return is_near && (loop.length > loop.count || loop.whole >= layers_);
  }

  void word(std::vector<std::uint32_t> symbols, std::uint32_t count, bool is_layers) {
    const auto length = static_cast<std::uint32_t>(symbols.size()) * count;
    const auto [found, added] =
        numbers_.try_emplace({symbols, count}, static_cast<std::uint32_t>(words_.tokens.size()));
    if (added) words_.tokens.push_back({.symbols = std::move(symbols), .count = count, .is_layers = is_layers});
    words_.tokens[found->second].first.push_back(position_);
    words_.sequence.push_back(found->second);
    position_ += length;
  }

  const Judge& judge_;
  const std::vector<bool>& crosses_;
  std::uint32_t layers_;
  std::uint32_t most_ = 0;  // iterations of a loop over layers
  std::uint32_t position_ = 0;
  Words words_;
  std::map<std::pair<std::vector<std::uint32_t>, std::uint32_t>, std::uint32_t> numbers_;
};

/// Returns the number of layers in the loops of a role: the count of most nodes among loops that are not over
/// micro-batches and stand in no other such loop.
void weigh_layers(std::span<const Part> parts, bool is_outer, std::uint64_t times, const Judge& judge,
                  const std::vector<bool>& crosses, std::map<std::uint32_t, std::uint64_t>& weights) {
  for (const Part& part : parts) {
    if (!part.is_loop()) continue;
    if (judge.is_micro_batches(part, is_outer, crosses))
      weigh_layers(*part.body, false, times * part.count, judge, crosses, weights);
    else
      weights[part.whole] += part.length * times;
  }
}

/// Returns the number of micro-batches: the most frequent count of a word, or one more if other words occur once more,
/// because the last pass may differ.
std::uint32_t count_micro_batches(std::span<const Words> all) {
  std::map<std::uint32_t, std::uint64_t> weights;
  std::uint64_t total = 0;
  for (const Words& words : all)
    for (const Words::Token& token : words.tokens) {
      weights[static_cast<std::uint32_t>(token.first.size())] += words.nodes_of(token);
      total += words.nodes_of(token);
    }
  const std::uint32_t most = heaviest(weights);
  const auto more = weights.find(most + 1);
  return more != weights.end() && 100 * more->second >= total && most > 1 ? most + 1 : std::max(most, 1U);
}

void mark_micro_batches(Words& words, std::uint32_t micro_batches) {
  if (micro_batches < 2) return;
  for (Words::Token& token : words.tokens) {
    const auto count = static_cast<std::uint32_t>(token.first.size());
    const std::uint32_t times = (count + micro_batches / 2) / micro_batches;
    const std::uint32_t whole = times * micro_batches;
    if (count > 1 && times > 0 && count + 1 >= whole && count <= whole + 1) token.per_micro_batch = times;
  }
}

/// Says whether most nodes are of micro-batches: else words that occur as often do so by chance.
bool are_micro_batches(std::span<const Words> all) {
  std::uint64_t total = 0, of_micro_batches = 0;
  for (const Words& words : all)
    for (const Words::Token& token : words.tokens) {
      total += words.nodes_of(token);
      if (token.per_micro_batch > 0) of_micro_batches += words.nodes_of(token);
    }
  return 2 * of_micro_batches > total;
}

}  // namespace

Loops find_words(std::span<const Program> programs, const std::vector<bool>& crosses_roles) {
  std::vector<std::vector<Part>> parts;
  std::vector<Found> found;
  for (const Program& program : programs) {
    parts.push_back(find_loops(program.symbols));
    collect(parts.back(), static_cast<std::uint32_t>(parts.size()), true, 1, crosses_roles, found);
  }
  const Judge judge(found);
  Loops loops;
  for (const auto& of_role : parts) {
    std::map<std::uint32_t, std::uint64_t> weights;
    weigh_layers(of_role, true, 1, judge, crosses_roles, weights);
    Writer writer(judge, crosses_roles, heaviest(weights));
    writer.write(of_role, true);
    loops.words.push_back(writer.take());
  }
  loops.micro_batches = count_micro_batches(loops.words);
  for (Words& words : loops.words) mark_micro_batches(words, loops.micro_batches);
  if (are_micro_batches(loops.words)) return loops;
  loops.micro_batches = 1;
  for (Words& words : loops.words)
    for (Words::Token& token : words.tokens) token.per_micro_batch = 0;
  return loops;
}

}  // namespace orrery::synthesis
