#include "orrery/serving/request_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "draws.hpp"
#include "orrery/base/distribution.hpp"
#include "orrery/base/text.hpp"
#include "request_lines.hpp"

namespace orrery::serving {
namespace {

constexpr double ps_per_second = 1e12;

Time from_seconds(double seconds) {
  const double ps = std::round(seconds * ps_per_second);
  return ps < static_cast<double>(Time::max().ps()) ? Time::from_ps(static_cast<std::int64_t>(ps)) : Time::max();
}

Requests read_file(const std::filesystem::path& file, const std::string& format, std::uint32_t block) {
  RequestLines lines(file);
  const RequestFormat* chosen = nullptr;
  if (!lines.next()) lines.fail("the file is empty", "requests");
  lines.put_back();
  for (const RequestFormat* const each : RequestFormat::registry())
    if (format.empty() ? each->recognises(lines.line()) : each->name == format) {
      chosen = each;
      break;
    }
  if (chosen == nullptr)
    lines.fail(fmt::format("the first line is '{}'", cited(lines.line(), 60)), "a format that is known",
               "Name it: serving.requests.format is llmservingsim, azure, mooncake or orrery.");
  Requests requests;
  RequestBuilder builder(requests, block);
  chosen->read(lines, builder);
  if (requests.list.empty()) lines.fail("the file has no requests", "one or more");
  return requests;
}

/// Leaves the requests of a window, at most so many, and changes their arrivals.
void select(const RequestSource& source, Requests& requests) {
  constexpr auto gone = Request::nobody;
  std::vector<std::uint32_t> number(requests.size(), gone);
  std::vector<Request> kept;
  for (std::uint32_t id = 0; id < requests.size(); ++id) {
    Request request = requests[id];
    if (source.limit > 0 && kept.size() >= source.limit) break;
    if (request.after == Request::nobody) {
      if (request.arrival < source.from || request.arrival >= source.to) continue;
      const Time since = request.arrival - source.from;
      request.arrival = source.rate_scale == 1
                            ? since
                            : Time::from_ps(std::llround(static_cast<double>(since.ps()) / source.rate_scale));
    } else {
      if (number[request.after] == gone) continue;
      request.after = number[request.after];
    }
    number[id] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(request);
  }
  requests.list = std::move(kept);
  if (requests.list.empty())
    throw Error(ErrorCode::bad_input, {.file = source.file.string(), .key = "serving.requests"},
                "no request is left in the window", "a window with requests");
}

/// Draws lengths.
class LengthDraws {
 public:
  LengthDraws(const Lengths& lengths, bool is_prompt, std::uint64_t seed, std::uint32_t block)
      : lengths_(lengths), number_(is_prompt ? draw_of_prompt : draw_of_output), seed_(seed) {
    if (lengths.kind != Lengths::Kind::empirical) return;
    for (const Request& request : read_file(lengths.file, {}, block).list)
      known_.push_back(is_prompt ? request.prompt : request.output);
  }

  std::uint32_t draw(std::uint32_t request) const {
    const double u = unit_draw(seed_, request, number_);
    switch (lengths_.kind) {
      case Lengths::Kind::constant:
        return lengths_.value;
      case Lengths::Kind::uniform:
        return lengths_.least + static_cast<std::uint32_t>(whole_draw(
                                    seed_, request, number_, std::uint64_t{lengths_.most} - lengths_.least + 1));
      case Lengths::Kind::log_normal: {
        const double z = normal_quantile(std::clamp(u, 1e-300, 1 - 1e-16));
        const double value = std::round(lengths_.median * std::exp(lengths_.sigma * z));
        return static_cast<std::uint32_t>(
            std::clamp(value, static_cast<double>(lengths_.least), static_cast<double>(lengths_.most)));
      }
      case Lengths::Kind::empirical:
        return known_[whole_draw(seed_, request, number_, known_.size())];
    }
    return lengths_.value;
  }

 private:
  const Lengths& lengths_;
  std::uint64_t number_, seed_;
  std::vector<std::uint32_t> known_;
};

double exponential_draw(std::uint64_t seed, std::uint32_t request) {
  return -std::log1p(-unit_draw(seed, request, draw_of_gap));
}

/// Returns a draw of a gamma distribution with the mean `shape`. Source: Marsaglia and Tsang, "A simple method for
/// generating gamma variables", ACM TOMS 26(3), 2000.
double gamma_draw(double shape, std::uint64_t seed, std::uint32_t request) {
  const double boost = shape < 1 ? std::pow(1 - unit_draw(seed, request, draws_of_gamma), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t k = draws_of_gamma + 1;; k += 2) {
    const double x = normal_quantile(std::clamp(unit_draw(seed, request, k), 1e-300, 1 - 1e-16));
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log1p(-unit_draw(seed, request, k + 1)) < x * x / 2 + d - d * v + d * std::log(v)) return d * v * boost;
  }
}

/// Times of a Poisson process whose rate alternates: the high rate comes first in each period.
class Bursts {
 public:
  explicit Bursts(const RequestSource& source)
      : burst_(source.burst.seconds()),
        rest_(source.period.seconds() - burst_),
        rate_(source.rate),
        burst_rate_(source.burst_rate) {}

  /// Returns the time at which so many arrivals are expected.
  double time_of(double expected) const {
    const double in_burst = burst_ * burst_rate_, in_period = in_burst + rest_ * rate_;
    const double periods = std::floor(expected / in_period), left = expected - periods * in_period;
    const double start = periods * (burst_ + rest_);
    return left < in_burst ? start + left / burst_rate_ : start + burst_ + (left - in_burst) / rate_;
  }

 private:
  double burst_, rest_, rate_, burst_rate_;
};

/// Gives generated requests their arrivals.
void set_arrivals(const RequestSource& source, std::uint64_t seed, Requests& requests) {
  if (source.arrivals == Arrivals::bursts && source.period <= source.burst)
    throw Error(ErrorCode::bad_input, {.key = "serving.requests.period"},
                fmt::format("it is {}, and a burst is {}", readable(source.period), readable(source.burst)),
                "a period that is longer than a burst");
  const Bursts bursts(source);
  Time now;
  double expected = 0;
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    Request& request = requests.list[i];
    switch (source.arrivals) {
      case Arrivals::constant:
        now = from_seconds((i + 1) / (source.rate * source.rate_scale));
        break;
      case Arrivals::poisson:
        now += from_seconds(exponential_draw(seed, i) / (source.rate * source.rate_scale));
        break;
      case Arrivals::gamma: {
        const double shape = 1 / (source.cv * source.cv);
        now += from_seconds(gamma_draw(shape, seed, i) / shape / (source.rate * source.rate_scale));
        break;
      }
      case Arrivals::bursts:
        expected += exponential_draw(seed, i);
        now = from_seconds(bursts.time_of(expected) / source.rate_scale);
        break;
      case Arrivals::closed:
        requests.is_closed = true;
        if (i >= source.users) {
          request.after = i - source.users;
          request.think = source.think;
        }
        break;
    }
    request.arrival = now;
  }
}

Requests generate(const RequestSource& source, std::uint32_t block, std::uint64_t seed) {
  Requests requests;
  requests.tokens_per_id = block;
  requests.list.resize(source.count);
  const LengthDraws prompts(source.prompt, true, seed, block), outputs(source.output, false, seed, block);
  const std::uint32_t shared = source.shared_tokens / block;
  std::uint64_t next_own = std::uint64_t{source.shared_groups} * shared;
  for (std::uint32_t i = 0; i < source.count; ++i) {
    Request& request = requests.list[i];
    request.prompt = prompts.draw(i);
    request.output = outputs.draw(i);
    if (shared == 0) continue;
    request.first_id = requests.ids.size();
    request.num_ids = request.prompt / block;
    const std::uint64_t group = whole_draw(seed, i, draw_of_group, source.shared_groups);
    for (std::uint32_t b = 0; b < request.num_ids; ++b)
      requests.ids.push_back(b < shared ? group * shared + b : next_own++);
  }
  set_arrivals(source, seed, requests);
  return requests;
}

}  // namespace

Requests make_requests(const RequestSource& source, std::uint32_t block, std::uint64_t seed) {
  if (source.file.empty()) return generate(source, block, seed);
  Requests requests = read_file(source.file, source.format, block);
  select(source, requests);
  return requests;
}

RequestFigures figures_of(const Requests& requests) {
  RequestFigures figures;
  figures.requests = requests.size();
  std::unordered_set<std::uint64_t> seen;
  for (const Request& request : requests.list) {
    figures.prompt_tokens += request.prompt;
    figures.output_tokens += request.output;
    if (request.after == Request::nobody) figures.last_arrival = std::max(figures.last_arrival, request.arrival);
    const auto ids = std::span(requests.ids).subspan(request.first_id, request.num_ids);
    const auto found = std::ranges::find_if(ids, [&](std::uint64_t id) { return !seen.contains(id); });
    figures.unlimited_hit += std::min<std::uint64_t>(
        request.prompt, static_cast<std::uint64_t>(found - ids.begin()) * requests.tokens_per_id);
    seen.insert(found, ids.end());
  }
  return figures;
}

}  // namespace orrery::serving
