#include "orrery/fold/signatures.hpp"

#include <utility>

#include "group_signatures.hpp"
#include "own_signatures.hpp"
#include "stream_table.hpp"

namespace orrery::fold {
namespace {

Signatures signatures_in_replay(const npu::RunContext& context) {
  auto [of_npu, counts] = own_signatures(context, nullptr);
  Signatures result{{}, counts};
  result.graph.signature_of_npu = std::move(of_npu);
  result.graph.first_member = {0};
  result.graph.first_membership.assign(context.npus.size() + 1, 0);
  result.graph.first_stream.assign(context.npus.size() + 1, 0);
  return result;
}

}  // namespace

Signatures signatures_of(const npu::RunContext& context, const StreamsOf& streams) {
  if (context.options.replay_only) return signatures_in_replay(context);
  const StreamTable table(context.npus, streams);
  auto [of_npu, counts] = own_signatures(context, &table);
  Signatures result{{}, counts};
  SignatureGraph& graph = result.graph;
  graph.signature_of_npu = std::move(of_npu);
  graph.first_stream = table.first();
  for (std::uint32_t npu = 0; npu < context.npus.size(); ++npu)
    for (std::uint32_t s = 0; s < table.count(npu); ++s) graph.streams.push_back(table.other_end(npu, s));
  add_groups(context, graph);
  return result;
}

}  // namespace orrery::fold
