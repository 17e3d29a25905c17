#include <fmt/format.h>

#include <cmath>
#include <map>
#include <unordered_map>

#include "attention_table.hpp"
#include "interpolation.hpp"
#include "measured_file.hpp"
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
        host_us_(static_cast<double>(options_.host_step.ps()) / 1e6),
        host_sequence_us_(static_cast<double>(options_.host_sequence.ps()) / 1e6),
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
  }

  Time duration(const StepShape& shape, std::uint64_t) override {
    const Parts parts = parts_of(shape, 0);
    const double us = model_.layers * (parts.layer + parts.attention + parts.collectives) + parts.ends;
    return us_to_time(us + host_us_ + host_sequence_us_ * static_cast<double>(parts.sequences));
  }

  Time group_duration(std::span<const StepShape* const> shapes, std::uint64_t number) override {
    if (!experts_) return StepModel::group_duration(shapes, number);
    std::uint64_t pad = 0;
    for (const StepShape* const shape : shapes)
      pad = std::max(pad, padded(options_.graph_sizes, std::max<std::uint64_t>(1, shape->tokens())));
    if (options_.graph_sizes.empty() || pad > options_.graph_sizes.back()) pad = 0;
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

  std::vector<std::string> warnings() const override {
    std::vector<std::string> texts;
    for (const Lines* const lines : {&dense_, &of_sequence_})
      for (const auto& [name, line] : *lines)
        if (line.most_beyond() > 0)
          texts.push_back(
              fmt::format("serving.step.tables: {} has steps of {:.0f}, and its table ends at {:.0f}: the "
                          "line of the last two points continues",
                          name, line.most_beyond(), line.last()));
    attention_.add_warnings(texts);
    return texts;
  }

 private:
  static constexpr double width = 2;  // bytes of an activation

  struct Parts {
    double layer = 0, attention = 0, collectives = 0, ends = 0;
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
    auto [ends, is_new_count] = of_count_.try_emplace(parts.sequences);
    if (is_new_count)
      ends->second = of_sequence_.at("lm_head")(static_cast<double>(parts.sequences)) +
                     of_sequence_.at("sampler")(static_cast<double>(parts.sequences));
    parts.ends = known->second.second + ends->second;
    parts.attention = attention_.duration(shape, options_.skew);
    if (parallel_.tp > 1) {
      const double reduce = tp_ring_.all_reduce(static_cast<double>(parts.rows * model_.hidden) * width);
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

  /// Returns what the experts of a layer and their exchange take, for all rows of a group of ranks.
  double shared_part(double rows, double ranks) const {
    const double experts = model_.mlp.experts, top = model_.mlp.top_k;
    const double local = std::floor(experts / ranks);
    double busiest = 1;
    if (options_.experts.load == ExpertOptions::Load::power_law) busiest = share_of_busiest(experts, ranks) * ranks;
    const double active = local * (1 - std::pow(1 - top / experts, rows));
    return (*experts_)(rows / ranks * busiest, active) + exchange(rows / ranks, ranks);
  }

  /// Returns the share of the load that the first of `ranks` has, if expert i has i to the power of -exponent.
  double share_of_busiest(double experts, double ranks) const {
    double own = 0, all = 0;
    for (double i = 1; i <= experts; ++i) {
      const double load = std::pow(i, -options_.experts.exponent);
      all += load;
      if (i <= experts / ranks) own += load;
    }
    return own / all;
  }

  double exchange(double rows, double ranks) const {
    const auto hidden = static_cast<double>(model_.hidden);
    const ExpertOptions& options = options_.experts;
    switch (options.exchange) {
      case Exchange::gather:
        return 2 * ep_ring_.all_gather(rows * hidden * width);
      case Exchange::all_to_all: {
        // A rank has none of the experts of a token if all lie among those of the others.
        const double experts = model_.mlp.experts, own = experts / ranks;
        double none = 1;
        for (std::uint32_t i = 0; i < model_.mlp.top_k; ++i) none *= std::max(0.0, (experts - own - i) / (experts - i));
        const double copies = rows * (ranks - 1) * (1 - none);
        return ep_ring_.send(copies * hidden * options.dispatch_bytes) +
               ep_ring_.send(copies * hidden * options.combine_bytes);
      }
      case Exchange::each_expert: {
        const double copies = rows * model_.mlp.top_k;
        return ep_ring_.send(copies * hidden * options.dispatch_bytes) +
               ep_ring_.send(copies * hidden * options.combine_bytes);
      }
    }
    return 0;
  }

  StepOptions options_;
  workload::Transformer model_;
  InstanceParallel parallel_;
  Lines dense_, of_sequence_;
  AttentionTable attention_;
  std::optional<ExpertTable> experts_;
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
