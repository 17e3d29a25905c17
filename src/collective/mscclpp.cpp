// Reads execution plans of MSCCL++ (JSON). Each operation becomes steps of MSCCL: what a GPU writes to another one or
// reads from it is a message, and signals are messages without data.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "mscclpp_steps.hpp"
#include "orrery/base/text.hpp"

namespace orrery::collective {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t most_plan_gpus = 1 << 12;
constexpr std::int64_t most_plan_chunks = 1 << 20;
constexpr std::int64_t most_of_group = 64;  // thread blocks that share an operation

constexpr std::pair<std::string_view, Kind> plan_kinds[] = {{"allreduce", Kind::all_reduce},
                                                            {"allgather", Kind::all_gather},
                                                            {"reducescatter", Kind::reduce_scatter},
                                                            {"broadcast", Kind::broadcast},
                                                            {"alltoall", Kind::all_to_all}};

constexpr std::uint64_t most_iterations = 64;  // of a pipeline; of more, as many equal ones stand for all

class MscclppReader : PlanSteps {
 public:
  /// Reads a plan for data of `whole` bytes; 0: of any size, with one iteration of each pipeline.
  MscclppReader(const std::filesystem::path& file, Kind kind, Bytes whole = Bytes(0)) : PlanSteps(file), whole_(whole) {
    algorithm_.kind = kind;
  }

  bool has_pipelines() const { return has_pipelines_; }

  std::shared_ptr<CustomCollective> read(const std::string& text, const Place& named_by) {
    Json plan;
    try {
      plan = Json::parse(text);
    } catch (const Json::parse_error& error) {
      throw Error(ErrorCode::bad_input, {.file = algorithm_.file, .byte_offset = error.byte}, "this is no JSON",
                  "an execution plan of MSCCL++");
    }
    try {
      read_head(plan, named_by);
      read_sizes(plan);
      for (at_.gpu = 0; at_.gpu < algorithm_.num_gpus; ++at_.gpu) read_gpu(plan.at("gpus")[at_.gpu]);
    } catch (const Json::out_of_range& error) {
      const std::string_view what = error.what();
      const auto from = std::min(what.find("key '"), what.size());
      fail(fmt::format("the {} is missing", what.substr(from, what.find(" not found") - from)),
           "a plan as MSCCL++'s DSL writes it");
    } catch (const Json::exception&) {
      fail("a key is missing or has a value of another type", "a plan as MSCCL++'s DSL writes it");
    }
    return build();
  }

 private:
  std::uint32_t count(const Json& at, const char* key, std::int64_t low, std::int64_t high,
                      std::optional<std::int64_t> fallback = {}) const {
    if (!at.contains(key) && fallback) return static_cast<std::uint32_t>(*fallback);
    const auto expected = [&] { return fmt::format("a whole number, {} to {}", low, high); };
    if (!at.contains(key)) fail(fmt::format("there is no {}", key), expected());
    return whole(at.at(key), key, low, high);
  }
  std::uint32_t whole(const Json& value, std::string_view what, std::int64_t low, std::int64_t high) const {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high)) &&
                      value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
    if (!fits)
      fail(fmt::format("{} is {}", what, cited(value.dump())), fmt::format("a whole number, {} to {}", low, high));
    return static_cast<std::uint32_t>(value.get<std::int64_t>());
  }
  static const Json& list(const Json& at, const char* key) {
    static const Json none = Json::array();
    return at.contains(key) ? at.at(key).get_ref<const Json::array_t&>(), at.at(key) : none;
  }

  void read_sizes(const Json& plan) {
    const auto size = [&](const char* key, Bytes fallback) {
      if (!plan.contains(key)) return fallback;
      if (!plan.at(key).is_number_unsigned())
        fail(fmt::format("{} is {}", key, cited(plan.at(key).dump())), "a number of bytes, 0 to 2^64 - 1");
      return Bytes(plan.at(key).get<std::uint64_t>());
    };
    sizes_ = {size("min_message_size", sizes_.first), size("max_message_size", sizes_.second)};
    if (sizes_.second < sizes_.first)
      fail(fmt::format("max_message_size is {}", sizes_.second.count()),
           fmt::format("{} or more, which is min_message_size", sizes_.first.count()));
  }

  void read_head(const Json& plan, const Place& named_by) {
    const auto collective = plan.at("collective").get<std::string>();
    const auto known = std::ranges::find(plan_kinds, collective, &std::pair<std::string_view, Kind>::first);
    if (known == std::end(plan_kinds))
      fail(fmt::format("collective is '{}'", cited(collective)),
           "allreduce, allgather, reducescatter, broadcast or alltoall");
    if (known->second != algorithm_.kind)
      throw Error(ErrorCode::bad_input, named_by,
                  fmt::format("found {}, whose collective is that of {}", algorithm_.file, name(known->second)),
                  fmt::format("a plan of {}", name(algorithm_.kind)));
    algorithm_.in_place = plan.at("inplace").get<bool>();
    const Json& gpus = list(plan, "gpus");
    algorithm_.num_gpus = static_cast<std::uint32_t>(gpus.size());
    if (gpus.size() < 2 || gpus.size() > most_plan_gpus)
      fail(fmt::format("the plan has {}", counted(gpus.size(), "GPU")), fmt::format("2 to {}", most_plan_gpus));
    const auto chunks = [&](std::uint32_t rank, const char* key) {
      return count(gpus[rank], key, 0, most_plan_chunks);
    };
    const std::uint32_t in = chunks(0, "input_chunks"), out = chunks(0, "output_chunks");
    input_chunks_ = std::max(in > 0 ? in : out, 1U);
    find_parts(gpus);
    algorithm_.num_chunks = parts_ * (algorithm_.kind == Kind::all_gather ? (out > 0 ? out : in * algorithm_.num_gpus)
                                                                          : (in > 0 ? in : out));
    if (algorithm_.kind == Kind::reduce_scatter && in == 0) algorithm_.num_chunks *= algorithm_.num_gpus;
    const bool has_shares = algorithm_.kind != Kind::all_reduce && algorithm_.kind != Kind::broadcast;
    if (algorithm_.num_chunks == 0 || (has_shares && algorithm_.num_chunks % algorithm_.num_gpus != 0))
      fail(fmt::format("GPU 0 has {} and {} of output", counted(in, "chunk of input", "chunks of input"), out),
           "chunks that the GPUs share equally");
    for (std::uint32_t rank = 0; rank < gpus.size(); ++rank) {
      if (count(gpus[rank], "id", 0, most_plan_gpus) != rank)
        fail(fmt::format("entry {} of gpus has id {}", rank, gpus[rank].at("id").dump()), "ids 0, 1, 2, ...");
      for (const auto& [key, wanted] :
           {std::pair("input_chunks", algorithm_.num_input()), std::pair("output_chunks", algorithm_.num_output())}) {
        const std::uint32_t given = chunks(rank, key) * parts_;
        if (given != 0 && given != wanted)
          fail(fmt::format("{} of GPU {} is {}", key, rank, given / parts_), fmt::format("{}", wanted / parts_));
      }
      algorithm_.num_scratch.push_back(parts_ * count(gpus[rank], "scratch_chunks", 0, most_plan_chunks, 0));
    }
    algorithm_.steps.resize(gpus.size());
    for (std::uint32_t rank = 0; rank < gpus.size(); ++rank) read_channels(gpus[rank], rank);
  }

  /// Finds into how many parts chunks have to be cut, so that groups of thread blocks and iterations of pipelines have
  /// whole ones.
  void find_parts(const Json& gpus) {
    std::uint32_t of_groups = 1, of_pipelines = 1;
    const auto look = [&](const Json& operation) {
      if (operation.contains("tbg_info"))
        of_groups = std::lcm(of_groups, count(operation.at("tbg_info"), "tbg_size", 1, most_of_group));
    };
    for (const Json& gpu : gpus)
      for (const Json& block : list(gpu, "threadblocks"))
        for (const Json& operation : list(block, "ops")) {
          look(operation);
          if (operation.at("name").get<std::string>() != "pipeline") continue;
          has_pipelines_ = true;
          of_pipelines = std::lcm(of_pipelines, iterations_of(operation));
          for (const Json& inner : list(operation, "ops")) look(inner);
        }
    parts_ = of_groups * of_pipelines;
    if (parts_ > most_plan_chunks / 256)
      fail("groups of thread blocks have too many sizes", "sizes that divide each other");
  }

  void read_channels(const Json& gpu, std::uint32_t rank) {
    auto& channels = channels_.emplace_back();
    std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> known;  // channels of a type to a GPU
    for (const Json& entry : list(gpu, "channels")) {
      const auto type = entry.at("channel_type").get<std::string>();
      if (type == "switch") {
        read_switch_channel(entry);
        continue;
      }
      for (const Json& peer : list(entry, "connected_to")) {
        const std::uint32_t to = whole(peer, "connected_to", 0, algorithm_.num_gpus - 1);
        if (to == rank) fail(fmt::format("GPU {} has a channel to itself", rank), "another GPU");
        channels[type].emplace_back(to, known[{type, to}]++);
      }
    }
  }

  void read_switch_channel(const Json& entry) {
    const auto type = entry.value(entry.contains("buffer_type") ? "buffer_type" : "buff", std::string("i"));
    for (const Json& group : list(entry, "rank_groups")) {
      SwitchChannel& channel = switches_[static_cast<std::uint32_t>(channels_.size() - 1)].emplace_back();
      channel.type = type;
      for (const Json& rank : list(group, "ranks"))
        channel.ranks.push_back(whole(rank, "ranks", 0, algorithm_.num_gpus - 1));
    }
  }

  void read_gpu(const Json& gpu) {
    barriers_.clear();
    at_.semaphores = {};
    for (const Json& semaphore : list(gpu, "semaphores"))
      at_.semaphores.initial.push_back(count(semaphore, "init_value", 0, most_plan_chunks, 0));
    std::set<std::uint32_t> ids;
    for (const Json& block : list(gpu, "threadblocks")) {
      at_.block = -1;
      at_.block = count(block, "id", 0, most_plan_chunks);
      if (!ids.insert(static_cast<std::uint32_t>(at_.block)).second)
        fail("the thread block is there twice", "each id once");
      at_.before.reset();
      at_.unsignalled.clear();
      barriers_of_block_.clear();
      at_.number = 0;
      for (const Json& operation : list(block, "ops")) {
        read_named(gpu, block, operation);
        ++at_.number;
      }
      at_.operation.clear();
    }
    at_.block = -1;
    match_semaphores();
    for (const auto& [key, found] : barriers_)
      if (found.second.size() != found.first)
        fail(fmt::format("{} of {} come to barrier {}", counted(found.second.size(), "thread block"), found.first,
                         key.first),
             "as many as num_threadblocks says, equally often");
    for (const auto& [key, found] : barriers_)
      for (const auto& [arrives, leaves] : found.second)
        for (const auto& other : found.second) waits_.emplace_back(other.first, leaves);
  }

  void read_named(const Json& gpu, const Json& block, const Json& operation) {
    at_.operation = operation.at("name").get<std::string>();
    if (at_.operation != "pipeline") return read_operation(gpu, block, operation);
    if (at_.iterations > 1) fail("it is in a pipeline itself", "pipelines that hold other operations");
    const std::uint32_t iterations = iterations_of(operation);
    for (at_.iteration = 0; at_.iteration < iterations; ++at_.iteration) {
      at_.iterations = iterations;
      for (const Json& inner : list(operation, "ops")) {
        at_.operation = inner.at("name").get<std::string>();
        if (at_.operation == "pipeline") fail("it is in a pipeline itself", "pipelines that hold other operations");
        read_operation(gpu, block, inner);
      }
    }
    at_.iteration = 0;
    at_.iterations = 1;
  }

  /// Returns the iterations of a pipeline: as many as units are in its chunks.
  std::uint32_t iterations_of(const Json& pipeline) const {
    const Json& context = pipeline.at("iter_context");
    const std::uint64_t unit = count(context, "unit_size", 1, std::int64_t{1} << 32);
    const std::uint64_t chunks = count(context, "num_chunks", 1, most_plan_chunks);
    const std::uint64_t bytes = whole_.count() / input_chunks_ * chunks;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((bytes + unit - 1) / unit, 1, most_iterations));
  }

  /// Semaphores join thread blocks of a GPU: the k-th acquisition waits for the release that gives the k-th unit.
  void pass_semaphores(const Json& operation, bool acquires) {
    for (const Json& index : list(operation, "semaphore_ids")) {
      const std::uint32_t id =
          whole(index, "semaphore_ids", 0,
                std::max<std::int64_t>(static_cast<std::int64_t>(at_.semaphores.initial.size()) - 1, 0));
      auto& [block, steps] = (acquires ? at_.semaphores.acquired : at_.semaphores.released)[id];
      if (!steps.empty() && block != at_.block)
        fail(fmt::format("thread block {} does so with semaphore {} too", block, id),
             "one thread block that acquires a semaphore, and one that releases it");
      block = at_.block;
      steps.push_back(add("nop"));
    }
  }
  void use_switch(const Json& block, const Json& operation) {
    const std::string& name = at_.operation;
    const bool packets = name == "gstorepkt";
    const auto of_group = [&](const char* key) { return buffers_of_group(block, operation, key); };
    auto [own_target, targets] = of_group("dst_buff");
    if (name == "glres") {
      const auto [own, others] = of_group("src_buff");
      const bool moves = own.at.buffer != own_target.at.buffer || own.at.offset != own_target.at.offset;
      reduce_in_switch(others, own);
      if (moves) calculate("cpy", own, own_target, false, false);
    } else {
      calculate("cpy", local(operation, "src_buff", 0), own_target, packets, packets);
    }
    multicast(own_target, targets, packets);
  }

  void read_operation(const Json& gpu, const Json& block, const Json& operation) {
    const std::string& name = at_.operation;
    if (name == "nop" || name == "flush") {
      add("nop");
    } else if (name == "barrier") {
      pass_barrier(operation);
    } else if (name == "sem_acquire" || name == "sem_release") {
      pass_semaphores(operation, name == "sem_acquire");
    } else if (name == "glres" || name == "gstore" || name == "gstorepkt") {
      use_switch(block, operation);
    } else if (name == "signal" || name == "rlxsignal") {
      signal(block, operation);
    } else if (name == "wait" || name == "rlxwait") {
      for (const PlanChannel& channel : channels_of(block, operation, false)) {
        const StepOf step = add("r");
        extra(step).message = channel;
        waits_of_[channel].push_back(step);
        claim(waiters_, channel);
      }
    } else if (name == "put" || name == "pws" || name == "pwsf" || name == "ppkt") {
      const bool packets = name == "ppkt";
      for (std::size_t k = 0; k < list(operation, "dst_buff").size(); ++k) {
        const bool is_shared = list(operation, "src_buff").size() == 1;
        write(local(operation, "src_buff", is_shared ? 0 : k), remote(gpu, block, operation, "dst_buff", k), packets);
      }
      if (name == "pws" || name == "pwsf") signal(block, operation);
    } else if (name == "get") {
      for (std::size_t k = 0; k < list(operation, "src_buff").size(); ++k)
        fetch(remote(gpu, block, operation, "src_buff", k), local(operation, "dst_buff", k), false);
    } else if (name == "copy" || name == "cpkt" || name == "upkt") {
      calculate("cpy", local(operation, "src_buff", 0), local(operation, "dst_buff", 0), name == "upkt",
                name == "cpkt");
    } else if (name == "rppkt") {
      const PlanBuffer from = local(operation, "src_buff", 0);
      for (std::size_t k = 0; k < list(operation, "dst_buff").size(); ++k)
        write(from, remote(gpu, block, operation, "dst_buff", k), true, k == 0);
    } else {
      reduce(gpu, block, operation);
    }
  }

  void reduce(const Json& gpu, const Json& block, const Json& operation) {
    const std::string& name = at_.operation;
    const bool packets = name == "repkt" || name == "respkt" || name == "recpkt" || name == "recspkt";
    const bool reads_remote = name == "rre" || name == "rres";
    if (!packets && !reads_remote && name != "re" && name != "res") refuse(name);
    const PlanBuffer sum = local(operation, "dst_buff", 0), own = local(operation, "src_buff", 0);
    const bool is_own = own.at.buffer == sum.at.buffer && own.at.offset == sum.at.offset;
    if (!is_own) calculate("cpy", own, sum, false, false);
    for (std::size_t k = 1; k < list(operation, "src_buff").size(); ++k) {
      if (reads_remote)
        fetch(remote(gpu, block, operation, "src_buff", k), sum, true);
      else
        calculate("re", local(operation, "src_buff", k), sum, packets, false);
    }
    std::size_t next = 1;
    if (name == "recpkt" || name == "recspkt") calculate("cpy", sum, local(operation, "dst_buff", next++), false, true);
    for (; next < list(operation, "dst_buff").size(); ++next)
      write(sum, remote(gpu, block, operation, "dst_buff", next), packets);
  }

  [[noreturn]] void refuse(const std::string& name) const {
    if (name == "glre") fail("MSCCL++'s own executor does not know it", "glres, which also stores the sum");
    fail("the operation is not known", "put, get, copy, signal, wait, packets, reductions, nop or barrier");
  }

  // --- what operations name ---

  PlanBuffer cut(const Json& operation, const Json& buffer, std::uint32_t rank, std::string_view type) const {
    if (type != "i" && type != "o" && type != "s")
      fail(fmt::format("a buffer has type '{}'", cited(type)), "i, o or s");
    const auto which = type == "i"   ? Msccl::Buffer::input
                       : type == "o" ? Msccl::Buffer::output
                                     : Msccl::Buffer::scratch;
    std::uint64_t first = 0, last = std::uint64_t{count(buffer, "size", 1, most_plan_chunks)} * parts_;
    if (operation.contains("tbg_info")) {
      const std::uint32_t size = count(operation.at("tbg_info"), "tbg_size", 1, most_of_group);
      const std::uint64_t tb = count(operation.at("tbg_info"), "tb_id", 0, std::int64_t{size} - 1), whole = last;
      first = whole * tb / size;
      last = whole * (tb + 1) / size;
    }
    const std::uint64_t width = last - first;
    last = first + width * (at_.iteration + 1) / at_.iterations;
    first += width * at_.iteration / at_.iterations;
    const std::uint64_t at = std::uint64_t{count(buffer, "index", 0, most_plan_chunks)} * parts_ + first;
    if (at + (last - first) > std::uint64_t{most_plan_chunks} * 256) fail("a buffer ends too far away", "fewer chunks");
    return {rank, {which, static_cast<std::uint32_t>(at)}, static_cast<std::uint32_t>(last - first)};
  }
  const Json& entry(const Json& operation, const char* key, std::size_t k) const {
    const Json& buffers = list(operation, key);
    if (k >= buffers.size())
      fail(fmt::format("{} has {}", key, counted(buffers.size(), "entry", "entries")), "one more");
    if (buffers[k].contains("switch_channel_id"))
      fail(fmt::format("{} {} is that of a switch", key, k), "a buffer of a GPU");
    return buffers[k];
  }
  /// Returns what a switch channel names: the GPU's own buffer, and those of the others of its group.
  std::pair<PlanBuffer, std::vector<PlanBuffer>> buffers_of_group(const Json& block, const Json& operation,
                                                                  const char* key) const {
    const Json& buffers = list(operation, key);
    if (buffers.size() != 1 || !buffers[0].contains("switch_channel_id"))
      fail(fmt::format("{} names no switch channel", key), "one entry with a switch_channel_id");
    const auto of_gpu = switches_.find(at_.gpu);
    for (const Json& refs : list(block, "channels")) {
      if (refs.at("channel_type").get<std::string>() != "switch" || of_gpu == switches_.end()) continue;
      const Json& ids = list(refs, "channel_ids");
      const std::uint32_t at = count(buffers[0], "switch_channel_id", 0, static_cast<std::int64_t>(ids.size()) - 1);
      const auto& channel =
          of_gpu->second[whole(ids[at], "channel_ids", 0, static_cast<std::int64_t>(of_gpu->second.size()) - 1)];
      if (std::ranges::find(channel.ranks, at_.gpu) == channel.ranks.end())
        fail("the group of the switch channel lacks this GPU", "a group with it");
      std::vector<PlanBuffer> others;
      for (const std::uint32_t rank : channel.ranks)
        if (rank != at_.gpu) others.push_back(cut(operation, buffers[0], rank, channel.type));
      return {cut(operation, buffers[0], at_.gpu, channel.type), others};
    }
    fail("its thread block has no switch channel", "channels of the type switch");
  }
  PlanBuffer local(const Json& operation, const char* key, std::size_t k) const {
    const Json& buffer = entry(operation, key, k);
    if (!buffer.contains("type"))
      fail(fmt::format("{} {} is on another GPU", key, k), "a buffer of this GPU, with a type");
    return cut(operation, buffer, at_.gpu, buffer.at("type").get<std::string>());
  }
  PlanBuffer remote(const Json& gpu, const Json& block, const Json& operation, const char* key, std::size_t k) const {
    const Json& buffer = entry(operation, key, k);
    const std::string type = operation.value("channel_type", std::string("memory"));
    const Json& known = list(gpu, "remote_buffers");
    for (const Json& refs : list(block, "remote_buffer_refs")) {
      if (refs.at("access_channel_type").get<std::string>() != type) continue;
      const Json& ids = list(refs, "remote_buffer_ids");
      const std::uint32_t id = count(buffer, "buffer_id", 0, static_cast<std::int64_t>(ids.size()) - 1);
      const Json& found = known.at(whole(ids[id], "remote_buffer_ids", 0, static_cast<std::int64_t>(known.size()) - 1));
      const std::uint32_t rank = count(found, "rank", 0, algorithm_.num_gpus - 1);
      if (rank == at_.gpu) fail("a remote buffer is on the same GPU", "another GPU");
      return cut(operation, buffer, rank, found.at("type").get<std::string>());
    }
    fail(fmt::format("its thread block has no remote buffers for {} channels", cited(type)),
         "remote_buffer_refs of this type");
  }
  /// Returns the channels of an operation, each in the direction in which its message goes.
  std::vector<PlanChannel> channels_of(const Json& block, const Json& operation, bool sends) const {
    const auto type = operation.at("channel_type").get<std::string>();
    const auto of_gpu = channels_[at_.gpu].find(type);
    std::vector<PlanChannel> found;
    for (const Json& index : list(operation, "channel_ids"))
      for (const Json& refs : list(block, "channels")) {
        if (refs.at("channel_type").get<std::string>() != type) continue;
        const Json& ids = list(refs, "channel_ids");
        const std::uint32_t at = whole(index, "channel_ids", 0, static_cast<std::int64_t>(ids.size()) - 1);
        if (of_gpu == channels_[at_.gpu].end()) fail("the GPU has no channel of this type", "one in channels");
        const std::uint32_t id = whole(ids[at], "channel_ids", 0, static_cast<std::int64_t>(of_gpu->second.size()) - 1);
        const auto [peer, k] = of_gpu->second[id];
        found.emplace_back(sends ? at_.gpu : peer, sends ? peer : at_.gpu, type, k);
      }
    if (found.empty()) fail("it names no channel", "channel_ids of its thread block");
    return found;
  }

  void signal(const Json& block, const Json& operation) {
    for (const PlanChannel& channel : channels_of(block, operation, true)) {
      const StepOf step = add("s");
      extra(step).message = channel;
      claim(signallers_, channel);
      auto& carried = carried_[channel].emplace_back();
      for (const StepOf put : at_.unsignalled)
        if (put.rank == std::get<1>(channel)) carried.push_back(put);
    }
  }
  void pass_barrier(const Json& operation) {
    const std::uint32_t id = count(operation, "barrier_id", 0, most_plan_chunks);
    const std::uint32_t blocks = count(operation, "num_threadblocks", 1, most_plan_chunks);
    auto& barrier = barriers_[{id, barriers_of_block_[id]++}];
    if (!barrier.second.empty() && barrier.first != blocks)
      fail(fmt::format("its num_threadblocks is {}", blocks), fmt::format("{}, as others have it", barrier.first));
    barrier.first = blocks;
    const StepOf arrives = add("nop"), leaves = add("nop");
    barrier.second.emplace_back(arrives, leaves);
  }

  std::vector<std::map<std::string, std::vector<std::pair<std::uint32_t, std::uint32_t>>>> channels_;  ///< peer and k
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::vector<std::pair<StepOf, StepOf>>>>
      barriers_;  ///< by id and turn
  std::map<std::uint32_t, std::uint32_t> barriers_of_block_;
  struct SwitchChannel {
    std::string type;  ///< of the buffer
    std::vector<std::uint32_t> ranks;
  };
  std::map<std::uint32_t, std::vector<SwitchChannel>> switches_;  ///< by GPU
  Bytes whole_;                                                   ///< 0: any
  std::uint32_t input_chunks_ = 1;
  bool has_pipelines_ = false;
};

}  // namespace

std::shared_ptr<const CustomCollective> read_mscclpp(const std::filesystem::path& file, Kind kind,
                                                     const Place& named_by) {
  const std::string text = read_text(file, named_by);
  MscclppReader reader(file, kind);
  const auto plan = reader.read(text, named_by);
  if (!reader.has_pipelines()) return plan;
  // The number of iterations depends on the size, so each size is read anew. Sizes with equal numbers of operations are
  // equal, but few sizes occur in a run.
  const auto known = std::make_shared<std::map<Bytes, std::shared_ptr<const CustomCollective>>>();
  CustomCollectiveBuilder::depend_on_size(*plan, [=](Bytes whole) -> const CustomCollective& {
    auto& of_size = (*known)[whole];
    if (!of_size) of_size = MscclppReader(file, kind, whole).read(text, named_by);
    return *of_size;
  });
  return plan;
}

}  // namespace orrery::collective
