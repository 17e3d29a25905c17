#include "expansion.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "scaled.hpp"

namespace orrery::synthesis {
namespace {

/// A stretch of words.
struct Stretch {
  std::size_t begin = 0, length = 0;
  std::uint32_t micro_batches = 1;  ///< micro-batches that it holds
};

/// Returns the words of a role that are of micro-batches: the index of each, up to where a second pass begins first.
std::vector<ScaledWord> words_of(const Role& role) {
  std::vector<ScaledWord> words;
  std::vector<std::uint32_t> seen(role.tokens.size());
  for (const auto token : role.sequence) words.push_back({token, seen[token]++});
  return words;
}

/// Returns where the sequence of a role falls apart: ends of sections such that no token of a micro-batch is in two of
/// them. The last one is the end of the sequence.
std::vector<std::size_t> sections_of(const Role& role) {
  std::vector<std::size_t> last(role.tokens.size());
  for (std::size_t i = 0; i < role.sequence.size(); ++i) last[role.sequence[i]] = i;
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  bool begun = false;
  for (std::size_t i = 0; i < role.sequence.size(); ++i) {
    const std::uint32_t token = role.sequence[i];
    if (role.tokens[token].per_micro_batch == 0) continue;
    if (begun && i > end) ends.push_back(i);
    begun = true;
    end = std::max(end, last[token]);
  }
  ends.push_back(role.sequence.size());
  return ends;
}

/// Finds the stretch nearest to the middle that holds each of these tokens as often as `micro_batches` micro-batches
/// do.
std::optional<Stretch> find_stretch(const Role& role, std::span<const ScaledWord> words,
                                    const std::set<std::uint32_t>& tokens, std::uint32_t micro_batches) {
  std::size_t length = 0;
  for (const auto token : tokens) length += role.tokens[token].per_micro_batch * micro_batches;
  if (length == 0 || length > words.size()) return {};
  std::vector<std::uint32_t> counts(role.tokens.size());
  std::size_t right = 0;  // tokens that are there as often as they should be
  std::size_t foreign = 0;
  std::optional<Stretch> best;
  const auto middle = static_cast<std::ptrdiff_t>((words.size() - length) / 2);
  const auto change = [&](std::uint32_t token, bool enters) {
    if (!tokens.contains(token)) {
      foreign = enters ? foreign + 1 : foreign - 1;
      return;
    }
    const std::uint32_t should = role.tokens[token].per_micro_batch * micro_batches;
    if (counts[token] == should) --right;
    counts[token] = enters ? counts[token] + 1 : counts[token] - 1;
    if (counts[token] == should) ++right;
  };
  for (std::size_t end = 0; end < words.size(); ++end) {
    change(words[end].token, true);
    if (end >= length) change(words[end - length].token, false);
    if (end + 1 < length || right != tokens.size() || foreign > 0) continue;
    const std::size_t begin = end + 1 - length;
    const auto distance = [&](std::size_t at) { return std::abs(static_cast<std::ptrdiff_t>(at) - middle); };
    if (!best || distance(begin) < distance(best->begin)) best = Stretch{begin, length, micro_batches};
  }
  return best;
}

/// Repeats or leaves out stretches of these tokens. Returns nothing if there is no such stretch.
std::optional<std::vector<ScaledWord>> resize(const Role& role, std::vector<ScaledWord> words,
                                              const std::set<std::uint32_t>& tokens, std::int64_t more) {
  if (tokens.empty()) return words;
  const auto limit = static_cast<std::uint32_t>(std::min<std::size_t>(words.size(), 256));
  for (std::uint32_t step = 1; step <= limit && more != 0; ++step) {
    if (more % step != 0) continue;
    const auto stretch = find_stretch(role, words, tokens, step);
    if (!stretch) continue;
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(stretch->begin);
    if (more < 0) {
      words.erase(begin, begin + static_cast<std::ptrdiff_t>(stretch->length));
      more += step;
      step = 0;
      continue;
    }
    const std::vector<ScaledWord> copy(begin, begin + static_cast<std::ptrdiff_t>(stretch->length));
    std::vector<ScaledWord> copies;
    for (std::int64_t i = 0; i < more / step; ++i) copies.insert(copies.end(), copy.begin(), copy.end());
    words.insert(begin + static_cast<std::ptrdiff_t>(stretch->length), copies.begin(), copies.end());
    more = 0;
  }
  if (more != 0) return {};
  return words;
}

std::set<std::uint32_t> tokens_of(const Role& role, std::span<const ScaledWord> words) {
  std::set<std::uint32_t> tokens;
  for (const ScaledWord& word : words)
    if (role.tokens[word.token].per_micro_batch > 0) tokens.insert(word.token);
  return tokens;
}

/// Makes the nodes of a role from its words.
class Expansion {
 public:
  Expansion(const Role& role, std::int64_t more_layers) : role_(role), first_(role.tokens.size()) {
    for (const Token& token : role.tokens) {
      const std::int64_t count = token.is_layers ? token.count + more_layers : token.count;
      if (count < 1)
        throw Error(ErrorCode::bad_input, {.key = "--layers"},
                    fmt::format("a loop over {} layers would have {}", token.count, count), "more layers");
      counts_.push_back(static_cast<std::uint32_t>(count));
    }
  }

  ScaledProgram make(const std::vector<ScaledWord>& sequence) {
    std::uint32_t length = 0;
    for (const ScaledWord& word : sequence) {
      first_[word.token].push_back(length);
      length += counts_[word.token] * static_cast<std::uint32_t>(role_.tokens[word.token].body.size());
    }
    program_.nodes.reserve(length);
    std::vector<std::uint32_t> seen(role_.tokens.size());
    for (const ScaledWord& word : sequence) add(word, seen[word.token]++);
    return std::move(program_);
  }

 private:
  void add(const ScaledWord& word, std::uint32_t occurrence) {
    const Token& token = role_.tokens[word.token];
    for (std::uint32_t i = 0; i < counts_[word.token]; ++i) {
      const std::uint32_t source = source_of(i, counts_[word.token], token.count);
      for (std::size_t b = 0; b < token.body.size(); ++b) {
        ProgramNode node{.slot = &token.body[b]};
        const auto own = static_cast<std::uint32_t>(program_.nodes.size());
        for (const Edge& edge : role_.edges[token.edges[b][std::size_t{word.source} * token.count + source]]) {
          const auto from = find(edge, token, occurrence, i);
          if (from && *from < own)
            node.dependencies.push_back(*from);
          else
            ++program_.dropped_edges;
        }
        std::ranges::sort(node.dependencies);
        node.dependencies.erase(std::unique(node.dependencies.begin(), node.dependencies.end()),
                                node.dependencies.end());
        if (!token.held.empty())
          for (const HeldTensor& tensor : role_.held[token.held[b][std::size_t{word.source} * token.count + source]])
            if (const auto from = find(tensor.maker, token, occurrence, i); from && *from <= own)
              node.held.push_back({*from, &tensor});
        program_.nodes.push_back(std::move(node));
      }
    }
  }

  /// Returns the number of the source of an edge; nothing if it is not there.
  std::optional<std::uint32_t> find(const Edge& edge, const Token& token, std::uint32_t occurrence,
                                    std::uint32_t iteration) const {
    const Token& source = role_.tokens[edge.token];
    const auto& places = first_[edge.token];
    std::int64_t at = edge.micro_batch;
    if (edge.micro_batches == Edge::Over::relative)
      at = (std::int64_t{occurrence / token.per_micro_batch} + edge.micro_batch) * source.per_micro_batch + edge.part;
    if (edge.micro_batches == Edge::Over::from_end) at = std::ssize(places) - 1 - edge.micro_batch;
    std::int64_t layer = edge.layer;
    const std::int64_t last = std::int64_t{counts_[edge.token]} - 1;
    if (edge.layers == Edge::Over::relative) layer += iteration;
    if (edge.layers == Edge::Over::from_end) layer = last - edge.layer;
    if (edge.layers == Edge::Over::mirrored) layer = last + edge.layer - iteration;
    if (at < 0 || at >= std::ssize(places) || layer < 0 || layer > last) return {};
    return places[static_cast<std::size_t>(at)] +
           static_cast<std::uint32_t>(layer) * static_cast<std::uint32_t>(source.body.size()) + edge.offset;
  }

  const Role& role_;
  std::vector<std::uint32_t> counts_;              // [tokens] iterations
  std::vector<std::vector<std::uint32_t>> first_;  // [tokens, occurrences] number of its first node
  ScaledProgram program_;
};

}  // namespace

bool runs_all_forward(const Model& model) {
  return std::ranges::all_of(model.roles, [](const Role& role) {
    const bool has_any = std::ranges::any_of(role.tokens, [](const Token& token) { return token.per_micro_batch > 0; });
    return !has_any || sections_of(role).size() > 1;
  });
}

std::vector<ScaledWord> scale_sequence(const Role& role, std::uint32_t learned, std::uint32_t micro_batches,
                                       bool all_forward) {
  std::vector<ScaledWord> words = words_of(role);
  const std::int64_t more = std::int64_t{micro_batches} - learned;
  if (more == 0) return words;
  if (learned < 3)
    throw Error(ErrorCode::bad_input, {.key = "--micro-batches"},
                fmt::format("the traces have {} micro-batches, or none that are alike", learned),
                "traces of 3 micro-batches or more");
  if (!all_forward)
    if (auto scaled = resize(role, words, tokens_of(role, words), more)) return *std::move(scaled);
  std::vector<ScaledWord> result;
  std::size_t begin = 0;
  for (const std::size_t end : sections_of(role)) {
    const std::vector<ScaledWord> section(words.begin() + static_cast<std::ptrdiff_t>(begin),
                                          words.begin() + static_cast<std::ptrdiff_t>(end));
    const auto scaled = resize(role, section, tokens_of(role, section), more);
    if (!scaled)
      throw Error(ErrorCode::bad_input, {.key = "--micro-batches"},
                  fmt::format("no stretch of the traces can be repeated to get {} micro-batches {}", std::abs(more),
                              more > 0 ? "more" : "fewer"),
                  "traces with more micro-batches, or a number that differs by a multiple of the pipeline's stages");
    result.insert(result.end(), scaled->begin(), scaled->end());
    begin = end;
  }
  return result;
}

ScaledProgram expand(const Role& role, const std::vector<ScaledWord>& sequence, std::int64_t more_layers) {
  return Expansion(role, more_layers).make(sequence);
}

}  // namespace orrery::synthesis
