#include "best_serving.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/job_context.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/config/yaml_name.hpp"
#include "orrery/parallel/packing.hpp"
#include "serving_rate.hpp"

namespace orrery::study {
namespace {

namespace fs = std::filesystem;

constexpr double coarse = 0.1, fine = 0.02;  // of the highest rate
constexpr std::uint32_t most_stages = 4;
constexpr std::size_t num_refined = 3, num_listed = 10;
constexpr double worth_a_warning = 0.05;  ///< HighestRate::most_excess above which it warns

/// One way to serve the model with all NPUs.
struct Way {
  std::uint32_t tp = 1;
  std::uint32_t prefill = 0, others = 1;  ///< instances; without prefill ones the others do both
  std::uint32_t max_tokens = 2048, max_seqs = 256;
  std::uint32_t pp = 1;

  /// Returns `serving.instances` as CONFIG.yaml has it.
  std::string instances() const {
    if (prefill == 0)
      return fmt::format("[{{name: both, count: {}, parallel: {{tp: {}{}}}}}]", others, tp,
                         pp > 1 ? fmt::format(", pp: {}", pp) : "");
    return fmt::format(
        "[{{name: prefill, role: prefill, count: {}, parallel: {{tp: {}}}}}, "
        "{{name: decode, role: decode, count: {}, parallel: {{tp: {}}}}}]",
        prefill, tp, others, tp);
  }
  std::string roles() const {
    return prefill == 0 ? fmt::format("{} both", others) : fmt::format("{} prefill + {} decode", prefill, others);
  }
};

/// A way with what came of it.
struct Outcome {
  std::size_t way = 0;
  double rate = 0, attainment = 0, ttft_p99 = 0, tpot_p99 = 0, tokens_per_s = 0;  ///< at the highest rate
  double most_excess = 0;                                                         ///< HighestRate::most_excess
  std::string left_out = {};  ///< why it was not tried, or what is wrong; empty: it was
};

std::vector<std::uint32_t> shares_of_prefill(std::uint32_t instances) {
  std::vector<std::uint32_t> shares;
  for (const double share : {0.25, 1.0 / 3, 0.5, 2.0 / 3, 0.75}) {
    const auto count = static_cast<std::uint32_t>(std::lround(share * instances));
    if (count > 0 && count < instances && (shares.empty() || shares.back() != count)) shares.push_back(count);
  }
  return shares;
}

/// Returns all ways: tp up to the size of the first dimension, instances that do both or shares of roles, two budgets
/// of tokens, and pipelines of instances that do both.
std::vector<Way> ways_to_serve(std::uint32_t npus, std::uint32_t most_tp) {
  std::vector<Way> ways;
  for (std::uint32_t tp = 1; tp <= std::min(npus, most_tp); tp *= 2) {
    if (npus % tp != 0) continue;
    const std::uint32_t instances = npus / tp;
    for (const std::uint32_t tokens : {2048U, 8192U})
      for (const std::uint32_t seqs : {128U, 512U}) ways.push_back({tp, 0, instances, tokens, seqs});
    for (std::uint32_t pp = 2; pp <= std::min(instances, most_stages); pp *= 2)
      if (instances % pp == 0) ways.push_back({tp, 0, instances / pp, 8192, 512, pp});
    for (const std::uint32_t prefill : shares_of_prefill(instances))
      ways.push_back({tp, prefill, instances - prefill, 8192, 512});
  }
  return ways;
}

/// Returns "ttft: 500 ms, tpot: 50 ms" of the argument of --slo. Throws Error (usage).
std::string slo_of(const std::string& argument) {
  std::string text;
  for (std::size_t at = 0; at <= argument.size();) {
    const std::size_t end = std::min(argument.find(',', at), argument.size());
    const std::string_view item = std::string_view(argument).substr(at, end - at);
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    if (equals == std::string_view::npos || (name != "ttft" && name != "tpot" && name != "share"))
      throw Error(ErrorCode::usage, fmt::format("orrery best: --slo {}: found '{}', expected ttft=TIME,tpot=TIME and "
                                                "perhaps share=SHARE. Give --slo ttft=500ms,tpot=50ms.",
                                                cited(argument), cited(item)));
    const std::string_view value = item.substr(equals + 1);
    const std::size_t unit = value.find_first_not_of("0123456789.");
    if (!text.empty()) text += ", ";
    text += fmt::format("{}: {}", name, value.substr(0, unit));
    if (unit != std::string_view::npos) text += fmt::format(" {}", value.substr(unit + (value[unit] == ' ' ? 1 : 0)));
    at = end + 1;
  }
  return text;
}

/// Returns the value of `serving.requests`: the contents of a .yaml file, or a mapping that names the file.
std::string text_of_requests(const std::string& file) {
  if (!file.ends_with(".yaml")) return fmt::format(" {{file: {}}}", config::yaml_name(file));
  std::string text;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) text += "\n    " + line;
  return text;
}

/// Returns the line of CONFIG.yaml that names the stack; empty if there is none.
std::string stack_line(const BestCommand& command) {
  return command.stack.empty() ? std::string() : fmt::format("stack: {}\n", config::yaml_name(command.stack));
}

/// Refuses a stack that does not exist, or is of another processor: once, and not for each way.
void require_stack(const BestCommand& command) {
  try {
    config::parse(fmt::format("{}system: {{base: {}}}\n", stack_line(command), config::yaml_name(command.system)),
                  "orrery best", fs::current_path(), true);
  } catch (const Error& error) {
    if (error.place().key == "stack") throw;  // its keys of `workload` miss a model, which serving gives elsewhere
  }
}

/// Returns a configuration that serves in some way.
std::string text_of(const BestCommand& command, const Way& way, double port) {
  return fmt::format(
      "# {} on {} NPUs: {} instances of {} NPUs, as `orrery best --serve` has found them.\n{}"
      "system: {{base: {}}}\nserving:\n  model: {}\n  requests:{}\n  router: {{policy: least-requests}}\n"
      "  scheduler: {{max-tokens: {}, max-seqs: {}}}\n  instances: {}\n  step: {{graph-sizes: vllm}}\n"
      "  host: {{step: 100 us}}\n  slo: {{{}}}\n{}",
      fs::path(command.model).stem().string(), command.npus, way.roles(), way.tp * way.pp, stack_line(command),
      config::yaml_name(command.system), config::yaml_name(command.model), text_of_requests(command.serve),
      way.max_tokens, way.max_seqs, way.instances(), slo_of(command.slo),
      way.prefill == 0 ? "" : fmt::format("  transfer: {{bandwidth: {:.0f} MB/s}}\n", port * way.tp / 1e6));
}

/// Reads a configuration from a text, by a file beside the output that is removed again.
config::ServingConfiguration read_text_of(const std::string& text, const fs::path& beside) {
  const PartialFile file(beside);
  file.write(text);
  return config::read_serving({.file = file.partial()});
}

/// Tries a way: finds its highest rate.
Outcome tried(const BestCommand& command, std::size_t number, const Way& way, double port, double accuracy, int rank) {
  Outcome outcome{.way = number};
  const auto stop = [] { return JobContext::current() != nullptr && JobContext::current()->stop.is_requested(); };
  try {
    auto configuration =
        read_text_of(text_of(command, way, port), fmt::format("{}.{}", command.explore.output.string(), rank));
    const HighestRate found = highest_rate(std::move(configuration), accuracy, stop);
    outcome.rate = found.requests_per_s;
    outcome.most_excess = found.most_excess;
    outcome.attainment = found.metrics.slo_attainment;
    outcome.ttft_p99 = found.metrics.ttft.p99;
    outcome.tpot_p99 = found.metrics.tpot.p99;
    outcome.tokens_per_s = found.metrics.output_tokens_per_s;
    if (found.scale == 0) outcome.left_out = "too few requests meet the SLO at any rate that was tried";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input) throw;
    const std::string& key = error.place().key;
    outcome.left_out = key.empty() ? error.text() : fmt::format("{}: {}", key, error.text());
  }
  return outcome;
}

/// Tries some of the ways, each on one rank. Returns the outcomes on all ranks, by number. Collective.
std::vector<Outcome> try_all(const BestCommand& command, const std::vector<Way>& ways,
                             const std::vector<std::size_t>& numbers, double port, double accuracy,
                             parallel::Communicator& world) {
  parallel::Packer packer;
  world.agree([&] {
    const auto step = static_cast<std::size_t>(world.size());
    for (auto i = static_cast<std::size_t>(world.rank().value()); i < numbers.size(); i += step) {
      const Outcome one = tried(command, numbers[i], ways[numbers[i]], port, accuracy, world.rank().value());
      packer.put(static_cast<std::uint64_t>(one.way));
      for (const double value :
           {one.rate, one.most_excess, one.attainment, one.ttft_p99, one.tpot_p99, one.tokens_per_s})
        packer.put(value);
      packer.put_text(one.left_out);
    }
  });
  const auto bytes = packer.take();
  const auto all = world.all_gather(std::span<const std::byte>(bytes));
  std::vector<Outcome> outcomes;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    Outcome& one = outcomes.emplace_back();
    one.way = unpacker.get<std::uint64_t>();
    for (double* const value :
         {&one.rate, &one.most_excess, &one.attainment, &one.ttft_p99, &one.tpot_p99, &one.tokens_per_s})
      *value = unpacker.get<double>();
    one.left_out = unpacker.get_text();
  }
  std::ranges::sort(outcomes, {}, &Outcome::way);
  return outcomes;
}

/// Puts the highest rate first; of equal ones the way that stands first.
void rank_by_rate(std::vector<Outcome>& outcomes) {
  std::ranges::stable_sort(outcomes, [](const Outcome& a, const Outcome& b) { return a.rate > b.rate; });
}

void print_outcomes(const BestCommand& command, const std::vector<Way>& ways, const std::vector<Outcome>& outcomes,
                    const fs::path& file) {
  const auto time = [](double ps) { return std::isnan(ps) ? "-" : readable(Time::from_ps(std::llround(ps))); };
  fmt::print("{:>4} {:>3} {:>3} {:<24} {:>10} {:>8} {:>12} {:>10} {:>12} {:>12} {:>10}\n", "rank", "tp", "pp",
             "instances", "max-tokens", "max-seqs", "requests/s", "per NPU", "TTFT p99", "TPOT p99", "tokens/s");
  std::size_t rank = 0;
  for (const Outcome& one : outcomes) {
    if (!one.left_out.empty() || rank == num_listed) continue;
    const Way& way = ways[one.way];
    fmt::print("{:>4} {:>3} {:>3} {:<24} {:>10} {:>8} {:>12.4g} {:>10.4g} {:>12} {:>12} {:>10.5g}\n", ++rank, way.tp,
               way.pp, way.roles(), way.max_tokens, way.max_seqs, one.rate, one.rate / command.npus, time(one.ttft_p99),
               time(one.tpot_p99), one.tokens_per_s);
  }
  if (rank > 0 && outcomes.front().most_excess > worth_a_warning)
    fmt::print("The requests are few: the best rate may be up to {:.0f} % above one that can be sustained.\n",
               100 * outcomes.front().most_excess);
  const auto left = std::ranges::count_if(outcomes, [](const Outcome& one) { return !one.left_out.empty(); });
  fmt::print("{} were tried, {} left out{}\n", counted(outcomes.size(), "way"), left, left > 0 ? ":" : ".");
  std::map<std::string, std::vector<std::string>> reasons;
  for (const Outcome& one : outcomes)
    if (!one.left_out.empty())
      reasons[one.left_out].push_back(fmt::format("tp {}, pp {}, {}, max-tokens {}", ways[one.way].tp, ways[one.way].pp,
                                                  ways[one.way].roles(), ways[one.way].max_tokens));
  for (const auto& [reason, of] : reasons)
    fmt::print("  {}{}: {}\n", of.front(), of.size() > 1 ? fmt::format(" and {} more", of.size() - 1) : "", reason);
  fmt::print(
      "not tried: pipelines of separate roles, data-parallel attention, other powers of tp, instances of different "
      "sizes, other routers\n");
  if (!file.empty()) fmt::print("the best one: {}\n", file.string());
}

}  // namespace

void best_serving(const BestCommand& command, parallel::Communicator& world) {
  fs::path file = command.explore.output;
  file.replace_extension(".yaml");
  std::uint32_t most_tp = 1;
  double port = 0;  // bytes in a second of an NPU towards other instances
  world.agree([&] {
    if (world.is_root()) check_output(file, command.explore.force);
    require_stack(command);
    const auto system = config::parse(fmt::format("system: {{base: {}}}\n", config::yaml_name(command.system)),
                                      "orrery best", fs::current_path(), true);
    most_tp = system.dimensions.front().size;
    port = system.dimensions.back().bandwidth.bytes_per_ns() * 1e9;
  });
  const std::vector<Way> ways = ways_to_serve(command.npus, most_tp);
  std::vector<std::size_t> numbers(ways.size());
  for (std::size_t i = 0; i < ways.size(); ++i) numbers[i] = i;
  auto outcomes = try_all(command, ways, numbers, port, coarse, world);
  rank_by_rate(outcomes);
  numbers.clear();
  for (const Outcome& one : outcomes)
    if (one.left_out.empty() && numbers.size() < num_refined) numbers.push_back(one.way);
  for (const Outcome& refined : try_all(command, ways, numbers, port, fine, world))
    *std::ranges::find(outcomes, refined.way, &Outcome::way) = refined;
  rank_by_rate(outcomes);
  world.agree([&] {
    if (!world.is_root()) return;
    const bool any = !outcomes.empty() && outcomes.front().left_out.empty();
    if (any) {
      PartialFile partial(file);
      partial.write(text_of(command, ways[outcomes.front().way], port));
      partial.commit();
    }
    print_outcomes(command, ways, outcomes, any ? file : fs::path());
    if (!any)
      throw Error(ErrorCode::bad_input, {.file = "orrery best"}, "no way to serve meets the SLO",
                  "a looser --slo, more NPUs, or fewer bytes for weights");
  });
}

}  // namespace orrery::study
