// GOAL schedules as text, as LogGOPSim and ATLAHS take them: the operations of all ranks, each rank in braces.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "line_source.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

enum class Character : std::uint8_t { of_word, blank, hash, slash };

constexpr std::array<Character, 256> characters = [] {
  std::array<Character, 256> of{};
  for (const unsigned char blank : {' ', '\t', '\v', '\f'}) of[blank] = Character::blank;
  of['#'] = Character::hash;
  of['/'] = Character::slash;
  return of;
}();

using Words = std::vector<std::string_view>;

/// Splits a line into the words before its comment, which begins with # or //. Allocates no memory but for `words`.
void split(std::string_view line, Words& words) {
  words.clear();
  const char* at = line.data();
  const char* const end = at + line.size();
  const auto kind = [&] { return characters[static_cast<unsigned char>(*at)]; };
  for (;;) {
    while (at < end && kind() == Character::blank) ++at;
    const char* const first = at;
    bool is_comment = false;
    for (; at < end && kind() != Character::blank; ++at) {
      if (kind() == Character::of_word) continue;
      is_comment = kind() == Character::hash || (end - at > 1 && at[1] == '/');
      if (is_comment) break;
    }
    if (at > first) words.emplace_back(first, static_cast<std::size_t>(at - first));
    if (at == end || is_comment) return;
  }
}

/// An operation of a rank, as its line says.
struct Operation {
  std::uint64_t line = 0;
  std::uint64_t amount = 0;  ///< bytes, or nanoseconds
  std::uint64_t peer = 0;
  std::uint64_t tag = 0;
  std::uint64_t cpu = 0;
  std::uint32_t name = no_name;
  NodeType type = NodeType::comp;
};

/// Reads the operations of one rank after the other. What it keeps of a rank is freed by the next one.
class RankReader {
 public:
  RankReader(LineSource& lines) : lines_(lines) {}

  /// Begins a rank.
  void begin(ParsedTrace& trace) {
    trace_ = &trace;
    operations_.clear();
    dependencies_.clear();
    unknown_.clear();
    num_empty_ = 0;
    ++rank_;
  }

  /// Takes the words of a line between the braces.
  void take(const Words& words) {
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires"))
      return dependencies_.push_back({refer_to(words[0]), refer_to(words[2]), lines_.number(), words[1] == "requires"});
    std::span<const std::string_view> rest(words);
    std::string_view label;
    if (rest.front().ends_with(':')) {
      label = rest.front().substr(0, rest.front().size() - 1);
      rest = rest.subspan(1);
    }
    add(label, rest);
  }

  /// Hands the operations over, after the last line.
  void finish() {
    connect();
    trace_->nodes.reserve(operations_.size());
    trace_->data.reserve(dependencies_.size());
    for (std::uint32_t i = 0; i < operations_.size(); ++i) hand_over(i);
    if (num_empty_ > 0)
      trace_->notices.add("goal-empty-message", "messages of 0 bytes are sent as 1 byte, so that they keep their order",
                          num_empty_);
  }

 private:
  /// A label: its name, or the position of its text in `unknown_`, with `is_unknown` added.
  using Reference = std::uint64_t;
  static constexpr Reference is_unknown = Reference{1} << 32U;

  struct Dependency {
    Reference later, earlier;
    std::uint64_t line;
    bool on_end;
  };
  /// An operation that is over, or has begun, before another one begins.
  struct Required {
    std::uint32_t operation;
    bool on_end;
  };

  [[noreturn]] void fail(std::uint64_t line, std::string_view found, std::string_view expected) const {
    Place place = lines_.place();
    place.line = line;
    throw Error(ErrorCode::bad_input, place, found, expected, "docs/inputs.md describes GOAL.");
  }
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    fail(lines_.number(), found, expected);
  }

  std::uint64_t number(std::string_view word, std::string_view what) const {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size())
      fail(fmt::format("{} is '{}'", what, shown(word)), "a whole number of 0 or more");
    return value;
  }

  void add(std::string_view label, std::span<const std::string_view> words) {
    Operation operation;
    operation.line = lines_.number();
    std::size_t next = 2;
    if (words.size() >= 2 && words[0] == "calc") {
      operation.amount = number(words[1], "the time of calc");
    } else if (words.size() >= 4 &&
               ((words[0] == "send" && words[2] == "to") || (words[0] == "recv" && words[2] == "from"))) {
      operation.type = words[0] == "send" ? NodeType::comm_send : NodeType::comm_recv;
      std::string_view size = words[1];
      if (size.ends_with('b')) size.remove_suffix(1);
      operation.amount = number(size, "the size");
      operation.peer = number(words[3], "the rank");
      next = 4;
    } else {
      fail(fmt::format("found '{}'", shown(words.empty() ? label : words.front())),
           "LABEL: send BYTESb to RANK, recv BYTESb from RANK or calc NANOSECONDS; LABEL requires LABEL; or }");
    }
    for (; next + 1 < words.size(); next += 2) set_option(operation, words[next], words[next + 1]);
    if (next < words.size())
      fail(fmt::format("'{}' has no number", shown(words[next])), "tag, cpu or nic and a number");
    operation.name = trace_->names.intern(label.empty() ? words[0] : label);
    if (!label.empty()) set_label(operation.name, label);
    operations_.push_back(operation);
  }

  void set_option(Operation& operation, std::string_view name, std::string_view value) const {
    if (name == "tag")
      operation.tag = number(value, "the tag");
    else if (name == "cpu")
      operation.cpu = number(value, "the cpu");
    else if (name == "nic")
      number(value, "the nic");  // a rank has the network's links, whichever interface a message names
    else
      fail(fmt::format("found '{}'", shown(name)), "tag, cpu or nic");
  }

  void set_label(std::uint32_t name, std::string_view label) {
    if (name >= labelled_.size()) labelled_.resize(name + name / 2 + 1);
    if (labelled_[name].rank == rank_)
      fail(fmt::format("label '{}' stands twice in this rank", shown(label)), "labels that differ");
    labelled_[name] = {rank_, static_cast<std::uint32_t>(operations_.size())};
  }

  Reference refer_to(std::string_view label) {
    if (const auto name = trace_->names.find(label)) return *name;
    unknown_.emplace_back(label);
    return is_unknown + unknown_.size() - 1;
  }

  std::uint32_t find(Reference label, std::uint64_t line) const {
    const auto name = label < is_unknown ? static_cast<std::uint32_t>(label)
                                         : trace_->names.find(unknown_[label - is_unknown]).value_or(no_name);
    if (name < labelled_.size() && labelled_[name].rank == rank_) return labelled_[name].operation;
    const std::string_view text =
        label < is_unknown ? trace_->names[name] : std::string_view(unknown_[label - is_unknown]);
    fail(line, fmt::format("there is no operation '{}' in this rank", shown(text)), "the label of an operation");
  }

  /// Lists what each operation requires.
  void connect() {
    std::vector<std::pair<std::uint32_t, Required>> found;
    found.reserve(dependencies_.size());
    first_required_.assign(operations_.size() + 1, 0);
    for (const Dependency& dependency : dependencies_) {
      const std::uint32_t later = find(dependency.later, dependency.line);
      found.push_back({later, {find(dependency.earlier, dependency.line), dependency.on_end}});
      ++first_required_[later + 1];
    }
    std::partial_sum(first_required_.begin(), first_required_.end(), first_required_.begin());
    required_.resize(found.size());
    std::vector<std::uint32_t> next(first_required_.begin(), first_required_.end() - 1);
    for (const auto& [later, required] : found) required_[next[later]++] = required;
  }
  std::span<const Required> required_by(std::uint32_t operation) const {
    return std::span(required_).subspan(first_required_[operation],
                                        first_required_[operation + 1] - first_required_[operation]);
  }

  /// Appends the operations that must be over before one begins to the trace's dependencies. An operation that has
  /// begun is one for which those are over for which it waits itself.
  void add_dependencies(std::uint32_t operation) {
    auto& ends = trace_->data;
    const auto before = static_cast<std::ptrdiff_t>(ends.size());
    open_.assign(1, operation);
    last_seen_by_.resize(operations_.size());
    const std::uint64_t seen = std::uint64_t{rank_} << 32U | operation;
    last_seen_by_[operation] = seen;
    while (!open_.empty()) {
      const auto required_here = required_by(open_.back());
      open_.pop_back();
      for (const Required& required : required_here)
        if (required.on_end)
          ends.push_back(required.operation);
        else if (std::exchange(last_seen_by_[required.operation], seen) != seen)
          open_.push_back(required.operation);
    }
    if (static_cast<std::ptrdiff_t>(ends.size()) - before < 2) return;
    std::sort(ends.begin() + before, ends.end());
    ends.erase(std::unique(ends.begin() + before, ends.end()), ends.end());
  }

  void hand_over(std::uint32_t index) {
    const Operation& operation = operations_[index];
    ParsedNode& node = trace_->add_node(operation.line);
    node.id = index;
    node.name = operation.name;
    node.type = static_cast<std::uint32_t>(operation.type);
    add_dependencies(index);
    if (operation.type == NodeType::comp) {
      node.duration = operation.amount;
      // Cpu 0 is the host of the NPU; others run beside it, each as a stream.
      if (operation.cpu == 0)
        node.set(Attribute::is_cpu_op, whole_number(std::uint64_t{1}));
      else
        node.set(Attribute::stream, whole_number(operation.cpu));
      return;
    }
    const bool sends = operation.type == NodeType::comm_send;
    node.set(sends ? Attribute::comm_dst : Attribute::comm_src, whole_number(operation.peer));
    node.set(Attribute::comm_tag, whole_number(operation.tag));
    node.set(Attribute::comm_size, whole_number(std::max<std::uint64_t>(operation.amount, 1)));
    if (operation.amount == 0) ++num_empty_;
  }

  /// The operation with a label, in the rank that had it last.
  struct Labelled {
    std::uint32_t rank = 0;
    std::uint32_t operation = 0;
  };

  LineSource& lines_;
  ParsedTrace* trace_ = nullptr;
  std::uint32_t rank_ = 0;  ///< number of ranks begun
  std::vector<Operation> operations_;
  std::vector<Labelled> labelled_;  ///< operations by the names of their labels
  std::vector<Dependency> dependencies_;
  std::vector<std::string> unknown_;           ///< labels that no operation had when a dependency named them
  std::vector<Required> required_;             ///< requirements by operation
  std::vector<std::uint32_t> first_required_;  ///< [operations + 1] index into required_
  std::vector<std::uint32_t> open_;
  std::vector<std::uint64_t> last_seen_by_;  ///< [operations] rank and operation for which it was met last
  std::uint64_t num_empty_ = 0;
};

/// Reads the file from rank to rank.
class GoalReader {
 public:
  GoalReader(TraceFile& file, TraceSink& sink) : lines_(file), sink_(sink), rank_reader_(lines_) { lines_.set_npu({}); }

  void read() {
    const std::uint64_t num_ranks = read_header();
    std::vector<bool> seen(num_ranks);
    while (const auto rank = next_rank(num_ranks)) {
      seen[*rank] = true;
      read_rank(*rank);
    }
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end())
      fail(fmt::format("the file says {}, but rank {} is missing", counted(num_ranks, "rank"), missing - seen.begin()),
           "rank N { ... } for each");
  }

 private:
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, lines_.place(), found, expected, "docs/inputs.md describes GOAL.");
  }

  /// Takes the words of the next line that is not empty; none at the end of the file.
  void next_words() {
    words_.clear();
    while (words_.empty()) {
      const auto line = lines_.next();
      if (!line) return;
      split(*line, words_);
    }
  }

  std::uint64_t number(std::string_view word, std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size() || value > most)
      fail(fmt::format("found '{}'", shown(word)), fmt::format("a number from 0 to {}", most));
    return value;
  }

  std::uint64_t read_header() {
    next_words();
    if (words_.size() != 2 || words_[0] != "num_ranks") fail("the file does not begin so", "num_ranks N");
    const std::uint64_t num_ranks = number(words_[1], 1U << 24U);
    if (num_ranks == 0) fail("the schedule has no rank", "num_ranks N, with 1 or more");
    return num_ranks;
  }

  std::optional<std::uint32_t> next_rank(std::uint64_t num_ranks) {
    next_words();
    if (words_.empty()) return {};
    if (words_.size() == 2 && words_[1].ends_with('{')) {
      words_[1].remove_suffix(1);
      words_.emplace_back("{");
    }
    if (words_.size() != 3 || words_[0] != "rank" || words_[2] != "{")
      fail(fmt::format("found '{}'", shown(words_[0])), "rank N {");
    return static_cast<std::uint32_t>(number(words_[1], num_ranks == 0 ? 0 : num_ranks - 1));
  }

  void read_rank(std::uint32_t rank) {
    const std::uint64_t first = lines_.number();
    lines_.set_npu(rank);
    ParsedTrace* const trace = sink_.begin(NpuId(rank));
    if (trace != nullptr) {
      trace->position_unit = PositionUnit::line;
      trace->duration_unit = DurationUnit{1000, "nanosecond"};
      rank_reader_.begin(*trace);
    }
    while (const auto line = lines_.next()) {
      if (trace == nullptr && line->find('}') == std::string_view::npos) continue;
      split(*line, words_);
      if (words_.size() == 1 && words_[0] == "}") {
        if (trace != nullptr) rank_reader_.finish();
        lines_.set_npu({});
        return;
      }
      if (trace != nullptr && !words_.empty()) rank_reader_.take(words_);
    }
    fail(fmt::format("the file ends within rank {}, which began in line {}", rank, first), "}");
  }

  LineSource lines_;
  TraceSink& sink_;
  RankReader rank_reader_;
  Words words_;  ///< words of the line at hand
};

bool recognises_goal(std::string_view beginning) {
  Words words;
  while (!beginning.empty()) {
    const auto end = std::min(beginning.find('\n'), beginning.size());
    std::string_view line = beginning.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    split(line, words);
    if (!words.empty()) return words.front() == "num_ranks";
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
  }
  return false;
}

void read_goal(TraceFile& file, TraceSink& sink) { GoalReader(file, sink).read(); }

}  // namespace

extern constinit const Reader goal_reader{
    .name = "goal",
    .help = "GOAL schedule as text (LogGOPSim, ATLAHS): sends, receives and computations of all ranks, one file",
    .recognises = recognises_goal,
    .read = read_goal,
};

}  // namespace orrery::trace
