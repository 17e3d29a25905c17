#pragma once

namespace orrery::cluster {

// Closed forms of queues, as books on queueing theory have them. Rates per second, times in seconds.

/// Returns the share of arrivals that find all servers busy, if they do not wait (Erlang B). `load`: arrivals in the
/// mean time of a job.
double erlang_b(unsigned servers, double load);
/// Returns the share of arrivals that wait (Erlang C). `load` is below `servers`.
double erlang_c(unsigned servers, double load);
/// Returns the mean wait of jobs with exponential lengths.
double mean_wait(unsigned servers, double arrivals, double service_rate);

}  // namespace orrery::cluster
