#include "marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "intervals.hpp"
#include "orrery/base/text.hpp"
#include "spaces.hpp"

namespace orrery::gpu {
namespace {

using collective::DataMark;

/// The mark of the first byte of a range; that of a later byte stands for a later byte of the data.
struct Written {
  DataMark mark;
  std::optional<At> by;  ///< nothing: it was there at the start

  Written shifted(std::uint64_t bytes) const {
    Written later = *this;
    later.mark.chunk += bytes;
    return later;
  }
};
struct Piece {
  std::uint64_t bytes = 0;
  Written written;
};

class MarkFollower final : public Observer {
 public:
  MarkFollower(const Program& program, const collective::DataContract& contract)
      : program_(program), contract_(contract), memory_(program.gpus.size()) {
    for (std::uint32_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
      const Extent input = extent_of(program, gpu, Buffer::input, 0, contract.num_input(), false);
      intervals(input).set(input.first, input.last, {contract.input(gpu, 0), {}});
    }
  }

  bool has_packets(At at) override {
    const Operation& operation = operation_at(program_, at);
    if (operation.kind == OperationKind::ppkt) return true;  // the proxy does not look at flags
    bool has = true;
    for (const Operand& source : program_.gpus[at.gpu].sources(operation)) {
      if (source.access != Access::local_packets) continue;
      for_each_extent(program_, source, [&](const Extent& extent) {
        intervals(extent).for_each(
            extent.first, extent.last,
            [&](std::uint64_t, std::uint64_t, const Written& written) { has = has && written.mark.count > 0; });
      });
    }
    return has;
  }

  void perform(At at) override {
    const Operation& operation = operation_at(program_, at);
    const Gpu& gpu = program_.gpus[at.gpu];
    const auto sources = gpu.sources(operation), destinations = gpu.destinations(operation);
    const bool is_paired = operand_rules(operation.kind, operation.transport).is_paired;
    if (is_paired) {
      for (std::size_t i = 0; i < destinations.size(); ++i) write(at, destinations[i], read(at, sources[i]));
      return;
    }
    std::vector<Piece> sum = read(at, sources[0]);
    for (const Operand& source : sources.subspan(1)) sum = added(at, sum, read(at, source));
    for (const Operand& destination : destinations) write(at, destination, sum);
  }

  void check_results() const {
    const std::uint64_t run = std::max<std::uint64_t>(contract_.output_run(), 1);
    for (std::uint32_t gpu = 0; gpu < program_.gpus.size(); ++gpu)
      for (std::uint64_t at = 0; at < contract_.num_output(); at += run) {
        const std::uint64_t bytes = std::min(run, contract_.num_output() - at);
        check_result(gpu, extent_of(program_, gpu, Buffer::output, at, bytes, false), contract_.output(gpu, at));
      }
  }

 private:
  const Intervals<Written>& intervals(const Extent& extent) const {
    return memory_[extent.gpu][static_cast<std::size_t>(extent.space)];
  }
  Intervals<Written>& intervals(const Extent& extent) {
    return memory_[extent.gpu][static_cast<std::size_t>(extent.space)];
  }

  void check_size(At at, const Operand& operand, const Extent& extent) const {
    const Gpu& gpu = program_.gpus[extent.gpu];
    const Bytes size = operand.buffer == Buffer::input    ? gpu.input
                       : operand.buffer == Buffer::output ? gpu.output
                                                          : gpu.scratch;
    if (operand.offset + operand.bytes.count() > size.count())
      throw error_at(program_, at,
                     fmt::format("it uses {}, whose buffer ends at {}", text_of(program_, extent), size.count()),
                     "bytes of the buffer");
  }

  std::vector<Piece> read(At at, const Operand& operand) const {
    std::vector<Piece> sum;
    bool is_first = true;
    for_each_extent(program_, operand, [&](const Extent& extent) {
      check_size(at, operand, extent);
      std::vector<Piece> pieces;
      intervals(extent).for_each(
          extent.first, extent.last, [&](std::uint64_t first, std::uint64_t last, const Written& written) {
            if (written.mark.count == 0)
              throw error_at(program_, at,
                             fmt::format("it uses {}, which nobody has written yet",
                                         text_of(program_, {extent.gpu, extent.space, first, last})),
                             "data of the input, or of an operation that is over before");
            pieces.push_back({last - first, written});
          });
      sum = is_first ? std::move(pieces) : added(at, sum, pieces);
      is_first = false;
    });
    return sum;
  }

  void write(At at, const Operand& operand, const std::vector<Piece>& pieces) {
    for_each_extent(program_, operand, [&](const Extent& extent) {
      check_size(at, operand, extent);
      std::uint64_t first = extent.first;
      for (const Piece& piece : pieces) {
        intervals(extent).set(first, first + piece.bytes, {piece.written.mark, at});
        first += piece.bytes;
      }
    });
  }

  std::vector<Piece> added(At at, std::span<const Piece> a, std::span<const Piece> b) const {
    std::vector<Piece> sum;
    std::uint64_t past_a = 0, past_b = 0;  // bytes of the first pieces that are done
    while (!a.empty() && !b.empty()) {
      Written one = a.front().written.shifted(past_a);
      const Written other = b.front().written.shifted(past_b);
      if (one.mark.chunk != other.mark.chunk)
        throw error_at(program_, at,
                       fmt::format("it adds up byte {} of the data and byte {}", one.mark.chunk, other.mark.chunk),
                       "contributions to the same bytes");
      one.mark.count += other.mark.count;
      one.mark.ranks += other.mark.ranks;
      const std::uint64_t bytes = std::min(a.front().bytes - past_a, b.front().bytes - past_b);
      sum.push_back({bytes, one});
      past_a += bytes;
      past_b += bytes;
      if (past_a == a.front().bytes) a = a.subspan(1), past_a = 0;
      if (past_b == b.front().bytes) b = b.subspan(1), past_b = 0;
    }
    return sum;
  }

  void check_result(std::uint32_t gpu, const Extent& extent, const DataMark& wanted) const {
    if (wanted.count == 0) return;
    intervals(extent).for_each(
        extent.first, extent.last, [&](std::uint64_t first, std::uint64_t last, const Written& found) {
          DataMark expected = wanted;
          expected.chunk += first - extent.first;
          if (found.mark == expected) return;
          throw Error(ErrorCode::bad_input, {.file = program_.file},
                      fmt::format("GPU {} does not get its result: {} {}", gpu,
                                  text_of(program_, {gpu, extent.space, first, last}), describe(found, expected)),
                      fmt::format("byte {} of the data, and the following ones, with {} in them", expected.chunk,
                                  counted(expected.count, "contribution")));
        });
  }
  std::string describe(const Written& found, const DataMark& expected) const {
    const std::string who = found.by ? fmt::format("; {} wrote them", text_of(program_, *found.by))
                                     : std::string("; nobody wrote them after the start");
    if (found.mark.count == 0) return "are never written";
    if (found.mark.chunk != expected.chunk)
      return fmt::format("hold byte {} of the data and the following ones, with {} in them{}", found.mark.chunk,
                         counted(found.mark.count, "contribution"), who);
    if (found.mark.count != expected.count)
      return fmt::format("have {} in them{}", counted(found.mark.count, "contribution"), who);
    return "have contributions of other GPUs in them" + who;
  }

  const Program& program_;
  const collective::DataContract& contract_;
  std::vector<std::array<Intervals<Written>, num_spaces>> memory_;  ///< [gpus]
};

}  // namespace

void follow_marks(const Program& program, const collective::DataContract& contract, Turns turns) {
  MarkFollower follower(program, contract);
  execute_untimed(program, turns, follower);
  follower.check_results();
}

}  // namespace orrery::gpu
