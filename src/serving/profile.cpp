#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <unordered_map>

#include "attention_table.hpp"
#include "expert_exchange.hpp"
#include "interpolation.hpp"
#include "layer_plan.hpp"
#include "measured_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/serving/pipeline.hpp"
#include "orrery/serving/step_options.hpp"
#include "padding.hpp"
#include "ring.hpp"
#include "us_to_time.hpp"

namespace orrery::serving {
namespace {

using Lines = std::map<std::string, MeasuredLine>;

Lines lines_of(const std::filesystem::path& folder, const std::string& name, const char* axis) {
  MeasuredFile file(folder, name);
  const std::size_t layer = file.column("layer"), x = file.column(axis), time = file.column("time_us");
  std::map<std::string, std::vector<std::pair<double, double>>> points;
  while (file.next()) points[file.text(layer)].emplace_back(file.number(x), file.number(time));
  Lines lines;
  for (auto& [operation, of] : points) lines.emplace(operation, std::move(of));
  return lines;
}

/// Measured experts of a rank in us, by tokens and activated experts.
class ExpertTable {
 public:
  explicit ExpertTable(const std::filesystem::path& folder) {
    MeasuredFile file(folder, "moe.csv");
    const std::size_t tokens = file.column("tokens"), activated = file.column("activated_experts"),
                      time = file.column("time_us");
    std::map<double, std::vector<std::pair<double, double>>> rows;
    while (file.next()) rows[file.number(tokens)].emplace_back(file.number(activated), file.number(time));
    for (auto& [count, points] : rows) {
      tokens_.push_back(count);
      lines_.emplace_back(std::move(points));
    }
    if (tokens_.empty())
      throw Error(ErrorCode::bad_input, {.file = folder.string()}, "moe.csv has no rows", "one or more");
  }
  double operator()(double tokens, double activated) const {
    const Bracket b = bracket(tokens_, tokens);
    const auto at = [&](std::size_t i) { return lines_[i](std::min(activated, lines_[i].last())); };
    return at(b.low) + b.weight * (at(b.high) - at(b.low));
  }

 private:
  std::vector<double> tokens_;
  std::vector<MeasuredLine> lines_;
};

/// LLMServingSim's profiles: operators of one NPU, of a dense model or of the dense part of one with experts.
class Profile final : public StepModel {
 public:
  explicit Profile(const StepContext& context)
      : options_(context.options),
        model_(*context.model),
        parallel_(context.parallel),
        dense_(lines_of(options_.tables, "dense.csv", "tokens")),
        of_sequence_(lines_of(options_.tables, "per_sequence.csv", "sequences")),
        attention_(options_.tables),
        host_us_(static_cast<double>(options_.host.step.ps()) / 1e6),
        host_sequence_us_(static_cast<double>(options_.host.sequence.ps()) / 1e6),
        tp_ring_(parallel_.tp, options_),
        ep_ring_(std::max(parallel_.ep, parallel_.dp), options_) {
    for (const char* const name : {"embedding", "final_layernorm"}) require(dense_, name, "dense.csv");
    for (const char* const name : {"lm_head", "sampler"}) require(of_sequence_, name, "per_sequence.csv");
    if (model_.mlp.experts == 0) return;
    if (parallel_.dp == 1)
      throw Error(ErrorCode::bad_input, {.key = "serving.step.model"},
                  "found profile for a model with experts on one data-parallel rank",
                  "parallel.dp above 1, or step.model: operators");
    experts_.emplace(options_.tables);
    const double ranks = parallel_.dp;
    if (options_.experts.load == ExpertOptions::Load::power_law) busiest_ = {share_of_busiest(ranks) * ranks};
    if (options_.experts.load == ExpertOptions::Load::file) busiest_ = read_busiest(ranks);
  }

  Time duration(const StepShape& shape, std::uint64_t) override {
    const Parts parts = parts_of(shape, 0);
    const double us = model_.layers * (parts.layer + parts.attention + parts.collectives) + parts.ends;
    return us_to_time(us + host_us_ + host_sequence_us_ * static_cast<double>(parts.sequences));
  }

  Time group_duration(std::span<const StepShape* const> shapes, std::uint64_t number) override {
    if (!experts_) return StepModel::group_duration(shapes, number);
    const std::uint64_t pad = common_rows(options_.graph_sizes, shapes);
    double worst = 0;
    std::uint64_t rows = 0;
    for (const StepShape* const shape : shapes) {
      const Parts parts = parts_of(shape->tokens() == 0 ? idle_shape() : *shape, pad);
      worst = std::max(worst, model_.layers * (parts.layer + parts.attention + parts.collectives) + parts.ends +
                                  host_us_ + host_sequence_us_ * static_cast<double>(parts.sequences));
      rows += parts.rows;
    }
    return us_to_time(worst +
                      model_.layers * shared_part(static_cast<double>(rows), static_cast<double>(shapes.size())));
  }

  void stage_durations(std::span<const StepShape* const> shapes, std::uint64_t, std::span<Time> stages) override {
    const std::uint64_t pad = experts_ ? common_rows(options_.graph_sizes, shapes) : 0;
    const auto count = static_cast<std::uint32_t>(stages.size());
    for (std::uint32_t s = 0; s < count; ++s) {
      const double layers = layers_of_stage(model_.layers, count, s);
      double worst = 0, rows = 0;
      for (const StepShape* const shape : shapes) {
        const Parts parts = parts_of(shape->tokens() == 0 ? idle_shape() : *shape, pad);
        double us = layers * (parts.layer + parts.attention + parts.collectives);
        if (s == 0) us += parts.begin + host_us_ + host_sequence_us_ * static_cast<double>(parts.sequences);
        if (s + 1 == count) us += parts.ends - parts.begin;
        worst = std::max(worst, us);
        rows += static_cast<double>(parts.rows);
      }
      if (experts_) worst += layers * shared_part(rows, static_cast<double>(shapes.size()));
      stages[s] = us_to_time(worst);
    }
  }

  std::vector<StagePlan> plan(std::span<const StepShape* const> shapes, std::uint64_t, std::uint32_t) override {
    const std::uint64_t pad = experts_ ? common_rows(options_.graph_sizes, shapes) : 0;
    LayerTimes times;
    for (const StepShape* const shape : shapes) {
      const Parts parts = parts_of(shape->tokens() == 0 ? idle_shape() : *shape, pad);
      const double embedding = dense_.at("embedding")(static_cast<double>(parts.rows)),
                   sequences = static_cast<double>(parts.sequences);
      times.before = std::max(times.before, embedding + host_us_ + host_sequence_us_ * sequences);
      times.layer = std::max(times.layer, parts.layer + parts.attention);
      times.behind = std::max(times.behind, parts.computed_ends - embedding);
      times.rows = std::max(times.rows, static_cast<double>(parts.rows));
      times.sequences = std::max(times.sequences, sequences);
      times.all_rows += static_cast<double>(parts.rows);
    }
    if (experts_) times.experts = experts_of(times.all_rows, static_cast<double>(shapes.size()));
    return plan_of_layers(times, model_, options_, parallel_);
  }

  std::vector<BeyondTable> beyond_tables() const override {
    std::vector<BeyondTable> found;
    for (const Lines* const lines : {&dense_, &of_sequence_})
      for (const auto& [name, line] : *lines)
        if (line.most_beyond() > 0)
          found.push_back(
              {fmt::format("serving.step.tables: {} has steps of ", name), line.most_beyond(),
               fmt::format(", and its table ends at {:.0f}: the line of the last two points continues", line.last())});
    attention_.add_beyond(found);
    return found;
  }

 private:
  static constexpr double width = 2;  // bytes of an activation

  struct Parts {
    double layer = 0, attention = 0, collectives = 0;
    double ends = 0, begin = 0;  ///< outside of the layers; the part of it before them
    double computed_ends = 0;    ///< `ends` without collectives
    std::uint64_t rows = 0, sequences = 0;
  };

  void require(const Lines& lines, const char* name, const char* file) const {
    if (!lines.contains(name))
      throw Error(ErrorCode::bad_input, {.file = (options_.tables / file).string()},
                  fmt::format("there is no layer '{}'", name), "a measurement of it");
  }

  Parts parts_of(const StepShape& shape, std::uint64_t pad) {
    Parts parts;
    parts.sequences = shape.sequences();
    parts.rows = padded(options_.graph_sizes, std::max(shape.tokens(), pad));
    auto [known, is_new] = of_rows_.try_emplace(parts.rows);
    if (is_new) known->second = of_rows(static_cast<double>(parts.rows));
    parts.layer = known->second.first;
    if (parallel_.pp > 1) parts.begin = dense_.at("embedding")(static_cast<double>(parts.rows));
    auto [ends, is_new_count] = of_count_.try_emplace(parts.sequences);
    if (is_new_count)
      ends->second = of_sequence_.at("lm_head")(static_cast<double>(parts.sequences)) +
                     of_sequence_.at("sampler")(static_cast<double>(parts.sequences));
    parts.ends = parts.computed_ends = known->second.second + ends->second;
    parts.attention = attention_.duration(shape, options_.skew);
    if (parallel_.tp > 1) {
      const double reduce = tp_ring_.all_reduce(static_cast<double>(parts.rows * model_.hidden) * width);
      parts.begin += reduce;
      parts.ends += reduce + tp_ring_.all_gather(static_cast<double>(parts.sequences * model_.embedding.vocabulary) *
                                                 width / parallel_.tp);
      parts.collectives = 2 * reduce;
    }
    return parts;
  }

  /// Returns the operators of a layer, and those at both ends of the model, that depend on rows alone.
  std::pair<double, double> of_rows(double rows) const {
    double layer = 0;
    for (const char* const name : {"layernorm", "layernorm", "qkv_proj", "qk_norm", "rotary_emb", "o_proj",
                                   "gate_up_proj", "act_fn", "down_proj"})
      if (const auto found = dense_.find(name); found != dense_.end()) layer += found->second(rows);
    return {layer, dense_.at("embedding")(rows) + dense_.at("final_layernorm")(rows)};
  }

  /// Returns what the experts of a layer and their exchange take, for all rows of a group of ranks, the mean over the
  /// layers. In each the busiest rank counts.
  double shared_part(double rows, double ranks) const {
    return experts_of(rows, ranks) +
           exchange_of_experts(model_, options_.experts, ep_ring_, rows / ranks, ranks, width);
  }

  double experts_of(double rows, double ranks) const {
    const double experts = model_.mlp.experts, top = model_.mlp.top_k;
    const double active = std::floor(experts / ranks) * (1 - std::pow(1 - top / experts, rows));
    double us = 0;
    for (const double busiest : busiest_) us += (*experts_)(rows / ranks * busiest, active);
    return us / static_cast<double>(busiest_.size());
  }

  /// Returns the share of the load that the first of `ranks` has, if expert i has i to the power of -exponent.
  double share_of_busiest(double ranks) const {
    double own = 0, all = 0;
    const double experts = model_.mlp.experts;
    for (double i = 1; i <= experts; ++i) {
      const double load = std::pow(i, -options_.experts.exponent);
      all += load;
      if (i <= experts / ranks) own += load;
    }
    return own / all;
  }

  /// Reads how much more than the mean the busiest rank has in each layer. A row of the file is a layer, and has the
  /// shares of all experts in their order, of which a rank has neighbours. They need not add up to 1.
  std::vector<double> read_busiest(double ranks) const {
    const auto& file = options_.experts.file;
    std::ifstream in(file);
    std::vector<double> busiest;
    const std::size_t experts = model_.mlp.experts, each = experts / static_cast<std::size_t>(ranks);
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      std::vector<double> of_rank(static_cast<std::size_t>(ranks));
      std::size_t count = 0;
      double all = 0;
      std::istringstream cells(line);
      for (std::string cell; std::getline(cells, cell, ','); ++count) {
        char* end = nullptr;
        const double share = std::strtod(cell.c_str(), &end);
        if (end == cell.c_str() || !(share >= 0))
          throw Error(ErrorCode::bad_input, {.file = file.string(), .line = number},
                      fmt::format("found '{}'", cited(cell)), "the share of an expert, 0 or more");
        if (count < experts) of_rank[count / each] += share;
        all += share;
      }
      if (count != experts || all <= 0)
        throw Error(ErrorCode::bad_input, {.file = file.string(), .line = number},
                    fmt::format("there are {} shares, whose sum is {}", count, all),
                    fmt::format("{} shares: one for each expert", experts));
      busiest.push_back(*std::ranges::max_element(of_rank) / all * ranks);
    }
    if (busiest.size() != model_.layers)
      throw Error(ErrorCode::bad_input, {.file = file.string(), .key = "serving.experts.file"},
                  fmt::format("there are {} rows", busiest.size()),
                  fmt::format("one for each of {} layers", model_.layers));
    return busiest;
  }

  StepOptions options_;
  workload::Transformer model_;
  InstanceParallel parallel_;
  Lines dense_, of_sequence_;
  AttentionTable attention_;
  std::optional<ExpertTable> experts_;
  std::vector<double> busiest_{1};  // [layers, or 1] work of the busiest rank, in means
  double host_us_, host_sequence_us_;
  Ring tp_ring_, ep_ring_;
  std::unordered_map<std::uint64_t, std::pair<double, double>> of_rows_;
  std::unordered_map<std::uint64_t, double> of_count_;
};

}  // namespace

extern const StepModelType profile;
constinit const StepModelType profile{
    .name = "profile",
    .help = "operators that were measured, in the tables of LLMServingSim: dense, per_sequence, attention, moe",
    .needs_model = true,
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      return std::make_shared<Profile>(context);
    }};

}  // namespace orrery::serving
