#include "memory_servers.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/executor/kinds.hpp"
#include "overrun.hpp"

namespace orrery::executor {
namespace {

device::PathCollective path_collective(trace::CollectiveKind kind) {
  switch (kind) {
    case trace::CollectiveKind::all_gather:
      return device::PathCollective::all_gather;
    case trace::CollectiveKind::reduce_scatter:
      return device::PathCollective::reduce_scatter;
    case trace::CollectiveKind::all_reduce:
      return device::PathCollective::all_reduce;
    default:
      fail_check("a collective on the path to the memory", std::source_location::current());
  }
}

}  // namespace

std::uint64_t MemoryServers::put(const GroupAccess& access) {
  if (free_.empty()) {
    asked_.push_back(access);
    return asked_.size() - 1;
  }
  const auto place = free_.back();
  free_.pop_back();
  asked_[place] = access;
  return place;
}

void MemoryServers::ask(Rank to, pdes::Event request, const GroupAccess& access) {
  request.kind = static_cast<std::uint16_t>(EventKind::group_access);
  if (to == here_) {
    request.detail = put(access);
    return kernel_.send(to, request);
  }
  kernel_.send(to, request, std::as_bytes(std::span(&access, 1)));
}

void MemoryServers::unpack(pdes::Event& request, std::span<const std::byte> bytes) {
  GroupAccess access;
  check(bytes.size() == sizeof access, "an access of a group of wrong size");
  std::memcpy(&access, bytes.data(), sizeof access);
  request.detail = put(access);
}

void MemoryServers::serve(const pdes::Event& request) {
  const Asker asker{NpuId(request.source().value()), NodeId(request.node)};
  const Bytes size(request.detail);
  if (pool_) return begin(request, size, device::PathCollective::none, {&asker, 1});
  const Time done = servers_[request.target].memory.serve(request.time, setting_.memory.access_time(size));
  answer(request.target, done, request.time, asker);
}

void MemoryServers::serve_group(const pdes::Event& request) {
  const GroupAccess access = asked_[request.detail];
  free_.push_back(request.detail);
  const NpuId npu(request.source().value());
  const auto found = gathering_.try_emplace({access.group, access.ordinal}, Gathering{access, {}}).first;
  Gathering& gathering = found->second;
  require_same(gathering, access, npu);
  gathering.askers.push_back({npu, NodeId(request.node)});
  if (gathering.askers.size() < access.members) return;
  const bool alone = access.members == 1;
  begin(request, access.size, alone ? device::PathCollective::none : path_collective(access.collective),
        gathering.askers);
  gathering_.erase(found);
}

void MemoryServers::require_same(const Gathering& gathering, const GroupAccess& other, NpuId npu) const {
  const GroupAccess& first = gathering.first;
  if (first.kind == other.kind && first.collective == other.collective && first.size == other.size) return;
  const auto describe = [](const GroupAccess& access) {
    return fmt::format("{} of {}", trace::name(access.kind, access.collective), counted(access.size.count(), "byte"));
  };
  const NpuId before = gathering.askers.front().npu;
  const Place there = setting_.place_of(before, first.node_id);
  throw Error(ErrorCode::bad_input, setting_.place_of(npu, other.node_id),
              fmt::format("the members of {} disagree on their access number {}: here it is {}, but {} at NPU {}, node "
                          "{} '{}' of {}",
                          trace::describe(*setting_.communicators[other.group.index()].group), other.ordinal + 1,
                          describe(other), describe(first), before.value(), first.node_id, there.node_name, there.file),
              "the same kind and size in the same order on all members",
              "No dependencies fix this order, so it is a matter of time: let the accesses of a group depend on each "
              "other.");
}

/// In the hierarchical pool, at the time of this request.
void MemoryServers::begin(const pdes::Event& request, Bytes size, device::PathCollective collective,
                          std::span<const Asker> askers) {
  if (waiting_.empty() || waiting_.back().since < request.time) {
    pdes::Event end = pdes::Event::make(request.time + device::gathering_time, pdes::Stage::server, request.target,
                                        servers_[request.target].sequence++, request.target);
    end.kind = static_cast<std::uint16_t>(EventKind::gathered);
    kernel_.schedule(end);
  }
  waiting_.push_back({request.time, size, collective, askers.size()});
  askers_.insert(askers_.end(), askers.begin(), askers.end());
}

void MemoryServers::close(const pdes::Event& event) {
  const auto end = std::ranges::lower_bound(waiting_, event.time, {}, &Waiting::since);
  const std::span<const Waiting> over(waiting_.begin(), end);
  npus_.clear();
  for (const Asker& asker : askers_) npus_.push_back(asker.npu);
  done_.resize(npus_.size());
  accesses_.clear();
  std::size_t first = 0;
  for (const Waiting& access : over) {
    accesses_.push_back({std::span(npus_).subspan(first, access.count), access.size, access.collective,
                         std::span(done_).subspan(first, access.count)});
    first += access.count;
  }
  const Time since = over.front().since;
  pool_->serve(since, accesses_);
  for (std::size_t i = 0; i < first; ++i) answer(event.target, done_[i], since, askers_[i]);
  waiting_.erase(waiting_.begin(), end);
  askers_.erase(askers_.begin(), askers_.begin() + static_cast<std::ptrdiff_t>(first));
}

std::vector<MemoryStageRecord> MemoryServers::stages() const {
  std::vector<MemoryStageRecord> records;
  if (!pool_ || setting_.host_of_server.front() != here_) return records;
  for (const auto& stage : pool_->stages())
    records.push_back({static_cast<std::uint32_t>(records.size()), stage.servers, stage.bytes, stage.busy});
  return records;
}

void MemoryServers::answer(LpId lp, Time done, Time since, const Asker& asker) {
  if (done == Time::max()) return keep_earliest(overrun_, {since, asker.npu, asker.node});
  auto answer = pdes::Event::make(done, pdes::Stage::npu, lp, servers_[lp].sequence++, LpId(asker.npu.value()));
  answer.node = asker.node.value();
  answer.kind = static_cast<std::uint16_t>(EventKind::complete);
  kernel_.send(setting_.host_of_npu[asker.npu.index()], answer);
}

}  // namespace orrery::executor
