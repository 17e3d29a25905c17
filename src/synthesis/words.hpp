#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program.hpp"
#include "repeats.hpp"

namespace orrery::synthesis {

/// A program as words: nodes, and loops over layers. Words that are alike are one token.
struct Words {
  struct Token {
    std::vector<std::uint32_t> symbols = {};  ///< symbols of the body
    std::uint32_t count = 1;                  ///< iterations
    bool is_layers = false;
    std::vector<std::uint32_t> first = {};  ///< [occurrences] position in the program
    std::uint32_t per_micro_batch = 0;
  };
  std::vector<Token> tokens;
  std::vector<std::uint32_t> sequence;  ///< indices into tokens
  std::uint32_t layers = 0;             ///< iterations of the loops over layers; 0: none

  std::uint64_t nodes_of(const Token& token) const {
    return std::uint64_t{token.count} * token.symbols.size() * token.first.size();
  }
};

/// What the loops of all roles are.
struct Loops {
  std::vector<Words> words;  ///< [roles]
  std::uint32_t micro_batches = 1;
};

/// Finds loops in the symbols of all programs and says which are over layers and which over micro-batches
/// (docs/synthesis.md). `crosses_roles`: [symbols] it is a message between NPUs of different roles.
Loops find_words(std::span<const Program> programs, const std::vector<bool>& crosses_roles);

}  // namespace orrery::synthesis
