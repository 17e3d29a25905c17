#include "orrery/explore/expression.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace orrery::explore {
namespace {

Value evaluate(const std::string& text, const Names& names = {}) {
  return Expression::parse(text, {.file = "study.yaml", .line = 3}).evaluate(names);
}

Value whole(std::int64_t number) { return number; }

std::string message_of(const std::string& text, const Names& names = {}) {
  try {
    static_cast<void>(evaluate(text, names));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "no error";
}

// An expression that fails for all larger values of a name tells which one it is.
TEST(Expression, LimitsAreFound) {
  const auto limited = [](const char* text) {
    return Expression::parse(text, {.file = "study.yaml"}).limited_name().value_or("none");
  };
  EXPECT_EQ(limited("peak_memory <= 80 GB"), "peak_memory");
  EXPECT_EQ(limited("80 GB * 2 > peak_memory"), "peak_memory");
  for (const char* const other : {"peak_memory >= 80 GB", "peak_memory + 1 < 3", "a <= a * 2", "not (a < 3)",
                                  "a < 3 and b < 4", "3 < a", "a == 3"})
    EXPECT_EQ(limited(other), "none") << other;
}

// Quantities of one kind are compared and added, whatever their units; products have powers of their own. What has no
// unit goes with all.
TEST(Expression, KindsOfQuantities) {
  const auto kind_of = [](const std::string& text) -> std::string {
    const auto of_name = [](const std::string& name) {
      return name == "time" ? dimension_of_unit("s") : name == "rate" ? dimension_of_unit("GB/s") : std::nullopt;
    };
    try {
      const auto kind = Expression::parse(text, {.file = "study.yaml"}).dimension(of_name);
      return kind ? to_text(*kind) : "unknown";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(kind_of("time + 3 us"), "s");
  EXPECT_EQ(kind_of("time * rate"), "byte");
  EXPECT_EQ(kind_of("rate * rate / time"), "byte^2/s^3");
  EXPECT_EQ(kind_of("time ** 2 / time"), "s");
  EXPECT_EQ(kind_of("time / 2 s"), "1 (a plain number)");
  EXPECT_EQ(kind_of("312 TFLOPS"), "FLOP/s");
  for (const char* const unknown : {"time * 3", "other", "time < 3 s", "'word'", "time ** 0.5", "log2(time)", "3"})
    EXPECT_EQ(kind_of(unknown), "unknown") << unknown;
  for (const char* const wrong : {"time + rate", "min(3, time, 4 kB) < 1", "not (time == rate)", "divides(time, 2 GB)"})
    EXPECT_NE(kind_of(wrong).find("expected quantities of the same kind"), std::string::npos) << wrong;
}

// Operators bind as in Python: powers before signs before products before sums before comparisons before not, and, or.
TEST(Expression, OperatorsBindAsUsual) {
  EXPECT_EQ(evaluate("2 + 3 * 4 ** 2"), whole(50));
  EXPECT_EQ(evaluate("-2 ** 2"), whole(-4));
  EXPECT_EQ(evaluate("2 ** 3 ** 2"), whole(512));
  EXPECT_EQ(evaluate("(2 + 3) * 4 - 10 % 4 / 2"), whole(19));
  EXPECT_EQ(evaluate("not 1 > 2 and 3 <= 3 or false"), Value(true));
  EXPECT_EQ(evaluate("8 - 3 - 2"), whole(3));
}

// Whole numbers stay exact, to the largest one.
TEST(Expression, WholeNumbersAreExact) {
  EXPECT_EQ(evaluate("9007199254740993 + 0"), whole(9007199254740993));
  EXPECT_EQ(evaluate("9223372036854775807 - 1"), whole(9223372036854775806));
  EXPECT_EQ(evaluate("(-1) ** 1000000000001"), whole(-1));
  EXPECT_EQ(evaluate("3.0 / 2"), Value(1.5));
  EXPECT_NE(message_of("9223372036854775807 + 1").find("beyond 2^63"), std::string::npos);
  EXPECT_NE(message_of("2 ** 63").find("beyond 2^63"), std::string::npos);
  EXPECT_NE(message_of("7 / 2").find("leaves a remainder"), std::string::npos);
  EXPECT_NE(message_of("7 % 0").find("division by 0"), std::string::npos);
}

// Quantities are SI units: bytes, bytes per second, seconds, FLOPs per second. Whole bytes stay whole numbers.
TEST(Expression, UnitsBecomeSi) {
  EXPECT_EQ(evaluate("80 GB"), whole(80'000'000'000));
  EXPECT_EQ(evaluate("2 KiB + 1"), whole(2049));
  EXPECT_EQ(evaluate("400 Gb/s == 50 GB/s"), Value(true));
  EXPECT_EQ(evaluate("312 TFLOPS / 2"), whole(156'000'000'000'000));
  EXPECT_DOUBLE_EQ(as_real(evaluate("1.5 us")), 1.5e-6);
  EXPECT_EQ(value_of("400 Gb/s"), whole(50'000'000'000));
  EXPECT_EQ(value_of("1e3"), Value(1000.0));
  EXPECT_EQ(value_of("-4"), whole(-4));
  EXPECT_EQ(value_of("1f1b"), Value(std::string("1f1b")));
  EXPECT_EQ(value_of("true"), Value(true));
}

// A number of SI units becomes a quantity in the unit that a key wants; words stay as they are.
TEST(Expression, NumbersAreWrittenInAUnit) {
  EXPECT_EQ(to_text_in("GB/s", value_of("400 GB/s")), "400 GB/s");
  EXPECT_EQ(to_text_in("Gb/s", value_of("50 GB/s")), "400 Gb/s");
  EXPECT_EQ(to_text_in("us", 2.5e-6), "2.5 us");
  EXPECT_EQ(to_text_in("GB/s", std::string("auto")), "auto");
  EXPECT_TRUE(is_unit("TFLOPS"));
  EXPECT_FALSE(is_unit("furlongs"));
}

// Functions, names and words.
TEST(Expression, FunctionsNamesAndWords) {
  const Names names{{"tp", whole(8)}, {"schedule", std::string("1f1b")}};
  EXPECT_EQ(evaluate("min(tp, 4) + max(1, 2, 3)", names), whole(7));
  EXPECT_EQ(evaluate("divides(tp, 64) and power_of_two(tp) and not power_of_two(6)", names), Value(true));
  EXPECT_EQ(evaluate("floor(7 / 2.0) * 10 + ceil(2.1)"), whole(33));
  EXPECT_DOUBLE_EQ(as_real(evaluate("log2(tp)", names)), 3);
  EXPECT_EQ(evaluate("schedule == '1f1b' and schedule != \"zb\"", names), Value(true));
  EXPECT_EQ(Expression::parse("a + b * a", {}).names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(message_of("tp + x", names).find("'x' has no value"), std::string::npos);
  EXPECT_NE(message_of("schedule + 1", names).find("takes numbers"), std::string::npos);
}

// Keys of CONFIG.yaml and paths of results stand in back quotes, and are names.
TEST(Expression, KeysStandInBackQuotes) {
  const Names names{{"workload.parallel.micro-batch", whole(4)}, {"tp", whole(2)}, {"/metrics/idle_share", 0.25}};
  EXPECT_EQ(evaluate("`workload.parallel.micro-batch` * tp", names), whole(8));
  EXPECT_EQ(evaluate("`/metrics/idle_share` <= 0.25", names), Value(true));
  EXPECT_EQ(Expression::parse("`a.b-c` - tp", {}).names(), (std::vector<std::string>{"a.b-c", "tp"}));
  EXPECT_NE(message_of("`a.b").find("a back quote without a key"), std::string::npos);
  EXPECT_NE(message_of("``").find("a back quote without a key"), std::string::npos);
}

// A comparison of numbers tells both sides, so that one can say by how much it fails.
TEST(Expression, ComparisonsHaveSides) {
  const Names names{{"peak_memory", 90e9}, {"word", std::string("x")}};
  const auto sides = [&](const char* text) { return Expression::parse(text, {}).sides(names); };
  EXPECT_EQ(sides("peak_memory <= 80 GB"), std::pair(90e9, 80e9));
  EXPECT_EQ(sides("2 > 1 + 3"), std::pair(2.0, 4.0));
  EXPECT_FALSE(sides("not (1 < 2)").has_value());
  EXPECT_FALSE(sides("word == 'y'").has_value());
}

// What cannot be read is refused with its position, however long or deep it is.
TEST(Expression, FaultsNameTheirPosition) {
  EXPECT_NE(message_of("1 +").find("character 4: found the end"), std::string::npos);
  EXPECT_NE(message_of("1 + * 2").find("character 5"), std::string::npos);
  EXPECT_NE(message_of("(1 + 2").find("expected ')'"), std::string::npos);
  EXPECT_NE(message_of("1 2").find("expected an operator"), std::string::npos);
  EXPECT_NE(message_of("sqrt(2)").find("the function 'sqrt'"), std::string::npos);
  EXPECT_NE(message_of("log2(1, 2)").find("2 operands"), std::string::npos);
  EXPECT_NE(message_of("'x").find("a quote without its end"), std::string::npos);
  EXPECT_NE(message_of(std::string(500, '(')).find("nested more than 64 deep"), std::string::npos);
  EXPECT_NE(message_of(std::string(500, '-') + "1").find("nested more than 64 deep"), std::string::npos);
  EXPECT_NE(message_of(std::string(2000, '1')).find("2000 characters"), std::string::npos);
}

}  // namespace
}  // namespace orrery::explore
