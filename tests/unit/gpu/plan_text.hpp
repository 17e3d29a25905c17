#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "orrery/gpu/plan.hpp"

namespace orrery::test {

using Json = nlohmann::json;

// Parts of execution plans. All channels and remote buffers are known to each thread block, in the order of the GPU's.

inline Json chunks(const char* buffer, int index, int size = 1) {
  return {{"type", buffer}, {"index", index}, {"size", size}};
}
/// Chunks of a remote buffer: by `plan_of`, 0 is the input, 1 the output and 2 the scratch of the first other GPU, 3 to
/// 5 those of the second one, and so on.
inline Json remote(int buffer, int index, int size = 1) {
  return {{"buffer_id", buffer}, {"index", index}, {"size", size}};
}
inline Json operation(const char* name, Json sources = Json::array(), Json destinations = Json::array()) {
  Json json{{"name", name}, {"channel_type", "memory"}};
  if (!sources.empty()) json["src_buff"] = std::move(sources);
  if (!destinations.empty()) json["dst_buff"] = std::move(destinations);
  return json;
}
inline Json words(const char* name, std::vector<int> channels) {
  return {{"name", name}, {"channel_type", "memory"}, {"channel_ids", channels}};
}
inline const Json nop = {{"name", "nop"}};

/// What a plan has besides its operations.
struct Sizes {
  const char* collective = "allreduce";
  int input = 2, output = 2, scratch = 2;
  bool in_place = true, packets = false;
};

/// Makes a plan of blocks[gpu][block], each a list of operations. Each GPU has a channel to each other one, in the
/// order of their numbers, and all of its buffers.
inline Json plan_of(const std::vector<std::vector<Json>>& blocks, const Sizes& sizes = {}) {
  Json plan{{"name", "test"},
            {"collective", sizes.collective},
            {"protocol", sizes.packets ? "LL" : "Simple"},
            {"inplace", sizes.in_place},
            {"gpus", Json::array()}};
  for (int gpu = 0; gpu < static_cast<int>(blocks.size()); ++gpu) {
    Json entry{{"id", gpu},
               {"input_chunks", sizes.input},
               {"output_chunks", sizes.output},
               {"scratch_chunks", sizes.scratch},
               {"channels", {{{"channel_type", "memory"}, {"connected_to", Json::array()}}}},
               {"remote_buffers", Json::array()},
               {"threadblocks", Json::array()}};
    Json channels = Json::array(), buffers = Json::array();
    for (int peer = 0; peer < static_cast<int>(blocks.size()); ++peer) {
      if (peer == gpu) continue;
      channels.push_back(channels.size());
      entry["channels"][0]["connected_to"].push_back(peer);
      for (const char* const type : {"i", "o", "s"}) {
        buffers.push_back(buffers.size());
        entry["remote_buffers"].push_back({{"rank", peer}, {"type", type}, {"access_channel_types", {"memory"}}});
      }
    }
    for (const Json& operations : blocks[static_cast<std::size_t>(gpu)])
      entry["threadblocks"].push_back(
          {{"id", entry["threadblocks"].size()},
           {"ops", operations},
           {"channels", {{{"channel_type", "memory"}, {"channel_ids", channels}}}},
           {"remote_buffer_refs", {{{"access_channel_type", "memory"}, {"remote_buffer_ids", buffers}}}}});
    plan["gpus"].push_back(entry);
  }
  return plan;
}

inline gpu::Plan parse(const Json& json) { return gpu::parse_plan(json.dump(), "plan.json"); }

/// Returns what an Error says that `run` throws; "accepted" if it throws none.
template <class Run>
std::string refusal(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.code() == ErrorCode::bad_input ? error.what() : "another kind of error";
  }
  return "accepted";
}

}  // namespace orrery::test
