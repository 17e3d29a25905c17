#include "orrery/explore/space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "orrery/explore/ranking.hpp"

namespace orrery::explore {
namespace {

Parameter parameter(const std::string& name, std::vector<std::string> values) {
  Parameter result;
  result.name = name;
  result.key = "workload.parallel." + name;
  result.values = std::move(values);
  return result;
}

Expression expression(const std::string& text) { return Expression::parse(text, {.file = "study.yaml"}); }

/// A study of tp, pp and dp = npus / (tp * pp) on 16 NPUs.
Study parallelism() {
  Study study;
  study.parameters = {parameter("tp", {"1", "2", "3"}), parameter("pp", {"1", "2", "4"})};
  study.derived.push_back({"dp", "workload.parallel.dp", expression("npus / (tp * pp)")});
  study.constraints = {expression("npus % (tp * pp) == 0"), expression("dp > 2"), expression("step_time < 1")};
  study.objectives = {{"step_time", false}};
  return study;
}

std::vector<Point> points_of(const Study& study, Funnel* funnel = nullptr) {
  std::vector<Point> points;
  const Funnel found = Space(study, {{"npus", std::int64_t{16}}}).visit([&](const Point& point) {
    points.push_back(point);
    return true;
  });
  if (funnel != nullptr) *funnel = found;
  return points;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// The last parameter changes fastest. A constraint keeps a derived value from being computed where it has none, and
// each counts what it cuts.
TEST(Space, ConstraintsCutInOrder) {
  Funnel funnel;
  const auto points = points_of(parallelism(), &funnel);
  EXPECT_EQ(funnel.raw, 9);
  EXPECT_EQ(funnel.cut, (std::vector<std::uint64_t>{3, 1, 0}));
  EXPECT_EQ(funnel.legal, 5);
  ASSERT_EQ(points.size(), 5);
  EXPECT_EQ(points[1].number, 1);
  EXPECT_EQ(points[1].settings,
            (Settings{{"workload.parallel.tp", "1"}, {"workload.parallel.pp", "2"}, {"workload.parallel.dp", "8"}}));
  EXPECT_EQ(points[4].settings[1].second, "2");
}

// A constraint on one derived value keeps the next one from being computed.
TEST(Space, ConstraintsStandBetweenDerivedValues) {
  Study study;
  study.parameters = {parameter("tp", {"1", "2", "4"})};
  study.derived.push_back({"dp", "", expression("npus / tp")});
  study.derived.push_back({"share", "", expression("8 / dp")});
  study.constraints = {expression("divides(dp, 8)")};
  EXPECT_EQ(points_of(study).size(), 2);
}

// Where `when` does not hold, a parameter has one value, or leaves its key as it is.
TEST(Space, ParametersDependOnOthers) {
  Study study;
  study.parameters = {parameter("tp", {"1", "2"}), parameter("sp", {"true", "false"}), parameter("x", {"7", "8"})};
  study.parameters[1].when = expression("tp > 1");
  study.parameters[1].otherwise = "false";
  study.parameters[2].when = expression("sp");
  Funnel funnel;
  const auto points = points_of(study, &funnel);
  ASSERT_EQ(points.size(), 4);
  EXPECT_EQ(funnel.raw, 8);
  EXPECT_EQ(funnel.alike, 4);
  EXPECT_EQ(points[0].settings, (Settings{{"workload.parallel.tp", "1"}, {"workload.parallel.sp", "false"}}));
  EXPECT_EQ(points[1].settings.back(), (std::pair<std::string, std::string>("workload.parallel.x", "7")));
  EXPECT_EQ(points[3].settings.size(), 2);
}

// A billion combinations of which an early constraint leaves eight are not visited one by one.
TEST(Space, WholeBranchesAreCut) {
  Study study;
  std::vector<std::string> values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::to_string(i));
  study.parameters = {parameter("a", values), parameter("b", values), parameter("c", values)};
  study.constraints = {expression("a < 2"), expression("a + b < 3 and b < 2"), expression("c < 2")};
  Funnel funnel;
  EXPECT_EQ(points_of(study, &funnel).size(), 8);
  EXPECT_EQ(funnel.raw, 1'000'000'000);
  EXPECT_EQ(funnel.cut[0] + funnel.cut[1] + funnel.cut[2] + funnel.legal, funnel.raw);
}

// Names that nothing gives, metrics where there are none yet, and names given twice are refused.
TEST(Space, NamesAreChecked) {
  EXPECT_NO_THROW(validate(parallelism()));
  const auto refused = [](const auto& change) {
    Study study = parallelism();
    change(study);
    EXPECT_THROW(validate(study), Error);
  };
  refused([](Study& study) { study.constraints.push_back(expression("ep > 1")); });
  refused([](Study& study) { study.derived.push_back({"fast", "", expression("step_time < 2")}); });
  refused([](Study& study) { study.parameters.push_back(parameter("tp", {"1"})); });
  refused([](Study& study) { study.parameters.push_back(parameter("step_time", {"1"})); });
  refused([](Study& study) { study.parameters.push_back(parameter("micro-batch", {"1"})); });
  refused([](Study& study) { study.parameters[0].when = expression("pp > 1"); });
}

// A key in back quotes has the value that the study gives it, or that of the base.
TEST(Space, KeysHaveValues) {
  Study study;
  study.parameters = {parameter("tp", {"1", "2"}), parameter("cp", {"1", "2"})};
  study.parameters[1].when = expression("tp > 1");
  study.derived.push_back({"dp", "workload.parallel.dp", expression("8 / (tp * `workload.parallel.ep`)")});
  study.constraints = {expression("`workload.parallel.dp` > 1"), expression("`workload.parallel.cp` < 4")};
  validate(study);
  EXPECT_EQ(keys_of_base(study), (std::vector<std::string>{"workload.parallel.cp", "workload.parallel.ep"}));
  const Space space(study, {{"workload.parallel.cp", std::int64_t{3}}, {"workload.parallel.ep", std::int64_t{2}}});
  std::vector<std::int64_t> cp, dp;
  const Funnel funnel = space.visit([&](const Point& point) {
    cp.push_back(std::get<std::int64_t>(point.names.at("workload.parallel.cp")));
    dp.push_back(std::get<std::int64_t>(point.names.at("workload.parallel.dp")));
    return true;
  });
  EXPECT_EQ(cp, (std::vector<std::int64_t>{3, 1, 2}));
  EXPECT_EQ(dp, (std::vector<std::int64_t>{4, 2, 2}));
  EXPECT_EQ(funnel.legal, 3);
  study.parameters.push_back(parameter("all", {"a.yaml"}));
  study.parameters.back().key = "workload.parallel";
  EXPECT_THROW(validate(study), Error);
  study.parameters.back().key = "stack";
  EXPECT_THROW(validate(study), Error);
}

// ZeRO 3 over more than 512 NPUs has a caveat, unless something that the study changes may hold these keys.
TEST(Space, DefaultCaveats) {
  Study study = parallelism();
  const auto caveats = default_caveats(study);
  ASSERT_EQ(caveats.size(), 1);
  Names names{{"workload.parallel.zero", std::int64_t{3}},
              {"workload.parallel.dp", std::int64_t{512}},
              {"workload.parallel.cp", std::int64_t{1}}};
  EXPECT_FALSE(caveats[0].when.holds(names));
  names["workload.parallel.cp"] = std::int64_t{2};
  EXPECT_TRUE(caveats[0].when.holds(names));
  names["workload.parallel.zero"] = std::int64_t{2};
  EXPECT_FALSE(caveats[0].when.holds(names));
  study.parameters[0].key = "stack";
  EXPECT_TRUE(default_caveats(study).empty());
}

// All numbers of a range need a strategy that draws them.
TEST(Space, IntervalsNeedSamples) {
  Study study;
  study.parameters = {parameter("bandwidth", {})};
  study.parameters[0].interval = Interval{1, 2, " GB/s", false};
  EXPECT_THROW(validate(study), Error);
  study.strategy = Strategy::sobol;
  EXPECT_NO_THROW(validate(study));
}

// A point is found again by its choice. What `when` does not let apply is not chosen, and a choice that a constraint
// cuts says which one it is.
TEST(Space, ChoicesGivePoints) {
  Study study = parallelism();
  study.parameters.push_back(parameter("sp", {"true", "false"}));
  study.parameters.back().when = expression("tp > 1");
  study.parameters.back().otherwise = "false";
  const Space space(study, {{"npus", std::int64_t{16}}});
  Points points(space);
  space.visit([&](const Point& point) {
    points.add(point.number, point.choice);
    const auto again = space.at(point.choice);
    EXPECT_TRUE(again.has_value());
    EXPECT_EQ(again->settings, point.settings);
    EXPECT_EQ(again->names, point.names);
    return true;
  });
  ASSERT_EQ(points.size(), 7);
  EXPECT_EQ(points[5].number, 5);
  EXPECT_EQ(points.find(points[5].choice), 5);
  EXPECT_EQ(space.at({0, 0, 1})->choice, (Choice{0, 0, otherwise}));
  EXPECT_EQ(space.at({1, 0, otherwise})->choice, (Choice{1, 0, 0}));
  std::size_t cut = 9;
  EXPECT_FALSE(space.at({2, 0, 0}, &cut).has_value());
  EXPECT_EQ(cut, 0);
  EXPECT_FALSE(points.find({2, 0, 0}).has_value());
}

// A condition of a parameter may name a derived value that follows from the parameters before it.
TEST(Space, ConditionsNameDerivedValues) {
  Study study = parallelism();
  study.parameters.push_back(parameter("zero", {"0", "1"}));
  study.parameters.back().when = expression("dp > 4");
  study.parameters.back().otherwise = "0";
  validate(study);
  for (const Point& point : points_of(study))
    if (as_real(point.names.at("dp")) <= 4) {
      EXPECT_EQ(to_text(point.names.at("zero")), "0");
    }
  study.parameters[1].when = expression("dp > 4");
  EXPECT_THROW(validate(study), Error);
}

// `best_of` all rows is what is left if the incumbents rule out rows by themselves, whatever the order; a bound that is
// not known rules nothing out.
TEST(Ranking, IncumbentsRuleOutWhatIsNotAmongTheBest) {
  std::mt19937 draw(21);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same numbers each time
  const std::vector<Objective> one{{"mfu", true}}, two{{"step_time", false}, {"mfu", true}};
  for (int round = 0; round < 50; ++round)
    for (const auto& objectives : {one, two}) {
      std::vector<std::vector<double>> rows(30);
      Incumbents incumbents(objectives, 4);
      for (auto& row : rows) {
        for (std::size_t i = 0; i < objectives.size(); ++i) row.push_back(static_cast<double>(draw() % 9));
        incumbents.add(row);
      }
      std::set<std::size_t> left;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (!incumbents.rules_out(rows[i])) left.insert(i);
      for (const std::size_t best : best_of(rows, objectives, 4)) EXPECT_TRUE(left.contains(best));
      if (objectives.size() == 2) {
        EXPECT_EQ(left.size(), best_of(rows, objectives, 4).size());
      }
      EXPECT_FALSE(incumbents.rules_out(std::vector(objectives.size(), std::nan(""))));
      incumbents.add(std::vector(objectives.size(), std::nan("")));
    }
}

// With one objective the best rows come first; equal ones keep their order, and unknown ones are left out.
TEST(Ranking, OneObjectiveHasATop) {
  const std::vector<std::vector<double>> rows{{3}, {1}, {std::nan("")}, {2}, {1}};
  const std::vector<Objective> least{{"step_time", false}}, most{{"mfu", true}};
  EXPECT_EQ(best_of(rows, least, 3), (std::vector<std::size_t>{1, 4, 3}));
  EXPECT_EQ(best_of(rows, most, 9), (std::vector<std::size_t>{0, 3, 1, 4}));
}

// Random rows of three objectives: the front has exactly the rows that no other one dominates.
TEST(Ranking, SeveralObjectivesHaveAFront) {
  std::mt19937 draw(20);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same numbers each time
  const std::vector<Objective> objectives{{"step_time", false}, {"mfu", true}, {"peak_memory", false}};
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<double>> rows(40);
    for (auto& row : rows)
      for (int i = 0; i < 3; ++i) row.push_back(static_cast<double>(draw() % 6));
    const auto dominates = [&](const std::vector<double>& a, const std::vector<double>& b) {
      return a[0] <= b[0] && a[1] >= b[1] && a[2] <= b[2] && a != b;
    };
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (std::ranges::none_of(rows, [&](const auto& other) { return dominates(other, rows[i]); }))
        expected.push_back(i);
    auto found = best_of(rows, objectives, 1);
    std::ranges::sort(found);
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace orrery::explore
