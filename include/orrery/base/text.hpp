#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// What stands for the number of an NPU in names of files.
inline constexpr std::string_view npu_placeholder = "{npu}";
/// Returns a name with the number in each place of the placeholder.
std::string name_for_npu(std::string pattern, std::uint64_t npu);

/// Returns "1 message", "2 messages"; with `plural` where an s will not do.
std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural = {});

/// Returns "175.1 G": at most four digits and a decimal prefix, to stand before a unit.
std::string with_prefix(double value);

/// Returns "80.00 GB", "5.26 GiB", "512 B": bytes by powers of 1024 if `like` is a whole number of MiB, else by powers
/// of 1000. So a size is shown in the units in which somebody wrote the size beside it.
std::string size_text(std::uint64_t bytes, std::uint64_t like);

/// Returns "1.234 ms", "56 ns": simulated time for people.
std::string readable(Time time);

/// Returns "0, 3, 7 and 12 more": at most ten, in the order given.
std::string list(std::span<const NpuId> npus);

/// Returns the text without the blanks at both ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t");

/// Returns an argument as a POSIX shell takes it: in quotes where it has other characters than those of plain words.
std::string as_typed(const std::string& argument);

/// Returns a text as a cell of CSV (RFC 4180): in quotes if it has a comma, a quote or the end of a line.
std::string csv_cell(std::string_view text);

/// Returns the whole text of a file. Throws Error (bad_input) for what is no regular file (links are followed; a device
/// or a pipe might never end), cannot be read or is larger than 64 MiB: at `named_by` if some other file names this
/// one.
std::string read_text(const std::filesystem::path& path, const Place& named_by = {});

}  // namespace orrery
