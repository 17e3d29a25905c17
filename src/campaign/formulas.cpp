#include "orrery/campaign/formulas.hpp"

#include <cmath>

namespace orrery::campaign {

double young_interval(double mtbf, double stall) { return std::sqrt(2 * stall * mtbf); }

double daly_first_interval(double mtbf, double stall) { return young_interval(mtbf, stall) - stall; }

double daly_interval(double mtbf, double stall) {
  if (stall >= 2 * mtbf) return mtbf;
  const double part = stall / (2 * mtbf);
  return young_interval(mtbf, stall) * (1 + std::sqrt(part) / 3 + part / 9) - stall;
}

double optimum_interval(double mtbf, double stall) {
  double low = 0, high = mtbf;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    if ((1 - middle / mtbf) * std::exp((middle + stall) / mtbf) > 1)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

double daly_time(double mtbf, double interval, double stall, double restart, double work) {
  return mtbf * std::exp(restart / mtbf) * std::expm1((interval + stall) / mtbf) * work / interval;
}

double exact_ettr(double mtbf, double interval, double stall, double restart) {
  return interval / daly_time(mtbf, interval, stall, restart, interval);
}

double approximate_ettr(double mtbf, double interval, double stall, double restart) {
  return (1 - (restart + interval / 2) / mtbf) / (1 + stall / interval);
}

double first_failure(double mean, double hosts, double shape) { return mean * std::pow(hosts, -1 / shape); }

unsigned hosts_in_repair(double in_repair, double share) {
  double sum = 0;
  for (unsigned k = 0;; ++k) {
    sum += std::exp(k * std::log(in_repair) - in_repair - std::lgamma(k + 1.0));
    if (!(in_repair > 0) || sum >= share || k > in_repair + 40 * std::sqrt(in_repair) + 40) return k;
  }
}

}  // namespace orrery::campaign
