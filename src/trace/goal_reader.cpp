#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "line_reader.hpp"
#include "orrery/base/text.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

constexpr std::uint64_t most_ranks = std::uint64_t{1} << 24;

enum class Verb : std::uint8_t { send, receive, compute };

struct Operation {
  Verb verb = Verb::compute;
  std::uint64_t amount = 0;  ///< bytes, or ns
  std::uint64_t peer = 0;
  std::uint64_t tag = 0;
  std::uint64_t cpu = 0;
  std::uint64_t line = 0;
  std::string label;
  std::vector<std::size_t> after;         ///< operations that must have ended
  std::vector<std::size_t> after_starts;  ///< operations that must have started
};

/// Reads a schedule in GOAL: `num_ranks N`, and for each rank a block of operations and of lines that order them.
class GoalReader {
 public:
  GoalReader(TraceFile& file, TraceSink& sink) : lines_(file), sink_(sink) {}

  void read();

 private:
  bool next_line();
  void strip_comments();
  bool begin_rank();
  void read_block();
  void read_statement();
  Operation read_operation(std::size_t first) const;
  void read_options(std::size_t at, Operation& operation) const;
  std::size_t labelled(std::string_view label) const;
  void write_rank(ParsedTrace& trace);
  void write_operation(const Operation& operation, bool names_cpu, ParsedTrace& trace);
  std::vector<std::uint64_t> dependencies_of(std::size_t operation) const;
  std::uint64_t number(std::string_view word, std::string_view what) const;
  [[noreturn]] void fail(std::string_view expected) const {
    lines_.fail(fmt::format("found '{}'", shown(trimmed(lines_.line()))), expected);
  }

  LineReader lines_;
  TraceSink& sink_;
  bool in_comment_ = false;
  std::string text_;  ///< the line without comments
  std::vector<std::string_view> words_;
  std::uint64_t num_ranks_ = 0;
  std::vector<bool> has_block_;
  std::uint64_t rank_ = 0;
  std::vector<Operation> operations_;
  std::map<std::string, std::size_t, std::less<>> labels_;
  std::vector<std::pair<std::uint64_t, std::vector<std::string>>> orders_;  ///< line, (later, verb, earlier)
};

std::uint64_t GoalReader::number(std::string_view word, std::string_view what) const {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc{} || end != word.data() + word.size())
    lines_.fail(fmt::format("{} is '{}'", what, shown(word)), "a whole number of 0 or more");
  return value;
}

/// Takes out what follows # or //, and what stands between /* and */, perhaps over several lines.
void GoalReader::strip_comments() {
  const std::string_view line = lines_.line();
  for (std::size_t at = 0; at < line.size(); ++at) {
    const std::string_view two = line.substr(at, 2);
    if (in_comment_) {
      if (two == "*/") in_comment_ = false, ++at;
      continue;
    }
    if (line[at] == '#' || two == "//") return;
    if (two == "/*") {
      in_comment_ = true;
      text_ += ' ';
      ++at;
    } else if (line[at] == '{' || line[at] == '}') {
      text_ += fmt::format(" {} ", line[at]);
    } else {
      text_ += line[at];
    }
  }
}

/// Goes to the next line with words.
bool GoalReader::next_line() {
  while (lines_.next()) {
    text_.clear();
    strip_comments();
    words_ = words_of(text_);
    if (!words_.empty()) return true;
  }
  return false;
}

/// Reads "rank R {", of which the bracket may stand on the next line. Returns false at the end of the file.
bool GoalReader::begin_rank() {
  if (!next_line()) return false;
  const bool is_whole = words_.size() == 3 && words_[2] == "{";
  if (words_[0] != "rank" || (words_.size() != 2 && !is_whole)) fail("rank NUMBER {");
  rank_ = number(words_[1], "the rank");
  if (rank_ >= num_ranks_)
    lines_.fail(fmt::format("rank {}", rank_), fmt::format("0 to {} (num_ranks is {})", num_ranks_ - 1, num_ranks_));
  if (!is_whole && (!next_line() || words_.size() != 1 || words_[0] != "{")) fail("{ after the rank");
  return true;
}

void GoalReader::read_options(std::size_t at, Operation& operation) const {
  for (; at < words_.size(); at += 2) {
    const std::string_view key = words_[at];
    if ((key != "tag" && key != "cpu" && key != "nic") || at + 1 == words_.size())
      fail("tag, cpu or nic with a number, or the end of the line");
    const std::uint64_t value = number(words_[at + 1], key);
    if (key == "tag") operation.tag = value;
    if (key == "cpu") operation.cpu = value;
  }
}

Operation GoalReader::read_operation(std::size_t first) const {
  constexpr std::string_view expected =
      "send BYTESb to RANK, recv BYTESb from RANK or calc NS, each perhaps with a label and :; A requires B; or "
      "A irequires B";
  Operation operation;
  operation.line = lines_.number();
  if (first + 1 >= words_.size()) fail(expected);
  const std::string_view verb = words_[first];
  std::string_view amount = words_[first + 1];
  if (verb == "calc") {
    operation.amount = number(amount, "the time of calc");
    read_options(first + 2, operation);
    return operation;
  }
  const bool sends = verb == "send";
  if ((!sends && verb != "recv") || first + 3 >= words_.size() || words_[first + 2] != (sends ? "to" : "from"))
    fail(expected);
  operation.verb = sends ? Verb::send : Verb::receive;
  if (amount.ends_with('b')) amount.remove_suffix(1);
  operation.amount = number(amount, "the size of the message");
  operation.peer = number(words_[first + 3], "the other rank");
  if (operation.peer >= num_ranks_)
    lines_.fail(fmt::format("the other rank is {}", operation.peer),
                fmt::format("0 to {} (num_ranks is {})", num_ranks_ - 1, num_ranks_));
  read_options(first + 4, operation);
  return operation;
}

void GoalReader::read_statement() {
  if (words_.size() == 3 && (words_[1] == "requires" || words_[1] == "irequires")) {
    orders_.push_back({lines_.number(), {words_.begin(), words_.end()}});
    return;
  }
  const bool has_label = words_[0].ends_with(':');
  Operation operation = read_operation(has_label ? 1 : 0);
  if (has_label) {
    operation.label = words_[0].substr(0, words_[0].size() - 1);
    if (!labels_.try_emplace(operation.label, operations_.size()).second)
      lines_.fail(fmt::format("label '{}' for the second time in this rank", shown(operation.label)),
                  "another label for each operation");
  }
  operations_.push_back(std::move(operation));
}

std::size_t GoalReader::labelled(std::string_view label) const {
  const auto found = labels_.find(label);
  if (found == labels_.end())
    lines_.fail(fmt::format("no operation of rank {} has the label '{}'", rank_, shown(label)), "a label of this rank");
  return found->second;
}

void GoalReader::read_block() {
  operations_.clear();
  labels_.clear();
  orders_.clear();
  for (;;) {
    if (!next_line()) lines_.fail(fmt::format("the file ends within rank {}", rank_), "}");
    if (words_.size() == 1 && words_[0] == "}") break;
    read_statement();
  }
  for (const auto& [line, words] : orders_) {
    Operation& later = operations_[labelled(words[0])];
    (words[1] == "requires" ? later.after : later.after_starts).push_back(labelled(words[2]));
  }
}

/// Returns the ids of what an operation waits for. An operation starts when its own requirements are met, so whoever
/// waits for its start waits for these.
std::vector<std::uint64_t> GoalReader::dependencies_of(std::size_t operation) const {
  std::vector<std::uint64_t> ids;
  std::vector<bool> seen(operations_.size(), false);
  std::vector<std::size_t> open = {operation};
  seen[operation] = true;
  while (!open.empty()) {
    const Operation& next = operations_[open.back()];
    open.pop_back();
    for (const std::size_t before : next.after) ids.push_back(before + 1);
    for (const std::size_t start : next.after_starts)
      if (!seen[start]) {
        seen[start] = true;
        open.push_back(start);
      }
  }
  return ids;
}

void GoalReader::write_operation(const Operation& operation, bool names_cpu, ParsedTrace& trace) {
  constexpr std::array verbs = {"send", "recv", "calc"};
  const std::size_t at = trace.nodes.size();
  ParsedNode& node = trace.add_node(operation.line);
  node.id = at + 1;
  node.name = trace.names.intern(operation.label.empty() ? verbs[static_cast<std::size_t>(operation.verb)]
                                                         : std::string_view(operation.label));
  if (operation.after_starts.empty())
    for (const std::size_t before : operation.after) trace.data.push_back(before + 1);
  else
    for (const std::uint64_t id : dependencies_of(at)) trace.data.push_back(id);
  if (operation.verb == Verb::compute) {
    node.type = static_cast<std::uint32_t>(NodeType::comp);
    node.duration = operation.amount;
    if (names_cpu) node.set(Attribute::stream, whole_number(operation.cpu));
    return;
  }
  const bool sends = operation.verb == Verb::send;
  if (operation.amount == 0)
    trace.notices.add("goal-empty", "a message of 0 bytes is sent as one of 1 byte, so that its receiver waits for it");
  node.type = static_cast<std::uint32_t>(sends ? NodeType::comm_send : NodeType::comm_recv);
  node.set(sends ? Attribute::comm_dst : Attribute::comm_src, whole_number(operation.peer));
  node.set(Attribute::comm_size, whole_number(std::max<std::uint64_t>(operation.amount, 1)));
  node.set(Attribute::comm_tag, whole_number(operation.tag));
}

/// Writes the operations. Those of one cpu take turns; cpus are named only in a rank that has several.
void GoalReader::write_rank(ParsedTrace& trace) {
  trace.position_unit = PositionUnit::line;
  trace.duration_unit = {1000, "nanosecond"};
  const bool names_cpu =
      std::ranges::any_of(operations_, [](const Operation& one) { return one.verb == Verb::compute && one.cpu > 0; });
  for (const Operation& operation : operations_) write_operation(operation, names_cpu, trace);
}

void GoalReader::read() {
  if (!next_line() || words_.size() != 2 || words_[0] != "num_ranks") fail("num_ranks NUMBER");
  num_ranks_ = number(words_[1], "num_ranks");
  if (num_ranks_ == 0 || num_ranks_ > most_ranks)
    lines_.fail(fmt::format("num_ranks is {}", num_ranks_), fmt::format("1 to {}", most_ranks));
  has_block_.assign(num_ranks_, false);
  while (begin_rank()) {
    read_block();
    has_block_[rank_] = true;
    if (ParsedTrace* const trace = sink_.begin(NpuId(static_cast<std::uint32_t>(rank_)))) write_rank(*trace);
  }
  operations_.clear();
  for (std::uint64_t rank = 0; rank < num_ranks_; ++rank)
    if (!has_block_[rank])
      if (ParsedTrace* const trace = sink_.begin(NpuId(static_cast<std::uint32_t>(rank)))) write_rank(*trace);
}

/// A text whose first word, but for comments, is num_ranks.
bool recognises_goal(std::string_view beginning) {
  for (;;) {
    const auto word = beginning.find_first_not_of(" \t\r\n");
    if (word == std::string_view::npos) return false;
    beginning.remove_prefix(word);
    if (beginning.starts_with("num_ranks")) return true;
    const bool is_block = beginning.starts_with("/*");
    if (!is_block && !beginning.starts_with("//") && !beginning.starts_with('#')) return false;
    const auto end = is_block ? beginning.find("*/", 2) : beginning.find('\n');
    if (end == std::string_view::npos) return false;
    beginning.remove_prefix(end + (is_block ? 2 : 1));
  }
}

}  // namespace

extern constinit const Reader goal_reader{
    .name = "goal",
    .help = "schedule of all ranks in GOAL, as text",
    .recognises = recognises_goal,
    .read = [](TraceFile& file, TraceSink& sink) { GoalReader(file, sink).read(); },
};

}  // namespace orrery::trace
