#pragma once

#include <cstdint>

namespace orrery {

/// Mixes a word into 64 bits so that every bit of both counts: for hashes, digests, and draws that are keyed by what
/// they are for. The finaliser of splitmix64 (Steele et al., OOPSLA 2014). The seed is spread over all bits before the
/// word meets it, so that two small numbers do not give what two others give.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t word) {
  std::uint64_t bits = ((seed + 1) * 0x9e3779b97f4a7c15U) ^ word;
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

}  // namespace orrery
