#include <array>

#include "orrery/gpu/profile.hpp"

namespace orrery::gpu {
namespace {

constexpr Bandwidth gb_per_s(double value) { return Bandwidth::from_bytes_per_ns(value); }
constexpr Time ns(std::int64_t value) { return Time::from_ns(value); }

// Sources. SMs, sizes of L2 and rates of links: data sheets of the vendors. A100 and H100: fitted to public tables of
// MSCCL++ (github:microsoft/mscclpp at 1f5f065d, docs/tutorials/03 and 04, test/deploy/perf_ndmv4.jsonl and
// perf_ndmv5.jsonl, pull requests 169 and 647). H20: a public measurement of register copies and copy engines. L2 and
// memory latencies lie between those of gpu-benches (github:RRZE-HPC/gpu-benches, gpu-latency). B200 and MI300X have
// few public figures (vllm-project/vllm#37756, sgl-project/sglang#6619): their parameters are assumptions.
constexpr Parameters h100_parameters{};

constexpr Parameters with_a100() {
  Parameters p;
  p.sms = 108;
  p.launch = ns(2400);
  p.end = ns(500);
  p.l2 = ns(230);
  p.hit = ns(200);
  p.hbm = ns(450);
  p.l2_size = Bytes(40'000'000);
  p.out = ns(200);
  p.in = ns(100);
  p.load = ns(800);
  p.sm_rate = gb_per_s(27);
  p.dma_rate = gb_per_s(270);
  return p;
}

constexpr Parameters with_h20() {
  Parameters p;
  p.sms = 78;
  p.hbm = Time::from_ps(409'600);
  p.l2_size = Bytes(60'000'000);
  p.dma_rate = gb_per_s(397.4);
  return p;
}

constexpr Parameters with_b200() {
  Parameters p;
  p.sms = 148;
  p.launch = ns(1200);
  p.l2 = ns(306);
  p.hit = ns(300);
  p.hbm = ns(500);
  p.l2_size = Bytes(126'000'000);
  p.out = ns(340);
  p.load = ns(1100);
  p.barrier = ns(600);
  p.sm_rate = gb_per_s(44);
  p.data_header = 16;
  p.read_header = 9;
  p.ack_header = 4;
  p.dma_rate = gb_per_s(726);
  return p;
}

constexpr Parameters with_mi300x() {
  Parameters p;
  p.sms = 304;
  p.launch = ns(2200);
  p.end = ns(300);
  p.op = ns(300);
  p.nop = ns(30);
  p.l2 = ns(220);
  p.hit = ns(250);
  p.hbm = ns(500);
  p.l2_size = Bytes(256'000'000);  // the Infinity Cache
  p.out = ns(400);
  p.in = ns(200);
  p.load = ns(1300);
  p.touch = ns(400);
  p.barrier = ns(800);
  p.fence = ns(500);
  p.sm_rate = gb_per_s(12);
  p.dma_setup = ns(8000);
  p.dma_rate = gb_per_s(48);
  return p;
}

// The generic GPU of ASTRA-sim 3.0 (arXiv 2606.10440, section 5.1): 128 compute units, no headers, links of 1 us. A
// unit has 4 wavefronts of 64 threads with 64 lines in flight. Its memory moves 4 TiB/s, and its ports to the links
// 1 TiB/s. The other latencies are assumptions.
constexpr Parameters with_generic() {
  Parameters p;
  p.sms = 128;
  p.launch = p.end = p.plan_load = p.op = p.nop = Time::zero();
  p.l2 = ns(100);
  p.hit = p.hbm = ns(120);
  p.out = p.in = Time::zero();
  p.load = ns(720);
  p.touch = p.fence = Time::zero();
  p.barrier = ns(100);
  p.outstanding = 64;
  p.wavefront = 64;
  p.sm_rate = gb_per_s(1099.5);
  p.data_header = p.read_header = p.ack_header = 0;
  p.dma_setup = p.proxy = p.proxy_gap = Time::zero();
  p.dma_rate = gb_per_s(1099.5);
  p.arbitration = Arbitration::fifo;
  p.noc = Noc::ports;
  p.memory_rate = gb_per_s(4398.0);  // 256 channels of 16 GiB/s
  p.io_rate = gb_per_s(1099.5);      // 32 ports of 32 GiB/s
  return p;
}

constexpr Profile h100{"h100", "NVIDIA H100 or H200", h100_parameters, gb_per_s(450)};
constexpr Profile a100{"a100", "NVIDIA A100", with_a100(), gb_per_s(300)};
constexpr Profile h20{"h20", "NVIDIA H20", with_h20(), gb_per_s(450)};
constexpr Profile b200{"b200", "NVIDIA B200 (few public figures)", with_b200(), gb_per_s(900)};
constexpr Profile mi300x{"mi300x",        "AMD MI300X (few public figures)", with_mi300x(), gb_per_s(64), 300,
                         "FullyConnected"};
constexpr Profile generic{"generic-3.0", "the generic GPU of ASTRA-sim 3.0", with_generic(), gb_per_s(1099.5), 500};

}  // namespace

std::span<const Profile* const> Profile::registry() {
  static constexpr std::array profiles = {&h100, &a100, &h20, &b200, &mi300x, &generic};
  return profiles;
}

}  // namespace orrery::gpu
