#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/registry.hpp"
#include "orrery/base/time.hpp"
#include "orrery/serving/request.hpp"

namespace orrery::serving {

/// How lengths of prompts or outputs are drawn.
struct Lengths {
  enum class Kind : std::uint8_t { constant, uniform, log_normal, empirical };
  Kind kind = Kind::constant;
  std::uint32_t value = 512;                  ///< constant
  std::uint32_t least = 1, most = 1U << 20U;  ///< bounds of what is drawn
  double median = 512, sigma = 1;             ///< log-normal
  std::filesystem::path file = {};            ///< empirical: a file of requests, drawn with repetition

  friend bool operator==(const Lengths&, const Lengths&) = default;
};

/// How generated requests arrive.
enum class Arrivals : std::uint8_t { constant, poisson, gamma, bursts, closed };

/// Where the requests of a run come from: a file, or a generator.
struct RequestSource {
  std::filesystem::path file;                  ///< empty: generated
  std::string format;                          ///< format of the file; empty: the first line tells
  std::uint64_t limit = 0;                     ///< most requests of the file; 0: all
  Time from = Time::zero(), to = Time::max();  ///< arrivals that count; `from` becomes time 0
  double rate_scale = 1;                       ///< arrivals are divided by it

  std::uint32_t count = 1000;  ///< requests that are generated
  Arrivals arrivals = Arrivals::poisson;
  double rate = 1;         ///< requests per second
  double cv = 1;           ///< coefficient of variation of the gaps; gamma
  double burst_rate = 10;  ///< requests per second in bursts
  Time burst = Time::from_ps(1'000'000'000'000);
  Time period = Time::from_ps(10'000'000'000'000);
  std::uint32_t users = 1;    ///< closed
  Time think = Time::zero();  ///< closed
  Lengths prompt, output{.value = 128};
  std::uint32_t shared_tokens = 0, shared_groups = 1;  ///< tokens and number of shared prefixes
};

/// A format of request files.
struct RequestFormat {
  std::string_view name, help;

  static std::span<const RequestFormat* const> registry();

  /// Returns whether a file begins like one of this format.
  bool (*recognises)(std::string_view first_line) = nullptr;
  /// Appends the requests of a file. Throws Error (bad_input) with the line.
  void (*read)(class RequestLines& lines, class RequestBuilder& builder) = nullptr;
};

/// Returns the requests of a source. `block`: tokens of a KV block. `seed`: of all draws. Throws Error (bad_input).
/// O(requests).
Requests make_requests(const RequestSource& source, std::uint32_t block, std::uint64_t seed);

/// Numbers of a list of requests.
struct RequestFigures {
  std::uint64_t requests = 0, prompt_tokens = 0, output_tokens = 0;
  Time last_arrival;                ///< last arrival of requests that do not wait for others
  std::uint64_t unlimited_hit = 0;  ///< prompt tokens that one unlimited cache would find, requests in order
};
RequestFigures figures_of(const Requests& requests);

}  // namespace orrery::serving
