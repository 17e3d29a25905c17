#include "orrery/base/archive.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
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

  void serialize(Archive& archive) { archive(number, parts, perhaps, values); }
  bool operator==(const Whole&) const = default;
};

Whole example() {
  return {-7, {{"a", {"first", {{3, {true, false, true}}}}}, {"", {}}}, Part{"there", {}}, {1.5, -0.0}};
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
