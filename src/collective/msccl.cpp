#include "msccl.hpp"

#include <fmt/format.h>
#include <tinyxml2.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "orrery/base/text.hpp"

namespace orrery::collective {
namespace {

using tinyxml2::XMLElement;
using OperationKind = CustomCollective::OperationKind;

constexpr std::int64_t largest_int = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t most_gpus = std::int64_t{1} << 20;
constexpr std::int64_t most_chunks = std::int64_t{1} << 24;
constexpr std::uint64_t most_chunks_of_all = std::uint64_t{1} << 26;  // 1.5 GiB while the file is carried out

constexpr std::pair<std::string_view, Kind> kinds[] = {
    {"allreduce", Kind::all_reduce},
    {"allgather", Kind::all_gather},
    {"reduce_scatter", Kind::reduce_scatter},
    {"reducescatter", Kind::reduce_scatter},
    {"alltoall", Kind::all_to_all},
    {"broadcast", Kind::broadcast},
    {"reduce", Kind::reduce},
    {"gather", Kind::gather},
    {"scatter", Kind::scatter},
};

/// What steps of a type do.
struct Type {
  std::string_view name;
  bool receives, sends;
  OperationKind calculates;  ///< nothing: it calculates nothing
  bool keeps;
};
constexpr Type types[] = {
    {"s", false, true, OperationKind::nothing, false},   {"r", true, false, OperationKind::nothing, true},
    {"rcs", true, true, OperationKind::nothing, true},   {"rrc", true, false, OperationKind::reduce, true},
    {"rrs", true, true, OperationKind::reduce, false},   {"rrcs", true, true, OperationKind::reduce, true},
    {"cpy", false, false, OperationKind::copy, true},    {"re", false, false, OperationKind::reduce, true},
    {"nop", false, false, OperationKind::nothing, false}};

/// The ends of the connections of a thread block.
struct Block {
  std::int64_t id = 0, send = -1, receive = -1, channel = 0;

  Msccl::Block described() const {
    const auto peer = [](std::int64_t gpu) {
      return gpu < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(gpu));
    };
    return {static_cast<std::uint32_t>(id), peer(send), peer(receive), static_cast<std::uint32_t>(channel)};
  }
};

class MscclReader {
 public:
  /// Reads a file of a kind; without one, of any kind.
  MscclReader(const std::filesystem::path& file, std::optional<Kind> kind, const Place& named_by)
      : file_(file), text_(read_text(file, named_by)), wanted_(kind) {
    algorithm_.file = file.string();
  }

  const Msccl& algorithm() const { return algorithm_; }

  std::shared_ptr<const CustomCollective> read(const Place& named_by) {
    tinyxml2::XMLDocument document;
    if (document.Parse(text_.data(), text_.size()) != tinyxml2::XML_SUCCESS)
      throw Error(ErrorCode::bad_input, place(document.ErrorLineNum()),
                  fmt::format("this is no XML ({})", document.ErrorName()), "an MSCCL algorithm");
    const XMLElement* const algo = document.RootElement();
    if (algo == nullptr || std::string_view(algo->Name()) != "algo")
      fail(algo, "the file has no algo at its top", "an MSCCL algorithm, <algo ...><gpu ...><tb ...><step ...>");
    read_head(*algo, named_by);
    for (std::uint32_t rank = 0; rank < algorithm_.num_gpus; ++rank) read_gpu(*gpus_[rank], rank);
    return build();
  }

 private:
  using Step = Msccl::Step;

  Place place(int line) const {
    Place place{.file = algorithm_.file};
    if (line > 0) place.line = static_cast<std::uint64_t>(line);  // of an empty file there is none
    return place;
  }
  [[noreturn]] void fail(const XMLElement* at, std::string_view found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, place(at == nullptr ? 1 : at->GetLineNum()), found, expected);
  }

  static const char* text_of(const XMLElement& at, const char* name) {
    const tinyxml2::XMLAttribute* const found = at.FindAttribute(name);
    return found == nullptr ? nullptr : found->Value();
  }
  std::int64_t number(const XMLElement& at, const char* name, std::int64_t low, std::int64_t high,
                      std::optional<std::int64_t> fallback = {}) const {
    const char* const text = text_of(at, name);
    const std::string expected = fmt::format("a whole number, {} to {}", low, high);
    if (text == nullptr && fallback) return *fallback;
    if (text == nullptr) fail(&at, fmt::format("the {} has no {}", at.Name(), name), expected);
    const std::string_view digits(text);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < low || value > high)
      fail(&at, fmt::format("{} of the {} is '{}'", name, at.Name(), cited(digits)), expected);
    return value;
  }
  std::uint32_t count(const XMLElement& at, const char* name, std::int64_t low, std::int64_t high,
                      std::optional<std::int64_t> fallback = {}) const {
    return static_cast<std::uint32_t>(number(at, name, low, high, fallback));
  }
  std::string_view word(const XMLElement& at, const char* name, std::string_view expected) const {
    const char* const text = text_of(at, name);
    if (text == nullptr) fail(&at, fmt::format("the {} has no {}", at.Name(), name), expected);
    return text;
  }

  void read_head(const XMLElement& algo, const Place& named_by) {
    const std::string_view coll = word(algo, "coll", "the kind of collective");
    const auto known = std::ranges::find(kinds, coll, &std::pair<std::string_view, Kind>::first);
    if (known == std::end(kinds))
      fail(&algo, fmt::format("coll is '{}'", cited(coll)),
           "allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce, gather or scatter");
    algorithm_.kind = known->second;
    if (wanted_ && *wanted_ != algorithm_.kind)
      throw Error(ErrorCode::bad_input, named_by,
                  fmt::format("found {}, whose coll is that of {}", algorithm_.file, name(known->second)),
                  fmt::format("a file with coll=\"{}\"",
                              std::ranges::find(kinds, *wanted_, &std::pair<std::string_view, Kind>::second)->first));
    if (const char* const protocol = text_of(algo, "proto")) {
      if (std::string_view(protocol) == "LL") algorithm_.protocol = Msccl::Protocol::ll;
      if (std::string_view(protocol) == "LL128") algorithm_.protocol = Msccl::Protocol::ll128;
    }
    algorithm_.num_gpus = count(algo, "ngpus", 2, most_gpus);
    algorithm_.in_place = number(algo, "inplace", 0, 1, 0) == 1;
    algorithm_.root = count(algo, "root", 0, algorithm_.num_gpus - 1, 0);
    gpus_.resize(algorithm_.num_gpus);
    std::int64_t widest = 0;
    for (const XMLElement* gpu = algo.FirstChildElement("gpu"); gpu != nullptr; gpu = gpu->NextSiblingElement("gpu")) {
      const std::uint32_t id = count(*gpu, "id", 0, std::int64_t{algorithm_.num_gpus} - 1);
      if (gpus_[id] != nullptr) fail(gpu, fmt::format("gpu {} is there twice", id), "each id once");
      gpus_[id] = gpu;
      for (const char* const buffer : {"i_chunks", "o_chunks"})
        widest = std::max(widest, number(*gpu, buffer, 0, most_chunks, 0));
    }
    for (std::uint32_t id = 0; id < algorithm_.num_gpus; ++id)
      if (gpus_[id] == nullptr) fail(&algo, fmt::format("there is no gpu {}", id), "one gpu for each of ngpus");
    algorithm_.num_chunks = count(algo, "nchunksperloop", 1, most_chunks, std::max<std::int64_t>(widest, 1));
    const bool is_whole = algorithm_.num_input() == algorithm_.num_output() && algorithm_.kind != Kind::all_to_all;
    if (!is_whole && algorithm_.num_chunks % algorithm_.num_gpus != 0)
      fail(&algo, fmt::format("nchunksperloop is {}", algorithm_.num_chunks),
           fmt::format("a multiple of the {} GPUs", algorithm_.num_gpus));
    builder_.emplace(algorithm_.num_gpus);
    algorithm_.steps.resize(algorithm_.num_gpus);
    algorithm_.num_scratch.resize(algorithm_.num_gpus);
    algorithm_.blocks.resize(algorithm_.num_gpus);
  }

  void read_gpu(const XMLElement& gpu, std::uint32_t rank) {
    const std::pair<const char*, std::uint32_t> sizes[] = {{"i_chunks", algorithm_.num_input()},
                                                           {"o_chunks", algorithm_.num_output()}};
    for (const auto& [buffer, size] : sizes) {
      const std::uint32_t given = count(gpu, buffer, 0, most_chunks, 0);
      if (given != 0 && given != size)
        fail(&gpu, fmt::format("{} of gpu {} is {}", buffer, rank, given),
             fmt::format("{}, as {} of {} has it", size, name(algorithm_.kind),
                         counted(algorithm_.num_chunks, "chunk")));
    }
    algorithm_.num_scratch[rank] = count(gpu, "s_chunks", 0, most_chunks, 0);
    std::set<std::int64_t> ids;
    for (const XMLElement* tb = gpu.FirstChildElement("tb"); tb != nullptr; tb = tb->NextSiblingElement("tb")) {
      const std::int64_t last = std::int64_t{algorithm_.num_gpus} - 1;
      const Block block{number(*tb, "id", 0, largest_int), number(*tb, "send", -1, last, -1),
                        number(*tb, "recv", -1, last, -1), number(*tb, "chan", 0, largest_int, 0)};
      if (!ids.insert(block.id).second) fail(tb, fmt::format("gpu {} has tb {} twice", rank, block.id), "each id once");
      for (const auto& [peer, used, verb] :
           {std::tuple(block.send, &senders_, "send to"), std::tuple(block.receive, &receivers_, "receive from")}) {
        if (peer == rank) fail(tb, fmt::format("tb {} of gpu {} would {} itself", block.id, rank, verb), "another gpu");
        if (peer >= 0 && !used->insert({rank, peer, block.channel}).second)
          fail(tb, fmt::format("two thread blocks of gpu {} {} gpu {} on channel {}", rank, verb, peer, block.channel),
               "one for each connection");
      }
      algorithm_.blocks[rank].push_back(block.described());
      read_block(*tb, rank, block);
    }
  }

  void read_block(const XMLElement& tb, std::uint32_t rank, const Block& block) {
    std::uint32_t next = 0;
    for (const XMLElement* at = tb.FirstChildElement("step"); at != nullptr; at = at->NextSiblingElement("step")) {
      Step step;
      step.block = static_cast<std::uint32_t>(block.id);
      step.number = next++;
      step.line = at->GetLineNum();
      if (number(*at, "s", 0, largest_int) != step.number)
        fail(at, fmt::format("step {} of tb {} of gpu {} has s=\"{}\"", step.number, block.id, rank, text_of(*at, "s")),
             "steps in their order, from 0 on");
      const std::string_view type = word(*at, "type", "s, r, rcs, rrc, rrs, rrcs, cpy, re or nop");
      const auto known = std::ranges::find(types, type, &Type::name);
      if (known == std::end(types))
        throw algorithm_.error(rank, step, fmt::format("its type is '{}'", cited(type)),
                               "s, r, rcs, rrc, rrs, rrcs, cpy, re or nop");
      step.type = type;
      step.keeps = known->keeps;
      if (known->sends && block.send < 0)
        throw algorithm_.error(rank, step, "it sends, but its thread block has no send", "the rank in send=\"\"");
      if (known->receives && block.receive < 0)
        throw algorithm_.error(rank, step, "it receives, but its thread block has no recv", "the rank in recv=\"\"");
      if (step.type != "nop") step.count = count(*at, "cnt", 1, most_chunks, 1);
      const bool reads = known->calculates != OperationKind::nothing || step.type == "s";
      if (reads) step.from = buffer_location(*at, "srcbuf", "srcoff");
      if (known->keeps) step.to = buffer_location(*at, "dstbuf", "dstoff");
      add_operations(rank, block, *known, step);
      const std::int64_t waits_in = number(*at, "depid", -1, largest_int, -1),
                         waits_for = number(*at, "deps", -1, largest_int, -1);
      if (waits_in >= 0) waits_.push_back({rank, index_of(rank), waits_in, waits_for});
      if (waits_in >= 0)
        step.waits_for = {static_cast<std::uint32_t>(waits_in),
                          static_cast<std::uint32_t>(std::max(waits_for, std::int64_t{0}))};
      steps_.emplace(std::tuple(rank, block.id, std::int64_t{step.number}), index_of(rank));
      algorithm_.steps[rank].push_back(std::move(step));
    }
  }

  std::uint32_t index_of(std::uint32_t rank) const { return static_cast<std::uint32_t>(algorithm_.steps[rank].size()); }

  Msccl::Location buffer_location(const XMLElement& at, const char* buffer, const char* offset) const {
    const std::string_view text = word(at, buffer, "i, o or s");
    if (text != "i" && text != "o" && text != "s")
      fail(&at, fmt::format("{} is '{}'", buffer, cited(text)), "i, o or s");
    const auto which = text == "i"   ? Msccl::Buffer::input
                       : text == "o" ? Msccl::Buffer::output
                                     : Msccl::Buffer::scratch;
    return {which, count(at, offset, 0, most_chunks)};
  }

  /// Adds the operations of a step: it receives, calculates and sends, in this order, after the step before it in its
  /// thread block.
  void add_operations(std::uint32_t rank, const Block& block, const Type& type, Step& step) {
    std::optional<std::uint32_t> before;
    if (step.number > 0) before = algorithm_.steps[rank].back().last();
    const auto follow = [&](Msccl::Action action, std::uint32_t operation) {
      step.operations[action] = operation;
      of_operation_.emplace_back(rank, index_of(rank));
      if (before) builder_->depend(*before, operation);
      before = operation;
    };
    const auto connection = static_cast<std::uint64_t>(block.channel);
    if (type.receives)
      follow(Msccl::receives, builder_->add_message({.kind = OperationKind::receive, .position = rank},
                                                    static_cast<std::uint32_t>(block.receive), connection));
    if (type.calculates != OperationKind::nothing || type.name == "nop")
      follow(Msccl::calculates, builder_->add({.kind = type.calculates, .position = rank}));
    if (type.sends)
      follow(Msccl::sends, builder_->add_message({.kind = OperationKind::send, .position = rank},
                                                 static_cast<std::uint32_t>(block.send), connection));
  }

  void check_buffers() const {
    std::uint64_t chunks = 0;
    for (const std::uint32_t scratch : algorithm_.num_scratch)
      chunks += std::uint64_t{algorithm_.num_input()} + algorithm_.num_output() + scratch;
    if (chunks > most_chunks_of_all)
      throw Error(ErrorCode::bad_input, {.file = algorithm_.file},
                  fmt::format("the buffers of all ranks have {}", counted(chunks, "chunk")),
                  fmt::format("{} at the most", most_chunks_of_all));
  }

  std::shared_ptr<const CustomCollective> build() {
    check_buffers();
    for (const auto& [rank, index, block, number] : waits_) {
      const Step& step = algorithm_.steps[rank][index];
      const auto found = steps_.find({rank, block, number});
      if (found == steps_.end())
        throw algorithm_.error(rank, step, fmt::format("it waits for step {} of thread block {}", number, block),
                               "a step of the same gpu in deps and its tb in depid, or -1");
      const auto first = std::ranges::find_if(step.operations, [](const auto& o) { return o.has_value(); });
      builder_->depend(algorithm_.steps[rank][found->second].last(), **first);
    }
    const auto step_of = [this](std::uint32_t operation) -> const Step& {
      return algorithm_.steps[of_operation_[operation].first][of_operation_[operation].second];
    };
    const CustomCollectiveBuilder::Fault fault = [&](std::uint32_t operation, std::string_view found,
                                                     std::string_view expected) {
      return algorithm_.error(of_operation_[operation].first, step_of(operation), found, expected);
    };
    builder_->match(fault);
    for (std::uint32_t o = 0; o < builder_->num_operations(); ++o) {
      const CustomCollective::Operation& operation = (*builder_)[o];
      if (operation.kind != OperationKind::receive || step_of(o).count == step_of(operation.partner).count) continue;
      throw fault(o,
                  fmt::format("it receives {}, but rank {} sends {}", counted(step_of(o).count, "chunk"),
                              of_operation_[operation.partner].first, step_of(operation.partner).count),
                  "the same cnt at both ends");
    }
    // Steps without an order between them may run in any order. Two orders that differ show whether results depend on
    // it.
    follow_data(algorithm_, of_operation_, builder_->order(false, fault), &*builder_, *builder_);
    follow_data(algorithm_, of_operation_, builder_->order(true, fault), nullptr, *builder_);
    return builder_->finish(file_, algorithm_.num_chunks);
  }

  struct Wait {
    std::uint32_t rank = 0, index = 0;
    std::int64_t block = 0, number = 0;
  };
  using Connection = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;  // rank, peer, channel

  std::filesystem::path file_;
  std::string text_;
  std::optional<Kind> wanted_;
  Msccl algorithm_;
  std::vector<const XMLElement*> gpus_;
  std::optional<CustomCollectiveBuilder> builder_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_operation_;  ///< rank and index of the step
  std::vector<Wait> waits_;
  std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>, std::uint32_t> steps_;  ///< index by rank, tb and s
  std::set<Connection> senders_, receivers_;
};

}  // namespace

Error Msccl::error(std::uint32_t gpu, const Step& step, std::string_view found, std::string_view expected) const {
  return {
      ErrorCode::bad_input,
      {.file = file, .line = step.line > 0 ? std::optional<std::uint64_t>(step.line) : std::nullopt},
      fmt::format("rank {}, thread block {}, step {}: {}", step.of_gpu.value_or(gpu), step.block, step.number, found),
      expected};
}

Msccl read_msccl_algorithm(const std::filesystem::path& file, const Place& named_by) {
  MscclReader reader(file, std::nullopt, named_by);
  (void)reader.read(named_by);
  return reader.algorithm();
}

std::shared_ptr<const CustomCollective> read_msccl(const std::filesystem::path& file, Kind kind,
                                                   const Place& named_by) {
  return MscclReader(file, kind, named_by).read(named_by);
}

}  // namespace orrery::collective
