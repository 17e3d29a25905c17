#pragma once

namespace orrery::test {

/// Everything is slower: tests take fewer cases.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace orrery::test
