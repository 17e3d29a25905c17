#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery {

// Quantities as configurations write them: a number, a space (may be left out), a unit. Each parser throws Error
// (bad_input, at `place`) that says what was found and gives an example: no unit, an unknown one (with the nearest
// known one), not a number, negative, not finite, a number with a leading zero, which other programs read as octal.
// Each formatter's text parses to the same value, bit for bit.

/// Reads B/s, kB/s, MB/s, GB/s, TB/s (powers of 1000), KiB/s, MiB/s, GiB/s, TiB/s (of 1024), and b/s, kb/s, Mb/s, Gb/s,
/// Tb/s (bits). `x GiB/s` is exactly x * (2^30 / 1e9) bytes per ns.
Bandwidth parse_bandwidth(std::string_view text, const Place& place = {});
std::string to_text(Bandwidth bandwidth);

/// Reads ps, ns, us, ms or s of simulated time. Returns nanoseconds.
double parse_nanoseconds(std::string_view text, const Place& place = {});
std::string nanoseconds_to_text(double ns);

/// Reads ms, s, min or h of wall-clock time. Returns seconds.
double parse_seconds(std::string_view text, const Place& place = {});
std::string seconds_to_text(double seconds);

/// Reads FLOPS, kFLOPS, MFLOPS, GFLOPS, TFLOPS, PFLOPS or EFLOPS. Returns FLOPs per second.
double parse_flops(std::string_view text, const Place& place = {});
std::string flops_to_text(double flops);

/// Reads B, kB, MB, GB, TB, KiB, MiB, GiB or TiB. Throws Error (bad_input) unless it is a whole number of bytes.
/// `example`: what a message proposes, with the unit that a number without one is to have.
Bytes parse_bytes(std::string_view text, const Place& place = {}, std::string_view example = "64 MiB");

/// Reads a number without a unit: 0 or more, finite. `range`: what a message says that it may be.
double parse_number(std::string_view text, const Place& place = {}, std::string_view range = "0 or more");
/// Reads a whole number in decimal digits, minimum..maximum.
std::uint64_t parse_count(std::string_view text, std::uint64_t minimum, std::uint64_t maximum, const Place& place = {});

}  // namespace orrery
