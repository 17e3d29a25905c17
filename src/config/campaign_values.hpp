#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/campaign/options.hpp"
#include "orrery/cluster/options.hpp"
#include "orrery/cluster/placement.hpp"
#include "types.hpp"

namespace orrery::config {

// Values of campaigns and clusters over time.

const Words<campaign::Per>& failure_units();
const Words<campaign::Symptom>& symptoms();
const Words<campaign::Exposure>& exposures();
const Words<campaign::Selection>& host_selections();
const Words<campaign::TierKind>& checkpoint_tiers();
const Words<campaign::Writers>& checkpoint_writers();
const Words<bool>& checkpoint_modes();
const Words<bool>& awaited_hosts();
const Words<bool>& elastic_batches();
const Words<cluster::Placing>& placement_policies();
const Words<cluster::Admission>& admission_policies();
const Words<cluster::Sharing>& sharing_kinds();
const Words<cluster::SharedLinks>& shared_link_kinds();

/// Returns a time of up to 100 years in nanoseconds, rounded up. Throws Error (bad_input).
campaign::Nanoseconds as_long_time(const Value& value, const std::string& key);
/// Returns such a time as the reader takes it.
std::string long_time_text(campaign::Nanoseconds time);
/// Returns events in a day of "0.2 per 1000 days".
double as_rate(const Value& value, const std::string& key);
/// Returns a distribution: a number that read(value, key) reads, or one of these in a mapping such as {exponential: 2
/// h}.
campaign::Spread as_spread(const Value& value, const std::string& key,
                           double (*read)(const Value& value, const std::string& key));
std::string spread_text(const campaign::Spread& spread, std::string (*write)(double number));

/// Throws Error (bad_input) at `place` for a share that is not from 0 to 1.
void require_share_of_one(double share, const Place& place);
/// Throws Error (bad_input) at `place` for a relative speed of 0 or above 1.
void require_relative_speed(double speed, const Place& place);

extern const ValueKind<campaign::Nanoseconds> long_time_kind;
extern const ValueKind<std::optional<campaign::Nanoseconds>> optional_time_kind;
extern const ValueKind<double> rate_kind;
extern const ValueKind<campaign::Spread> time_spread_kind;
extern const ValueKind<campaign::Work> work_kind;

/// Returns the type of times of weeks, which are written unless they are `campaign::longest`.
constexpr Type<campaign::Nanoseconds> long_time() { return long_time_kind; }
/// Returns the type of such times that may be left to the simulation.
constexpr Type<std::optional<campaign::Nanoseconds>> optional_time() { return optional_time_kind; }
/// Returns the type of events in a day.
constexpr Type<double> daily_rate() { return rate_kind; }
/// Returns the type of distributions of times, kept in seconds.
constexpr Type<campaign::Spread> time_spread() { return time_spread_kind; }
/// Returns the type of amounts of work.
constexpr Type<campaign::Work> work_amount() { return work_kind; }

}  // namespace orrery::config
