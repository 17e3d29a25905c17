// The collective algorithms. To add one, write its class in a file of its own (algorithm.hpp says what a class says)
// and add a declaration and an entry here.
#include "orrery/collective/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "algorithm.hpp"
#include "orrery/base/error.hpp"

namespace orrery::collective {

std::unique_ptr<const SteppedAlgorithm> make_ring(const GroupTask& task);
std::unique_ptr<const SteppedAlgorithm> make_direct(const GroupTask& task);
std::unique_ptr<const SteppedAlgorithm> make_halving_doubling(const GroupTask& task);
std::unique_ptr<const SteppedAlgorithm> make_double_binary_tree(const GroupTask& task);
std::unique_ptr<const SteppedAlgorithm> make_binomial_tree(const GroupTask& task);
std::unique_ptr<const SteppedAlgorithm> make_in_switch(const GroupTask& task);

namespace {

constexpr Kinds reductions_and_gathers{Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter};
constexpr Kinds all_four{Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all};

constexpr AlgorithmEntry registered[] = {
    {.name = "ring",
     .summary = "every position sends to the next one",
     .kinds = all_four,
     .make = make_ring,
     .whole_name = "oneRing",
     .goes_round = true},
    {.name = "direct",
     .summary = "every position sends to all others, with a window to w of them at a time",
     .kinds = all_four,
     .make = make_direct,
     .whole_name = "oneDirect",
     .takes_window = true,
     .goes_round = true,
     .stays_in_subgroups = true},
    {.name = "halvingDoubling",
     .summary = "positions exchange in pairs, at distances that are powers of two",
     .kinds = reductions_and_gathers,
     .make = make_halving_doubling,
     .whole_name = "oneHalvingDoubling",
     .powers_of_two_only = true,
     .stays_in_subgroups = true},
    {.name = "doubleBinaryTree",
     .summary = "chunks go up and down one of two binary trees, even and odd chunks in turn",
     .kinds = {Kind::all_reduce},
     .make = make_double_binary_tree,
     .differs_for_odd_chunks = true},
    {.name = "binomialTree",
     .summary = "chunks go up and down a binomial tree",
     .kinds = {Kind::all_reduce, Kind::broadcast, Kind::reduce},
     .make = make_binomial_tree},
    {.name = "inSwitch",
     .summary = "the switch of the dimension reduces and copies",
     .kinds = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast, Kind::reduce},
     .make = make_in_switch,
     .is_in_switch = true},
};

/// Returns the w of "direct<w>"; 0 if the text is no window.
std::uint32_t parse_window(std::string_view digits) {
  std::uint32_t value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  return error == std::errc() && end == last && !digits.starts_with('0') ? value : 0;
}

}  // namespace

std::span<const AlgorithmEntry> algorithms() { return registered; }

const AlgorithmEntry& entry_of(const Algorithm& algorithm) {
  const auto found = std::ranges::find(registered, algorithm.name, &AlgorithmEntry::name);
  ensure(found != std::end(registered), "an algorithm that the registry does not have");
  return *found;
}

std::optional<Algorithm> find_algorithm(std::string_view name) {
  for (const AlgorithmEntry& entry : registered)
    for (const bool is_whole : {false, true}) {
      const std::string_view known = is_whole ? entry.whole_name : entry.name;
      if (known.empty() || !name.starts_with(known)) continue;
      if (name == known) return Algorithm{entry.name, 0, is_whole};
      const std::uint32_t window = parse_window(name.substr(known.size()));
      if (entry.takes_window && window > 0) return Algorithm{entry.name, window, is_whole};
    }
  return std::nullopt;
}

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const AlgorithmEntry& entry : registered) names.push_back(entry.name);
  for (const AlgorithmEntry& entry : registered)
    if (!entry.whole_name.empty()) names.push_back(entry.whole_name);
  return names;
}

std::string name(const Algorithm& algorithm) {
  const AlgorithmEntry& entry = entry_of(algorithm);
  const bool is_whole = algorithm.whole_communicator && !entry.whole_name.empty();
  const std::string_view word = is_whole ? entry.whole_name : entry.name;
  return algorithm.window > 0 ? fmt::format("{}{}", word, algorithm.window) : std::string(word);
}

std::string scope(const AlgorithmEntry& entry) {
  std::vector<std::string_view> kinds;
  for (int kind = 0; kind <= static_cast<int>(Kind::barrier); ++kind)
    if (entry.kinds.contains(static_cast<Kind>(kind))) kinds.push_back(name(static_cast<Kind>(kind)));
  std::string text = fmt::format("{}", fmt::join(kinds, ", "));
  if (entry.powers_of_two_only) text += "; powers of two";
  if (entry.is_in_switch) text += "; in a Switch that offers operations";
  return text;
}

}  // namespace orrery::collective
