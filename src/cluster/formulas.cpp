#include "orrery/cluster/formulas.hpp"

namespace orrery::cluster {

double erlang_b(unsigned servers, double load) {
  double blocked = 1;
  for (unsigned k = 1; k <= servers; ++k) blocked = load * blocked / (k + load * blocked);
  return blocked;
}

double erlang_c(unsigned servers, double load) {
  const double blocked = erlang_b(servers, load);
  return blocked / (1 - load / servers * (1 - blocked));
}

double mean_wait(unsigned servers, double arrivals, double service_rate) {
  return erlang_c(servers, arrivals / service_rate) / (servers * service_rate - arrivals);
}

}  // namespace orrery::cluster
