#pragma once

namespace orrery::campaign {

// Closed forms of checkpoints and failures. All times in seconds. `mtbf`: mean time between failures of the job;
// `stall`: time for which a checkpoint stops the job; `interval`: work between two checkpoints; `restart`: time from a
// failure to the first new work. Failures are exponential.

/// Returns the interval sqrt(2 w M). Source: Young, "A first order approximation to the optimum checkpoint interval",
/// CACM 17(9), 1974.
double young_interval(double mtbf, double stall);
/// Returns the interval sqrt(2 w M) - w. Source: as daly_interval.
double daly_first_interval(double mtbf, double stall);
/// Returns the interval with terms of higher order; M if w >= 2 M. Source: Daly, "A higher order estimate of the
/// optimum checkpoint interval for restart dumps", FGCS 22(3), 2006.
double daly_interval(double mtbf, double stall);
/// Returns the interval that is best under daly_time: the root of (1 - t/M) e^((t + w)/M) = 1. For w = 0 that is 0.
double optimum_interval(double mtbf, double stall);

/// Returns the mean time of `work`, each interval of which ends with a checkpoint, if failures strike in restarts too:
/// M e^(R/M) (e^((t + w)/M) - 1) for each interval. Source: as daly_interval.
double daly_time(double mtbf, double interval, double stall, double restart, double work);
/// Returns the effective training time ratio by daly_time.
double exact_ettr(double mtbf, double interval, double stall, double restart);
/// Returns an approximation of it for rare failures, (1 - (u0 + t/2)/M) / (1 + w/t). Source: Kokolis et al.,
/// "Revisiting reliability in large-scale machine learning research clusters", arXiv 2410.21680.
double approximate_ettr(double mtbf, double interval, double stall, double restart);

/// Returns the mean time to the first failure of `hosts` whose lives have a Weibull distribution.
double first_failure(double mean, double hosts, double shape);

/// Returns the number of hosts in repair that is not exceeded with the probability `share`: that of a Poisson
/// distribution with the mean `in_repair`.
unsigned hosts_in_repair(double in_repair, double share);

}  // namespace orrery::campaign
