#pragma once

#include <string>
#include <string_view>

#include "orrery/base/quantity.hpp"

namespace orrery::config {

// Quantities as configurations write them: a number, a space (may be left out), a unit. Each parser throws Error
// (bad_input) that says what was found and gives an example: no unit, an unknown one (with the nearest known one), not
// a number, negative, not finite, a number with a leading zero, which other programs read as octal. Each formatter's
// text parses to the same value, bit for bit.

/// B/s, kB/s, MB/s, GB/s, TB/s (powers of 1000), KiB/s, MiB/s, GiB/s, TiB/s (of 1024), and b/s, kb/s, Mb/s, Gb/s, Tb/s
/// (bits). `x GiB/s` is exactly x * (2^30 / 1e9) bytes per ns.
Bandwidth parse_bandwidth(std::string_view text);
std::string to_text(Bandwidth bandwidth);

/// ps, ns, us, ms, s; the result in nanoseconds.
double parse_nanoseconds(std::string_view text);
std::string nanoseconds_to_text(double ns);

/// The same units; the result in seconds of wall-clock time.
double parse_seconds(std::string_view text);
std::string seconds_to_text(double seconds);

/// FLOPS, kFLOPS, MFLOPS, GFLOPS, TFLOPS, PFLOPS, EFLOPS; the result per second.
double parse_flops(std::string_view text);
std::string flops_to_text(double flops);

/// B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; a whole number of bytes.
Bytes parse_bytes(std::string_view text);

}  // namespace orrery::config
