#pragma once

namespace orrery::test {

/// Whether the program is built with sanitizers. They slow it, so tests take fewer cases.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace orrery::test
