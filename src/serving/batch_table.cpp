#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "interpolation.hpp"
#include "measured_file.hpp"
#include "orrery/serving/step_options.hpp"
#include "us_to_time.hpp"

namespace orrery::serving {
namespace {

using Points = std::vector<std::pair<double, double>>;

/// Measured times by the number of requests and a second number, linear in both. Where few requests were measured with
/// many sizes and many with one size only, the line of the former gives the others their slope: they are as much slower
/// or faster everywhere as they are at the size that was measured.
class TimesOfBatches {
 public:
  /// `continues`: whether the times grow with the number of requests beyond the largest one, too.
  TimesOfBatches(std::map<double, Points> points, bool continues) : continues_(continues) {
    std::size_t most = 0;
    for (auto& [requests, of] : points) {
      counts_.push_back(requests);
      lines_.emplace_back(of);
      sole_.push_back(of.size() == 1 ? of.front() : std::pair(0.0, 0.0));
      if (of.size() > most) {
        most = of.size();
        richest_ = counts_.size() - 1;
      }
    }
  }

  double operator()(double requests, double x) const {
    const Bracket b = bracket(counts_, continues_ ? requests : std::min(requests, counts_.back()));
    const double low = at(b.low, x);
    return b.weight == 0 ? low : low + b.weight * (at(b.high, x) - low);
  }
  double most_beyond() const {
    double most = 0;
    for (const MeasuredLine& line : lines_) most = std::max(most, line.most_beyond());
    return most;
  }
  double last() const { return lines_[richest_].last(); }

 private:
  double at(std::size_t i, double x) const {
    const auto& [measured, value] = sole_[i];
    if (value == 0 || i == richest_) return lines_[i](x);
    return value * lines_[richest_](x) / lines_[richest_](measured);
  }

  bool continues_;
  std::vector<double> counts_;
  std::vector<MeasuredLine> lines_;
  std::vector<std::pair<double, double>> sole_;  // [counts] the only point of a line; zeros: there are several
  std::size_t richest_ = 0;                      // the line with the most points
};

/// Whole batches that were measured, as Splitwise publishes them: the time of all prompts of a batch, and the time of a
/// token of all its requests.
class BatchTable final : public StepModel {
 public:
  explicit BatchTable(const StepOptions& options) : BatchTable(options, read(options.tables)) {}

  Time duration(const StepShape& shape, std::uint64_t) override {
    double ms = 0;
    if (shape.decodes > 0)
      ms = token_(shape.decodes, static_cast<double>(shape.context_sum) / static_cast<double>(shape.decodes));
    // Requests that generate beside prompts are tokens like theirs.
    if (!shape.chunks.empty())
      ms = std::max(ms, prompt_(static_cast<double>(shape.chunks.size()), static_cast<double>(shape.tokens())));
    return us_to_time(1000 * ms + host_us_ + host_sequence_us_ * static_cast<double>(shape.sequences()));
  }

  std::vector<BeyondTable> beyond_tables() const override {
    std::vector<BeyondTable> found;
    for (const auto& [name, times] : {std::pair("prompts", &prompt_), std::pair("tokens", &token_)})
      if (times->most_beyond() > 0)
        found.push_back({fmt::format("serving.step.tables: {} have sizes of ", name), times->most_beyond(),
                         fmt::format(", and batches.csv ends at {:.0f}: the line of the last two points continues",
                                     times->last())});
    return found;
  }

 private:
  struct Times {
    std::map<double, Points> prompt, token;
  };

  BatchTable(const StepOptions& options, Times times)
      : prompt_(std::move(times.prompt), false),
        token_(std::move(times.token), true),
        host_us_(static_cast<double>(options.host.step.ps()) / 1e6),
        host_sequence_us_(static_cast<double>(options.host.sequence.ps()) / 1e6) {}

  /// Reads batches.csv. A batch that was measured several times counts with the mean.
  static Times read(const std::filesystem::path& folder) {
    MeasuredFile file(folder, "batches.csv");
    const std::size_t prompt = file.column("prompt"), batch = file.column("batch"),
                      prompt_ms = file.column("prompt_ms"), token_ms = file.column("token_ms");
    struct Sums {
      double prompt = 0, token = 0, rows = 0;
    };
    std::map<std::pair<double, double>, Sums> sums;  // (requests, tokens of each prompt)
    while (file.next()) {
      Sums& of = sums[{file.number(batch), file.number(prompt)}];
      of.prompt += file.number(prompt_ms);
      of.token += file.number(token_ms);
      of.rows += 1;
    }
    if (sums.empty())
      throw Error(ErrorCode::bad_input, {.file = folder.string()}, "batches.csv has no rows", "one or more");
    Times times;
    for (const auto& [key, of] : sums) {
      const auto& [requests, tokens] = key;
      times.prompt[requests].emplace_back(requests * tokens, of.prompt / of.rows);
      times.token[requests].emplace_back(tokens, of.token / of.rows);
    }
    return times;
  }

  TimesOfBatches prompt_, token_;  // by requests, and then by all tokens of prompts, or by the mean context
  double host_us_, host_sequence_us_;
};

}  // namespace

extern const StepModelType batch_table;
constinit const StepModelType batch_table{
    .name = "batches",
    .help = "whole batches that were measured, as Splitwise publishes them: batches.csv",
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      return std::make_shared<BatchTable>(context.options);
    }};

}  // namespace orrery::serving
