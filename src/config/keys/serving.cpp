#include "serving.hpp"

#include <algorithm>
#include <charconv>

#include "keys.hpp"

namespace orrery::config {
namespace {

using ServedModel = serving::Description;
using serving::Arrivals;
using serving::InstanceOptions;
using serving::Lengths;

/// Returns the names of a registry.
template <class Name>
const Words<Name>& named() {
  static const Words<Name> words = [] {
    Words<Name> all;
    for (const auto entry : Name::all()) all.push_back({entry.name(), entry, entry->help});
    return all;
  }();
  return words;
}

const Words<std::string>& request_formats() {
  static const Words<std::string> words = [] {
    Words<std::string> all{{"auto", std::string(), "the first line tells"}};
    for (const auto* const format : serving::RequestFormat::registry())
      all.push_back({format->name, std::string(format->name), format->help});
    return all;
  }();
  return words;
}

const Words<Arrivals>& arrivals() {
  static const Words<Arrivals> words = {{"poisson", Arrivals::poisson, "gaps are exponential"},
                                        {"constant", Arrivals::constant, "gaps are equal"},
                                        {"gamma", Arrivals::gamma, "gaps have the coefficient of variation `cv`"},
                                        {"bursts", Arrivals::bursts, "a Poisson process of two rates in turn"},
                                        {"closed", Arrivals::closed, "users, who wait for their answers"}};
  return words;
}

const Words<serving::ExpertOptions::Load>& expert_loads() {
  using Load = serving::ExpertOptions::Load;
  static const Words<Load> words = {{"balanced", Load::balanced, "all experts have as much work"},
                                    {"power-law", Load::power_law, "by `exponent`; the busiest rank counts"},
                                    {"file", Load::file, "by `file`, for each layer; the busiest rank counts"}};
  return words;
}

const Words<bool>& transfer_networks() {
  static const Words<bool> words = {{"ports", false, "a port of each instance, and nothing else"},
                                    {"simulated", true, "`system.network`, in which they meet all other messages"}};
  return words;
}

const Words<bool>& step_networks() {
  static const Words<bool> words = {
      {"closed", false, "the NPUs of an instance are alone on their links"},
      {"simulated", true, "`system.network`, in which collectives and activations meet all other messages"}};
  return words;
}

const Words<bool>& transfer_pieces() {
  static const Words<bool> words = {{"whole", false, "all of it, when the prefill has ended and blocks are free"},
                                    {"layers", true, "each layer, when the prefill has computed it"}};
  return words;
}

const Words<serving::Exchange>& exchanges() {
  using serving::Exchange;
  static const Words<Exchange> words = {
      {"gather", Exchange::gather, "an all-gather of rows, and a reduce-scatter of results"},
      {"all-to-all", Exchange::all_to_all, "each row once to each rank that has one of its experts"},
      {"each-expert", Exchange::each_expert, "each row to each of its experts, wherever they are: a bound"}};
  return words;
}

constexpr Handling<ServedModel> model() {
  return {[](const Value& value, const std::string& path, ServedModel& target, Reading& reading) {
            Sections sections(Section(&value, path, value, reading.faults));
            ModelChoice choice;
            read_keys(model_keys(), sections, choice, reading);
            target.model.emplace();
            read_keys(transformer_keys(), sections, *target.model, reading);
            sections.refuse_unknown();
          },
          [](const ServedModel& target, std::string_view path, Writer& writer) {
            if (!target.model) return;
            Writer own("workload.model");
            write_keys(transformer_keys(), *target.model, own);
            writer.put(path, own.flow());
          },
          [](const ServedModel& a, const ServedModel& b) { return a.model == b.model; }};
}

/// Returns how lengths are read: a number, or a mapping.
template <Lengths serving::RequestSource::*member>
constexpr Handling<ServedModel> lengths() {
  return {[](const Value& value, const std::string& path, ServedModel& target, Reading& reading) {
            Lengths& of = target.requests.*member;
            if (value.kind == Value::Kind::scalar) {
              of.kind = Lengths::Kind::constant;
              of.value = as_count(value, path);
              return;
            }
            Sections sections(Section(&value, path, value, reading.faults));
            read_keys(length_keys(), sections, of, reading);
            sections.refuse_unknown();
            if (of.least > of.most)
              throw Error(ErrorCode::bad_input, value.place(path),
                          fmt::format("least is {}, and most {}", of.least, of.most), "least no more than most");
            if (of.kind == Lengths::Kind::empirical && of.file.empty())
              throw Error(ErrorCode::bad_input, value.place(path), "no file is given", "a file of requests");
          },
          [](const ServedModel& target, std::string_view path, Writer& writer) {
            const Lengths& of = target.requests.*member;
            writer.put(path,
                       of.kind == Lengths::Kind::constant ? fmt::to_string(of.value) : flow_text(length_keys(), of));
          },
          [](const ServedModel& a, const ServedModel& b) { return a.requests.*member == b.requests.*member; }};
}

constexpr Handling<ServedModel> instances() {
  return {[](const Value& value, const std::string& path, ServedModel& target, Reading& reading) {
            target.instances.clear();
            const auto& items = as_list(value, path, "a list of instances");
            for (std::size_t i = 0; i < items.size(); ++i) {
              InstanceOptions entry;
              entry.scheduler = target.scheduler;
              read_any_item(instance_keys(), items[i], fmt::format("{}.{}", path, i), &entry, reading);
              if (entry.name.empty()) entry.name = items.size() == 1 ? "instance" : fmt::format("instance-{}", i);
              target.instances.push_back(std::move(entry));
            }
          },
          [](const ServedModel& target, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& entry : target.instances) items.push_back(flow_text(instance_keys(), entry));
            writer.put_list(path, items);
          },
          [](const ServedModel& a, const ServedModel& b) {
            return std::ranges::equal(a.instances, b.instances,
                                      [](const auto& x, const auto& y) { return are_same(instance_keys(), x, y); });
          }};
}

/// Returns how a list of numbers of any sign is read.
template <class Access>
constexpr Handling<ServedModel> numbers(Access) {
  return {[](const Value& value, const std::string& path, ServedModel& target, Reading&) {
            std::vector<double>& list = Access{}(target);
            list.clear();
            for (const Value& item : as_list(value, path, "a list of numbers")) {
              double number = 0;
              const char* const end = item.text.data() + item.text.size();
              const auto [stop, error] = std::from_chars(item.text.data(), end, number);
              if (error != std::errc() || stop != end || item.text.empty())
                throw Error(ErrorCode::bad_input, item.place(path), fmt::format("found {}", item.description()),
                            "a number");
              list.push_back(number);
            }
          },
          [](const ServedModel& target, std::string_view path, Writer& writer) {
            const std::vector<double>& list = Access{}(const_cast<ServedModel&>(target));
            if (!list.empty()) writer.put(path, fmt::format("[{}]", fmt::join(list, ", ")));
          },
          [](const ServedModel& a, const ServedModel& b) {
            return Access{}(const_cast<ServedModel&>(a)) == Access{}(const_cast<ServedModel&>(b));
          }};
}

/// Sizes of recorded graphs: a list, or a name.
constexpr Handling<ServedModel> graph_sizes() {
  return {[](const Value& value, const std::string& path, ServedModel& target, Reading& reading) {
            auto& sizes = target.step.graph_sizes;
            if (value.kind == Value::Kind::scalar) {
              if (value.text != "vllm" && value.text != "none")
                throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                            "vllm, none, or a list of numbers of rows");
              sizes.clear();
              if (value.text == "none") return;
              sizes = {1, 2, 4};
              for (std::uint64_t rows = 8; rows <= 256; rows += 8) sizes.push_back(rows);
              for (std::uint64_t rows = 272; rows <= 512; rows += 16) sizes.push_back(rows);
              return;
            }
            sizes = large_counts().read(value, path, reading);
            if (!std::ranges::is_sorted(sizes) || (!sizes.empty() && sizes.front() == 0))
              throw Error(ErrorCode::bad_input, value.place(path), "the sizes do not ascend",
                          "numbers from 1 on that do");
          },
          [](const ServedModel& target, std::string_view path, Writer& writer) {
            writer.put(path, fmt::format("[{}]", fmt::join(target.step.graph_sizes, ", ")));
          },
          [](const ServedModel& a, const ServedModel& b) { return a.step.graph_sizes == b.step.graph_sizes; }};
}

/// A window of the trace: [from, to].
constexpr Handling<ServedModel> window() {
  return {[](const Value& value, const std::string& path, ServedModel& target, Reading& reading) {
            const auto& items = as_list(value, path, "two times");
            if (items.size() != 2)
              throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                          "two times: [from, to]");
            target.requests.from = duration().read(items[0], path, reading);
            target.requests.to = duration().read(items[1], path, reading);
            if (target.requests.to <= target.requests.from)
              throw Error(ErrorCode::bad_input, value.place(path), "it ends before it begins", "two times: [from, to]");
          },
          [](const ServedModel& target, std::string_view path, Writer& writer) {
            const auto& of = target.requests;
            if (of.to == Time::max()) return;
            writer.put(path, fmt::format("[{}, {}]", *duration().text(of.from), *duration().text(of.to)));
          },
          [](const ServedModel& a, const ServedModel& b) {
            return a.requests.from == b.requests.from && a.requests.to == b.requests.to;
          }};
}

void require_positive(double value, const Place& place) {
  if (value <= 0) throw Error(ErrorCode::bad_input, place, fmt::format("found {}", value), "more than 0");
}

/// Returns the row of a positive number.
template <class Access>
consteval Row<ServedModel> positive(Text path, Text help, Text example, Access access) {
  return {path,
          help,
          example,
          Default::built_in(),
          number("more than 0"),
          access,
          check([](const ServedModel& target, const Place& place, const Reading&) {
            require_positive(*Access{}(const_cast<ServedModel&>(target)), place);
          })};
}

/// Returns the row of a bound, which is no time at all if it is not given.
template <class Access>
consteval Row<ServedModel> bound(Text path, Text help, Text example, Access access) {
  return {path, help, example, Default::none(), duration(), access, written_if([](const ServedModel& target) {
            return *Access{}(const_cast<ServedModel&>(target)) != Time::max();
          })};
}

using serving::SchedulerOptions;

constexpr Row<ServedModel> serving_rows[] = {
    {"serving.model", "the model: a transformer, or the name of a preset of configs/models", "llama3-70b",
     Default::none(), ValueInfo("mapping or file", "a mapping with the sizes of a model, or its file", "-", "any"),
     model(), see("serving.md")},
    {"serving.precision.weights", "number format of weights", "fp8", Default::built_in(),
     word<named<serving::FormatName>>(), [](auto& d) { return &d.weights; }},
    {"serving.precision.kv", "number format of keys and values", "fp8", Default::built_in(),
     word<named<serving::FormatName>>(), [](auto& d) { return &d.kv; }},
    {"serving.kv-bytes-per-token", "keys and values of a token in all layers, in bytes; 0: as in the model", "131072",
     Default::built_in(), large_count(), [](auto& d) { return &d.kv_bytes_per_token; }},
    {"serving.memory", "memory of an NPU; 0: `system.local-memory.size`", "80 GiB", Default::built_in(), size(),
     [](auto& d) { return &d.memory; }},
    {"serving.weights", "weights of the whole model, in bytes; 0: its parameters in their format", "141000000000",
     Default::built_in(), large_count(), [](auto& d) { return &d.weight_bytes; }},
    {"serving.seed", "seed of all draws; draw k of request i does not depend on others", "7", Default::built_in(),
     count(0), [](auto& d) { return &d.seed; }},

    {"serving.requests.file", "file of requests, perhaps packed by gzip", "conversation.jsonl", Default::none(), file(),
     [](auto& d) { return &d.requests.file; }},
    {"serving.requests.format", "format of that file", "mooncake", Default::built_in(), word<request_formats>(),
     [](auto& d) { return &d.requests.format; }},
    {"serving.requests.limit", "most requests of the file; 0: all", "10000", Default::built_in(), large_count(),
     [](auto& d) { return &d.requests.limit; }},
    {"serving.requests.window", "arrivals of the file that count, of which the first time becomes 0", "[60 s, 120 s]",
     Default::none(), ValueInfo("list", "two times", "-", "[from, to]"), window()},
    positive("serving.requests.rate-scale", "factor of the rate: arrivals are divided by it", "2",
             [](auto& d) { return &d.requests.rate_scale; }),
    {"serving.requests.count", "requests that are generated, where no file is given", "10000", Default::built_in(),
     count(), [](auto& d) { return &d.requests.count; }},
    {"serving.requests.arrivals", "process by which generated requests arrive", "gamma", Default::built_in(),
     word<arrivals>(), [](auto& d) { return &d.requests.arrivals; }},
    positive("serving.requests.rate", "mean requests per second; outside of bursts", "20",
             [](auto& d) { return &d.requests.rate; }),
    positive("serving.requests.cv", "coefficient of variation of the gaps; gamma; 1 is Poisson", "2",
             [](auto& d) { return &d.requests.cv; }),
    positive("serving.requests.burst-rate", "requests per second in a burst", "100",
             [](auto& d) { return &d.requests.burst_rate; }),
    {"serving.requests.burst", "length of a burst, with which each period begins", "2 s", Default::built_in(),
     duration(), [](auto& d) { return &d.requests.burst; }},
    {"serving.requests.period", "time from one burst to the next", "20 s", Default::built_in(), duration(),
     [](auto& d) { return &d.requests.period; }},
    {"serving.requests.users", "users that send a request after the answer to the last one; closed", "64",
     Default::built_in(), count(), [](auto& d) { return &d.requests.users; }},
    {"serving.requests.think", "time that a user takes from an answer to the next request; closed", "1 s",
     Default::built_in(), duration(), [](auto& d) { return &d.requests.think; }},
    {"serving.requests.prompt", "tokens of a prompt: a number, or a mapping that says how they are drawn",
     "{distribution: log-normal, median: 1000, sigma: 1}", Default::described("512"),
     ValueInfo("number or mapping", "a number of tokens, or how they are drawn", "-", "any"),
     lengths<&serving::RequestSource::prompt>()},
    {"serving.requests.output", "tokens of an output, likewise", "128", Default::described("128"),
     ValueInfo("number or mapping", "a number of tokens, or how they are drawn", "-", "any"),
     lengths<&serving::RequestSource::output>()},
    {"serving.requests.shared-prefix.tokens", "tokens with which all prompts of a group begin", "1024",
     Default::built_in(), count(0), [](auto& d) { return &d.requests.shared_tokens; }},
    {"serving.requests.shared-prefix.groups", "groups of requests, of which one is drawn for each request", "16",
     Default::built_in(), count(), [](auto& d) { return &d.requests.shared_groups; }},

    {"serving.router.policy", "rule by which the router chooses an instance", "least-requests", Default::built_in(),
     word<named<serving::PolicyName>>(), [](auto& d) { return &d.router.policy; }, see("serving.md, *Router*")},
    {"serving.router.dispatch", "time from the router's choice to the instance", "50 us", Default::built_in(),
     duration(), [](auto& d) { return &d.router.dispatch; }},
    {"serving.router.report", "time from the end of a step to the router", "50 us", Default::built_in(), duration(),
     [](auto& d) { return &d.router.report; }},

    of_scheduler<ServedModel>("serving.scheduler.max-seqs", "most requests in a step", "256", count(),
                              [](auto& d) { return &d.scheduler.max_seqs; }),
    of_scheduler<ServedModel>("serving.scheduler.max-tokens", "most tokens in a step", "8192", count(),
                              [](auto& d) { return &d.scheduler.max_tokens; }),
    of_scheduler<ServedModel>("serving.scheduler.block", "tokens of a KV block", "16", count(1, 65536),
                              [](auto& d) { return &d.scheduler.block; }),
    of_scheduler<ServedModel>("serving.scheduler.prefix-cache", "whether later requests find full blocks", "false",
                              boolean(), [](auto& d) { return &d.scheduler.prefix_cache; }),
    of_scheduler<ServedModel>("serving.scheduler.ahead", "whether a step is scheduled while another one runs", "false",
                              boolean(), [](auto& d) { return &d.scheduler.ahead; }),
    of_scheduler<ServedModel>("serving.scheduler.reserve-full",
                              "whether a prompt is admitted only if all of it has room", "false", boolean(),
                              [](auto& d) { return &d.scheduler.reserve_full; }),
    of_scheduler<ServedModel>("serving.scheduler.long-prefill", "most tokens of a chunk; 0: no limit", "1024", count(0),
                              [](auto& d) { return &d.scheduler.long_prefill; }),
    of_scheduler<ServedModel>("serving.scheduler.watermark", "blocks that an admission leaves free while requests run",
                              "10", count(0), [](auto& d) { return &d.scheduler.watermark; }),
    of_scheduler<ServedModel>("serving.scheduler.max-length", "most tokens of a prompt with its output; 0: no limit",
                              "32768", count(0), [](auto& d) { return &d.scheduler.max_length; }),

    {"serving.transfer.network", "network of KV transfers", "simulated", Default::built_in(), word<transfer_networks>(),
     [](auto& d) { return &d.transfer.over_network; }, see("serving.md, *Is the network enough*")},
    {"serving.transfer.send", "pieces in which the keys and values of a request are sent", "layers",
     Default::built_in(), word<transfer_pieces>(), [](auto& d) { return &d.transfer.by_layer; },
     see("serving.md, *Is the network enough*")},
    {"serving.transfer.bandwidth", "bandwidth of an instance's port for KV transfers", "50 GB/s", Default::built_in(),
     bandwidth(), [](auto& d) { return &d.transfer.bandwidth; }},
    {"serving.transfer.latency",
     "time from the last byte that a port sends to its arrival; simulated: from asking to the first byte", "5 us",
     Default::built_in(), duration(), [](auto& d) { return &d.transfer.latency; }},

    {"serving.step.model", "how long a step takes", "profile", Default::built_in(),
     word<named<serving::StepModelName>>(), [](auto& d) { return &d.step.model; }, see("serving.md, *Step times*")},
    {"serving.step.network", "network of the collectives of a step, and of activations between stages", "simulated",
     Default::built_in(), word<step_networks>(), [](auto& d) { return &d.step.over_network; },
     see("serving.md, *Step times*")},
    {"serving.step.linear.base", "fixed part of a step", "5 ms", Default::built_in(), duration(),
     [](auto& d) { return &d.step.linear.base; }},
    {"serving.step.linear.token", "time of each token of a step", "20 us", Default::built_in(), duration(),
     [](auto& d) { return &d.step.linear.token; }},
    {"serving.step.linear.sequence", "time of each request of a step", "10 us", Default::built_in(), duration(),
     [](auto& d) { return &d.step.linear.sequence; }},
    {"serving.step.linear.context", "time of each token of context", "20 ns", Default::built_in(), duration(),
     [](auto& d) { return &d.step.linear.context; }},
    {"serving.step.linear.exponential", "whether durations are drawn, with the sum as their mean", "true",
     Default::built_in(), boolean(), [](auto& d) { return &d.step.linear.is_exponential; }},
    {"serving.step.fitted.prefill", "coefficients of prompts, in ms: [fixed, per token, per squared token]",
     "[18.1, 0.102, 7.1e-6]", Default::none(), ValueInfo("list", "three numbers", "ms", "any"),
     numbers([](auto& d) -> auto& { return d.step.fitted.prefill; })},
    {"serving.step.fitted.decode", "coefficients of requests that generate, in ms: [fixed, per token, per request]",
     "[19.9, 6.3e-4, 0.039]", Default::none(), ValueInfo("list", "three numbers", "ms", "any"),
     numbers([](auto& d) -> auto& { return d.step.fitted.decode; })},
    {"serving.step.fitted.large-decode", "those that hold from `threshold` requests on", "[7.2, 5.8e-4, 0.16]",
     Default::none(), ValueInfo("list", "three numbers", "ms", "any"),
     numbers([](auto& d) -> auto& { return d.step.fitted.large_decode; })},
    {"serving.step.fitted.threshold", "requests from which on `large-decode` holds; 0: never", "95",
     Default::built_in(), count(0), [](auto& d) { return &d.step.fitted.threshold; }},
    {"serving.step.tables", "folder of measured tables", "tables/h100-vllm", Default::none(), file(),
     [](auto& d) { return &d.step.tables; }},
    {"serving.step.skew", "share of the longest context's excess over the mean that attention pays", "0.05",
     Default::built_in(), number("any"), [](auto& d) { return &d.step.skew; }},
    {"serving.step.graph-sizes", "numbers of rows of recorded graphs, to which rows are padded: a list, vllm or none",
     "vllm", Default::described("none"), ValueInfo("list or word", "vllm, none, or a list of numbers", "-", "any"),
     graph_sizes()},
    {"serving.step.products", "number format of products in the tables of operators", "fp8_block", Default::built_in(),
     any_text("a name in gemm.csv"), [](auto& d) { return &d.step.names.products; }},
    {"serving.step.attention", "number format of keys and values in the tables of operators", "fp8",
     Default::built_in(), any_text("a name in generation.csv"), [](auto& d) { return &d.step.names.attention; }},
    {"serving.step.experts", "number format of experts in the tables of operators", "nvfp4",
     Default::described("that of `products`"), any_text("a name in moe.csv"),
     [](auto& d) { return &d.step.names.experts; }},
    {"serving.step.distribution", "distribution of load over experts in the tables of operators", "balanced",
     Default::built_in(), any_text("a name in moe.csv"), [](auto& d) { return &d.step.names.distribution; }},
    {"serving.step.small", "time of a kernel that only moves memory, in us, beside that of its bytes", "1.5",
     Default::built_in(), number("0 or more"), [](auto& d) { return &d.step.small_us; }},
    {"serving.step.memory-bandwidth", "memory bandwidth of an NPU", "3.35 TB/s",
     Default::described("`system.local-memory.bandwidth`"), bandwidth(), [](auto& d) { return &d.step.memory; }},
    {"serving.step.ring.bandwidth", "bandwidth of a link between NPUs of an instance of `profile`", "450 GB/s",
     Default::built_in(), bandwidth(), [](auto& d) { return &d.step.ring.bandwidth; }},
    {"serving.step.ring.latency", "latency of such a link", "2 us", Default::built_in(), duration(),
     [](auto& d) { return &d.step.ring.latency; }},
    {"serving.host.step", "time between steps in which the NPUs wait for the host", "100 us", Default::built_in(),
     duration(), [](auto& d) { return &d.step.host.step; }},
    {"serving.host.sequence", "such a time for each request of a step", "1 us", Default::built_in(), duration(),
     [](auto& d) { return &d.step.host.sequence; }},
    {"serving.host.layer",
     "time of the host for each layer, while the NPUs work; a layer takes no less, nor do the embedding and the output",
     "370 us", Default::built_in(), duration(), [](auto& d) { return &d.step.host.layer; }},
    {"serving.experts.load", "how tokens are spread over experts", "power-law", Default::built_in(),
     word<expert_loads>(), [](auto& d) { return &d.step.experts.load; }},
    positive("serving.experts.exponent", "exponent of the power law", "1.2",
             [](auto& d) { return &d.step.experts.exponent; }),
    {"serving.experts.file", "shares of the experts: a row for each layer, with a number for each expert", "loads.csv",
     Default::none(), file(), [](auto& d) { return &d.step.experts.file; }},
    {"serving.experts.exchange", "how data-parallel ranks exchange rows for their experts", "all-to-all",
     Default::built_in(), word<exchanges>(), [](auto& d) { return &d.step.experts.exchange; }},
    positive("serving.experts.dispatch-bytes", "bytes of a value on the way to an expert; all-to-all", "1",
             [](auto& d) { return &d.step.experts.dispatch_bytes; }),
    positive("serving.experts.combine-bytes", "bytes of a value on the way back; all-to-all", "2",
             [](auto& d) { return &d.step.experts.combine_bytes; }),
    {"serving.front-end", "time of HTTP and tokenizer, added to TTFT and latency", "8 ms", Default::built_in(),
     duration(), [](auto& d) { return &d.front_end; }},

    bound("serving.slo.ttft", "longest time to the first token that meets the SLO", "500 ms",
          [](auto& d) { return &d.slo.ttft; }),
    bound("serving.slo.tpot", "longest mean time per output token that meets the SLO", "50 ms",
          [](auto& d) { return &d.slo.tpot; }),
    {"serving.slo.share", "share of requests that are to meet the SLO", "0.99", Default::built_in(), efficiency(),
     [](auto& d) { return &d.slo.share; }},
    {"serving.measure.from", "arrival from which on requests count for metrics", "60 s", Default::built_in(),
     duration(), [](auto& d) { return &d.measure.from; }},
    bound("serving.measure.to", "arrival up to which requests count for metrics", "300 s",
          [](auto& d) { return &d.measure.to; }),
    {"serving.record.requests", "whether results hold a row for each request", "false", Default::built_in(), boolean(),
     [](auto& d) { return &d.record_requests; }},
    {"serving.record.steps", "whether results hold a row for each step", "true", Default::built_in(), boolean(),
     [](auto& d) { return &d.record_steps; }},

    {"serving.instances", "copies of the model; the keys of an entry are those below",
     "[{count: 4, parallel: {tp: 8}}]", Default::needed(), ValueInfo("list", "a list of instances", "-", "any"),
     instances(), see("serving.md")},
};

}  // namespace

const Keys<serving::Description>& serving_keys() {
  static const Keys<serving::Description> all("serving", serving_rows, "serving");
  return all;
}

}  // namespace orrery::config
