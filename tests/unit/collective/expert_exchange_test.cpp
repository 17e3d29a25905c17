#include "orrery/collective/expert_exchange.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::collective {
namespace {

constexpr double gb = 1e9;

ExpertOptions options(std::string_view kernels, std::uint32_t top_k, std::uint32_t servers) {
  return {.kernels = ExpertKernelsName(kernels), .top_k = top_k, .servers = servers};
}

// Of m servers, k draws reach m (1 - (1 - 1/m)^k) different ones.
TEST(ExpertCopies, AreThoseOfDifferentServersAndNpus) {
  const ExpertCopies limited = expert_copies({.ranks = 64, .servers = 8}, 8, 4);
  EXPECT_NEAR(limited.servers, 3.59954833984375, 1e-12);
  EXPECT_NEAR(limited.npus, 32 * (1 - std::pow(31.0 / 32, 8)), 1e-12);
  const ExpertCopies few = expert_copies({.ranks = 12, .servers = 3}, 2, 7);
  EXPECT_NEAR(few.servers, 3 * (1 - 4.0 / 9), 1e-12);
  EXPECT_NEAR(few.npus, 12 * (1 - 121.0 / 144), 1e-12);
  EXPECT_NEAR(expert_copies({.ranks = 8, .servers = 1}, 3, 0).servers, 1, 1e-12);
}

// H800 with DeepEP (deepseek-ai/DeepEP at 0297fc8, docs/legacy.md): 4,096 tokens of 7,168 values to 8 experts.
TEST(ExpertExchange, TakesWhatWasMeasured) {
  const double bf16 = 4096 * 7168 * 2.0, fp8 = 4096 * 7392.0;
  const auto seconds = [](std::uint32_t servers, double bytes) {
    const ExpertGroup group{.ranks = 8 * servers, .servers = servers, .link = 200 * gb, .nic = 50 * gb};
    return expert_exchange(options("deepep-v1", 8, 4), group, bytes);
  };
  EXPECT_NEAR(seconds(1, fp8).seconds, 1.0392e-3, 0.15e-3);
  EXPECT_NEAR(seconds(4, fp8).seconds, 1.8791e-3, 0.28e-3);
  EXPECT_NEAR(seconds(8, bf16).seconds, 4.2273e-3, 0.63e-3);
  EXPECT_EQ(seconds(1, fp8).bound, "links in the node");
  EXPECT_EQ(seconds(8, bf16).bound, "NIC");
}

// Twice the NIC takes half of the time until something else binds; kernels of low latency send each copy by itself.
TEST(ExpertExchange, FollowsTheNetwork) {
  const ExpertGroup slow{.ranks = 16, .servers = 4, .link = 450 * gb, .nic = 12.5 * gb};
  ExpertGroup fast = slow;
  fast.nic *= 2;
  const auto v2 = options("deepep-v2", 4, 0);
  EXPECT_NEAR(expert_exchange(v2, slow, 1e8).seconds - 30e-6, 2 * (expert_exchange(v2, fast, 1e8).seconds - 30e-6),
              1e-12);
  fast.nic *= 1000;
  EXPECT_NE(expert_exchange(v2, fast, 1e8).bound, "NIC");
  const ExpertTime low = expert_exchange(options("deepep-low-latency", 4, 0), slow, 1e6);
  EXPECT_NEAR(low.nic_bytes, 1e6 * 4 * 12 / 16, 1e-3);
  EXPECT_NEAR(low.link_bytes, 1e6 * 4 * 3 / 16, 1e-3);
  EXPECT_NEAR(low.seconds, 35e-6 + low.nic_bytes / (0.93 * 12.5 * gb), 1e-12);
}

}  // namespace
}  // namespace orrery::collective
