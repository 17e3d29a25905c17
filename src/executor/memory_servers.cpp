#include "memory_servers.hpp"

#include <algorithm>

#include "orrery/executor/kinds.hpp"
#include "overrun.hpp"

namespace orrery::executor {

void MemoryServers::serve(const pdes::Event& request) {
  const NpuId npu(request.source().value());
  const NodeId node(request.node);
  const Bytes size(request.detail);
  Server& server = servers_[request.target];
  if (!pool_) {
    const Time done = server.memory.serve(request.time, setting_.memory.access_time(size));
    return answer(request.target, done, request.time, npu, node);
  }
  if (waiting_.empty() || waiting_.back().since < request.time) {
    pdes::Event end = pdes::Event::make(request.time + device::gathering_time, pdes::Stage::server, request.target,
                                        server.sequence++, request.target);
    end.kind = static_cast<std::uint16_t>(EventKind::gathered);
    kernel_.schedule(end);
  }
  waiting_.push_back({request.time, npu, node, size});
}

void MemoryServers::close(const pdes::Event& event) {
  const auto end = std::ranges::lower_bound(waiting_, event.time, {}, &Waiting::since);
  const auto count = static_cast<std::size_t>(end - waiting_.begin());
  npus_.clear();
  for (std::size_t i = 0; i < count; ++i) npus_.push_back(waiting_[i].npu);
  done_.resize(count);
  accesses_.clear();
  for (std::size_t i = 0; i < count; ++i)
    accesses_.push_back({{&npus_[i], 1}, waiting_[i].size, device::PathCollective::none, {&done_[i], 1}});
  pool_->serve(waiting_.front().since, accesses_);
  for (std::size_t i = 0; i < count; ++i)
    answer(event.target, done_[i], waiting_[i].since, waiting_[i].npu, waiting_[i].node);
  waiting_.erase(waiting_.begin(), end);
}

void MemoryServers::answer(LpId lp, Time done, Time since, NpuId npu, NodeId node) {
  if (done == Time::max()) return keep_earliest(overrun_, {since, npu, node});
  auto answer = pdes::Event::make(done, pdes::Stage::npu, lp, servers_[lp].sequence++, LpId(npu.value()));
  answer.node = node.value();
  answer.kind = static_cast<std::uint16_t>(EventKind::complete);
  kernel_.send(setting_.host_of_npu[npu.index()], answer);
}

}  // namespace orrery::executor
