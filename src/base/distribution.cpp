#include "orrery/base/distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "orrery/base/error.hpp"

namespace orrery {
namespace {

/// Returns the share of a standard normal distribution that lies below x.
double normal_share(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double value = 0;
  for (std::size_t i = N; i-- > 0;) value = value * x + coefficients[i];
  return value;
}

// The coefficients of AS 241, PPND16: numerators and denominators for the middle, the tails and the far tails.
constexpr std::array<double, 8> middle_over = {
    3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
    4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr std::array<double, 8> middle_under = {1.0,
                                                4.2313330701600911252e+1,
                                                6.8718700749205790830e+2,
                                                5.3941960214247511077e+3,
                                                2.1213794301586595867e+4,
                                                3.9307895800092710610e+4,
                                                2.8729085735721942674e+4,
                                                5.2264952788528545610e+3};
constexpr std::array<double, 8> tail_over = {
    1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
    1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array<double, 8> tail_under = {1.0,
                                              2.05319162663775882187e0,
                                              1.67638483018380384940e0,
                                              6.89767334985100004550e-1,
                                              1.48103976427480074590e-1,
                                              1.51986665636164571966e-2,
                                              5.47593808499534494600e-4,
                                              1.05075007164441684324e-9};
constexpr std::array<double, 8> far_over = {
    6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,  2.96560571828504891230e-1,
    2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr std::array<double, 8> far_under = {1.0,
                                             5.99832206555887937690e-1,
                                             1.36929880922735805310e-1,
                                             1.48753612908506148525e-2,
                                             7.86869131145613259100e-4,
                                             1.84631831751005468180e-5,
                                             1.42151175831644588870e-7,
                                             2.04426310338993978564e-15};

/// Returns the quantile of a normal distribution of which only what lies between two bounds is left.
double truncated_normal(double u, double mean, double deviation, double least, double most) {
  const double low = normal_share((least - mean) / deviation), high = normal_share((most - mean) / deviation);
  const double share = low + u * (high - low);
  if (share <= 0) return least;
  if (share >= 1) return most;
  return std::clamp(mean + deviation * normal_quantile(share), least, most);
}

}  // namespace

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(middle_over, r) / polynomial(middle_under, r);
  }
  const double r = std::sqrt(-std::log(std::min(p, 1 - p)));
  const double x = r <= 5 ? polynomial(tail_over, r - 1.6) / polynomial(tail_under, r - 1.6)
                          : polynomial(far_over, r - 5) / polynomial(far_under, r - 5);
  return q < 0 ? -x : x;
}

double Distribution::quantile(double u) const {
  switch (kind) {
    case DistributionKind::uniform:
      return std::clamp(least + u * (most - least), least, most);
    case DistributionKind::normal:
      return truncated_normal(u, mean, deviation, least, most);
    case DistributionKind::lognormal:
      return std::clamp(std::exp(truncated_normal(u, std::log(median), deviation, std::log(least), std::log(most))),
                        least, most);
    case DistributionKind::tail:
      return u < 1 - probability ? 1 : factor;
    case DistributionKind::exponential: {
      if (u < 1 - probability) return 1;
      const double share = (u - (1 - probability)) / probability;   // of those that are slow
      const double below_most = -std::expm1(-(most - 1) / excess);  // what is not cut off
      return std::clamp(1 - excess * std::log1p(-share * below_most), 1.0, most);
    }
    case DistributionKind::values:
      return values[std::min(static_cast<std::size_t>(u * static_cast<double>(values.size())), values.size() - 1)];
  }
  ensure_failed("a kind of distribution without quantiles", std::source_location::current());
}

double Distribution::lowest() const {
  switch (kind) {
    case DistributionKind::tail:
      return probability < 1 ? std::min(1.0, factor) : factor;
    case DistributionKind::exponential:
      return 1;
    case DistributionKind::values:
      return values.front();
    default:
      return least;
  }
}

}  // namespace orrery
