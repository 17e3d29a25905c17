#pragma once

#include <cstdint>

#include "orrery/base/mix.hpp"

/// Random numbers by counters: number k of request i is a function of (seed, i, k) alone.
namespace orrery::serving {

/// The numbers k of what is drawn for a request.
inline constexpr std::uint64_t draw_of_gap = 0, draw_of_prompt = 1, draw_of_output = 2, draw_of_group = 3,
                               draw_of_step = 4, draw_of_router = 16, draws_of_gamma = 64;

constexpr std::uint64_t bits_of(std::uint64_t seed, std::uint64_t request, std::uint64_t number) {
  return mix(mix(mix(0x5e12, seed), request), number);
}
/// Returns a number from 0 to below 1.
constexpr double unit_draw(std::uint64_t seed, std::uint64_t request, std::uint64_t number) {
  return static_cast<double>(bits_of(seed, request, number) >> 11U) * 0x1p-53;
}
/// Returns a whole number from 0 to below `count`.
constexpr std::uint64_t whole_draw(std::uint64_t seed, std::uint64_t request, std::uint64_t number,
                                   std::uint64_t count) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits_of(seed, request, number)) * count) >> 64U);
}

}  // namespace orrery::serving
