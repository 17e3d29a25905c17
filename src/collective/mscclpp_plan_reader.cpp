// Reads execution plans of MSCCL++ (JSON).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "orrery/collective/mscclpp_plan.hpp"
#include "plan_cursor.hpp"

namespace orrery::collective::mscclpp {
namespace {

constexpr std::uint64_t most_gpus = 1 << 12, most_chunks = 1 << 20, most_blocks = 1 << 12, most_threads = 1024,
                        most_value = 1 << 30;
constexpr std::pair<std::string_view, Kind> plan_kinds[] = {{"allreduce", Kind::all_reduce},
                                                            {"allgather", Kind::all_gather},
                                                            {"reducescatter", Kind::reduce_scatter},
                                                            {"broadcast", Kind::broadcast},
                                                            {"alltoall", Kind::all_to_all}};
// What MSCCL++'s executor has room for (src/include/execution_common.hpp).
constexpr std::size_t executor_operations = 64, executor_channels = 16, executor_ids = 8, executor_buffers = 8,
                      executor_semaphores = 16, executor_in_pipeline = 16;

/// A list of the channels or remote buffers of a thread block, by the type of channel.
using OfTransport = std::array<std::vector<std::uint32_t>, 2>;
std::vector<std::uint32_t>& of(OfTransport& lists, Transport transport) {
  return lists[static_cast<std::size_t>(transport)];
}
const std::vector<std::uint32_t>& of(const OfTransport& lists, Transport transport) {
  return lists[static_cast<std::size_t>(transport)];
}

struct RemoteBuffer {
  std::uint32_t gpu = 0;
  Buffer buffer = Buffer::input;
};
struct SwitchChannel {
  std::uint32_t group = 0;
  Buffer buffer = Buffer::input;
};

class PlanReader {
 public:
  explicit PlanReader(const std::string& file) : at_(file) { plan_.file = file; }

  Plan read(std::string_view text) {
    Json json;
    try {
      json = Json::parse(text);
    } catch (const Json::parse_error& error) {
      throw Error(ErrorCode::bad_input, {.file = plan_.file, .byte_offset = error.byte}, "this is no JSON",
                  "an execution plan of MSCCL++");
    } catch (const Json::out_of_range&) {
      throw Error(ErrorCode::bad_input, {.file = plan_.file}, "a number that no double can hold",
                  "an execution plan of MSCCL++");
    }
    read_head(json);
    const Json& gpus = at_.list(json, "gpus");
    for (std::uint32_t gpu = 0; gpu < plan_.gpus.size(); ++gpu) read_sizes(gpus[gpu], gpu);
    check_sizes();
    for (std::uint32_t gpu = 0; gpu < plan_.gpus.size(); ++gpu) read_connections(gpus[gpu], gpu);
    pair_channels();
    for (std::uint32_t gpu = 0; gpu < plan_.gpus.size(); ++gpu) read_blocks(gpus[gpu], gpu);
    add_warnings();
    return std::move(plan_);
  }

 private:
  void read_head(const Json& json) {
    plan_.name = at_.word(json, "name", "the name of the plan", "");
    const std::string collective = at_.word(json, "collective", "the kind of collective");
    const auto known = std::ranges::find(plan_kinds, collective, &std::pair<std::string_view, Kind>::first);
    if (known == std::end(plan_kinds))
      at_.fail(fmt::format("collective is '{}'", cited(collective)),
               "allreduce, allgather, reducescatter, broadcast or alltoall");
    plan_.kind = known->second;
    plan_.uses_packets = at_.word(json, "protocol", "LL or Simple", "Simple") == "LL";
    plan_.in_place = at_.flag(json, "inplace");
    plan_.reuses_scratch = at_.flag(json, "reuse_resources", false);
    plan_.has_double_scratch = at_.flag(json, "use_double_scratch_buffer", false);
    plan_.threads = at_.count(json, "num_threads_per_block", 1, most_threads, 1024);
    plan_.alignment = at_.count(json, "buffer_alignment", 1, 1 << 20, 16);
    const auto size = [&](const char* key, Bytes fallback) {
      return json.contains(key) ? Bytes(at_.whole(json.at(key), key, 0, ~std::uint64_t{0})) : fallback;
    };
    plan_.least = size("min_message_size", plan_.least);
    plan_.most = size("max_message_size", plan_.most);
    if (plan_.most < plan_.least)
      at_.fail(fmt::format("max_message_size is {}", plan_.most.count()),
               fmt::format("{} or more, which is min_message_size", plan_.least.count()));
    const std::size_t num_gpus = at_.list(json, "gpus").size();
    if (num_gpus < 2 || num_gpus > most_gpus)
      at_.fail(fmt::format("the plan has {}", counted(num_gpus, "GPU")), fmt::format("2 to {}", most_gpus));
    plan_.gpus.resize(num_gpus);
  }

  void read_sizes(const Json& json, std::uint32_t gpu) {
    if (const std::uint32_t id = at_.count(json, "id", 0, most_gpus); id != gpu)
      at_.fail(fmt::format("entry {} of gpus has id {}", gpu, id), "ids 0, 1, 2, ... in their order");
    at_.enter_gpu(gpu);
    Plan::Gpu& sizes = plan_.gpus[gpu];
    sizes.input_chunks = at_.count(json, "input_chunks", 0, most_chunks);
    sizes.output_chunks = at_.count(json, "output_chunks", 0, most_chunks);
    sizes.scratch_chunks = at_.count(json, "scratch_chunks", 0, most_chunks, 0);
    if (sizes.input_chunks == 0 && sizes.output_chunks == 0)
      at_.fail("it has neither input_chunks nor output_chunks", "1 or more of one of them");
    at_.leave_gpu();
  }

  /// Finds the chunks of input and output where the file gives only one of them, and holds the others to them.
  void check_sizes() {
    const auto gpus = static_cast<std::uint32_t>(plan_.gpus.size());
    const Plan::Gpu& first = plan_.gpus[0];
    const bool gathers = plan_.kind == Kind::all_gather, scatters = plan_.kind == Kind::reduce_scatter;
    std::uint64_t whole = gathers ? first.output_chunks : first.input_chunks;
    if (whole == 0)
      whole = gathers    ? std::uint64_t{first.input_chunks} * gpus
              : scatters ? std::uint64_t{first.output_chunks} * gpus
                         : first.output_chunks;
    const bool has_shares = gathers || scatters || plan_.kind == Kind::all_to_all;
    if (whole > most_chunks || (has_shares && whole % gpus != 0))
      at_.fail(fmt::format("GPU 0 has {} and {} of output",
                           counted(first.input_chunks, "chunk of input", "chunks of input"), first.output_chunks),
               "chunks that the GPUs share equally");
    const auto input = static_cast<std::uint32_t>(gathers ? whole / gpus : whole);
    const auto output = static_cast<std::uint32_t>(scatters ? whole / gpus : whole);
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
      Plan::Gpu& sizes = plan_.gpus[gpu];
      for (const auto& [key, given, wanted] : {std::tuple("input_chunks", &sizes.input_chunks, input),
                                               std::tuple("output_chunks", &sizes.output_chunks, output)}) {
        if (*given != 0 && *given != wanted)
          at_.fail(fmt::format("{} of GPU {} is {}", key, gpu, *given), fmt::format("{}", wanted));
        *given = wanted;
      }
    }
  }

  // --- connections of a GPU ---

  Buffer buffer_of(const std::string& type) const {
    if (type == "i") return Buffer::input;
    if (type == "o") return Buffer::output;
    if (type != "s") at_.fail(fmt::format("a buffer has type '{}'", cited(type)), "i, o or s");
    return Buffer::scratch;
  }
  Transport transport_of(const std::string& type) const {
    if (type != "memory" && type != "port")
      at_.fail(fmt::format("a channel has type '{}'", cited(type)), "memory, port or switch");
    return type == "port" ? Transport::port : Transport::memory;
  }
  std::uint32_t other_gpu(const Json& value, std::string_view key, std::uint32_t gpu) const {
    const auto found = static_cast<std::uint32_t>(at_.whole(value, key, 0, plan_.gpus.size() - 1));
    if (found == gpu) at_.fail(fmt::format("{} names the GPU itself", key), "another GPU");
    return found;
  }

  void read_connections(const Json& json, std::uint32_t gpu) {
    at_.enter_gpu(gpu);
    ids_.emplace_back();
    switches_.emplace_back();
    for (const Json& entry : at_.list(json, "channels")) {
      const std::string type = at_.word(entry, "channel_type", "memory, port or switch");
      if (type == "switch") {
        read_switch_channel(entry);
        continue;
      }
      const Transport transport = transport_of(type);
      for (const Json& peer : at_.list(entry, "connected_to")) {
        of(ids_[gpu], transport).push_back(static_cast<std::uint32_t>(plan_.gpus[gpu].channels.size()));
        plan_.gpus[gpu].channels.push_back({transport, other_gpu(peer, "connected_to", gpu), 0});
      }
    }
    auto& buffers = remote_buffers_.emplace_back();
    for (const Json& entry : at_.list(json, "remote_buffers")) {
      if (!entry.is_object() || !entry.contains("rank")) at_.fail("a remote buffer has no rank", "the id of a GPU");
      buffers.push_back({other_gpu(entry.at("rank"), "the rank of a remote buffer", gpu),
                         buffer_of(at_.word(entry, "type", "i, o or s"))});
    }
    for (const Json& entry : at_.list(json, "semaphores"))
      plan_.gpus[gpu].semaphores.push_back(at_.count(entry, "init_value", 0, most_value));
    at_.leave_gpu();
  }

  void read_switch_channel(const Json& entry) {
    const Buffer buffer =
        buffer_of(at_.word(entry, entry.contains("buffer_type") ? "buffer_type" : "buff", "the buffer, i, o or s"));
    for (const Json& group : at_.list(entry, "rank_groups")) {
      std::vector<std::uint32_t> gpus;
      for (const Json& gpu : at_.list(group, "ranks"))
        gpus.push_back(static_cast<std::uint32_t>(at_.whole(gpu, "ranks", 0, plan_.gpus.size() - 1)));
      std::ranges::sort(gpus);
      if (gpus.empty() || std::ranges::adjacent_find(gpus) != gpus.end())
        at_.fail("the ranks of a switch channel are none, or one is there twice", "each GPU of the group once");
      const auto [known, is_new] = groups_.emplace(gpus, static_cast<std::uint32_t>(plan_.groups.size()));
      if (is_new) plan_.groups.push_back(std::move(gpus));
      switches_.back().push_back({known->second, buffer});
    }
  }

  /// Pairs the k-th channel of a type from a to b with the k-th one from b to a, and makes those that are missing.
  void pair_channels() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, Transport>, std::vector<std::uint32_t>> ends;
    for (std::uint32_t gpu = 0; gpu < plan_.gpus.size(); ++gpu)
      for (std::uint32_t id = 0; id < plan_.gpus[gpu].channels.size(); ++id) {
        const Channel& channel = plan_.gpus[gpu].channels[id];
        ends[{gpu, channel.peer, channel.transport}].push_back(id);
        ends[{channel.peer, gpu, channel.transport}];
      }
    for (auto& [key, of_a] : ends) {
      const auto [a, b, transport] = key;
      auto& of_b = ends.at({b, a, transport});
      for (std::size_t k = 0; k < of_a.size(); ++k) {
        if (k == of_b.size()) {
          of_b.push_back(static_cast<std::uint32_t>(plan_.gpus[b].channels.size()));
          plan_.gpus[b].channels.push_back({transport, a, 0});
        }
        plan_.gpus[a].channels[of_a[k]].paired = of_b[k];
        plan_.gpus[b].channels[of_b[k]].paired = of_a[k];
      }
    }
  }

  // --- thread blocks ---

  void read_blocks(const Json& json, std::uint32_t gpu) {
    at_.enter_gpu(gpu);
    gpu_ = gpu;
    std::set<std::uint32_t> ids;
    for (const Json& entry : at_.list(json, "threadblocks")) {
      Plan::Block& block = plan_.gpus[gpu].blocks.emplace_back();
      block.id = at_.count(entry, "id", 0, most_blocks);
      at_.enter_block(block.id);
      if (!ids.insert(block.id).second) at_.fail("the thread block is there twice", "each id once");
      read_references(entry);
      std::uint32_t number = 0;
      for (const Json& operation : at_.list(entry, "ops")) read_operation(operation, block, number++);
      at_.leave_operation();
      warn_if(block.steps.size() > executor_operations,
              fmt::format("it has {}", counted(block.steps.size(), "operation")), executor_operations);
      warn_if(of(channels_, Transport::memory).size() > executor_channels ||
                  of(channels_, Transport::port).size() > executor_channels,
              "it has many channels", executor_channels);
      at_.leave_block();
    }
    std::ranges::sort(plan_.gpus[gpu].blocks, {}, &Plan::Block::id);
    warn_if(plan_.gpus[gpu].semaphores.size() > executor_semaphores, "it has many semaphores", executor_semaphores);
    at_.leave_gpu();
  }
  void warn_if(bool is_so, std::string_view what, std::size_t most) {
    if (is_so) warn(fmt::format("{}; MSCCL++'s executor has room for {}", what, most));
  }
  /// Warns of what may be so at many places: once, with the first place.
  void warn(const std::string& what) {
    const auto [known, is_new] = warnings_.try_emplace(what, at_.text(), 0);
    if (!is_new) ++known->second.second;
  }
  void add_warnings() {
    for (const auto& [what, where] : warnings_)
      plan_.warnings.push_back(fmt::format("{}{}: {}", where.first,
                                           where.second > 0 ? fmt::format(" and {} more", where.second) : "", what));
  }

  void read_references(const Json& entry) {
    channels_ = {};
    buffers_ = {};
    switch_channels_.clear();
    for (const Json& list : at_.list(entry, "channels")) {
      const std::string type = at_.word(list, "channel_type", "memory, port or switch");
      if (type == "switch") {
        append(list, "channel_ids", switches_[gpu_].size(), switch_channels_);
        continue;
      }
      const Transport transport = transport_of(type);
      std::vector<std::uint32_t> ids;
      append(list, "channel_ids", of(ids_[gpu_], transport).size(), ids);
      for (const std::uint32_t id : ids) of(channels_, transport).push_back(of(ids_[gpu_], transport)[id]);
    }
    for (const Json& list : at_.list(entry, "remote_buffer_refs")) {
      const Transport transport = transport_of(at_.word(list, "access_channel_type", "memory or port"));
      append(list, "remote_buffer_ids", remote_buffers_[gpu_].size(), of(buffers_, transport));
    }
  }
  /// Appends the ids of a list, each of which is below `size`.
  void append(const Json& at, const char* key, std::size_t size, std::vector<std::uint32_t>& ids) const {
    for (const Json& id : at_.list(at, key)) ids.push_back(index(id, key, size));
  }
  std::uint32_t index(const Json& value, std::string_view what, std::size_t size) const {
    if (size == 0) at_.fail(fmt::format("{} names what is not there", what), "no id: there is none to name");
    return static_cast<std::uint32_t>(at_.whole(value, what, 0, size - 1));
  }

  void read_operation(const Json& json, Plan::Block& block, std::uint32_t number) {
    const std::string name = at_.word(json, "name", "the name of an operation");
    at_.enter_operation(number, name);
    if (name != "pipeline") {
      block.steps.push_back(read_step(json, name, number));
      return;
    }
    if (!json.contains("iter_context")) at_.fail("there is no iter_context", "its unit_size and num_chunks");
    const Json& context = json.at("iter_context");
    const std::uint32_t unit = at_.count(context, "unit_size", 1, ~std::uint32_t{0});
    const std::uint32_t chunks = at_.count(context, "num_chunks", 0, most_chunks);
    const Json& inner = at_.list(json, "ops");
    warn_if(inner.size() > executor_in_pipeline, fmt::format("it holds {}", counted(inner.size(), "operation")),
            executor_in_pipeline);
    ++pipelines_;
    for (const Json& operation : inner) {
      const std::string inner_name = at_.word(operation, "name", "the name of an operation");
      at_.enter_operation(number, "pipeline, " + inner_name);
      if (inner_name == "pipeline") at_.fail("it is in a pipeline itself", "pipelines that hold other operations");
      Plan::Step step = read_step(operation, inner_name, number);
      step.pipeline = pipelines_;
      step.unit = unit;
      step.pipeline_chunks = chunks;
      block.steps.push_back(std::move(step));
    }
  }

  Plan::Step read_step(const Json& json, const std::string& name, std::uint32_t number) {
    Plan::Step step;
    step.number = number;
    step.kind = kind_of(name);
    const std::string type = at_.word(json, "channel_type", "memory, port or switch", "memory");
    if (type != "switch" && type != "none") step.transport = transport_of(type);
    if (uses_channels(step.kind, step.transport)) read_channel_ids(json, step);
    if (uses_semaphores(step.kind)) append(json, "semaphore_ids", plan_.gpus[gpu_].semaphores.size(), step.ids);
    if (step.kind == OperationKind::barrier) {
      step.barrier = at_.count(json, "barrier_id", 0, most_value);
      step.num_blocks = at_.count(json, "num_threadblocks", 1, most_blocks);
    }
    if (json.contains("tbg_info")) {
      step.share.size = at_.count(json.at("tbg_info"), "tbg_size", 1, most_blocks);
      step.share.part = at_.count(json.at("tbg_info"), "tb_id", 0, step.share.size - 1);
    }
    read_operands(json, step);
    return step;
  }
  OperationKind kind_of(const std::string& name) const {
    if (name == "glre") at_.fail("MSCCL++'s own executor does not know it", "glres, which also stores the sum");
    for (std::size_t k = 0; k < num_operation_kinds; ++k)
      if (mscclpp::name(static_cast<OperationKind>(k)) == name) return static_cast<OperationKind>(k);
    at_.fail("the operation is not known", "put, get, copy, signal, wait, packets, reductions, nop or barrier");
  }
  void read_channel_ids(const Json& json, Plan::Step& step) {
    std::vector<std::uint32_t> places;
    append(json, "channel_ids", of(channels_, step.transport).size(), places);
    if (places.empty()) at_.fail("it names no channel", "channel_ids of its thread block");
    for (const std::uint32_t place : places) step.ids.push_back(of(channels_, step.transport)[place]);
    warn_if(places.size() > executor_ids, fmt::format("it names {}", counted(places.size(), "channel")), executor_ids);
  }

  // --- operands ---

  void read_operands(const Json& json, Plan::Step& step) {
    const OperandRules rules = operand_rules(step.kind, step.transport);
    if (rules.most_destinations == 0) return;
    read_side(json, "src_buff", rules, true, step);
    read_side(json, "dst_buff", rules, false, step);
    if (rules.is_paired && step.sources.size() == 1 && step.destinations.size() > 1)
      step.sources.resize(step.destinations.size(), step.sources[0]);
    if (rules.is_paired && step.sources.size() != step.destinations.size())
      at_.fail(fmt::format("it has {} and {}", counted(step.sources.size(), "source"),
                           counted(step.destinations.size(), "destination")),
               "as many sources as destinations");
    const auto check = [&](const Plan::Chunks& operand, const Plan::Chunks& like) {
      if (operand.count != like.count)
        at_.fail(fmt::format("it moves {} to {}", counted(like.count, "chunk"), operand.count), "equal sizes");
    };
    for (std::size_t i = 0; i < step.destinations.size(); ++i)
      check(step.destinations[i], step.sources[rules.is_paired ? i : 0]);
    if (!rules.is_paired)
      for (const Plan::Chunks& source : step.sources) check(source, step.sources[0]);
    if (uses_channels(step.kind, step.transport)) check_channels(step);
    warn_if(step.destinations.size() > executor_buffers + 2 || step.sources.size() > executor_buffers + 2,
            "it has many buffers", executor_buffers + 2);
    if (step.kind == OperationKind::get && std::ranges::any_of(step.sources, [&](const Plan::Chunks& source) {
          return source.index != step.destinations[static_cast<std::size_t>(&source - step.sources.data())].index;
        }))
      warn("source and destination have different indices, which MSCCL++'s executor exchanges");
  }
  /// Data on a port go by a channel each, to its peer.
  void check_channels(const Plan::Step& step) const {
    if (step.transport == Transport::memory)
      at_.fail("it is for port channels, and its channel_type is memory", "channel_type port");
    if (step.ids.size() != step.destinations.size())
      at_.fail(fmt::format("it has {} and {}", counted(step.ids.size(), "channel"),
                           counted(step.destinations.size(), "destination")),
               "a channel for each destination");
    for (std::size_t i = 0; i < step.ids.size(); ++i)
      if (plan_.gpus[gpu_].channels[step.ids[i]].peer != step.destinations[i].gpu)
        at_.fail(fmt::format("destination {} is on GPU {}, and its channel leads to GPU {}", i,
                             step.destinations[i].gpu, plan_.gpus[gpu_].channels[step.ids[i]].peer),
                 "a channel to the GPU of the buffer");
  }

  void read_side(const Json& json, const char* key, const OperandRules& rules, bool is_source, Plan::Step& step) {
    const Json& entries = at_.list(json, key);
    const std::uint32_t least = is_source ? rules.least_sources : rules.least_destinations,
                        most = is_source ? rules.most_sources : rules.most_destinations;
    if (entries.size() < least || entries.size() > most)
      at_.fail(fmt::format("{} has {}", key, counted(entries.size(), "entry", "entries")),
               least == most ? fmt::format("{}", least) : fmt::format("{} or more", least));
    std::vector<Plan::Chunks>& operands = is_source ? step.sources : step.destinations;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      const Access access = is_source ? rules.source(i) : rules.destination(i);
      operands.push_back(read_operand(entries[i], fmt::format("{} {}", key, i), access, step.transport));
    }
  }

  Plan::Chunks read_operand(const Json& json, const std::string& what, Access access, Transport transport) const {
    const bool is_local = access == Access::local || access == Access::local_packets;
    const char* const key = is_local ? "type" : is_of_group(access) ? "switch_channel_id" : "buffer_id";
    if (!json.is_object() || !json.contains(key))
      at_.fail(fmt::format("{} has no {}", what, key), is_local ? "a buffer of this GPU, with a type"
                                                       : is_of_group(access)
                                                           ? "a channel of a switch, with a switch_channel_id"
                                                           : "a buffer of another GPU, with a buffer_id");
    Plan::Chunks operand;
    operand.access = access;
    operand.gpu = gpu_;
    operand.count = at_.count(json, "size", 1, most_chunks);
    operand.index = at_.count(json, "index", 0, most_chunks);
    if (is_local) {
      operand.buffer = buffer_of(at_.word(json, "type", "i, o or s"));
    } else if (is_of_group(access)) {
      const std::uint32_t place = index(json.at(key), key, switch_channels_.size());
      const SwitchChannel& channel = switches_[gpu_][switch_channels_[place]];
      operand.gpu = channel.group;
      operand.buffer = channel.buffer;
      if (!std::ranges::binary_search(plan_.groups[channel.group], gpu_))
        at_.fail("the group of its switch channel lacks this GPU", "a group with it");
    } else {
      const std::uint32_t place = index(json.at(key), key, of(buffers_, transport).size());
      const RemoteBuffer& buffer = remote_buffers_[gpu_][of(buffers_, transport)[place]];
      operand.gpu = buffer.gpu;
      operand.buffer = buffer.buffer;
    }
    check_chunks(operand, what);
    return operand;
  }
  void check_chunks(const Plan::Chunks& operand, const std::string& what) const {
    if (is_packets(operand.access) && operand.buffer != Buffer::scratch)
      at_.fail(fmt::format("{} holds packets and is no scratch", what), "type s");
    const std::uint32_t gpu = is_of_group(operand.access) ? gpu_ : operand.gpu;
    const Plan::Gpu& sizes = plan_.gpus[gpu];
    const std::uint32_t size = operand.buffer == Buffer::input    ? sizes.input_chunks
                               : operand.buffer == Buffer::output ? sizes.output_chunks
                                                                  : sizes.scratch_chunks;
    if (operand.index + operand.count > size)
      at_.fail(fmt::format("{} ends at chunk {} of a buffer of GPU {}, which has {}", what,
                           operand.index + operand.count, gpu, counted(size, "chunk")),
               "chunks of the buffer");
  }

  Plan plan_;
  PlanCursor at_;
  std::uint32_t gpu_ = 0, pipelines_ = 0;
  std::vector<OfTransport> ids_;  ///< [gpus] the channels of each type, by their numbers of the file
  std::vector<std::vector<RemoteBuffer>> remote_buffers_;
  std::vector<std::vector<SwitchChannel>> switches_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> groups_;
  OfTransport channels_, buffers_;  ///< ids of the thread block
  std::vector<std::uint32_t> switch_channels_;
  std::map<std::string, std::pair<std::string, std::uint64_t>> warnings_;  ///< their first places, and how many more
};

}  // namespace

Plan parse_plan(std::string_view text, const std::string& file) { return PlanReader(file).read(text); }

Plan read_plan(const std::filesystem::path& file, const Place& named_by) {
  return parse_plan(read_text(file, named_by), file.string());
}

}  // namespace orrery::collective::mscclpp
