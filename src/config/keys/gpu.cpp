#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

bool has_gpu(const Configuration& c) { return c.gpu.profile.has_value(); }

constexpr Handling<Configuration> profile_name() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.gpu.profile = word<gpu_profiles>().read(value, path, reading);
            target.gpu.parameters = (*target.gpu.profile)->parameters;
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (has_gpu(c)) writer.put(path, std::string(c.gpu.profile->name()));
          },
          [](const Configuration& a, const Configuration& b) { return a.gpu.profile == b.gpu.profile; }};
}

using P = gpu::Parameters;
constexpr std::uint32_t most_of_gpu = 1U << 20U;

/// Returns the row of a parameter whose default is that of the profile.
template <auto member, class T>
consteval Row<Configuration> parameter(Text path, Text help, Text example, const Type<T>& type) {
  return {path,
          help,
          example,
          Default::described("that of the profile"),
          type,
          [](auto& c) { return &(c.gpu.parameters.*member); },
          see("gpu.md, *Profiles and parameters*"),
          only_if(has_gpu, "profile")};
}

constexpr Row<Configuration> gpu_rows[] = {
    {"system.gpu.profile", "GPUs whose thread blocks carry out the plans of collectives.custom", "h100",
     Default::none(), word<gpu_profiles>(), profile_name(), see("gpu.md")},
    parameter<&P::launch>("system.gpu.launch", "from the start of a kernel to the first instruction of its blocks",
                          "1.3 us", duration()),
    parameter<&P::end>("system.gpu.end", "from the end of the last block to the end of the kernel", "100 ns",
                       duration()),
    parameter<&P::plan_load>("system.gpu.plan-load", "an executed plan is copied before its first operation", "1.25 us",
                             duration()),
    parameter<&P::op>("system.gpu.op", "fixed cost of an operation of a block", "220 ns", duration()),
    parameter<&P::nop>("system.gpu.nop", "the threads of a block wait for each other", "20 ns", duration()),
    parameter<&P::l2>("system.gpu.l2", "a poll of a flag", "240 ns", duration()),
    parameter<&P::hit>("system.gpu.hit", "a load of data that L2 holds", "280 ns", duration()),
    parameter<&P::hbm>("system.gpu.hbm", "a load of data that L2 does not hold", "410 ns", duration()),
    parameter<&P::out>("system.gpu.out", "from a store to the first link", "280 ns", duration()),
    parameter<&P::in>("system.gpu.in", "from the last link to where data can be seen", "150 ns", duration()),
    parameter<&P::load>("system.gpu.load", "a load from another GPU, with a way of 0.30 us in each direction", "950 ns",
                        duration()),
    parameter<&P::touch>("system.gpu.touch", "added to the first load of a block from a GPU", "370 ns", duration()),
    parameter<&P::fence>("system.gpu.fence", "least cost of a release that other GPUs see", "300 ns", duration()),
    parameter<&P::barrier>("system.gpu.barrier", "from the last block at a barrier to all blocks going on", "450 ns",
                           duration()),
    parameter<&P::dma_setup>("system.gpu.dma-setup", "of a copy engine, for each copy", "2.62 us", duration()),
    parameter<&P::proxy>("system.gpu.proxy", "until the proxy on the host has handled a request of a block", "5.5 us",
                         duration()),
    parameter<&P::proxy_gap>("system.gpu.proxy-gap", "between two requests that the proxy handles", "1 us", duration()),
    parameter<&P::sms>("system.gpu.sms", "streaming multiprocessors (compute units)", "132", count(1, most_of_gpu)),
    parameter<&P::blocks_per_sm>("system.gpu.blocks-per-sm", "blocks that are on one at a time", "1",
                                 count(1, most_of_gpu)),
    parameter<&P::width>("system.gpu.width", "bytes that a thread moves in an iteration", "16", count(1, most_of_gpu)),
    parameter<&P::unroll>("system.gpu.unroll", "iterations of loads in flight", "4", count(1, most_of_gpu)),
    parameter<&P::wavefront>("system.gpu.wavefront", "threads of a block that load in lock step; 0: all", "64",
                             count(0, most_of_gpu)),
    parameter<&P::outstanding>("system.gpu.outstanding", "most lines of an iteration", "256", count(1, most_of_gpu)),
    parameter<&P::line>("system.gpu.line", "bytes of a line, the unit of requests", "128", count(1, most_of_gpu)),
    parameter<&P::data_header>("system.gpu.data-header", "bytes added to each line of data on links", "28",
                               count(0, most_of_gpu)),
    parameter<&P::read_header>("system.gpu.read-header", "bytes of a request for a line", "28", count(0, most_of_gpu)),
    parameter<&P::ack_header>("system.gpu.ack-header", "bytes of the acknowledgement of a line", "8",
                              count(0, most_of_gpu)),
    parameter<&P::dma_line>("system.gpu.dma-line", "bytes of a line of copy engines", "256", count(1, most_of_gpu)),
    parameter<&P::l2_size>("system.gpu.l2-size", "buffers of a collective up to this size stay in L2", "50 MB", size()),
    parameter<&P::posted>("system.gpu.posted", "bytes of a block that may wait for the first link", "32 KiB", size(1)),
    parameter<&P::sm_rate>("system.gpu.sm-rate", "most that one block moves", "37.2 GB/s", bandwidth()),
    parameter<&P::dma_rate>("system.gpu.dma-rate", "most that a copy engine moves", "390 GB/s", bandwidth()),
    parameter<&P::arbitration>("system.gpu.arbitration", "whether words of control pass data that wait for a link",
                               "fifo", word<gpu_arbitrations>()),
    parameter<&P::noc>("system.gpu.noc", "simulated parts inside a GPU", "ports", word<gpu_nocs>()),
    parameter<&P::memory_rate>("system.gpu.memory-rate", "with `noc: ports`: of memory, reads and writes together",
                               "3350 GB/s", bandwidth()),
    parameter<&P::io_rate>("system.gpu.io-rate", "with `noc: ports`: of the ports to the links, in each direction",
                           "450 GB/s", bandwidth()),
    {"system.gpu.bursts", "most pieces of an operation that are simulated one by one", "64", Default::built_in(),
     count(1, 1U << 20U), [](auto& c) { return &c.gpu.bursts; }, only_if(has_gpu, "profile")},
    {"system.gpu.granularity", "how finely thread blocks are simulated", "line", Default::built_in(),
     word<gpu_granularities>(), [](auto& c) { return &c.gpu.granularity_kind; }, only_if(has_gpu, "profile")},
    {"system.gpu.evaluate", "when the plans of collectives are simulated", "alone", Default::built_in(),
     word<gpu_evaluations>(), [](auto& c) { return &c.gpu.evaluation; }, only_if(has_gpu, "profile")},
    {"system.gpu.compute-share",
     "compute nodes have only the SMs that thread blocks of collectives leave (not with evaluate: alone)", "false",
     Default::built_in(), boolean(), [](auto& c) { return &c.gpu.compute_share; }, only_if(has_gpu, "profile")},
};

}  // namespace

const Keys<Configuration>& gpu_keys() {
  static const Keys<Configuration> all("system.gpu", gpu_rows);
  return all;
}

/// Plans that are simulated alone say what whole collectives take, whatever else is on the links. Others need links
/// that cut their requests through.
void Validation::validate_gpu() {
  if (!c_.gpu.profile) return;
  const std::string_view key = "system.gpu.profile";
  attempt([&] { c_.gpu.validate(); });
  require(c_.rule_set == RuleSet::physical, key, "found GPUs with ASTRA-sim's rules, which know algorithms only",
          "no GPUs, or rules: physical");
  const network::Options& network = c_.execution.network;
  if (c_.gpu.evaluation == gpu::Evaluation::alone) {
    require(
        !network.model->simulates_links(), "system.gpu.evaluate",
        fmt::format("found alone in the {} network, whose links a collective that was simulated by itself would not "
                    "hold, and whose traffic it would not meet",
                    name(network.model)),
        "in-network, or system.network.model: congestion-unaware for a whole run without queues at links");
  } else {
    require(
        network.model->simulates_links() && !network.model->sends_packets, key,
        fmt::format("found GPUs whose thread blocks send requests over links in the {} network", name(network.model)),
        "system.network.model: congestion-aware, or system.gpu.evaluate: alone with congestion-unaware");
    require(network.switching == network::Switching::cut_through, key,
            "found GPUs in a network that stores messages whole at each switch",
            "system.network.switching: cut-through");
    require(!network.graph, key, "found GPUs whose thread blocks send requests over links of a graph",
            "the links of shapes (no system.network.graph), or system.gpu.evaluate: alone with congestion-unaware");
  }
  require(!c_.collectives.library.library, key, "found GPUs beside a library, which decides the same times",
          "one of the two");
}

}  // namespace orrery::config
