#include "orrery/pdes/ordered_cells.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::pdes {
namespace {

Time at(std::int64_t ps) { return Time::from_ps(ps); }

constexpr std::int64_t service_delay = 100;  // ps

/// A model that knows the calls of each cell, and the scope of an event by its detail.
class Calls final : public Model {
 public:
  void handle(const Event&) override {}
  void settle(Time, Stage) override {}
  bool admit(Event&) override { return true; }
  Awaited awaits(LpId) const override { return {}; }
  void proceed(LpId) override {}
  void receive(Rank, std::span<const std::byte>) override {}
  Scope scope(const Event& event) const override { return static_cast<Scope>(event.detail); }
  LookaheadBounds lookahead() override { return {}; }
  LookaheadBound lookahead_of_cell(std::uint32_t cell) override {
    asked.push_back(cell);
    return of_cell[cell];
  }
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override { return {}; }

  std::vector<LookaheadBound> of_cell{3};  // nothing leaves a cell
  std::vector<std::uint32_t> asked;
};

/// LPs 0, 1 and 2 are clients, LPs 3, 4 and 5 servers; client i and server i + 3 are in cell i.
class OrderedCellsTest : public testing::Test {
 protected:
  void push(std::int64_t ps, std::uint32_t lp, Scope scope = Scope::anywhere) {
    const Stage stage = lp < 3 ? Stage::client : Stage::server;
    Event event = Event::make(at(ps), stage, LpId(lp), sequence_++, LpId(lp));
    event.detail = static_cast<std::uint64_t>(scope);
    cells_.push(event, calls_);
  }
  bool begin_turn(const OrderedCells::Limits& limits = {}) { return cells_.begin_turn(limits, calls_); }
  void drop_all() {
    while (!cells_.pending(Stage::client).empty()) cells_.pop_client();
    while (!cells_.pending(Stage::server).empty()) cells_.pop_server([](const Event&) {});
  }

  OrderedCells cells_{{0, 1, 2, 0, 1, 2}, at(service_delay), false};
  Calls calls_;
  std::uint64_t sequence_ = 0;
};

TEST_F(OrderedCellsTest, TheEarliestCellTakesItsTurnUpToTheHorizon) {
  // Client 1 calls at 50 at the earliest, and its request leaves cell 1. So nothing is at another cell before 150.
  push(20, 0);
  push(50, 1);
  push(40, 2);
  calls_.of_cell[1].output = at(50);
  ASSERT_TRUE(begin_turn());
  EXPECT_EQ(cells_.pending(Stage::client).time(), at(20));
  EXPECT_EQ(cells_.horizon(), at(150));
}

TEST_F(OrderedCellsTest, ACellThatKeepsItsCallsHoldsUpNobody) {
  // No cell ever calls beyond itself. Cell 2 answers what has been asked for, but within the cell.
  push(20, 0);
  push(70, 1);
  push(30, 5, Scope::cell);
  ASSERT_TRUE(begin_turn());
  EXPECT_EQ(cells_.horizon(), Time::max());
}

TEST_F(OrderedCellsTest, ARequestThatLeavesItsCellBoundsTheHorizon) {
  // The request at 300 stays, that at 400 goes to another cell, where it is at 500. The model need not be asked of cell
  // 1, of which nothing comes before.
  push(10, 0);
  push(300, 4, Scope::cell);
  push(400, 4, Scope::rank);
  ASSERT_TRUE(begin_turn());
  EXPECT_EQ(cells_.horizon(), at(500));
}

TEST_F(OrderedCellsTest, TheModelIsAskedOnlyOfCellsThatMayComeFirst) {
  // Cell 1 brings nothing about before 1,100, as far as is known without the model. Cell 0 does at 110.
  push(10, 0);
  push(1000, 1);
  calls_.of_cell[0].reaction = at(5);
  ASSERT_TRUE(begin_turn());
  EXPECT_EQ(cells_.horizon(), at(115));
  EXPECT_EQ(calls_.asked, (std::vector<std::uint32_t>{0}));
}

TEST_F(OrderedCellsTest, AnEventOfAnotherRankLowersTheHorizon) {
  // Cell 2 is given an event at 60. What it leads to is in no other cell before 160, but then it may be.
  push(20, 0);
  ASSERT_TRUE(begin_turn());
  ASSERT_EQ(cells_.horizon(), Time::max());
  cells_.note_input(at(60));
  push(60, 2);
  EXPECT_EQ(cells_.horizon(), at(160));
}

TEST_F(OrderedCellsTest, NoTurnBeginsBeyondTheLimits) {
  // Clients may be handled before 50, and servers before 30.
  push(50, 0);
  push(30, 4);
  EXPECT_FALSE(begin_turn({.servers = at(30), .clients = at(50)}));
  EXPECT_TRUE(begin_turn({.servers = at(31), .clients = at(50)}));
  EXPECT_EQ(cells_.pending(Stage::server).time(), at(30));
}

TEST_F(OrderedCellsTest, AClientWaitsForTheAnswersOfItsOwnCell) {
  // The server of cell 0 may answer at 110. It must not handle its request yet, so client 0 must wait at 110 but need
  // not at 109.
  push(10, 3);
  push(110, 0);
  EXPECT_FALSE(begin_turn({.servers = at(10), .clients = Time::max()}));
  push(109, 0);
  EXPECT_TRUE(begin_turn({.servers = at(10), .clients = Time::max()}));
}

TEST_F(OrderedCellsTest, TheTimesOfAllCellsAreKnown) {
  // The active cell and the others count, and of requests those that lead to other ranks.
  push(20, 0);
  push(30, 1);
  push(25, 3, Scope::cell);
  push(35, 3, Scope::rank);
  push(45, 5, Scope::anywhere);
  ASSERT_TRUE(begin_turn());
  EXPECT_EQ(cells_.client_time(), at(20));
  EXPECT_EQ(cells_.server_time(), at(25));
  EXPECT_EQ(cells_.leading_time(), at(45));
  drop_all();
  EXPECT_EQ(cells_.client_time(), at(30));
  EXPECT_EQ(cells_.server_time(), at(45));
  EXPECT_EQ(cells_.size(), 2U);
  EXPECT_EQ(cells_.peak(), 5U);
}

TEST_F(OrderedCellsTest, EachCellKnowsWhatItsServersHaveHandled) {
  // Cell 0 has served up to 25, and the others up to 7.
  cells_.begin_after(at(7));
  push(20, 0);
  ASSERT_TRUE(begin_turn());
  cells_.note_served(at(25));
  EXPECT_EQ(cells_.served(LpId(3)), at(25));
  EXPECT_EQ(cells_.served(LpId(4)), at(7));
}

TEST(OneOrderedCell, HasNoHorizonAndNoTurns) {
  // Without cells all LPs are in one. Events of other ranks do not bound it.
  OrderedCells cells({}, at(service_delay), false);
  cells.note_input(at(5));
  EXPECT_FALSE(cells.are_several());
  EXPECT_FALSE(cells.has_had_its_turn(1'000'000'000));
  EXPECT_EQ(cells.horizon(), Time::max());
}

}  // namespace
}  // namespace orrery::pdes
