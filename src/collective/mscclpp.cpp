// Reads execution plans of MSCCL++ (JSON). Each operation becomes steps of MSCCL: what a GPU writes to another one or
// reads from it is a message, and signals are messages without data.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "msccl.hpp"
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

/// A step, by its GPU and its index there.
struct StepOf {
  std::uint32_t rank = 0, index = 0;
  friend auto operator<=>(const StepOf&, const StepOf&) = default;
};
/// A buffer of a GPU.
struct PlanBuffer {
  std::uint32_t rank = 0;
  Msccl::Location at;
  std::uint32_t count = 0;
};
/// The k-th channel of a type between two GPUs, from one of them to the other.
using PlanChannel = std::tuple<std::uint32_t, std::uint32_t, std::string, std::uint32_t>;

class MscclppReader {
 public:
  MscclppReader(const std::filesystem::path& file, Kind kind) : file_(file) {
    algorithm_.file = file.string();
    algorithm_.kind = kind;
  }

  std::shared_ptr<const CustomCollective> read(const Place& named_by) {
    const std::string text = read_text(file_, named_by);
    Json plan;
    try {
      plan = Json::parse(text);
    } catch (const Json::parse_error& error) {
      throw Error(ErrorCode::bad_input, {.file = algorithm_.file, .byte_offset = error.byte}, "this is no JSON",
                  "an execution plan of MSCCL++");
    }
    try {
      read_head(plan, named_by);
      for (gpu_ = 0; gpu_ < algorithm_.num_gpus; ++gpu_) read_gpu(plan.at("gpus")[gpu_]);
    } catch (const Json::exception&) {
      fail("a key is missing or has a value of another type", "a plan as MSCCL++'s DSL writes it");
    }
    return build();
  }

 private:
  using Step = Msccl::Step;

  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    std::string where;
    if (gpu_ < algorithm_.steps.size()) where = fmt::format("rank {}, ", gpu_);
    if (block_ >= 0) where += fmt::format("thread block {}, ", block_);
    if (!operation_.empty()) where += fmt::format("operation {} ({}), ", number_, cited(operation_));
    if (!where.empty()) where.replace(where.size() - 2, 1, ":");
    throw Error(ErrorCode::bad_input, {.file = algorithm_.file}, where + std::string(found), expected);
  }
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
    find_parts(gpus);
    const auto chunks = [&](std::uint32_t rank, const char* key) {
      return count(gpus[rank], key, 0, most_plan_chunks);
    };
    const std::uint32_t in = chunks(0, "input_chunks"), out = chunks(0, "output_chunks");
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

  /// Finds into how many parts chunks have to be cut, so that groups of thread blocks share whole ones.
  void find_parts(const Json& gpus) {
    for (const Json& gpu : gpus)
      for (const Json& block : list(gpu, "threadblocks"))
        for (const Json& operation : list(block, "ops"))
          if (operation.contains("tbg_info"))
            parts_ = std::lcm(parts_, count(operation.at("tbg_info"), "tbg_size", 1, most_of_group));
    if (parts_ > most_plan_chunks / 256)
      fail("groups of thread blocks have too many sizes", "sizes that divide each other");
  }

  void read_channels(const Json& gpu, std::uint32_t rank) {
    auto& channels = channels_.emplace_back();
    std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> known;  // channels of a type to a GPU
    for (const Json& entry : list(gpu, "channels")) {
      const auto type = entry.at("channel_type").get<std::string>();
      if (type == "switch") continue;  // refused where an operation uses it
      for (const Json& peer : list(entry, "connected_to")) {
        const std::uint32_t to = whole(peer, "connected_to", 0, algorithm_.num_gpus - 1);
        if (to == rank) fail(fmt::format("GPU {} has a channel to itself", rank), "another GPU");
        channels[type].emplace_back(to, known[{type, to}]++);
      }
    }
  }

  void read_gpu(const Json& gpu) {
    barriers_.clear();
    std::set<std::uint32_t> ids;
    for (const Json& block : list(gpu, "threadblocks")) {
      block_ = -1;
      block_ = count(block, "id", 0, most_plan_chunks);
      if (!ids.insert(static_cast<std::uint32_t>(block_)).second)
        fail("the thread block is there twice", "each id once");
      before_.reset();
      unsignalled_.clear();
      barriers_of_block_.clear();
      number_ = 0;
      for (const Json& operation : list(block, "ops")) {
        operation_ = operation.at("name").get<std::string>();
        read_operation(gpu, block, operation);
        ++number_;
      }
      operation_.clear();
    }
    block_ = -1;
    for (const auto& [key, found] : barriers_)
      if (found.second.size() != found.first)
        fail(fmt::format("{} of {} come to barrier {}", counted(found.second.size(), "thread block"), found.first,
                         key.first),
             "as many as num_threadblocks says, equally often");
    for (const auto& [key, found] : barriers_)
      for (const auto& [arrives, leaves] : found.second)
        for (const auto& other : found.second) waits_.emplace_back(other.first, leaves);
  }

  void read_operation(const Json& gpu, const Json& block, const Json& operation) {
    const std::string& name = operation_;
    if (name == "nop" || name == "flush") {
      add("nop");
    } else if (name == "barrier") {
      pass_barrier(operation);
    } else if (name == "signal" || name == "rlxsignal") {
      signal(block, operation);
    } else if (name == "wait" || name == "rlxwait") {
      for (const PlanChannel& channel : channels_of(block, operation, false)) {
        const StepOf step = add("r");
        step_(step).message = channel;
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
    const std::string& name = operation_;
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
    if (name == "glres" || name == "glre" || name == "gstore" || name == "gstorepkt")
      fail("it reduces or stores through the switch (NVLS), which custom collectives do not model",
           "a plan with memory or port channels; in-switch-operations of a Switch with the algorithm inSwitch model "
           "NVLS");
    if (name == "pipeline" || name == "sem_acquire" || name == "sem_release")
      fail("its number of iterations depends on the size of the message, which custom collectives do not model",
           "a plan without pipelines and semaphores");
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
    const std::uint64_t at = std::uint64_t{count(buffer, "index", 0, most_plan_chunks)} * parts_ + first;
    if (at + (last - first) > std::uint64_t{most_plan_chunks} * 256) fail("a buffer ends too far away", "fewer chunks");
    return {rank, {which, static_cast<std::uint32_t>(at)}, static_cast<std::uint32_t>(last - first)};
  }
  const Json& entry(const Json& operation, const char* key, std::size_t k) const {
    const Json& buffers = list(operation, key);
    if (k >= buffers.size())
      fail(fmt::format("{} has {}", key, counted(buffers.size(), "entry", "entries")), "one more");
    if (buffers[k].contains("switch_channel_id")) refuse("glres");
    return buffers[k];
  }
  PlanBuffer local(const Json& operation, const char* key, std::size_t k) const {
    const Json& buffer = entry(operation, key, k);
    if (!buffer.contains("type"))
      fail(fmt::format("{} {} is on another GPU", key, k), "a buffer of this GPU, with a type");
    return cut(operation, buffer, gpu_, buffer.at("type").get<std::string>());
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
      if (rank == gpu_) fail("a remote buffer is on the same GPU", "another GPU");
      return cut(operation, buffer, rank, found.at("type").get<std::string>());
    }
    fail(fmt::format("its thread block has no remote buffers for {} channels", cited(type)),
         "remote_buffer_refs of this type");
  }
  /// Returns the channels of an operation, each in the direction in which its message goes.
  std::vector<PlanChannel> channels_of(const Json& block, const Json& operation, bool sends) const {
    const auto type = operation.at("channel_type").get<std::string>();
    if (type == "switch") refuse("glres");
    const auto of_gpu = channels_[gpu_].find(type);
    std::vector<PlanChannel> found;
    for (const Json& index : list(operation, "channel_ids"))
      for (const Json& refs : list(block, "channels")) {
        if (refs.at("channel_type").get<std::string>() != type) continue;
        const Json& ids = list(refs, "channel_ids");
        const std::uint32_t at = whole(index, "channel_ids", 0, static_cast<std::int64_t>(ids.size()) - 1);
        if (of_gpu == channels_[gpu_].end()) fail("the GPU has no channel of this type", "one in channels");
        const std::uint32_t id = whole(ids[at], "channel_ids", 0, static_cast<std::int64_t>(of_gpu->second.size()) - 1);
        const auto [peer, k] = of_gpu->second[id];
        found.emplace_back(sends ? gpu_ : peer, sends ? peer : gpu_, type, k);
      }
    if (found.empty()) fail("it names no channel", "channel_ids of its thread block");
    return found;
  }

  // --- steps ---

  struct Extra {
    std::optional<PlanChannel> message;  ///< the signal that it sends or waits for
    std::optional<std::uint64_t> tag;    ///< of a message with data, or one that asks for data
    std::uint32_t peer = 0;
  };
  Extra& step_(StepOf step) { return extras_[step]; }
  Step& made(StepOf step) { return algorithm_.steps[step.rank][step.index]; }

  /// Adds a step to a GPU. Steps of this thread block follow each other.
  StepOf add(std::string type, std::optional<std::uint32_t> of_other = {}) {
    const std::uint32_t rank = of_other.value_or(gpu_);
    const StepOf step{rank, static_cast<std::uint32_t>(algorithm_.steps[rank].size())};
    Step& added = algorithm_.steps[rank].emplace_back();
    added.block = static_cast<std::uint32_t>(block_);
    added.number = number_;
    added.type = std::move(type);
    if (of_other) {
      added.of_gpu = gpu_;
      return step;
    }
    if (before_) waits_.emplace_back(*before_, step);
    before_ = step;
    return step;
  }
  void message(StepOf from, StepOf to) {
    for (const auto& [step, peer] : {std::pair(from, to.rank), std::pair(to, from.rank)}) {
      step_(step).tag = next_tag_;
      step_(step).peer = peer;
    }
    ++next_tag_;
  }
  void same_size(const PlanBuffer& from, const PlanBuffer& to) const {
    if (from.count != to.count)
      fail(fmt::format("it moves {} to {}", counted(from.count, "chunk"), to.count), "equal sizes");
  }
  /// Notes that packets arrive at a place with this step; one that reads them waits for them.
  void arrive(StepOf step, const PlanBuffer& to) {
    for (std::uint32_t c = 0; c < to.count; ++c)
      if (!packets_.emplace(std::tuple(to.rank, to.at.buffer, to.at.offset + c), step).second)
        fail(fmt::format("packets come to chunk {} of a buffer of GPU {} twice", (to.at.offset + c) / parts_, to.rank),
             "a place of its own for each");
  }
  void await(StepOf step, const PlanBuffer& from) { readers_.emplace_back(step, from); }

  void write(const PlanBuffer& from, const PlanBuffer& to, bool packets, bool awaits = false) {
    same_size(from, to);
    const StepOf sends = add("s"), receives = add("r", to.rank);
    made(sends).from = from.at;
    made(receives).to = to.at;
    for (const StepOf step : {sends, receives}) {
      made(step).count = from.count;
      made(step).copies = packets ? 2 : 1;
    }
    message(sends, receives);
    if (awaits) await(sends, from);
    if (packets)
      arrive(receives, to);
    else
      unsignalled_.push_back(receives);
  }
  void fetch(const PlanBuffer& from, const PlanBuffer& to, bool adds) {
    same_size(from, to);
    const StepOf asks = add("s"), asked = add("r", from.rank), sends = add("s", from.rank),
                 receives = add(adds ? "rrc" : "r");
    message(asks, asked);
    message(sends, receives);
    waits_.emplace_back(asked, sends);
    made(sends).from = from.at;
    made(receives).from = made(receives).to = to.at;
    made(sends).count = made(receives).count = from.count;
  }
  void calculate(std::string type, const PlanBuffer& from, const PlanBuffer& to, bool awaits, bool arrives) {
    same_size(from, to);
    const StepOf step = add(std::move(type));
    made(step).from = from.at;
    made(step).to = to.at;
    made(step).count = from.count;
    if (awaits) await(step, from);
    if (arrives) arrive(step, to);
  }
  void signal(const Json& block, const Json& operation) {
    for (const PlanChannel& channel : channels_of(block, operation, true)) {
      const StepOf step = add("s");
      step_(step).message = channel;
      claim(signallers_, channel);
      auto& carried = carried_[channel].emplace_back();
      for (const StepOf put : unsignalled_)
        if (put.rank == std::get<1>(channel)) carried.push_back(put);
    }
  }
  void claim(std::map<PlanChannel, std::int64_t>& blocks, const PlanChannel& channel) const {
    const auto [found, is_new] = blocks.emplace(channel, block_);
    if (!is_new && found->second != block_)
      fail(fmt::format("thread block {} uses the same channel", found->second), "one thread block for each connection");
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

  // --- the whole ---

  void add_operations(CustomCollectiveBuilder& builder) {
    using OperationKind = CustomCollective::OperationKind;
    std::map<PlanChannel, std::uint64_t> signals;  // their tags
    for (std::uint32_t rank = 0; rank < algorithm_.num_gpus; ++rank)
      for (std::uint32_t index = 0; index < algorithm_.steps[rank].size(); ++index) {
        Step& step = algorithm_.steps[rank][index];
        const auto follow = [&](Msccl::Action action, std::uint32_t operation) {
          if (action == Msccl::calculates && step.operations[Msccl::receives])
            builder.depend(*step.operations[Msccl::receives], operation);
          step.operations[action] = operation;
          of_operation_.emplace_back(rank, index);
        };
        if (step.type == "cpy" || step.type == "re" || step.type == "nop") {
          const auto kind = step.type == "cpy"  ? OperationKind::copy
                            : step.type == "re" ? OperationKind::reduce
                                                : OperationKind::nothing;
          follow(Msccl::calculates, builder.add({.kind = kind, .position = rank}));
          continue;
        }
        const Extra& extra = extras_.at({rank, index});
        const bool sends = step.type == "s";
        std::uint32_t peer = extra.peer;
        std::uint64_t tag = extra.tag.value_or(0);
        if (extra.message) {
          peer = sends ? std::get<1>(*extra.message) : std::get<0>(*extra.message);
          tag = next_tag_ + signals.emplace(*extra.message, signals.size()).first->second;
        }
        follow(sends ? Msccl::sends : Msccl::receives,
               builder.add_message({.kind = sends ? OperationKind::send : OperationKind::receive, .position = rank},
                                   peer, tag));
        if (step.type == "rrc")
          follow(Msccl::calculates, builder.add({.kind = OperationKind::reduce, .position = rank}));
      }
  }

  /// Lets waits wait for what their signals carry, and readers of packets for the packets.
  void find_waits() {
    for (const auto& [channel, waits] : waits_of_) {
      const auto found = carried_.find(channel);
      for (std::size_t k = 0; found != carried_.end() && k < std::min(waits.size(), found->second.size()); ++k)
        for (const StepOf put : found->second[k]) waits_.emplace_back(put, waits[k]);
    }
    for (const auto& [reader, from] : readers_)
      for (std::uint32_t c = 0; c < from.count; ++c) {
        const auto found = packets_.find({from.rank, from.at.buffer, from.at.offset + c});
        if (found == packets_.end())
          throw algorithm_.error(reader.rank, made(reader), "it waits for packets that nobody puts there",
                                 "a ppkt, or a cpkt of this GPU, to the same chunks");
        waits_.emplace_back(found->second, reader);
      }
    std::ranges::sort(waits_);
    waits_.erase(std::ranges::unique(waits_).begin(), waits_.end());
  }

  std::shared_ptr<const CustomCollective> build() {
    find_waits();
    CustomCollectiveBuilder builder(algorithm_.num_gpus);
    add_operations(builder);
    for (const auto& [before, after] : waits_) {
      const auto first = std::ranges::find_if(made(after).operations, [](const auto& o) { return o.has_value(); });
      builder.depend(made(before).last(), **first);
    }
    const CustomCollectiveBuilder::Fault fault = [&](std::uint32_t operation, std::string_view found,
                                                     std::string_view expected) {
      const auto [rank, index] = of_operation_[operation];
      return algorithm_.error(rank, algorithm_.steps[rank][index], found, expected);
    };
    builder.match(fault);
    follow_data(algorithm_, of_operation_, builder.order(false, fault), &builder, builder);
    follow_data(algorithm_, of_operation_, builder.order(true, fault), nullptr, builder);
    return builder.finish(file_, algorithm_.num_chunks);
  }

  std::filesystem::path file_;
  Msccl algorithm_;
  std::uint32_t parts_ = 1;  ///< of a chunk of the file
  std::vector<std::map<std::string, std::vector<std::pair<std::uint32_t, std::uint32_t>>>> channels_;  ///< peer and k
  std::map<StepOf, Extra> extras_;
  std::vector<std::pair<StepOf, StepOf>> waits_;  ///< before, after
  std::uint64_t next_tag_ = 0;
  std::map<PlanChannel, std::vector<std::vector<StepOf>>> carried_;  ///< the puts that each signal carries
  std::map<PlanChannel, std::vector<StepOf>> waits_of_;
  std::map<PlanChannel, std::int64_t> signallers_, waiters_;  ///< the thread block
  std::map<std::tuple<std::uint32_t, Msccl::Buffer, std::uint32_t>, StepOf> packets_;
  std::vector<std::pair<StepOf, PlanBuffer>> readers_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_operation_;
  // Where reading is.
  std::uint32_t gpu_ = ~std::uint32_t{0}, number_ = 0;
  std::int64_t block_ = -1;
  std::string operation_;
  std::optional<StepOf> before_;
  std::vector<StepOf> unsignalled_;  ///< puts of this thread block
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, std::vector<std::pair<StepOf, StepOf>>>>
      barriers_;  ///< by id and turn
  std::map<std::uint32_t, std::uint32_t> barriers_of_block_;
};

}  // namespace

std::shared_ptr<const CustomCollective> read_mscclpp(const std::filesystem::path& file, Kind kind,
                                                     const Place& named_by) {
  return MscclppReader(file, kind).read(named_by);
}

}  // namespace orrery::collective
