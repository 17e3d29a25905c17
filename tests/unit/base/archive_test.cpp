#include "orrery/base/archive.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery {
namespace {

struct Part {
  std::string name;
  std::vector<std::pair<std::uint32_t, std::vector<bool>>> flags;

  void serialize(Archive& archive) { archive(name, flags); }
  bool operator==(const Part&) const = default;
};

struct Whole {
  std::int64_t number = 0;
  std::map<std::string, Part> parts;
  std::optional<Part> perhaps;
  std::vector<double> values;
  std::unique_ptr<std::string> owned = {};

  void serialize(Archive& archive) { archive(number, parts, perhaps, values, owned); }
  bool operator==(const Whole& other) const {
    return number == other.number && parts == other.parts && perhaps == other.perhaps && values == other.values &&
           (owned && other.owned ? *owned == *other.owned : owned == other.owned);
  }
};

Whole example() {
  return {-7,
          {{"a", {"first", {{3, {true, false, true}}}}}, {"", {}}},
          Part{"there", {}},
          {1.5, -0.0},
          std::make_unique<std::string>("owned")};
}

/// What was written is read again, over other values too.
TEST(Archive, ReadsWhatItWrote) {
  Whole written = example();
  Archive out;
  out(written);
  const auto bytes = out.written();
  Whole read{1, {{"b", {}}}, {}, {9, 9, 9}};
  Archive in(bytes);
  in(read);
  EXPECT_TRUE(in.is_at_end());
  EXPECT_EQ(read, example());
  Whole none, over = example();
  Archive empty;
  empty(none);
  const auto of_none = empty.written();
  Archive again(of_none);
  again(over);
  EXPECT_EQ(over, Whole());
}

/// Equal values are written as equal bytes, whatever is left between their members or in an optional value that is not
/// there.
TEST(Archive, WritesEqualValuesAsEqualBytes) {
#if !__has_builtin(__builtin_clear_padding)
  GTEST_SKIP() << "this compiler cannot clear what is between members";
#endif
  struct Padded {
    char kind;
    std::int64_t number;
  };
  const auto written = [](unsigned char left) {
    Padded value;
    std::memset(&value, left, sizeof value);
    value.kind = 'a';
    value.number = 1;
    std::vector<Padded> values(2, value);
    std::optional<std::uint32_t> none(left);
    none.reset();
    Archive out;
    out(value, values, none);
    return out.written();
  };
  EXPECT_EQ(written(0), written(255));
}

/// Bytes that are cut off anywhere are found.
TEST(Archive, RefusesToReadBeyondTheEnd) {
  Whole written = example();
  Archive out;
  out(written);
  const auto bytes = out.written();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = std::span(bytes).first(size);
    Archive in(cut);
    Whole read;
    EXPECT_THROW(in(read), Error) << size;
  }
}

}  // namespace
}  // namespace orrery
