#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"

namespace orrery::gpu {

/// Whether words of control (requests, acknowledgements, signals) pass data that wait for a link.
enum class Arbitration : std::uint8_t {
  fair,  ///< they begin when they come, and delay the data behind them by their own service
  fifo,  ///< they wait like data
};

/// What is simulated of the inside of a GPU.
enum class Noc : std::uint8_t {
  none,   ///< latencies, and the rate of a block
  ports,  ///< besides, the ports of memory and those to the links are servers (Ports)
};

/// What a kernel and the operations of its blocks cost, whatever they move.
struct KernelParameters {
  std::uint32_t sms = 132;               ///< streaming multiprocessors
  std::uint32_t blocks_per_sm = 1;       ///< blocks that run on one SM at a time
  Time launch = Time::from_ns(1050);     ///< from the start of a kernel to the first instruction of its blocks
  Time end = Time::from_ns(100);         ///< from the end of the last block to the end of the kernel
  Time plan_load = Time::from_ns(1250);  ///< an executed plan is copied before its first operation
  Time op = Time::from_ns(220);          ///< fixed cost of an operation
  Time nop = Time::from_ns(20);          ///< the threads of a block wait for each other
  Time fence = Time::from_ns(300);       ///< least cost of a release that other GPUs see
  Time barrier = Time::from_ns(450);     ///< from the last block at a barrier to all blocks going on

  friend bool operator==(const KernelParameters&, const KernelParameters&) = default;
};

/// How long data take that blocks read and write, and how many move at a time.
struct MemoryParameters {
  Time l2 = Time::from_ns(240);     ///< a poll of a flag
  Time hit = Time::from_ns(280);    ///< a load of data that L2 holds
  Time hbm = Time::from_ns(410);    ///< a load of data that L2 does not hold
  Bytes l2_size{50'000'000};        ///< buffers up to this size stay in L2
  Time out = Time::from_ns(280);    ///< from a store to the first link
  Time in = Time::from_ns(150);     ///< from the last link to where it can be seen
  Time load = Time::from_ns(950);   ///< a remote load, from issue to data, over links of 0.30 us each way
  Time touch = Time::from_ns(370);  ///< added to the first load of a block from a GPU
  std::uint32_t width = 16;         ///< bytes that a thread moves in an iteration
  std::uint32_t unroll = 1;         ///< iterations of loads in flight
  /// Threads that load in lock step. Wavefronts of a block load by themselves: each has `unroll` iterations in flight,
  /// all together `outstanding` lines from each GPU at the most. 0: all threads of a block are in lock step.
  std::uint32_t wavefront = 0;
  std::uint32_t outstanding = 256;                         ///< most lines of an iteration
  Bandwidth sm_rate = Bandwidth::from_bytes_per_ns(37.2);  ///< most that one block moves

  friend bool operator==(const MemoryParameters&, const MemoryParameters&) = default;
};

/// What requests are on links.
struct RequestParameters {
  Bytes posted{32768};             ///< bytes of a block that may wait for the first link
  std::uint32_t line = 128;        ///< bytes of a request for data
  std::uint32_t data_header = 28;  ///< bytes added to each line of data
  std::uint32_t read_header = 28;  ///< bytes of a request for a line
  std::uint32_t ack_header = 8;    ///< bytes of the acknowledgement of a line
  Arbitration arbitration = Arbitration::fair;

  friend bool operator==(const RequestParameters&, const RequestParameters&) = default;
};

/// Copy engines, and the proxy on the host that starts them.
struct CopyEngineParameters {
  Time dma_setup = Time::from_ns(2620);  ///< setup of a copy engine, for each copy
  Bandwidth dma_rate = Bandwidth::from_bytes_per_ns(390);
  std::uint32_t dma_line = 256;          ///< as `line`, of copy engines
  Time proxy = Time::from_ns(5500);      ///< a request of a block reaches the proxy on the host and is handled
  Time proxy_gap = Time::from_ns(1000);  ///< between two requests of a GPU that the proxy handles

  friend bool operator==(const CopyEngineParameters&, const CopyEngineParameters&) = default;
};

/// The ports of a GPU, with the rate of all ports of a kind together.
struct PortParameters {
  Noc noc = Noc::none;
  Bandwidth memory_rate = Bandwidth::from_bytes_per_ns(3350);  ///< rate of memory, reads and writes together
  Bandwidth io_rate = Bandwidth::from_bytes_per_ns(450);       ///< to the links, and as much from them

  friend bool operator==(const PortParameters&, const PortParameters&) = default;
};

/// The costs of the actions of thread blocks of a GPU (docs/gpu.md, Parameters).
struct Parameters : KernelParameters, MemoryParameters, RequestParameters, CopyEngineParameters, PortParameters {
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// A kind of GPU of the registry.
struct Profile {
  std::string_view name;
  std::string_view help;  ///< one line
  Parameters parameters = {};
  // How its GPUs are joined where no configuration says it.
  Bandwidth link;                     ///< one way
  double latency_ns = 150;            ///< latency of a link
  std::string_view shape = "Switch";  ///< name of a topology::ShapeType

  /// Returns all profiles: the table of src/gpu/profile_registry.cpp. Sources stand there.
  static std::span<const Profile* const> registry();
};
using ProfileName = Registered<Profile>;

/// How finely a program is simulated.
struct Granularity {
  std::uint32_t bursts = 256;  ///< most pieces of an operation; 0: one for each iteration
};

/// The latency of the way between two GPUs for which Parameters::load holds, one way.
constexpr Time path_of_load = Time::from_ns(300);

}  // namespace orrery::gpu
