#include "attention_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "measured_file.hpp"

namespace orrery::serving {

AttentionTable::AttentionTable(const std::filesystem::path& folder) : least_(std::numeric_limits<double>::max()) {
  MeasuredFile file(folder, "attention.csv");
  const std::size_t chunk = file.column("prefill_chunk"), before = file.column("kv_prefill"),
                    count = file.column("n_decode"), context = file.column("kv_decode"), time = file.column("time_us");
  std::map<double, std::map<double, std::map<double, std::vector<std::pair<double, double>>>>> rows;
  while (file.next())
    rows[file.number(chunk)][file.number(count)][file.number(before)].emplace_back(file.number(context),
                                                                                   file.number(time));
  for (auto& [size, by_count] : rows) {
    sizes_.push_back(size);
    if (size > 0) positive_sizes_.push_back(size);
    Chunk& of_size = chunks_.emplace_back();
    for (auto& [decodes, by_context] : by_count) {
      of_size.decodes.push_back(decodes);
      Plane& plane = of_size.planes.emplace_back();
      for (auto& [chunk_context, points] : by_context) {
        plane.contexts.push_back(chunk_context);
        plane.lines.emplace_back(std::move(points));
        least_ = std::min(least_, plane.lines.back().least());
      }
    }
  }
  if (sizes_.empty() || sizes_.front() != 0 || positive_sizes_.empty())
    throw Error(ErrorCode::bad_input, {.file = folder.string()},
                "attention.csv has no rows without a chunk, or none with one", "both");
}

double AttentionTable::Plane::at(double chunk_context, double context) const {
  const Bracket b = bracket(contexts, chunk_context);
  const double low = lines[b.low](context);
  return b.weight == 0 ? low : low + b.weight * (lines[b.high](context) - low);
}

double AttentionTable::Chunk::at(double chunk_context, double decodes_now, double context) const {
  const Bracket b = bracket(decodes, decodes_now);
  if (b.weight > 1) most_decodes = std::max(most_decodes, decodes_now);
  const double low = planes[b.low].at(chunk_context, context);
  return b.weight == 0 ? low : low + b.weight * (planes[b.high].at(chunk_context, context) - low);
}

/// Interpolates linearly in each number. A chunk of fewer tokens than the least one measured lies between that and
/// none.
double AttentionTable::at(double chunk, double chunk_context, double decodes, double context) const {
  if (chunk == 0) return decodes == 0 ? 0 : chunks_.front().at(chunk_context, decodes, context);
  const bool from_none = decodes > 0;
  const std::size_t offset = from_none ? 0 : sizes_.size() - positive_sizes_.size();
  const Bracket b = bracket(from_none ? sizes_ : positive_sizes_, chunk);
  if (b.weight > 1) most_tokens_ = std::max(most_tokens_, chunk);
  const double low = chunks_[b.low + offset].at(chunk_context, decodes, context);
  return b.weight == 0 ? low : low + b.weight * (chunks_[b.high + offset].at(chunk_context, decodes, context) - low);
}

double AttentionTable::duration(const StepShape& shape, double skew) const {
  const double decodes = shape.decodes;
  const double mean = shape.decodes > 0 ? static_cast<double>(shape.context_sum) / decodes : 0;
  if (shape.chunks.empty()) {
    double us = at(0, 0, decodes, mean);
    if (skew != 0 && shape.decodes > 1 && shape.context_most > mean)
      us += skew * (at(0, 0, decodes, shape.context_most) - us);
    return us;
  }
  if (shape.chunks.size() == 1) return at(shape.chunks[0].tokens, shape.chunks[0].context, decodes, mean);
  // Several chunks are one joint kernel: what their joint length would cost, corrected by what each costs alone.
  double alone = 0;
  for (const StepShape::Chunk& chunk : shape.chunks) alone += at(chunk.tokens, chunk.context, 0, 0);
  alone -= static_cast<double>(shape.chunks.size() - 1) * least_;
  const auto all = static_cast<double>(shape.chunk_tokens);
  const double joint = at(all, 0, decodes, mean) + alone - at(all, 0, 0, 0);
  return std::max({joint, shape.decodes > 0 ? at(0, 0, decodes, mean) : 0, alone});
}

void AttentionTable::add_beyond(std::vector<BeyondTable>& found) const {
  double most = 0, last = 0;
  for (const Chunk& chunk : chunks_)
    for (const Plane& plane : chunk.planes)
      for (const MeasuredLine& line : plane.lines)
        if (line.most_beyond() > most) {
          most = line.most_beyond();
          last = line.last();
        }
  if (most > 0)
    found.push_back(
        {"serving.step.tables: attention has steps of a mean context of ", most,
         fmt::format(" tokens, and the table ends at {:.0f} there: the line of the last two points continues", last)});
  if (most_tokens_ > 0)
    found.push_back({"serving.step.tables: attention has chunks of ", most_tokens_,
                     fmt::format(" tokens, and the table ends at {:.0f}: the line of the last two sizes continues",
                                 sizes_.back())});
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    if (chunks_[i].most_decodes > 0)
      found.push_back(
          {"serving.step.tables: attention has ", static_cast<double>(chunks_[i].most_decodes),
           fmt::format(" requests that generate beside a chunk of {:.0f} tokens, and the table ends at {:.0f} "
                       "there: the line of the last two numbers continues",
                       sizes_[i], chunks_[i].decodes.back())});
}

}  // namespace orrery::serving
