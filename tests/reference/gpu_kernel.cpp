// Answers questions about the GPU model, one JSON object in each line, for check_gpu.py. Each answer is one line:
//   {"kernel": "put", "profile": "h100", "bytes": 1024, ...}  -> {"us": 6.34, "events": 170, ...}
//       besides: gpus, blocks, threads, bursts (0: line by line), arbitration, unroll, outstanding, link (GB/s),
//       latency (ns)
//   {"servers": "run" | "loop" | "loops" | "bursts", ...}      -> {"ps": 13366}
//   {"plan": FILE}                                             -> {"counts": {...}, "threadblocks": [...], ...}
//   {"offset": {...}}                                          -> {"bytes": 10480}
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "gpu_servers.hpp"
#include "kernels.hpp"
#include "orrery/base/error.hpp"
#include "orrery/gpu/alone.hpp"
#include "orrery/gpu/plan.hpp"

namespace orrery::gpu {
namespace {

using Json = nlohmann::json;

Json kernel_times(const Json& question) {
  const auto kernel = KernelName::find(question.at("kernel").get<std::string>());
  const auto profile = ProfileName::find(question.at("profile").get<std::string>());
  if (!kernel || !profile) throw Error(ErrorCode::bad_input, "no such kernel or profile");
  KernelShape shape = (*kernel)->usual;
  shape.bytes = Bytes(question.at("bytes").get<std::uint64_t>());
  shape.gpus = question.value("gpus", shape.gpus);
  shape.blocks = question.value("blocks", shape.blocks);
  shape.threads = question.value("threads", shape.threads);
  if ((*kernel)->validation_error != nullptr)
    if (const auto validation_error = (*kernel)->validation_error(shape); !validation_error.empty())
      throw Error(ErrorCode::bad_input, std::string(validation_error));
  Profile where = **profile;
  where.link = Bandwidth::from_bytes_per_ns(question.value("link", where.link.bytes_per_ns()));
  where.latency_ns = question.value("latency", where.latency_ns);
  Parameters parameters = where.parameters;
  parameters.unroll = question.value("unroll", parameters.unroll);
  parameters.outstanding = question.value("outstanding", parameters.outstanding);
  if (question.contains("arbitration"))
    parameters.arbitration = question.at("arbitration") == "fifo" ? Arbitration::fifo : Arbitration::fair;
  const Timing timing =
      simulate_alone((*kernel)->make(shape), where, parameters, {question.value("bursts", std::uint32_t{256})});
  Json answer{{"us", static_cast<double>(timing.whole.ps()) * 1e-6}, {"events", timing.events}};
  answer["fixed_us"] = static_cast<double>((parameters.launch + parameters.end).ps()) * 1e-6;
  answer["l2_us"] = static_cast<double>(parameters.l2.ps()) * 1e-6;
  answer["lines"] = timing.counts.requests;
  return answer;
}

Json servers(const Json& question) {
  using namespace gpu_servers;
  const auto list = [&](const char* key) { return question.at(key).get<std::vector<Ps>>(); };
  const auto number = [&](const char* key) { return question.at(key).get<Ps>(); };
  const std::string what = question.at("servers");
  if (what == "loops")
    return {{"ps", symmetric_loops(number("streams"), number("count"), number("window"), list("service")[0],
                                   list("latency")[0])}};
  const Tandem tandem(list("service"), list("latency"));
  if (what == "run") return {{"ps", run_of_requests(tandem, number("first"), number("count"), number("spacing"))}};
  if (what == "loop") return {{"ps", closed_loop(tandem, number("count"), number("window"))}};
  return {{"ps", stream_in_bursts(tandem, number("first"), number("count"), number("spacing"), number("burst"),
                                  list("service")[0])}};
}

Json plan_counts(const std::string& file) {
  const Plan plan = read_plan(file);
  Json answer{{"counts", plan.counts()}};
  for (const Plan::Gpu& gpu : plan.gpus) {
    answer["threadblocks"].push_back(gpu.blocks.size());
    answer["input_chunks"].push_back(gpu.input_chunks);
    answer["scratch_chunks"].push_back(gpu.scratch_chunks);
  }
  return answer;
}

/// Returns where a part of a chunk begins, if a group of thread blocks divides a chunk of so many units into parts: a
/// buffer is divided into chunks by the same formula.
Json offset_of(const Json& question) {
  const auto number = [&](const char* key) { return question.at(key).get<std::uint64_t>(); };
  const Json chunk = Json::array({{{"type", "i"}, {"index", 0}, {"size", 1}}});
  const Json copy = {{"name", "copy"},
                     {"src_buff", chunk},
                     {"dst_buff", chunk},
                     {"tbg_info", {{"tb_id", number("index")}, {"tbg_size", number("chunks")}}}};
  Json plan = {{"collective", "allreduce"}, {"inplace", true}, {"buffer_alignment", number("alignment")}};
  for (int gpu = 0; gpu < 2; ++gpu)
    plan["gpus"].push_back({{"id", gpu},
                            {"input_chunks", 1},
                            {"output_chunks", 1},
                            {"threadblocks", Json::array({{{"id", 0}, {"ops", Json::array({copy})}}})}});
  const Program program = make_program(parse_plan(plan.dump(), "offset"), Bytes(number("units") * number("alignment")));
  const Gpu& gpu = program.gpus[0];
  return {{"bytes", gpu.sources(gpu.blocks[0].operations[0])[0].offset}};
}

Json answer(const Json& question) {
  try {
    if (question.contains("offset")) return offset_of(question.at("offset"));
    if (question.contains("kernel")) return kernel_times(question);
    if (question.contains("servers")) return servers(question);
    return plan_counts(question.at("plan"));
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace orrery::gpu

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << orrery::gpu::answer(nlohmann::json::parse(line)) << std::endl;
}
