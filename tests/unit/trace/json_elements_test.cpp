// JSON documents that are read in pieces: what is given, in which order, and what is refused.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "fixture.hpp"
#include "json_elements.hpp"

namespace orrery::trace {
namespace {

class JsonElements : public TraceTest {
 protected:
  /// Returns "NAME=VALUE@POSITION" for each part that is given: elements of the array "all" with a + before them.
  std::vector<std::string> parts(const std::string& text) const {
    std::vector<std::string> given;
    const auto note = [&](std::string_view mark) {
      return [&given, mark](std::string_view name, const simdjson::dom::element& value, std::uint64_t position) {
        given.push_back(fmt::format("{}{}={}@{}", mark, name, simdjson::minify(value), position));
      };
    };
    TraceFile file(write(text, "t.json"), {"t.json", 0});
    constexpr std::string_view all[] = {"all"};
    read_json(file, all, note("+"), note(""));
    return given;
  }
  std::string refusal_of_text(const std::string& text) const {
    return refusal_of([&] { parts(text); });
  }
};

using Parts = std::vector<std::string>;

TEST_F(JsonElements, GivesElementsAndMembersInTheOrderOfTheFile) {
  // An object with members before and after the array "all": each comes with its name and the byte where it begins.
  EXPECT_EQ(parts(R"({"a": 1, "all": [ {"x":[1,2]}, "t", 3 ], "b": {"all":[4]}})"),
            (Parts{"a=1@6", "+all={\"x\":[1,2]}@18", "+all=\"t\"@31", "+all=3@36", "b={\"all\":[4]}@46"}));
  EXPECT_EQ(parts("[1, []]"), (Parts{"+=1@1", "+=[]@4"}));
  EXPECT_EQ(parts(" {} \n"), Parts{});
  EXPECT_EQ(parts("[]"), Parts{});
}

TEST_F(JsonElements, TextsMayHoldBracketsAndQuotationMarks) {
  // A name and a value with brackets, commas and escaped quotation marks: they are texts and end nothing.
  EXPECT_EQ(parts(R"({"]\"}": "a\\", "all": ["}\",]", "\\"]})"),
            (Parts{R"(]"}="a\\"@9)", R"(+all="}\",]"@24)", R"(+all="\\"@33)"}));
}

TEST_F(JsonElements, ALargeFileGoesThroughInPieces) {
  // 100,000 elements, 2.4 MB in all, then one text of 1 MB: all are given once, at the right bytes.
  std::string text = R"({"all": [)";
  for (int i = 0; i < 100000; ++i) text += fmt::format("{}{{\"number\": {:>10}}}", i == 0 ? "" : ",\n", i);
  text += fmt::format(", \"{}\"]}}", std::string(1 << 20, 'x'));
  const auto given = parts(text);
  ASSERT_EQ(given.size(), 100001u);
  EXPECT_EQ(given[99999], fmt::format("+all={{\"number\":99999}}@{}", text.find("{\"number\":      99999")));
  EXPECT_EQ(given[100000].size(), fmt::format("+all=\"\"@{}", text.find("\"xxx")).size() + (1 << 20));
}

TEST_F(JsonElements, RefusesWhatIsNotJsonWithTheByte) {
  // Documents that are damaged or cut off at various places: one message with the place.
  EXPECT_HAS(refusal_of_text("7"), "byte 0): this is not JSON: the document begins with '7'");
  EXPECT_HAS(refusal_of_text(R"({"all": [1, 2)"), "byte 13): this is not JSON: the document is cut off here");
  EXPECT_HAS(refusal_of_text(R"({"all": ["ab)"), "is cut off within a text");
  EXPECT_HAS(refusal_of_text(R"({"all": [1 2]})"), "byte 11): this is not JSON: there is '2'; expected ','");
  EXPECT_HAS(refusal_of_text(R"({"all": [1,]})"), "byte 11): this is not JSON: there is ']'; expected a value");
  EXPECT_HAS(refusal_of_text(R"({"all": [tru]})"), "(byte 9): this is not JSON");
  EXPECT_HAS(refusal_of_text(R"({"all": [{"a" 1}]})"), "(byte 9): this is not JSON");
  EXPECT_HAS(refusal_of_text(R"({"all": [{]}]})"), "this is not JSON");
  EXPECT_HAS(refusal_of_text(R"({all: 1})"), "byte 1): this is not JSON: there is 'a'; expected the name of a member");
  EXPECT_HAS(refusal_of_text("[] x"), "byte 3): this is not JSON: the document goes on after its end, with 'x'");
  for (const std::string part : {"{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "[[", "[\"\\"})
    EXPECT_HAS(refusal_of_text(part), "this is not JSON");
}

}  // namespace
}  // namespace orrery::trace
