#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>

#include "expert_exchange.hpp"
#include "interpolation.hpp"
#include "layer_plan.hpp"
#include "measured_file.hpp"
#include "orrery/serving/pipeline.hpp"
#include "orrery/serving/step_options.hpp"
#include "padding.hpp"
#include "ring.hpp"
#include "us_to_time.hpp"

namespace orrery::serving {
namespace {

/// A nest of lines: linear in each number between its neighbours.
class Nest {
 public:
  /// Takes a row whose numbers are x[0..], of which the last one is the axis of the lines.
  void add(std::span<const double> x, double value) {
    if (x.size() == 1) {
      auto [known, is_new] = points_.try_emplace(x[0], value);
      if (!is_new) known->second = std::min(known->second, value);
      return;
    }
    auto& child = building_[x[0]];
    if (!child) child = std::make_unique<Nest>();
    child->add(x.subspan(1), value);
  }
  void close() {
    if (!points_.empty()) line_.emplace(std::vector<std::pair<double, double>>(points_.begin(), points_.end()));
    for (auto& [key, child] : building_) {
      child->close();
      keys_.push_back(key);
      children_.push_back(std::move(child));
    }
    building_.clear();
    points_.clear();
  }
  double at(std::span<const double> x) const {
    if (x.size() == 1) return (*line_)(x[0]);
    const Bracket b = bracket(keys_, x[0]);
    if (b.weight > 1) most_ = std::max(most_, x[0]);
    const double low = children_[b.low]->at(x.subspan(1));
    return b.weight == 0 ? low : low + b.weight * (children_[b.high]->at(x.subspan(1)) - low);
  }
  /// Returns the largest number asked for beyond the end of an axis, and that end; zeros if there is none.
  std::pair<double, double> most_beyond() const {
    std::pair<double, double> most{0, 0};
    const auto take = [&most](double asked, double end) {
      if (asked > most.first) most = {asked, end};
    };
    if (line_ && line_->most_beyond() > 0) take(line_->most_beyond(), line_->last());
    if (most_ > 0) take(most_, keys_.back());
    for (const auto& child : children_) {
      const auto [asked, end] = child->most_beyond();
      take(asked, end);
    }
    return most;
  }

 private:
  std::map<double, double> points_;
  std::map<double, std::unique_ptr<Nest>> building_;
  std::vector<double> keys_;
  std::vector<std::unique_ptr<Nest>> children_;
  std::optional<MeasuredLine> line_;
  mutable double most_ = 0;  // beyond the last key
};

/// Tables of one file by a name.
using Nests = std::map<std::string, Nest>;

/// Reads a file: the name of a table is what the columns `names` hold, joined by '/'.
Nests read_nests(const std::filesystem::path& folder, const std::string& name, std::vector<const char*> names,
                 std::vector<const char*> axes) {
  MeasuredFile file(folder, name);
  std::vector<std::size_t> of_names, of_axes;
  for (const char* const each : names) of_names.push_back(file.column(each));
  for (const char* const each : axes) of_axes.push_back(file.column(each));
  const std::size_t time = file.column("us");
  Nests nests;
  std::vector<double> x(of_axes.size());
  while (file.next()) {
    std::string key;
    for (const std::size_t column : of_names) {
      if (!key.empty()) key += '/';
      key += file.text(column);
    }
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = file.number(of_axes[i]);
    nests[key].add(x, file.number(time));
  }
  for (auto& [key, nest] : nests) nest.close();
  return nests;
}

/// Returns a table. Throws Error (bad_input) that lists those that there are.
const Nest& nest_of(const Nests& nests, const std::string& key, std::string_view what) {
  const auto found = nests.find(key);
  if (found != nests.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, nest] : nests) known.push_back(name);
  constexpr std::size_t most = 40;
  const bool is_cut = known.size() > most;
  if (is_cut) known.resize(most);
  throw Error(ErrorCode::bad_input, {.key = "serving.step.tables"},
              fmt::format("the tables have no {} of {}", what, key),
              fmt::format("one of {}{}", fmt::join(known, ", "), is_cut ? ", ..." : ""));
}

/// AIConfigurator's tables: products, attention, all-reduces and experts of any sizes.
class Operators final : public StepModel {
 public:
  explicit Operators(const StepContext& context)
      : options_(context.options),
        model_(*context.model),
        tp_(context.parallel.tp),
        parallel_(context.parallel),
        dp_(context.parallel.dp),
        ep_(context.parallel.ep),
        ep_ring_(context.parallel.dp, options_) {
    const auto& folder = options_.tables;
    const TableNames& names = options_.names;
    products_ = read_nests(folder, "gemm.csv", {"gemm_dtype"}, {"n", "k", "m"});
    own_products_ = &nest_of(products_, names.products, "products");
    plain_products_ = &nest_of(products_, "bfloat16", "products");
    decodes_ = read_nests(folder, "generation.csv", {"kv_cache_dtype", "num_heads", "num_key_value_heads"},
                          {"batch_size", "step"});
    prefills_ = read_nests(folder, "context.csv", {"kv_cache_dtype", "num_heads", "num_key_value_heads"},
                           {"batch_size", "isl"});
    const std::string heads = fmt::format("{}/{}/{}", names.attention, heads_of(), kv_heads_of());
    decode_ = &nest_of(decodes_, heads, "decode attention");
    prefill_ = &nest_of(prefills_, heads, "prefill attention");
    if (tp_ > 1) {
      reduces_ = read_nests(folder, "allreduce.csv", {"backend"}, {"num_gpus", "message_size"});
      graph_reduce_ = &nest_of(reduces_, "vllm_graph", "all-reduces");
      eager_reduce_ = &nest_of(reduces_, "vllm_eager", "all-reduces");
    }
    if (model_.mlp.experts == 0) return;
    experts_ =
        read_nests(folder, "moe.csv", {"moe_dtype", "hidden_size", "inter_size", "topk", "num_experts", "distribution"},
                   {"moe_tp_size", "moe_ep_size", "num_tokens"});
    own_experts_ =
        &nest_of(experts_,
                 fmt::format("{}/{}/{}/{}/{}/{}", names.experts.empty() ? names.products : names.experts, model_.hidden,
                             model_.mlp_width(), model_.mlp.top_k, model_.mlp.experts, names.distribution),
                 "experts");
  }

  Time duration(const StepShape& shape, std::uint64_t) override {
    const Parts parts = parts_of(shape, 0);
    double us = model_.layers * (parts.layer + parts.attention);
    us += parts.end;
    us += parts.begin;
    return us_to_time(us + parts.host_step + parts.host_sequences);
  }

  Time group_duration(std::span<const StepShape* const> shapes, std::uint64_t number) override {
    if (own_experts_ == nullptr) return StepModel::group_duration(shapes, number);
    Time whole;
    stage_durations(shapes, number, std::span(&whole, 1));
    return whole;
  }

  void stage_durations(std::span<const StepShape* const> shapes, std::uint64_t, std::span<Time> stages) override {
    const bool is_shared = own_experts_ != nullptr && dp_ > 1;
    const std::uint64_t pad = is_shared ? common_rows(options_.graph_sizes, shapes) : 0;
    const auto count = static_cast<std::uint32_t>(stages.size());
    for (std::uint32_t s = 0; s < count; ++s) {
      const double layers = layers_of_stage(model_.layers, count, s);
      double worst = 0, rows = 0;
      for (const StepShape* const shape : shapes) {
        const Parts parts = parts_of(shape->tokens() == 0 ? idle_shape() : *shape, pad);
        double us = layers * (parts.layer + parts.attention);
        if (s == 0) us += parts.begin + parts.host_step + parts.host_sequences;
        if (s + 1 == count) us += parts.end;
        worst = std::max(worst, us);
        rows += static_cast<double>(parts.rows);
      }
      if (is_shared)
        worst +=
            layers * (experts_of(rows) + exchange_of_experts(model_, options_.experts, ep_ring_, rows / dp_, dp_, 2));
      stages[s] = us_to_time(worst);
    }
  }

  std::vector<StagePlan> plan(std::span<const StepShape* const> shapes, std::uint64_t, std::uint32_t) override {
    const bool is_shared = own_experts_ != nullptr && dp_ > 1;
    const std::uint64_t pad = is_shared ? common_rows(options_.graph_sizes, shapes) : 0;
    LayerTimes times;
    for (const StepShape* const shape : shapes) {
      const Parts parts = parts_of(shape->tokens() == 0 ? idle_shape() : *shape, pad);
      times.before = std::max(times.before, parts.host_step + parts.host_sequences);
      times.layer = std::max(times.layer, parts.layer + parts.attention - 2 * parts.begin);
      times.behind = std::max(times.behind, parts.end);
      times.rows = std::max(times.rows, static_cast<double>(parts.rows));
      times.sequences = std::max(times.sequences, static_cast<double>(shape->sequences()));
      times.all_rows += static_cast<double>(parts.rows);
    }
    if (is_shared) times.experts = experts_of(times.all_rows);
    return plan_of_layers(times, model_, options_, parallel_);
  }

  std::vector<BeyondTable> beyond_tables() const override {
    std::vector<BeyondTable> found;
    const auto add = [&found](const Nests& nests, std::string_view what) {
      for (const auto& [name, nest] : nests) {
        const auto [asked, end] = nest.most_beyond();
        if (asked > 0)
          found.push_back(
              {fmt::format("serving.step.tables: {} of {} have a size of ", what, name), asked,
               fmt::format(", and their table ends at {:.0f} there: the line of the last two points continues", end)});
      }
    };
    add(products_, "products");
    add(decodes_, "decode attention");
    add(prefills_, "prefill attention");
    add(reduces_, "all-reduces");
    add(experts_, "experts");
    return found;
  }

 private:
  /// Parts of a step of one data-parallel rank, in us. With several ranks the experts are not among them.
  struct Parts {
    double layer = 0, attention = 0;
    double begin = 0, end = 0;  ///< before and behind the layers
    double host_step = 0, host_sequences = 0;
    std::uint64_t rows = 0;
  };

  Parts parts_of(const StepShape& shape, std::uint64_t pad) {
    const std::uint64_t tokens = std::max(shape.tokens(), pad), sequences = shape.sequences();
    const auto& sizes = options_.graph_sizes;
    const bool is_graph = !sizes.empty() && tokens <= sizes.back();
    Parts parts;
    parts.rows = padded(sizes, tokens);
    parts.layer = layer(parts.rows, is_graph);
    parts.attention = attention(shape);
    const auto hidden = static_cast<double>(model_.hidden), rows = static_cast<double>(parts.rows);
    parts.end =
        product(*plain_products_, static_cast<double>(sequences), whole(model_.embedding.vocabulary / tp_), hidden) +
        small(2 * rows * hidden);
    parts.begin = reduce(2 * rows * hidden, is_graph);
    const auto of_host = [](Time time) { return static_cast<double>(time.ps()) / 1e6; };
    parts.host_step = of_host(options_.host.step);
    parts.host_sequences = of_host(options_.host.sequence) * static_cast<double>(sequences);
    return parts;
  }

  static double whole(std::uint64_t value) { return static_cast<double>(value); }
  std::uint64_t heads_of() const { return model_.attention.heads / tp_; }
  std::uint64_t kv_heads_of() const { return std::max<std::uint64_t>(1, model_.kv_heads() / tp_); }

  static double product(const Nest& table, double m, double n, double k) {
    const double x[] = {n, k, m};
    return table.at(x);
  }
  double own_product(double m, double n, double k) const { return product(*own_products_, m, n, k); }

  /// Returns the time of a kernel that moves so many bytes.
  double small(double size) const {
    return options_.small_us + size / (0.8 * options_.memory.bytes_per_ns() * 1e9) * 1e6;
  }
  double reduce(double size, bool is_graph) const {
    if (tp_ == 1) return 0;
    const double x[] = {static_cast<double>(tp_), size};
    return (is_graph ? graph_reduce_ : eager_reduce_)->at(x);
  }

  /// Returns what a layer takes without the core of attention, for a number of rows.
  double layer(std::uint64_t rows, bool is_graph) {
    auto [known, is_new] = layers_[is_graph].try_emplace(rows);
    if (is_new) known->second = layer_of(static_cast<double>(rows), is_graph);
    return known->second;
  }

  double layer_of(double rows, bool is_graph) const {
    const auto hidden = whole(model_.hidden), head = whole(model_.head_width());
    const double q = whole(heads_of()), kv = whole(kv_heads_of());
    double us = own_product(rows, (q + 2 * kv) * head, hidden) + own_product(rows, hidden, q * head);
    us += 2 * small(4 * rows * hidden) + small(4 * rows * (q + 2 * kv) * head);
    us += 2 * reduce(2 * rows * hidden, is_graph);
    const auto mlp = [&](double inner) {
      return own_product(rows, 2 * inner, hidden) + own_product(rows, hidden, inner) + small(6 * rows * inner);
    };
    if (own_experts_ != nullptr) {
      const double experts = model_.mlp.experts;
      us += small(rows * (hidden + experts) * 2) + product(*plain_products_, rows, experts, hidden);
      if (dp_ == 1) us += experts_of(rows);
      if (model_.mlp.shared_experts > 0) us += mlp(whole(model_.mlp.shared_experts * model_.mlp_width() / tp_));
    } else {
      us += mlp(whole(model_.mlp_width() / tp_));
    }
    if (options_.names.products != "bfloat16") us += 2 * small(3 * rows * hidden);  // operands become fp8
    return us;
  }

  /// Returns the experts of a layer for the rows of all data-parallel ranks.
  double experts_of(double rows) const {
    const double x[] = {static_cast<double>(tp_ * dp_ / ep_), static_cast<double>(ep_), rows};
    return own_experts_->at(x);
  }

  /// Returns the core of attention. A chunk is what its whole beginning takes less what the part before it takes.
  double attention(const StepShape& shape) const {
    double us = 0;
    if (shape.decodes > 0) {
      const double x[] = {static_cast<double>(shape.decodes),
                          static_cast<double>(shape.context_sum) / static_cast<double>(shape.decodes)};
      us += decode_->at(x);
    }
    for (const StepShape::Chunk& chunk : shape.chunks) {
      const double all[] = {1, static_cast<double>(chunk.tokens) + chunk.context};
      const double before[] = {1, static_cast<double>(chunk.context)};
      us += prefill_->at(all) - (chunk.context > 0 ? prefill_->at(before) : 0);
    }
    return us;
  }

  StepOptions options_;
  workload::Transformer model_;
  std::uint32_t tp_;
  InstanceParallel parallel_;
  std::uint32_t dp_, ep_;
  Ring ep_ring_;
  Nests products_, decodes_, prefills_, reduces_, experts_;
  const Nest *own_products_ = nullptr, *plain_products_ = nullptr, *decode_ = nullptr, *prefill_ = nullptr,
             *graph_reduce_ = nullptr, *eager_reduce_ = nullptr, *own_experts_ = nullptr;
  std::unordered_map<std::uint64_t, double> layers_[2];
};

}  // namespace

extern const StepModelType operators;
constinit const StepModelType operators{
    .name = "operators",
    .help = "operators that were measured, in the tables of AIConfigurator: gemm, generation, context, allreduce, moe",
    .needs_model = true,
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      return std::make_shared<Operators>(context);
    }};

}  // namespace orrery::serving
