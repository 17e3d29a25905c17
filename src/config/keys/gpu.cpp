#include "keys.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

bool has_gpu(const Configuration& c) { return c.gpu.profile.has_value(); }

Handling<Configuration> profile_name() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.gpu.profile = word(gpu_profiles()).read(value, path, reading);
            target.gpu.parameters = (*target.gpu.profile)->parameters;
          },
          [](const Configuration& c, Writer& writer) {
            if (has_gpu(c)) writer.put("system.gpu.profile", std::string(c.gpu.profile->name()));
          },
          [](const Configuration& a, const Configuration& b) { return a.gpu.profile == b.gpu.profile; }};
}

/// A parameter whose default is that of the profile.
template <class T, class Access>
void add_parameter(Keys<Configuration>& keys, Text path, Text help, Text example, const Type<T>& type, Access access) {
  keys.add({.path = path,
            .help = help,
            .example = example,
            .otherwise = Default::described("that of the profile"),
            .see = "gpu.md, *Profiles and parameters*"},
           type, access)
      .only_if(has_gpu, "profile");
}

void add_times(Keys<Configuration>& keys) {
  const auto add = [&](Text path, Text help, Text example, Time gpu::Parameters::*member) {
    add_parameter(
        keys, path, help, example, duration(), [member](auto& c) -> auto& { return c.gpu.parameters.*member; });
  };
  using P = gpu::Parameters;
  add("system.gpu.launch", "from the start of a kernel to the first instruction of its blocks", "1.3 us", &P::launch);
  add("system.gpu.end", "from the end of the last block to the end of the kernel", "100 ns", &P::end);
  add("system.gpu.plan-load", "an executed plan is copied before its first operation", "1.25 us", &P::plan_load);
  add("system.gpu.op", "fixed cost of an operation of a block", "220 ns", &P::op);
  add("system.gpu.nop", "the threads of a block wait for each other", "20 ns", &P::nop);
  add("system.gpu.l2", "a poll of a flag", "240 ns", &P::l2);
  add("system.gpu.hit", "a load of data that L2 holds", "280 ns", &P::hit);
  add("system.gpu.hbm", "a load of data that L2 does not hold", "410 ns", &P::hbm);
  add("system.gpu.out", "from a store to the first link", "280 ns", &P::out);
  add("system.gpu.in", "from the last link to where data can be seen", "150 ns", &P::in);
  add("system.gpu.load", "a load from another GPU, with a way of 0.30 us in each direction", "950 ns", &P::load);
  add("system.gpu.touch", "added to the first load of a block from a GPU", "370 ns", &P::touch);
  add("system.gpu.fence", "least cost of a release that other GPUs see", "300 ns", &P::fence);
  add("system.gpu.barrier", "from the last block at a barrier to all blocks going on", "450 ns", &P::barrier);
  add("system.gpu.dma-setup", "of a copy engine, for each copy", "2.62 us", &P::dma_setup);
  add("system.gpu.proxy", "until the proxy on the host has handled a request of a block", "5.5 us", &P::proxy);
  add("system.gpu.proxy-gap", "between two requests that the proxy handles", "1 us", &P::proxy_gap);
}

void add_counts(Keys<Configuration>& keys) {
  const auto add = [&](Text path, Text help, Text example, std::uint32_t least,
                       std::uint32_t gpu::Parameters::*member) {
    add_parameter(
        keys, path, help, example,
        count(least, 1U << 20U), [member](auto& c) -> auto& { return c.gpu.parameters.*member; });
  };
  using P = gpu::Parameters;
  add("system.gpu.sms", "streaming multiprocessors (compute units)", "132", 1, &P::sms);
  add("system.gpu.blocks-per-sm", "blocks that are on one at a time", "1", 1, &P::blocks_per_sm);
  add("system.gpu.width", "bytes that a thread moves in an iteration", "16", 1, &P::width);
  add("system.gpu.unroll", "iterations of loads in flight", "4", 1, &P::unroll);
  add("system.gpu.wavefront", "threads of a block that load in lock step; 0: all", "64", 0, &P::wavefront);
  add("system.gpu.outstanding", "most lines of an iteration", "256", 1, &P::outstanding);
  add("system.gpu.line", "bytes of a line, the unit of requests", "128", 1, &P::line);
  add("system.gpu.data-header", "bytes added to each line of data on links", "28", 0, &P::data_header);
  add("system.gpu.read-header", "bytes of a request for a line", "28", 0, &P::read_header);
  add("system.gpu.ack-header", "bytes of the acknowledgement of a line", "8", 0, &P::ack_header);
  add("system.gpu.dma-line", "bytes of a line of copy engines", "256", 1, &P::dma_line);
}

void add_others(Keys<Configuration>& keys) {
  add_parameter(
      keys, "system.gpu.l2-size", "buffers of a collective up to this size stay in L2", "50 MB", size(),
      [](auto& c) -> auto& { return c.gpu.parameters.l2_size; });
  add_parameter(
      keys, "system.gpu.posted", "bytes of a block that may wait for the first link", "32 KiB", size(1),
      [](auto& c) -> auto& { return c.gpu.parameters.posted; });
  add_parameter(
      keys, "system.gpu.sm-rate", "most that one block moves", "37.2 GB/s", bandwidth(),
      [](auto& c) -> auto& { return c.gpu.parameters.sm_rate; });
  add_parameter(
      keys, "system.gpu.dma-rate", "most that a copy engine moves", "390 GB/s", bandwidth(),
      [](auto& c) -> auto& { return c.gpu.parameters.dma_rate; });
  add_parameter(
      keys, "system.gpu.arbitration", "whether words of control pass data that wait for a link", "fifo",
      word(gpu_arbitrations()), [](auto& c) -> auto& { return c.gpu.parameters.arbitration; });
  add_parameter(
      keys, "system.gpu.noc", "what is simulated of the inside of a GPU", "ports", word(gpu_nocs()),
      [](auto& c) -> auto& { return c.gpu.parameters.noc; });
  add_parameter(
      keys, "system.gpu.memory-rate", "with `noc: ports`: of memory, reads and writes together", "3350 GB/s",
      bandwidth(), [](auto& c) -> auto& { return c.gpu.parameters.memory_rate; });
  add_parameter(
      keys, "system.gpu.io-rate", "with `noc: ports`: of the ports to the links, in each direction", "450 GB/s",
      bandwidth(), [](auto& c) -> auto& { return c.gpu.parameters.io_rate; });
  keys.add(
          {.path = "system.gpu.bursts",
           .help = "most pieces of an operation that are simulated one by one",
           .example = "64",
           .otherwise = Default::built_in()},
          count(1, 1U << 20U), [](auto& c) -> auto& { return c.gpu.bursts; })
      .only_if(has_gpu, "profile");
  keys.add(
          {.path = "system.gpu.granularity",
           .help = "how finely thread blocks are simulated",
           .example = "line",
           .otherwise = Default::built_in()},
          word(gpu_finenesses()), [](auto& c) -> auto& { return c.gpu.fineness; })
      .only_if(has_gpu, "profile");
  keys.add(
          {.path = "system.gpu.evaluate",
           .help = "when the plans of collectives are simulated",
           .example = "alone",
           .otherwise = Default::built_in()},
          word(gpu_evaluations()), [](auto& c) -> auto& { return c.gpu.evaluation; })
      .only_if(has_gpu, "profile");
  keys.add(
          {.path = "system.gpu.compute-share",
           .help = "compute nodes have only the SMs that thread blocks of collectives leave (not with evaluate: alone)",
           .example = "false",
           .otherwise = Default::built_in()},
          boolean(), [](auto& c) -> auto& { return c.gpu.compute_share; })
      .only_if(has_gpu, "profile");
}

}  // namespace

const Keys<Configuration>& gpu_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.gpu");
    keys.add({.path = "system.gpu.profile",
              .help = "GPUs whose thread blocks carry out the plans of collectives.custom",
              .example = "h100",
              .otherwise = Default::none(),
              .see = "gpu.md"},
             word(gpu_profiles()).info, profile_name());
    add_times(keys);
    add_counts(keys);
    add_others(keys);
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
