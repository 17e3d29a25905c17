#include "serving_rate.hpp"

#include <algorithm>

#include "orrery/parallel/communicator.hpp"
#include "orrery/run/requests.hpp"

namespace orrery::study {
namespace {

constexpr double most_scale = 1024, least_scale = 1.0 / 1024;

/// Returns the requests that arrive in a second, if the first and the last arrival are known.
double rate_of(const serving::Results& results) {
  Time first = Time::max(), last;
  for (const serving::RequestRecord& record : results.requests) {
    first = std::min(first, record.arrival);
    last = std::max(last, record.arrival);
  }
  const double span = (last - first).seconds();
  return span > 0 ? (static_cast<double>(results.requests.size()) - 1) / span : 0;
}

}  // namespace

ServedAlone serve_alone(const config::ServingConfiguration& configuration,
                        const std::function<bool()>& stop_requested) {
  const auto alone = parallel::make_serial();
  ServedAlone run{run::make_scenario(configuration), {}, {}};
  const serving::Control control{.watchdog_seconds = 0, .stop_requested = stop_requested, .progress = {}};
  run.results = run::simulate_requests(configuration, run.scenario, control, *alone);
  run.metrics = serving::metrics_of(configuration.serving, run.scenario, run.results);
  return run;
}

HighestRate highest_rate(config::ServingConfiguration configuration, double accuracy,
                         const std::function<bool()>& stop_requested) {
  const double given = configuration.serving.requests.rate_scale;
  HighestRate best;
  const auto meets = [&](double scale) {
    configuration.serving.requests.rate_scale = given * scale;
    const ServedAlone run = serve_alone(configuration, stop_requested);
    const bool is_met = run.metrics.slo_attainment >= configuration.serving.slo.share;
    if (is_met && scale > best.scale) {
      const double rate = rate_of(run.results), requests = static_cast<double>(run.results.requests.size());
      const Time limit = configuration.serving.slo.ttft;
      best = {scale, rate, limit == Time::max() ? 0 : limit.seconds() * rate / requests, run.metrics};
    }
    return is_met;
  };
  double met = 0, missed = 0;
  if (meets(1)) {
    met = 1;
    while (missed == 0 && met < most_scale) (meets(2 * met) ? met : missed) = 2 * met;
    if (missed == 0) return best;
  } else {
    missed = 1;
    while (met == 0 && missed > least_scale) (meets(missed / 2) ? met : missed) = missed / 2;
    if (met == 0) return best;
  }
  while (missed > met * (1 + accuracy)) {
    const double middle = (met + missed) / 2;
    (meets(middle) ? met : missed) = middle;
  }
  return best;
}

}  // namespace orrery::study
