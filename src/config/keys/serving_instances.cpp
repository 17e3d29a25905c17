#include "keys.hpp"
#include "orrery/config/npu_list.hpp"
#include "serving.hpp"

namespace orrery::config {
namespace {

using serving::InstanceOptions;
using serving::Lengths;

const Words<serving::Role>& roles() {
  using serving::Role;
  static const Words<Role> words = {{"both", Role::both, "prompts and outputs"},
                                    {"prefill", Role::prefill, "prompts, up to the first token"},
                                    {"decode", Role::decode, "outputs, with keys and values that are sent"}};
  return words;
}

const Words<Lengths::Kind>& length_kinds() {
  using Kind = Lengths::Kind;
  static const Words<Kind> words = {{"constant", Kind::constant, "`value`"},
                                    {"uniform", Kind::uniform, "`least` to `most`, all equally likely"},
                                    {"log-normal", Kind::log_normal, "by `median` and `sigma`"},
                                    {"empirical", Kind::empirical, "those of the requests of `file`"}};
  return words;
}

/// NPUs of all instances of an entry.
constexpr Handling<InstanceOptions> allocation() {
  return {[](const Value& value, const std::string& path, InstanceOptions& target, Reading&) {
            target.npus.clear();
            for (const Value& item : as_list(value, path, "a list of NPUs")) {
              const NpuRange range = parse_npu_range(item.text, most_npus, item.place(path));
              for (std::uint32_t npu = range.first; npu <= range.last; ++npu) target.npus.emplace_back(npu);
            }
          },
          [](const InstanceOptions& target, std::string_view path, Writer& writer) {
            std::vector<std::uint32_t> numbers;
            for (const NpuId npu : target.npus) numbers.push_back(npu.value());
            if (!numbers.empty()) writer.put(path, fmt::format("[{}]", fmt::join(numbers, ", ")));
          },
          [](const InstanceOptions& a, const InstanceOptions& b) { return a.npus == b.npus; }};
}

constexpr auto blocks_help = "KV blocks of each scheduler; 0: the rest of the memory, less vLLM's null block";

constexpr Row<InstanceOptions> instance_rows[] = {
    {"serving.instances.name", "name in results and messages", "decode", Default::described("instance"),
     any_text("a name"), [](auto& i) { return &i.name; }},
    {"serving.instances.count", "number of such instances", "4", Default::built_in(), count(1, 1U << 20U),
     [](auto& i) { return &i.count; }},
    {"serving.instances.role", "part of a request that they compute", "prefill", Default::built_in(), word<roles>(),
     [](auto& i) { return &i.role; }},
    {"serving.instances.parallel.tp", "tensor parallelism", "8", Default::built_in(), count(1, 65536),
     [](auto& i) { return &i.parallel.tp; }},
    {"serving.instances.parallel.pp", "pipeline parallelism: stages, each of which has a step at a time", "2",
     Default::built_in(), count(1, 65536), [](auto& i) { return &i.parallel.pp; }},
    {"serving.instances.parallel.dp", "data-parallel ranks, each with a scheduler, that begin steps together", "8",
     Default::built_in(), count(1, 4096), [](auto& i) { return &i.parallel.dp; }},
    {"serving.instances.parallel.ep", "expert parallelism", "8", Default::built_in(), count(1, 65536),
     [](auto& i) { return &i.parallel.ep; }},
    {"serving.instances.allocation", "NPUs of the system that they take, one instance after the other", "[0-7, 16-23]",
     Default::described("the first that are free"), ValueInfo("list", "a list of NPUs and ranges", "-", "any"),
     allocation()},
    {"serving.instances.kv-blocks", Text(blocks_help), "34000", Default::built_in(), count(0),
     [](auto& i) { return &i.kv_blocks; }},
    {"serving.instances.memory-share", "share of the memory that weights, reserve and blocks have", "0.92",
     Default::built_in(), efficiency(), [](auto& i) { return &i.memory_share; }},
    {"serving.instances.reserve", "memory of an NPU for activations and recorded graphs", "2 GiB", Default::built_in(),
     size(), [](auto& i) { return &i.reserve; }},
    of_scheduler<InstanceOptions>("serving.instances.scheduler.max-seqs", "as `scheduler.max-seqs`", "256", count(),
                                  [](auto& i) { return &i.scheduler.max_seqs; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.max-tokens", "as `scheduler.max-tokens`", "8192",
                                  count(), [](auto& i) { return &i.scheduler.max_tokens; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.block", "as `scheduler.block`", "16", count(1, 65536),
                                  [](auto& i) { return &i.scheduler.block; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.prefix-cache", "as `scheduler.prefix-cache`", "false",
                                  boolean(), [](auto& i) { return &i.scheduler.prefix_cache; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.ahead", "as `scheduler.ahead`", "false", boolean(),
                                  [](auto& i) { return &i.scheduler.ahead; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.reserve-full", "as `scheduler.reserve-full`", "false",
                                  boolean(), [](auto& i) { return &i.scheduler.reserve_full; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.long-prefill", "as `scheduler.long-prefill`", "1024",
                                  count(0), [](auto& i) { return &i.scheduler.long_prefill; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.watermark", "as `scheduler.watermark`", "10", count(0),
                                  [](auto& i) { return &i.scheduler.watermark; }),
    of_scheduler<InstanceOptions>("serving.instances.scheduler.max-length", "as `scheduler.max-length`", "32768",
                                  count(0), [](auto& i) { return &i.scheduler.max_length; }),
};

constexpr Row<Lengths> length_rows[] = {
    {"serving.requests.prompt.distribution", "how lengths are drawn", "uniform", Default::built_in(),
     word<length_kinds>(), [](auto& l) { return &l.kind; }},
    {"serving.requests.prompt.value", "tokens; constant", "512", Default::built_in(), count(),
     [](auto& l) { return &l.value; }},
    {"serving.requests.prompt.least", "fewest tokens; uniform and log-normal", "16", Default::built_in(), count(),
     [](auto& l) { return &l.least; }},
    {"serving.requests.prompt.most", "most tokens; uniform and log-normal", "8192", Default::built_in(), count(),
     [](auto& l) { return &l.most; }},
    {"serving.requests.prompt.median", "median; log-normal", "1000", Default::built_in(), number("more than 0"),
     [](auto& l) { return &l.median; }},
    {"serving.requests.prompt.sigma", "deviation of the logarithm; log-normal", "0.8", Default::built_in(),
     number("0 or more"), [](auto& l) { return &l.sigma; }},
    {"serving.requests.prompt.file", "file of requests whose lengths are drawn; empirical", "azure_code.csv",
     Default::none(), file(), [](auto& l) { return &l.file; }},
};

}  // namespace

const Keys<InstanceOptions>& instance_keys() {
  static const Keys<InstanceOptions> all("serving.instances", instance_rows, "serving.instances");
  return all;
}

const Keys<Lengths>& length_keys() {
  static const Keys<Lengths> all("serving.requests.prompt and output", length_rows, "serving.requests.prompt");
  return all;
}

}  // namespace orrery::config
