#include "stream_table.hpp"

#include <algorithm>
#include <utility>

namespace orrery::fold {

using trace::NodeKind;

void add_streams_of_programs(std::span<const npu::NpuSpec> npus, StreamsOf& streams) {
  const npu::Program* last = nullptr;
  for (const npu::NpuSpec& npu : npus) {
    if (npu.program == last) continue;
    last = npu.program;
    if (const auto [found, added] = streams.try_emplace(last); added)
      found->second = npu::message_streams_of(*last->graph);
  }
}

/// Asks the rank of `peer` for the stream that is the other end of one of `npu`.
struct StreamTable::Question {
  std::uint64_t tag = 0;
  NpuId peer, npu;
  NodeKind kind = NodeKind::send;  // at the peer
};

StreamTable::StreamTable(std::span<const npu::NpuSpec> npus, const StreamsOf& streams) : npus_(npus) {
  first_.reserve(npus.size() + 1);
  of_npu_.reserve(npus.size());
  first_.push_back(0);
  const npu::Program* last = nullptr;
  const npu::MessageStreams* its = nullptr;
  for (std::uint32_t i = 0; i < npus.size(); ++i) {
    if (npus[i].program != last) its = &streams.at(last = npus[i].program);
    of_npu_.push_back(its);
    const auto begin = sorted_.size();
    for (std::uint32_t s = 0; s < its->all.size(); ++s) sorted_.push_back(s);
    std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(begin), sorted_.end(),
              [&](auto a, auto b) { return std::pair(key_of(i, a), a) < std::pair(key_of(i, b), b); });
    first_.push_back(sorted_.size());
  }
}

StreamKey StreamTable::key_of(std::uint32_t npu, std::uint32_t stream) const {
  const auto& its = of_npu_[npu]->all[stream];
  return {its.kind, peer(npu, stream), npus_[npu].trace->tags[its.tag_slot]};
}

std::uint32_t StreamTable::find(std::uint32_t npu, const StreamKey& key) const {
  const auto own = std::span(sorted_).subspan(first_[npu], first_[npu + 1] - first_[npu]);
  const auto at = std::ranges::lower_bound(own, key, {}, [&](std::uint32_t s) { return key_of(npu, s); });
  return at != own.end() && key_of(npu, *at) == key ? *at : SignatureGraph::none;
}

std::uint32_t StreamTable::answer(const Question& question) const {
  const auto at = std::ranges::lower_bound(npus_, question.peer, {}, &npu::NpuSpec::id);
  return find(static_cast<std::uint32_t>(at - npus_.begin()), {question.kind, question.npu, question.tag});
}

std::vector<SignatureGraph::StreamEnd> StreamTable::other_ends(const Hosting& hosting,
                                                               parallel::Communicator& world) const {
  std::vector<SignatureGraph::StreamEnd> ends;
  ends.reserve(sorted_.size());
  std::vector<std::vector<Question>> questions(static_cast<std::size_t>(world.size()));
  std::vector<std::vector<std::size_t>> asked(questions.size());  // which stream each question is about
  for (std::uint32_t i = 0; i < npus_.size(); ++i)
    for (std::uint32_t s = 0; s < count(i); ++s) {
      const auto& [kind, peer, tag] = key_of(i, s);
      const Question question{tag, peer, npus_[i].id, kind == NodeKind::send ? NodeKind::receive : NodeKind::send};
      ends.push_back({peer.value(), SignatureGraph::none});
      if (hosting.is_here(peer)) {
        ends.back().stream = answer(question);
        continue;
      }
      const Rank rank = hosting.of_npu[peer.index()];
      questions[rank.index()].push_back(question);
      asked[rank.index()].push_back(ends.size() - 1);
    }
  std::vector<std::vector<std::uint32_t>> answers;
  for (const auto& of_rank : world.exchange(questions)) {
    auto& own = answers.emplace_back();
    for (const Question& question : of_rank) own.push_back(answer(question));
  }
  answers = world.exchange(answers);
  for (std::size_t rank = 0; rank < answers.size(); ++rank)
    for (std::size_t i = 0; i < answers[rank].size(); ++i) ends[asked[rank][i]].stream = answers[rank][i];
  return ends;
}

}  // namespace orrery::fold
