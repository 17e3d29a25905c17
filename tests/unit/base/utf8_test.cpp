// Texts of files as results and terminals may get them.
#include "orrery/base/utf8.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// A byte that is no part of UTF-8 becomes a question mark: a lone one, the start of a character that is cut off, a
// character that is longer than it need be, half of a pair of UTF-16, and a code beyond the last character.
TEST(Utf8, other_bytes_become_question_marks) {
  EXPECT_EQ(valid_utf8("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(valid_utf8("a\x80z"), "a?z");
  EXPECT_EQ(valid_utf8("a\xe2\x82"), "a??");
  EXPECT_EQ(valid_utf8("\xc0\xaf"), "??");
  EXPECT_EQ(valid_utf8("\xe0\x80\xaf"), "???");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "???");
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "????");
  EXPECT_EQ(valid_utf8("a\x1b[1m\n"), "a\x1b[1m\n") << "control characters are UTF-8";
}

// What a terminal would obey becomes a question mark, one byte or several; lines and tabulators stay.
TEST(Utf8, terminals_get_no_control_characters) {
  EXPECT_EQ(printable("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(printable("\x1b[2J\x07\r\x7f"), "?[2J???");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("x\xe2\x80\xae y\xe2\x81\xa6"), "x? y?");
  EXPECT_EQ(printable("\xc3\xa9\x9b"), "\xc3\xa9?");
}

}  // namespace
}  // namespace orrery
