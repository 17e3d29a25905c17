#include "text_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "orrery/base/text.hpp"
#include "source.hpp"

namespace orrery::trace {
namespace {

constexpr std::array<std::string_view, 11> loop_names = {"DATA",
                                                         "MODEL",
                                                         "HYBRID_DATA_MODEL",
                                                         "HYBRID_MODEL_DATA",
                                                         "HYBRID_CUSTOMIZED",
                                                         "HYBRID_TRANSFORMER",
                                                         "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                                         "HYBRID_DLRM",
                                                         "HYBRID_DLRM_ENHANCED",
                                                         "MICRO",
                                                         "DISTRIBUTED_INFERENCE"};

struct CollectiveName {
  std::string_view name;
  CollectiveKind kind;
};
constexpr std::array collective_names = {
    CollectiveName{"ALLREDUCE", CollectiveKind::all_reduce}, CollectiveName{"ALLGATHER", CollectiveKind::all_gather},
    CollectiveName{"REDUCESCATTER", CollectiveKind::reduce_scatter},
    CollectiveName{"ALLTOALL", CollectiveKind::all_to_all}, CollectiveName{"BROADCAST", CollectiveKind::broadcast}};

/// Reads a whole number, which generators that divide may write as a floating-point number: "4194304.0", "1e+16".
std::uint64_t number_of(std::string_view word, std::string_view what, const LineReader& lines) {
  std::uint64_t value = 0;
  const char* const last = word.data() + word.size();
  if (const auto [end, problem] = std::from_chars(word.data(), last, value); problem == std::errc{} && end == last)
    return value;
  constexpr double most = 9.2e18;
  double number = 0;
  const auto [end, problem] = std::from_chars(word.data(), last, number);
  if (problem != std::errc{} || end != last || !(number >= 0 && number <= most) || number != std::floor(number))
    lines.fail(fmt::format("{} is '{}'", what, shown(word)), "a whole number of 0 or more");
  return static_cast<std::uint64_t>(number);
}

/// Reads a number of 0 or more, whose fraction is left out.
std::uint64_t amount_of(std::string_view word, std::string_view what, const LineReader& lines) {
  const char* const last = word.data() + word.size();
  double number = 0;
  const auto [end, problem] = std::from_chars(word.data(), last, number);
  if (problem == std::errc{} && end == last && number != std::floor(number) && number > 0)
    return static_cast<std::uint64_t>(number);  // below 2^53
  return number_of(word, what, lines);
}

TrainingLoop loop_of(std::string_view name, const LineReader& lines) {
  if (const auto loop = find_training_loop(name)) return *loop;
  lines.fail(fmt::format("a training loop '{}'", shown(name)), fmt::format("one of {}", fmt::join(loop_names, ", ")));
}

/// Goes to the next line that is not blank.
bool next_filled(LineReader& lines) {
  while (lines.next())
    if (!words_in(lines.line()).empty()) return true;
  return false;
}

/// Reads the parameters of the first line.
class Header {
 public:
  Header(const LineReader& lines, std::span<const std::string_view> words) : lines_(lines), words_(words) {}

  void read(TextWorkload& workload, Notices& notices) {
    workload.loop = loop_of(words_.front(), lines_);
    for (at_ = 1; at_ < words_.size();) {
      std::string_view key = words_[at_++];
      if (key.ends_with(':')) key.remove_suffix(1);
      if (key == "pp_comm")
        workload.pipeline_bytes = amount_of(next_word(key), key, lines_);
      else if (std::uint64_t* const value = number_for(key, workload))
        *value = next(key);
      else if (key == "checkpoints" || key == "checkpoint_initiates")
        (key == "checkpoints" ? workload.checkpoints : workload.initiates) = next_list(key);
      else
        skip(key, notices);
    }
    for (const auto& [value, name] : {std::pair{workload.model_parallel, "model_parallel_NPU_group"},
                                      std::pair{workload.expert_parallel, "ep"}, std::pair{workload.pipeline, "pp"}})
      if (value == 0 || value > most_npus)
        lines_.fail(fmt::format("{} is {}", name, value), fmt::format("1 to {}", most_npus));
  }

 private:
  static constexpr std::uint64_t most_npus = std::uint64_t{1} << 20;

  static std::uint64_t* number_for(std::string_view key, TextWorkload& workload) {
    if (key == "model_parallel_NPU_group") return &workload.model_parallel;
    if (key == "ep") return &workload.expert_parallel;
    if (key == "pp") return &workload.pipeline;
    if (key == "all_gpus") return &workload.all_gpus;
    if (key == "DLRM_LAST_BOTTOM_LAYER") return &workload.last_bottom_layer;
    return nullptr;
  }

  std::string_view next_word(std::string_view key) {
    if (at_ == words_.size()) lines_.fail(fmt::format("{} without its value", shown(key)), "a whole number after it");
    return words_[at_++];
  }

  std::uint64_t next(std::string_view key) { return number_of(next_word(key), key, lines_); }

  std::set<std::uint64_t> next_list(std::string_view key) {
    const std::uint64_t count = next(key);
    std::set<std::uint64_t> values;
    for (std::uint64_t i = 0; i < count; ++i) values.insert(next(key));
    return values;
  }

  /// Skips a parameter that decides nothing here: vpp and ga, and those of newer programs.
  void skip(std::string_view key, Notices& notices) {
    if (key != "vpp" && key != "ga")
      notices.add("text-parameter",
                  fmt::format("parameter '{}' of the first line is not known: it is left out", shown(key)));
    const auto is_number = [](std::string_view word) {
      double value = 0;
      const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
      return problem == std::errc{} && end == word.data() + word.size();
    };
    while (at_ < words_.size() && is_number(words_[at_])) ++at_;
  }

  const LineReader& lines_;
  std::span<const std::string_view> words_;
  std::size_t at_ = 0;
};

void read_collective(std::string_view word, const LineReader& lines, TextPass& pass) {
  pass.collective = word;
  if (word == "NONE") return;
  for (const auto& [name, kind] : collective_names) {
    if (!word.starts_with(name)) continue;
    const std::string_view suffix = word.substr(name.size());
    if (suffix != "" && suffix != "_EP" && suffix != "_DP_EP") continue;
    pass.kind = kind;
    pass.group = suffix.empty() ? TextGroup::usual : suffix == "_EP" ? TextGroup::expert : TextGroup::data_of_expert;
    return;
  }
  std::string names = "NONE";
  for (const auto& entry : collective_names) names += fmt::format(", {}", entry.name);
  lines.fail(fmt::format("a collective '{}'", shown(word)), names + ", or one of these with _EP or _DP_EP");
}

/// The columns of a pass in each layout.
struct PassColumns {
  TextLayout layout;
  std::size_t count;  ///< the last two are the collective and its bytes
  std::size_t time;
};
constexpr std::array pass_columns = {PassColumns{TextLayout::times, 3, 0}, PassColumns{TextLayout::operations, 5, 2},
                                     PassColumns{TextLayout::products, 7, 0}};
constexpr std::size_t first_pass = 2;  ///< columns before it: the name and a number
constexpr double value_bytes = 2;      ///< bytes of an operand and of a result

/// Returns what a layer with so many columns has for each pass. `num_others` are the columns that are not of a pass.
const PassColumns& columns_of(std::size_t num_words, std::size_t num_others, const LineReader& lines) {
  for (const PassColumns& columns : pass_columns)
    if (num_words == num_others + 3 * columns.count) return columns;
  lines.fail(fmt::format("a layer of {}", counted(num_words, "column")),
             fmt::format("{} columns, or {} or {} with operations or matrix products as COMET has them", num_others + 9,
                         num_others + 15, num_others + 21),
             "A layer has its name, a number, time, collective and bytes of three passes, and the time of the update" +
                 std::string(num_others > 3 ? ", and its training loop." : "."));
}

/// Reads the numbers of a pass from its columns.
class PassReader {
 public:
  PassReader(const LineReader& lines, std::span<const std::string_view> words, const PassColumns& columns)
      : lines_(lines), words_(words), columns_(columns) {}

  /// Reads the pass whose first column is `first`, from 0.
  TextPass read(std::size_t first) const {
    TextPass pass;
    pass.compute_ns = number(first + columns_.time, "the compute time");
    if (columns_.layout == TextLayout::operations) {
      pass.flops = amount(first, "the number of operations");
      pass.moved_bytes = amount(first + 1, "the number of bytes moved");
    } else if (columns_.layout == TextLayout::products) {
      const auto size = [&](std::size_t i) { return static_cast<double>(number(first + i, "a size of the product")); };
      const double m = size(2), k = size(3), n = size(4);
      pass.flops = whole(2 * m * k * n, first + 2);
      pass.moved_bytes = whole(value_bytes * (m * k + k * n + m * n), first + 2);
    }
    read_collective(words_[first + columns_.count - 2], lines_, pass);
    pass.bytes = number(first + columns_.count - 1, "the size of the communication");
    return pass;
  }

 private:
  std::uint64_t number(std::size_t column, std::string_view what) const {
    return number_of(words_[column], fmt::format("{} (column {})", what, column + 1), lines_);
  }

  /// Reads a number that may have a fraction or an exponent.
  std::uint64_t amount(std::size_t column, std::string_view what) const {
    const std::string_view word = words_[column];
    double value = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size() || !(value >= 0))
      lines_.fail(fmt::format("{} (column {}) is '{}'", what, column + 1, shown(word)), "a number of 0 or more");
    return whole(value, column);
  }

  std::uint64_t whole(double value, std::size_t column) const {
    constexpr double most = 9.2e18;
    if (value > most)
      lines_.fail(fmt::format("{:.3g} operations or bytes (column {})", value, column + 1), "9.2e18 or less");
    return static_cast<std::uint64_t>(value);
  }

  const LineReader& lines_;
  std::span<const std::string_view> words_;
  const PassColumns& columns_;
};

TextLayer read_layer(const LineReader& lines, TextWorkload& workload) {
  const auto words = words_in(lines.line());
  const bool has_loop = workload.loop == TrainingLoop::hybrid_customized;
  const PassColumns& columns = columns_of(words.size(), has_loop ? 4 : 3, lines);
  if (!workload.layers.empty() && columns.layout != workload.layout)
    lines.fail(fmt::format("a layer of {}", counted(words.size(), "column")),
               "as many columns as the layers before have");
  workload.layout = columns.layout;
  TextLayer layer;
  layer.name = words[0];
  layer.line = lines.number();
  const PassReader reader(lines, words, columns);
  for (std::size_t i = 0; i < 3; ++i) layer.passes[i] = reader.read(first_pass + i * columns.count);
  const std::size_t update = first_pass + 3 * columns.count;
  layer.update_ns = number_of(words[update], fmt::format("the time of the update (column {})", update + 1), lines);
  layer.loop = has_loop ? loop_of(words[update + 1], lines) : workload.loop;
  return layer;
}

}  // namespace

std::optional<TrainingLoop> find_training_loop(std::string_view name) {
  const auto found = std::ranges::find(loop_names, name);
  if (found == loop_names.end()) return {};
  return static_cast<TrainingLoop>(found - loop_names.begin());
}

TextWorkload read_text_workload(LineReader& lines, Notices& notices) {
  TextWorkload workload;
  if (!next_filled(lines)) lines.fail("the file is empty", "the name of a training loop");
  const std::string first(lines.line());
  Header(lines, words_in(first)).read(workload, notices);
  if (!next_filled(lines)) lines.fail("the file ends", "the number of layers");
  const std::uint64_t said = number_of(words_in(lines.line()).front(), "the number of layers", lines);
  while (next_filled(lines)) workload.layers.push_back(read_layer(lines, workload));
  if (workload.layers.empty()) lines.fail("the file has no layer", "a line for each layer");
  if (workload.layers.size() != said)
    notices.add("text-layers", fmt::format("the second line says {}, but the file has {}: these are taken",
                                           counted(said, "layer"), workload.layers.size()));
  return workload;
}

}  // namespace orrery::trace
