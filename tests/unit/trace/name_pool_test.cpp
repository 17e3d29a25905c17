// The pool of names: how texts are numbered, one by one and in batches.
#include "name_pool.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::trace {
namespace {

// One pool takes 300,000 texts one by one, another one in batches. Every third text repeats an earlier one, one is
// empty, and one is longer than a block of the pool. Both pools must number them alike and give each text back, also
// where a second file repeats the texts of the first in another order.
TEST(NamePool, ABatchIsNumberedAsSingleTextsAre) {
  constexpr std::size_t count = 300'000;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(fmt::format("tensor {} of a layer", i % 3 == 2 ? i / 2 : i));
  texts[1000].clear();
  texts[2000].assign(std::size_t{9} << 20, 'x');
  NamePool single, batched;
  NameBatch batch;
  const auto take = [&](std::size_t first, std::size_t stride) {
    single.start_file();
    batched.start_file();
    std::vector<std::uint32_t> expected;
    const auto compare = [&] {
      const auto numbers = batch.intern(batched);
      ASSERT_EQ(std::vector(numbers.begin(), numbers.end()), expected);
      expected.clear();
    };
    for (std::size_t i = first; i < count; i += stride) {
      ASSERT_EQ(batch.add(texts[i]), expected.size());
      expected.push_back(single.intern(texts[i]));
      ASSERT_EQ(single[expected.back()], texts[i]);
      if (batch.is_full()) compare();
    }
    compare();
  };
  take(0, 1);
  ASSERT_EQ(single.size(), batched.size());
  EXPECT_LT(single.size(), count);
  take(1, 2);
  EXPECT_EQ(single.size(), batched.size());
  for (std::uint32_t number = 0; number < single.size(); ++number) ASSERT_EQ(batched[number], single[number]);
}

// A view of the first text is taken before 100,000 more texts arrive: it must still show that text.
TEST(NamePool, ViewsStayValidWhileThePoolGrows) {
  NamePool pool;
  const std::string_view first = pool[pool.intern("first")];
  for (int i = 0; i < 100'000; ++i) pool.intern(fmt::format("text {}", i));
  EXPECT_EQ(first, "first");
  EXPECT_EQ(first.data(), pool[0].data());
}

}  // namespace
}  // namespace orrery::trace
