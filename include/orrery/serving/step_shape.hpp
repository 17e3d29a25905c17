#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orrery::serving {

/// What a step computes, as far as its duration depends on it.
struct StepShape {
  /// Several tokens of one request.
  struct Chunk {
    std::uint32_t tokens = 0;
    std::uint32_t context = 0;  ///< tokens before it
  };
  std::vector<Chunk> chunks;
  std::uint32_t decodes = 0;      ///< requests of which the step computes exactly one token
  std::uint64_t context_sum = 0;  ///< tokens before those
  std::uint32_t context_most = 0;
  std::uint64_t chunk_tokens = 0, chunk_context = 0;

  void clear() {
    chunks.clear();
    decodes = context_most = 0;
    context_sum = chunk_tokens = chunk_context = 0;
  }
  void add(std::uint32_t tokens, std::uint32_t context) {
    if (tokens == 1) {
      ++decodes;
      context_sum += context;
      context_most = std::max(context_most, context);
    } else {
      chunks.push_back({tokens, context});
      chunk_tokens += tokens;
      chunk_context += context;
    }
  }
  std::uint64_t tokens() const { return chunk_tokens + decodes; }
  std::uint64_t sequences() const { return chunks.size() + decodes; }
};

}  // namespace orrery::serving
