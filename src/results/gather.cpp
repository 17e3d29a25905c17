#include "gather.hpp"

#include <limits>

namespace orrery::results {
namespace {

std::vector<std::string> split(std::span<const char> characters, std::span<const std::uint64_t> lengths) {
  std::vector<std::string> texts;
  texts.reserve(lengths.size());
  std::size_t start = 0;
  for (const auto length : lengths) {
    texts.emplace_back(characters.data() + start, length);
    start += length;
  }
  return texts;
}

void join(std::span<const std::string> texts, std::vector<char>& characters, std::vector<std::uint64_t>& lengths) {
  for (const std::string& text : texts) {
    characters.insert(characters.end(), text.begin(), text.end());
    lengths.push_back(text.size());
  }
}

}  // namespace

std::vector<Block> blocks(std::span<const std::int64_t> rows, std::uint64_t limit) {
  std::vector<Block> result;
  Block block{0, 0, 0, 0};
  for (std::size_t key = 0; key < rows.size(); ++key) {
    const auto more = static_cast<std::uint64_t>(rows[key]);
    if (block.num_rows > 0 && block.num_rows + more > limit) {
      result.push_back(block);
      block = {key, key, block.first_row + block.num_rows, 0};
    }
    block.last_key = key + 1;
    block.num_rows += more;
  }
  if (block.num_rows > 0) result.push_back(block);
  return result;
}

std::vector<std::string> gather_texts(parallel::Communicator& world, std::span<const std::string> mine) {
  std::vector<char> characters;
  std::vector<std::uint64_t> lengths;
  join(mine, characters, lengths);
  characters = world.gather<char>(characters, Rank(0));
  lengths = world.gather<std::uint64_t>(lengths, Rank(0));
  return split(characters, lengths);
}

std::vector<std::uint32_t> intern(parallel::Communicator& world, std::span<const std::string> mine,
                                  std::vector<std::string>& all) {
  all = gather_texts(world, mine);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (world.size() > 1) {
    std::vector<char> characters;
    std::vector<std::uint64_t> lengths;
    join(all, characters, lengths);
    world.broadcast(characters, Rank(0));
    world.broadcast(lengths, Rank(0));
    all = split(characters, lengths);
  }
  ensure(all.size() <= std::numeric_limits<std::uint32_t>::max(), "names can be numbered");
  std::vector<std::uint32_t> indices;
  indices.reserve(mine.size());
  for (const std::string& text : mine) {
    indices.push_back(static_cast<std::uint32_t>(std::lower_bound(all.begin(), all.end(), text) - all.begin()));
  }
  return indices;
}

}  // namespace orrery::results
