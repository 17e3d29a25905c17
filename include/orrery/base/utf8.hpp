#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Returns the text with a question mark for each byte that is not part of UTF-8. Files of results hold texts so.
std::string valid_utf8(std::string_view text);

/// Returns the text as a terminal may get it: valid, and with a question mark for each control character and each mark
/// of the direction of writing, which could change what is seen of the rest. Line feeds and tabulators stay.
std::string printable(std::string_view text);

}  // namespace orrery
