// Configurations of ns-3: what becomes of each line, and what is refused.
#include "orrery/graphfile/ns3_config.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"

namespace orrery::graphfile {
namespace {

using config::expect_error;

constexpr std::uint64_t gbps = 1'000'000'000;

network::PacketRules rules_of(std::string_view text) {
  network::PacketRules rules;
  read_ns3_config(text, "config.txt", rules);
  return rules;
}

// Lines of names in capitals, one of which is known, are a configuration. YAML, a topology and prose are none.
TEST(Ns3Config, IsToldByItsNames) {
  EXPECT_TRUE(is_ns3_config("ENABLE_QCN 1\n\nCC_MODE 12\n"));
  EXPECT_FALSE(is_ns3_config("topology: [Ring]\n"));
  EXPECT_FALSE(is_ns3_config("33 1 32\n"));
  EXPECT_FALSE(is_ns3_config("NOTES about CC_MODE\nand more\n"));
  EXPECT_FALSE(is_ns3_config(""));
}

// Each line with a meaning sets its rule, in the unit of ns-3: MiB, us, and 1,000 bytes for marks.
TEST(Ns3Config, SetsTheRules) {
  const auto rules = rules_of(
      "PACKET_PAYLOAD_SIZE 4000\nBUFFER_SIZE 16\nCC_MODE 1\nRATE_AI 40Mb/s\nRATE_HAI 200Mb/s\nMIN_RATE 1Gbps\n"
      "EWMA_GAIN 0.5\nALPHA_RESUME_INTERVAL 50\nRATE_DECREASE_INTERVAL 4.5\nRP_TIMER 55\nFAST_RECOVERY_TIMES 5\n"
      "CLAMP_TARGET_RATE 1\nHAS_WIN 1\nGLOBAL_T 1\nVAR_WIN 0\nKMIN_MAP 1 100000000000 400\n"
      "KMAX_MAP 1 100000000000 1600\nPMAX_MAP 1 100000000000 0.2\n");
  EXPECT_EQ(rules.payload, 4000U);
  EXPECT_EQ(rules.buffer, 16U << 20U);
  EXPECT_EQ(rules.control, network::ControlName("dcqcn"));
  EXPECT_EQ(rules.parameters.additive_increase, 40'000'000U);
  EXPECT_EQ(rules.parameters.fast_increase, 200'000'000U);
  EXPECT_EQ(rules.parameters.least_rate, gbps);
  EXPECT_EQ(rules.parameters.gain, 0.5);
  EXPECT_EQ(rules.parameters.alpha_interval, Time::from_ns(50'000));
  EXPECT_EQ(rules.parameters.decrease_interval, Time::from_ns(4500));
  EXPECT_EQ(rules.parameters.increase_interval, Time::from_ns(55'000));
  EXPECT_EQ(rules.parameters.fast_recovery_steps, 5U);
  EXPECT_TRUE(rules.parameters.clamps_target);
  EXPECT_EQ(rules.window.kind, network::PacketWindow::Kind::largest);
  EXPECT_FALSE(rules.window_follows_rate);
  EXPECT_EQ(rules.marks.at(100 * gbps), (network::MarkThresholds{400'000, 1'600'000, 0.2}));
}

// The control decides which step counts and what headers have; without QCN nothing is marked.
TEST(Ns3Config, DependsOnTheControl) {
  const std::string rates = "RATE_AI 40Mb/s\nDCTCP_RATE_AI 615Mb/s\nMULTI_RATE 1\n";
  EXPECT_EQ(rules_of(rates + "CC_MODE 8\n").parameters.additive_increase, 615'000'000U);
  EXPECT_EQ(rules_of(rates + "CC_MODE 7\n").parameters.additive_increase, 40'000'000U);
  EXPECT_EQ(rules_of("CC_MODE 3\n").header, 36U + 42U);
  EXPECT_EQ(rules_of("CC_MODE 3\n").acknowledgement, 48U + 28U);
  EXPECT_EQ(rules_of("CC_MODE 7\n").header, 36U + 8U);
  EXPECT_EQ(rules_of("CC_MODE 7\nCC_MODE 7\n").header, 36U + 8U);
  EXPECT_EQ(rules_of("CC_MODE 3\nCC_MODE 12\n").header, 36U);
  EXPECT_EQ(rules_of("HAS_WIN 0\nGLOBAL_T 1\nCC_MODE 12\n").window.kind, network::PacketWindow::Kind::none);
  EXPECT_TRUE(rules_of("ENABLE_QCN 0\nKMIN_MAP 1 5 1\nKMAX_MAP 1 5 2\nPMAX_MAP 1 5 0.1\n").marks.empty());
}

// The topology and the link that fails are kept, names without meaning are listed, and the rules stay as they were.
TEST(Ns3Config, KeepsTheRest) {
  network::PacketRules rules;
  const auto config = read_ns3_config(
      "TOPOLOGY_FILE t.txt\nFLOW_FILE f\nMY_KEY 3\nLINK_DOWN 7 8 11\nL2_ACK_INTERVAL 1\n", "config.txt", rules);
  EXPECT_EQ(*config.topology, "t.txt");
  EXPECT_EQ(config.link_down->time, Time::from_ns(2'000'007'000));
  EXPECT_EQ(config.link_down->a, 8U);
  EXPECT_EQ(config.without_effect, (std::vector<std::string>{"FLOW_FILE", "MY_KEY"}));
  EXPECT_EQ(rules, network::PacketRules());
}

// One fault at a time: the message names the file.
TEST(Ns3Config, RefusesWhatWouldChangeResults) {
  for (const char* text :
       {"CC_MODE 10\n", "L2_BACK_TO_ZERO 1\n", "ACK_HIGH_PRIO 1\n", "ERROR_RATE_PER_LINK 0.01\n", "RATE_BOUND 0\n",
        "PAUSE_TIME 0\n", "CC_MODE 3\nMULTI_RATE 1\n", "FAST_REACT 0\nCC_MODE 3\n", "PACKET_PAYLOAD_SIZE 0\n",
        "RATE_AI fast\n", "KMIN_MAP 2 5 1\n", "KMIN_MAP 1 5 1\nKMAX_MAP 1 6 1\nPMAX_MAP 1 5 1\n", "LINK_DOWN 5\n",
        "VAR_WIN 2\n", "EWMA_GAIN 1\n", "U_TARGET 0\n", "CC_MODE\n"})
    expect_error([&] { rules_of(text); }, ErrorCode::bad_input, {"config.txt"});
}

}  // namespace
}  // namespace orrery::graphfile
