#include "orrery/trace/part.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <queue>

#include "dependencies.hpp"
#include "parse.hpp"
#include "types.hpp"

namespace orrery::trace {
namespace {

using Step = Part::Step;

constexpr std::uint64_t longest_micros = std::numeric_limits<std::int64_t>::max() / ps_per_us;

class Reader {
 public:
  Reader(const RawTrace& raw, const Source& source, const NamePool& names)
      : raw_(raw), source_(source), names_(names) {}

  Step read(const RawNode& node) const {
    Step step;
    step.id = node.id;
    step.name = shown(names_[node.name]);
    const auto type = node_type(raw_.layout, node.type);
    if (type == NodeType::invalid || type == NodeType::metadata) return step;
    if (type == NodeType::comp) {
      step.kind = Step::Kind::compute;
      if (node.duration_micros > longest_micros) fail(node, "its duration is too long");
      step.duration = Time::from_ps(static_cast<std::int64_t>(node.duration_micros) * ps_per_us);
      return step;
    }
    if (type != NodeType::comm_send && type != NodeType::comm_recv)
      fail(node, "it is no part of a collective", "COMM_SEND, COMM_RECV and COMP nodes");
    const bool sends = type == NodeType::comm_send;
    step.kind = sends ? Step::Kind::send : Step::Kind::receive;
    step.peer = whole(node, sends ? Attribute::comm_dst : Attribute::comm_src);
    step.tag = node[Attribute::comm_tag].form == Form::absent ? 0 : whole(node, Attribute::comm_tag);
    read_size(node, step);
    return step;
  }

 private:
  [[noreturn]] void fail(const RawNode& node, std::string_view found, std::string_view expected = {}) const {
    throw Error(ErrorCode::bad_input, place_of(source_, node, names_), found, expected);
  }

  std::uint64_t whole(const RawNode& node, Attribute which) const {
    const std::string_view name = attribute_names[static_cast<std::size_t>(which)];
    const Number value = node[which];
    if (value.form == Form::absent)
      fail(node, fmt::format("there is no {}", name), fmt::format("the attribute {}", name));
    if (value.form != Form::whole || value.magnitude > Bytes::most().count())
      fail(node, fmt::format("{} is out of range", name), "a whole number, 0 or more");
    return value.magnitude;
  }

  /// ASTRA-sim's older traces have no numbers of chunks, or -1.
  void read_size(const RawNode& node, Step& step) const {
    constexpr std::array counts = {Attribute::msg_chunk_cnt, Attribute::msg_chunk_idx, Attribute::total_chunk_cnt};
    for (const Attribute which : counts)
      if (node[which].form == Form::absent || node[which].form == Form::negative) {
        step.size = Bytes(whole(node, Attribute::comm_size));
        return;
      }
    const std::uint64_t count = whole(node, counts[0]), first = whole(node, counts[1]), all = whole(node, counts[2]);
    if (all == 0 || all > std::numeric_limits<std::uint32_t>::max() || count == 0 || count > all || first > all - count)
      fail(node, fmt::format("it moves {} chunks from chunk {} on, of {}", count, first, all),
           "msg_chunk_idx + msg_chunk_cnt up to total_chunk_cnt");
    step.chunks = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count),
                   static_cast<std::uint32_t>(all)};
  }

  const RawTrace& raw_;
  const Source& source_;
  const NamePool& names_;
};

/// Of the nodes whose dependencies have all come, the one with the lowest id is next.
std::vector<std::uint32_t> lowest_first(const Edges& edges) {
  std::vector<std::uint32_t> missing = edges.num_dependencies, order;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t node = 0; node < missing.size(); ++node)
    if (missing[node] == 0) ready.push(node);
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (std::uint32_t at = edges.first_successor[node]; at < edges.first_successor[node + 1]; ++at)
      if (--missing[edges.successors[at]] == 0) ready.push(edges.successors[at]);
  }
  return order;
}

}  // namespace

Place Part::place(std::uint32_t step) const {
  Place place{.file = file};
  place.node = steps[step].id;
  place.node_name = steps[step].name;
  return place;
}

Part read_part(const std::filesystem::path& path) {
  const Source source{path.string(), {}};
  NamePool names;
  const RawTrace raw = parse_file(path, source, names);
  Faults faults;
  const NodeOrder nodes(raw, source, names, faults);
  faults.raise();
  const Edges edges = order_nodes(raw, nodes, Dependencies::automatic, source, names);
  if (edges.num_absent > 0)
    throw Error(ErrorCode::bad_input, place_of(source, raw.nodes[nodes.raw_index(edges.absent_of)], names),
                fmt::format("it waits for node {}, which the trace does not hold", edges.absent_id));
  Part part;
  part.file = source.file;
  const Reader reader(raw, source, names);
  const std::vector<std::uint32_t> order = lowest_first(edges);
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  part.steps.resize(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    Step read = reader.read(raw.nodes[nodes.raw_index(order[at])]);
    read.dependencies = std::move(part.steps[at].dependencies);
    part.steps[at] = std::move(read);
    for (std::uint32_t k = edges.first_successor[order[at]]; k < edges.first_successor[order[at] + 1]; ++k)
      part.steps[place[edges.successors[k]]].dependencies.push_back(at);
  }
  return part;
}

}  // namespace orrery::trace
