#include "orrery/trace/member_trace.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <string_view>

#include "dependencies.hpp"
#include "registry.hpp"

namespace orrery::trace {
namespace {

using Operation = MemberTrace::Operation;

/// Keeps the only trace of a file.
class OnlyTrace final : public TraceSink {
 public:
  OnlyTrace(const TraceFile& file, NamePool& names) : file_(file), parsed_(file.source(), names) {}

  ParsedTrace& begin() override {
    if (is_begun_)
      throw Error(ErrorCode::bad_input, file_.place(), "the file holds several traces", "the trace of one member");
    is_begun_ = true;
    return parsed_;
  }
  ParsedTrace* begin(NpuId) override { return &begin(); }

  const ParsedTrace& parsed() const { return parsed_; }

 private:
  const TraceFile& file_;
  ParsedTrace parsed_;
  bool is_begun_ = false;
};

/// Makes an operation of each node of a member's trace.
class OperationReader {
 public:
  explicit OperationReader(const ParsedTrace& parsed) : parsed_(parsed) {}

  Operation read(const ParsedNode& node) const {
    Operation operation;
    operation.id = node.id;
    operation.name = parsed_.shown_name(node);
    const auto type = parsed_.numbering->node_type(node.type);
    if (type == NodeType::invalid || type == NodeType::metadata) return operation;
    if (type == NodeType::comp) {
      operation.kind = Operation::Kind::compute;
      operation.duration = duration(node);
      return operation;
    }
    if (type != NodeType::comm_send && type != NodeType::comm_recv)
      fail(node, "it is no part of a collective", "COMM_SEND, COMM_RECV and COMP nodes");
    const bool sends = type == NodeType::comm_send;
    operation.kind = sends ? Operation::Kind::send : Operation::Kind::receive;
    operation.peer = whole(node, sends ? Attribute::comm_dst : Attribute::comm_src);
    operation.tag = node[Attribute::comm_tag].form == NumberForm::absent ? 0 : whole(node, Attribute::comm_tag);
    read_size(node, operation);
    return operation;
  }

 private:
  [[noreturn]] void fail(const ParsedNode& node, std::string_view found, std::string_view expected = {}) const {
    throw Error(ErrorCode::bad_input, parsed_.place(node), found, expected);
  }

  Time duration(const ParsedNode& node) const {
    const std::int64_t ps = parsed_.duration_unit.ps;
    if (node.duration > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / ps))
      fail(node, "its duration is too long");
    return Time::from_ps(static_cast<std::int64_t>(node.duration) * ps);
  }

  std::uint64_t whole(const ParsedNode& node, Attribute which) const {
    const Number value = node[which];
    if (value.form == NumberForm::absent)
      fail(node, fmt::format("there is no {}", name(which)), fmt::format("the attribute {}", name(which)));
    if (value.form != NumberForm::whole || value.magnitude > Bytes::most().count())
      fail(node, fmt::format("{} is out of range", name(which)), "a whole number, 0 or more");
    return value.magnitude;
  }

  /// ASTRA-sim's older traces have no numbers of chunks, or -1.
  void read_size(const ParsedNode& node, Operation& operation) const {
    constexpr std::array counts = {Attribute::msg_chunk_cnt, Attribute::msg_chunk_idx, Attribute::total_chunk_cnt};
    for (const Attribute which : counts)
      if (node[which].form == NumberForm::absent || node[which].form == NumberForm::negative) {
        operation.size = Bytes(whole(node, Attribute::comm_size));
        return;
      }
    const std::uint64_t count = whole(node, counts[0]), first = whole(node, counts[1]), all = whole(node, counts[2]);
    if (all == 0 || all > std::numeric_limits<std::uint32_t>::max() || count == 0 || count > all || first > all - count)
      fail(node, fmt::format("it moves {} chunks from chunk {} on, of {}", count, first, all),
           "msg_chunk_idx + msg_chunk_cnt up to total_chunk_cnt");
    operation.chunks = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count),
                        static_cast<std::uint32_t>(all)};
  }

  const ParsedTrace& parsed_;
};

/// Returns the nodes in an order in which dependencies come first: of those that may be next, the one with the lowest
/// id is.
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

Place MemberTrace::place(std::uint32_t operation) const {
  Place place{.file = file};
  place.node = operations[operation].id;
  place.node_name = operations[operation].name;
  return place;
}

MemberTrace read_member_trace(const std::filesystem::path& path) {
  NamePool names;
  TraceFile file(path, {path.string(), {}});
  OnlyTrace only(file, names);
  find_reader(file).read(file, only);
  const ParsedTrace& parsed = only.parsed();
  Faults faults;
  const NodeOrder nodes(parsed, faults);
  faults.raise();
  const Edges edges = order_nodes(parsed, nodes, Dependencies::automatic);
  if (edges.num_absent > 0)
    throw Error(ErrorCode::bad_input, parsed.place(parsed.nodes[nodes.index_in_file(edges.absent_of)]),
                fmt::format("it waits for node {}, which the trace does not hold", edges.absent_id));
  MemberTrace member;
  member.file = path.string();
  const OperationReader reader(parsed);
  const std::vector<std::uint32_t> order = lowest_first(edges);
  std::vector<std::uint32_t> position(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) position[order[at]] = at;
  member.operations.resize(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    Operation operation = reader.read(parsed.nodes[nodes.index_in_file(order[at])]);
    operation.dependencies = std::move(member.operations[at].dependencies);
    member.operations[at] = std::move(operation);
    for (std::uint32_t k = edges.first_successor[order[at]]; k < edges.first_successor[order[at] + 1]; ++k)
      member.operations[position[edges.successors[k]]].dependencies.push_back(at);
  }
  return member;
}

}  // namespace orrery::trace
