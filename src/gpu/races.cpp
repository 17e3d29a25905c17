#include "races.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>

#include "intervals.hpp"
#include "spaces.hpp"
#include "untimed.hpp"

namespace orrery::gpu {
namespace {

constexpr std::size_t most_shown = 10;
constexpr std::uint32_t no_block = ~std::uint32_t{0};  // the end of a GPU
constexpr std::uint64_t most_searched_blocks = 2048, most_clock_entries = std::uint64_t{1} << 26;

/// For each block the number of its first operations that are over.
using Clock = std::vector<std::uint32_t>;

void merge(Clock& into, const Clock& from) {
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// What a block knows to be over: `seen` if what was written can also be seen.
struct Knowledge {
  Clock seen, over;

  void learn(const Knowledge& other) {
    merge(seen, other.seen);
    merge(over, other.over);
  }
};

/// One use of bytes.
struct Use {
  At at;
  std::uint64_t start = 0;  ///< start of the operand
  bool by_packets = false;  ///< threads take 8 bytes each in turn, else 16
  bool by_proxy = false;    ///< later than the operation of the block
};
struct Cell {
  std::optional<Use> write;
  std::vector<Use> reads;              ///< since then, the last one of each block
  std::shared_ptr<const Clock> clock;  ///< clock of packets: operations that were over when they were written

  const Cell& shifted(std::uint64_t) const { return *this; }
};

class RaceFinder final : public Observer {
 public:
  explicit RaceFinder(const Program& program) : program_(program), memory_(program.gpus.size()) {
    for (const Gpu& gpu : program.gpus) {
      first_block_.push_back(num_blocks_);
      num_blocks_ += static_cast<std::uint32_t>(gpu.blocks.size());
      words_.emplace_back(gpu.channels.size());
      semaphores_.emplace_back();
      for (const std::uint32_t value : gpu.semaphores) semaphores_.back().emplace_back(value, Knowledge());
    }
    const Clock none(num_blocks_, 0);
    known_.resize(num_blocks_, {none, none});
    coming_.resize(num_blocks_, {none, none});
    synchronised_.resize(num_blocks_, 0);
    flushed_.resize(num_blocks_, 0);
  }

  Races take_races() {
    check_ends();
    return std::move(races_);
  }

  bool has_packets(At at) override {
    const Operation& operation = operation_at(program_, at);
    bool has = true;
    if (operation.kind == OperationKind::ppkt) return true;
    for (const Operand& source : program_.gpus[at.gpu].sources(operation))
      if (source.access == Access::local_packets)
        for_each_extent(program_, source, [&](const Extent& extent) {
          cells(extent).for_each(extent.first, extent.last, [&](std::uint64_t, std::uint64_t, const Cell& cell) {
            has = has && cell.write.has_value();
          });
        });
    return has;
  }

  void perform(At at) override {
    const Operation& operation = operation_at(program_, at);
    const Gpu& gpu = program_.gpus[at.gpu];
    const auto sources = gpu.sources(operation), destinations = gpu.destinations(operation);
    const auto packets = [](const Operand& operand) { return is_packets(operand.access); };
    const bool by_packets = std::ranges::any_of(sources, packets) || std::ranges::any_of(destinations, packets);
    const bool by_proxy = operation.transport == Transport::port && uses_channels(operation.kind, operation.transport);
    for (const Operand& source : sources)
      for_each_extent(program_, source, [&](const Extent& extent) {
        read({at, source.offset, by_packets, by_proxy}, extent, operation.kind != OperationKind::ppkt);
      });
    std::shared_ptr<const Clock> clock;
    for (const Operand& destination : destinations) {
      if (packets(destination) && !clock) clock = clock_of_packets(at);
      for_each_extent(program_, destination, [&](const Extent& extent) {
        write({at, destination.offset, by_packets, by_proxy}, extent, clock);
      });
    }
    if (operation.kind == OperationKind::pwsf) flush(at);
  }
  void flush(At at) override { flushed_[index(at)] = at.operation + 1; }

  void synchronise(At at) override {
    const std::uint32_t block = index(at);
    known_[block].learn(coming_[block]);
    synchronised_[block] = at.operation + 1;
  }
  void send_word(At at, WordQueue queue) override {
    const Operation& operation = operation_at(program_, at);
    Knowledge told = own_knowledge(at);
    // The thread that asks the proxy to put also asks it to signal.
    if (operation.transport == Transport::port) told.seen[index(at)] = told.over[index(at)] = at.operation + 1;
    if (operation.kind == OperationKind::rlxsignal) told.seen.assign(num_blocks_, 0);
    words_[queue.gpu][queue.channel].push_back(std::move(told));
  }
  void await_word(At at, WordQueue queue) override {
    auto& words = words_[queue.gpu][queue.channel];
    if (operation_at(program_, at).kind == OperationKind::rlxwait) words.front().seen.clear();
    coming_[index(at)].learn(words.front());
    words.pop_front();
  }
  void release(At at, std::uint32_t semaphore) override { semaphores_[at.gpu][semaphore].push_back(own_knowledge(at)); }
  void acquire(At at, std::uint32_t semaphore) override {
    coming_[index(at)].learn(semaphores_[at.gpu][semaphore].front());
    semaphores_[at.gpu][semaphore].pop_front();
  }
  void join_barrier(std::span<const At> places) override {
    Knowledge all{Clock(num_blocks_, 0), Clock(num_blocks_, 0)};
    for (const At at : places) {
      synchronise(at);
      all.learn(own_knowledge(at));
    }
    for (const At at : places) known_[index(at)].learn(all);
  }

 private:
  std::uint32_t index(At at) const { return first_block_[at.gpu] + at.block; }
  Intervals<Cell>& cells(const Extent& extent) { return memory_[extent.gpu][static_cast<std::size_t>(extent.space)]; }

  /// Returns what a block can tell others: what it knows, and its own operations before the last nop.
  Knowledge own_knowledge(At at) const {
    Knowledge told = known_[index(at)];
    told.seen[index(at)] = told.over[index(at)] = synchronised_[index(at)];
    return told;
  }

  /// Returns what is over when packets are there: also what the operation that writes them has read for them.
  std::shared_ptr<const Clock> clock_of_packets(At at) const {
    Clock clock = known_[index(at)].over;
    clock[index(at)] = at.operation + 1;
    return std::make_shared<const Clock>(std::move(clock));
  }

  bool is_ordered(const Use& earlier, const Use& later, bool must_be_seen) const {
    const std::uint32_t block = index(later.at), tick = earlier.at.operation + 1;
    if (index(earlier.at) != block) {
      const Knowledge& known = known_[block];
      return (must_be_seen ? known.seen : known.over)[index(earlier.at)] >= tick;
    }
    if (earlier.at == later.at) return true;
    if (earlier.by_proxy && !later.by_proxy) return flushed_[block] >= tick;
    return synchronised_[block] >= tick || (earlier.start == later.start && earlier.by_packets == later.by_packets) ||
           (earlier.by_proxy && later.by_proxy);
  }

  void read(const Use& use, const Extent& extent, bool waits) {
    const bool has_flags = extent.space == Space::packets && waits;
    cells(extent).change(extent.first, extent.last, [&](Cell& cell) {
      if (has_flags && cell.clock) merge(known_[index(use.at)].over, *cell.clock);
      if (!has_flags && cell.write && !is_ordered(*cell.write, use, true))
        tell(*cell.write, use, "writes", "reads", extent);
      const auto same =
          std::ranges::find_if(cell.reads, [&](const Use& other) { return index(other.at) == index(use.at); });
      if (same == cell.reads.end())
        cell.reads.push_back(use);
      else
        *same = use;
    });
  }
  void write(const Use& use, const Extent& extent, const std::shared_ptr<const Clock>& clock) {
    cells(extent).change(extent.first, extent.last, [&](Cell& cell) {
      if (extent.space == Space::packets && cell.write)
        tell_twice(*cell.write, use, extent);
      else if (cell.write && !is_ordered(*cell.write, use, true))
        tell(*cell.write, use, "writes", "writes", extent);
      for (const Use& read : cell.reads)
        if (!is_ordered(read, use, false)) tell(read, use, "reads", "writes", extent);
      cell.write = use;
      cell.reads.clear();
      cell.clock = clock;
    });
  }

  using Key = std::array<std::uint32_t, 3>;  ///< key of an operation of the file

  Key key_of(At at) const { return {at.gpu, at.block, operation_at(program_, at).number}; }
  /// Says whether a pair is new and among the first ones.
  bool is_new(Key a, Key b) { return told_.emplace(a, b).second && ++races_.count <= most_shown; }
  void tell(const Use& a, const Use& b, std::string_view does, std::string_view then_does, const Extent& extent) {
    if (!is_new(key_of(a.at), key_of(b.at))) return;
    races_.found.push_back(fmt::format("{} {} {}, which {} {}, and nothing orders the two", text_of(program_, b.at),
                                       then_does, text_of(program_, extent), text_of(program_, a.at), does));
  }
  void tell_twice(const Use& a, const Use& b, const Extent& extent) {
    if (!is_new(key_of(a.at), key_of(b.at))) return;
    races_.found.push_back(
        fmt::format("{} writes {}, which {} has written in this run: who reads them cannot tell which they are",
                    text_of(program_, b.at), text_of(program_, extent), text_of(program_, a.at)));
  }

  /// A GPU ends when its blocks do. What others write to its output must be over then.
  void check_ends() {
    for (std::uint32_t gpu = 0; gpu < program_.gpus.size(); ++gpu) {
      Clock end(num_blocks_, 0);
      const auto blocks = static_cast<std::uint32_t>(program_.gpus[gpu].blocks.size());
      for (std::uint32_t block = first_block_[gpu]; block < first_block_[gpu] + blocks; ++block) {
        merge(end, known_[block].over);
        merge(end, coming_[block].over);
      }
      const Extent output = extent_of(program_, gpu, Buffer::output, 0, program_.gpus[gpu].output.count(), false);
      cells(output).for_each(output.first, output.last, [&](std::uint64_t first, std::uint64_t last, const Cell& cell) {
        if (!cell.write || cell.write->at.gpu == gpu || end[index(cell.write->at)] > cell.write->at.operation) return;
        if (!is_new(key_of(cell.write->at), {gpu, no_block, 0})) return;
        races_.found.push_back(fmt::format("GPU {} may end before {} has written {}", gpu,
                                           text_of(program_, cell.write->at),
                                           text_of(program_, {gpu, output.space, first, last})));
      });
    }
  }

  const Program& program_;
  std::vector<std::uint32_t> first_block_;  ///< [gpus]
  std::uint32_t num_blocks_ = 0;
  std::vector<Knowledge> known_, coming_;              ///< [blocks]; coming: from the next nop on
  std::vector<std::uint32_t> synchronised_, flushed_;  ///< [blocks] operations before the last nop, or flush
  std::vector<std::vector<std::deque<Knowledge>>> words_, semaphores_;  ///< [gpus][channels], [gpus][semaphores]
  std::vector<std::array<Intervals<Cell>, num_spaces>> memory_;         ///< [gpus]
  std::set<std::pair<Key, Key>> told_;
  Races races_;
};

}  // namespace

Races find_races(const Program& program) {
  std::uint64_t blocks = 0, writes = 0;
  for (const Gpu& gpu : program.gpus)
    for (const Block& block : gpu.blocks) {
      ++blocks;
      writes += static_cast<std::uint64_t>(std::ranges::count_if(block.operations, [&](const Operation& operation) {
        return std::ranges::any_of(gpu.destinations(operation), [](const Operand& o) { return is_packets(o.access); });
      }));
    }
  if (blocks > most_searched_blocks || writes * blocks > most_clock_entries)
    return {.found = {}, .count = 0, .is_searched = false};
  RaceFinder finder(program);
  execute_untimed(program, Turns::round_robin, finder);
  return finder.take_races();
}

}  // namespace orrery::gpu
