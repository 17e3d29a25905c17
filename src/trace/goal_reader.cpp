// GOAL schedules as text, as LogGOPSim and ATLAHS take them: the operations of all ranks, each rank in braces.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "line_source.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

constexpr std::string_view blanks = " \t\v\f";

/// Returns a line without its comment and without blanks around it. A comment begins with # or //.
std::string_view content_of(std::string_view line) {
  line = line.substr(0, std::min(line.find('#'), line.find("//")));
  const auto first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blanks) - first + 1);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(blanks, at)) != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// An operation of a rank, as its line says.
struct Operation {
  NodeType type = NodeType::comp;
  std::uint64_t line = 0;
  std::uint32_t name = no_name;
  std::uint64_t amount = 0;  ///< bytes, or nanoseconds
  std::uint64_t peer = 0;
  std::uint64_t tag = 0;
  std::uint64_t cpu = 0;
  std::vector<std::uint32_t> requires_end;    ///< operations that are over before it begins
  std::vector<std::uint32_t> requires_start;  ///< operations that have begun before it begins
};

/// Reads the operations of one rank.
class RankReader {
 public:
  RankReader(LineSource& lines, ParsedTrace& trace) : lines_(lines), trace_(trace) {}

  /// Takes a line between the braces.
  void take(std::string_view content) {
    auto words = words_of(content);
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires"))
      return dependencies_.push_back(
          {std::string(words[0]), std::string(words[2]), words[1] == "requires", lines_.number()});
    std::string_view label;
    if (words.front().ends_with(':')) {
      label = words.front().substr(0, words.front().size() - 1);
      words.erase(words.begin());
    }
    add(label, words);
  }

  /// Hands the operations over, after the last line.
  void finish() {
    for (const Dependency& dependency : dependencies_) connect(dependency);
    for (std::uint32_t i = 0; i < operations_.size(); ++i) hand_over(i);
    if (num_empty_ > 0)
      trace_.notices.add("goal-empty-message", "messages of 0 bytes are sent as 1 byte, so that they keep their order",
                         num_empty_);
  }

 private:
  struct Dependency {
    std::string later, earlier;
    bool on_end = true;
    std::uint64_t line = 0;
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

  void add(std::string_view label, const std::vector<std::string_view>& words) {
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
    operation.name = trace_.names.intern(label.empty() ? words[0] : label);
    const auto index = static_cast<std::uint32_t>(operations_.size());
    if (!label.empty() && !labels_.try_emplace(std::string(label), index).second)
      fail(fmt::format("label '{}' stands twice in this rank", shown(label)), "labels that differ");
    operations_.push_back(std::move(operation));
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

  std::uint32_t find(const std::string& label, std::uint64_t line) const {
    const auto found = labels_.find(label);
    if (found == labels_.end())
      fail(line, fmt::format("there is no operation '{}' in this rank", shown(label)), "the label of an operation");
    return found->second;
  }

  void connect(const Dependency& dependency) {
    Operation& later = operations_[find(dependency.later, dependency.line)];
    const std::uint32_t earlier = find(dependency.earlier, dependency.line);
    (dependency.on_end ? later.requires_end : later.requires_start).push_back(earlier);
  }

  /// Returns the operations that must be over before one begins. An operation that has begun is one for which those are
  /// over for which it waits itself.
  std::vector<std::uint64_t> ended_before(std::uint32_t operation) {
    std::vector<std::uint64_t> ends;
    std::vector<std::uint32_t> open{operation};
    last_seen_by_.resize(operations_.size(), none);
    last_seen_by_[operation] = operation;
    while (!open.empty()) {
      const Operation& next = operations_[open.back()];
      open.pop_back();
      ends.insert(ends.end(), next.requires_end.begin(), next.requires_end.end());
      for (const std::uint32_t started : next.requires_start) {
        if (std::exchange(last_seen_by_[started], operation) == operation) continue;
        open.push_back(started);
      }
    }
    std::ranges::sort(ends);
    const auto [first, last] = std::ranges::unique(ends);
    ends.erase(first, last);
    return ends;
  }

  void hand_over(std::uint32_t index) {
    const Operation& operation = operations_[index];
    ParsedNode& node = trace_.add_node(operation.line);
    node.id = index;
    node.name = operation.name;
    node.type = static_cast<std::uint32_t>(operation.type);
    const auto ends = ended_before(index);
    trace_.data.insert(trace_.data.end(), ends.begin(), ends.end());
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

  LineSource& lines_;
  ParsedTrace& trace_;
  std::vector<Operation> operations_;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
  std::vector<Dependency> dependencies_;
  static constexpr std::uint32_t none = ~0U;
  std::vector<std::uint32_t> last_seen_by_;  // [operations] last operation whose call of ended_before met it
  std::uint64_t num_empty_ = 0;
};

/// Reads the file from rank to rank.
class GoalReader {
 public:
  GoalReader(TraceFile& file, TraceSink& sink) : lines_(file), sink_(sink) {}

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

  /// Returns the words of the next line that is not empty; none at the end of the file.
  std::vector<std::string_view> next_words() {
    while (const auto line = lines_.next())
      if (auto words = words_of(content_of(*line)); !words.empty()) return words;
    return {};
  }

  std::uint64_t number(std::string_view word, std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size() || value > most)
      fail(fmt::format("found '{}'", shown(word)), fmt::format("a number from 0 to {}", most));
    return value;
  }

  std::uint64_t read_header() {
    const auto words = next_words();
    if (words.size() != 2 || words[0] != "num_ranks") fail("the file does not begin so", "num_ranks N");
    const std::uint64_t num_ranks = number(words[1], 1U << 24U);
    if (num_ranks == 0) fail("the schedule has no rank", "num_ranks N, with 1 or more");
    return num_ranks;
  }

  std::optional<std::uint32_t> next_rank(std::uint64_t num_ranks) {
    auto words = next_words();
    if (words.empty()) return {};
    if (words.size() == 2 && words[1].ends_with('{')) {
      words[1].remove_suffix(1);
      words.emplace_back("{");
    }
    if (words.size() != 3 || words[0] != "rank" || words[2] != "{")
      fail(fmt::format("found '{}'", shown(words[0])), "rank N {");
    return static_cast<std::uint32_t>(number(words[1], num_ranks == 0 ? 0 : num_ranks - 1));
  }

  void read_rank(std::uint32_t rank) {
    const std::uint64_t first = lines_.number();
    ParsedTrace* const trace = sink_.begin(NpuId(rank));
    std::optional<RankReader> reader;
    if (trace != nullptr) {
      trace->position_unit = PositionUnit::line;
      trace->duration_unit = DurationUnit{1000, "nanosecond"};
      reader.emplace(lines_, *trace);
    }
    while (const auto line = lines_.next()) {
      const std::string_view content = content_of(*line);
      if (content == "}") {
        if (reader) reader->finish();
        return;
      }
      if (reader && !content.empty()) reader->take(content);
    }
    fail(fmt::format("the file ends within rank {}, which began in line {}", rank, first), "}");
  }

  LineSource lines_;
  TraceSink& sink_;
};

bool recognises_goal(std::string_view beginning) {
  while (!beginning.empty()) {
    const auto end = std::min(beginning.find('\n'), beginning.size());
    std::string_view content = content_of(beginning.substr(0, end));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (!content.empty()) return words_of(content).front() == "num_ranks";
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
