#include "orrery/memory/memory_servers.hpp"

#include <algorithm>
#include <cstring>
#include <source_location>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::memory {
namespace {

enum class EventKind : std::uint16_t {
  access,        ///< NPU `source` wants `detail` bytes for its node `node`
  group_access,  ///< the same for its part of an access of a group; what it is is kept in MemoryServers
  gathered,      ///< to a hierarchical pool, by itself: the moment of its requests is over
};

PathCollective path_collective(trace::CollectiveKind kind) {
  switch (kind) {
    case trace::CollectiveKind::all_gather:
      return PathCollective::all_gather;
    case trace::CollectiveKind::reduce_scatter:
      return PathCollective::reduce_scatter;
    case trace::CollectiveKind::all_reduce:
      return PathCollective::all_reduce;
    default:
      ensure_failed("a collective on the path to the memory", std::source_location::current());
  }
}

}  // namespace

MemoryServers::MemoryServers(pdes::Scheduler& kernel, const RemoteMemory& memory, const Hosting& hosting,
                             PlaceOf place_of, DescribeGroup describe_group, std::optional<Overrun>& overrun)
    : kernel_(kernel),
      memory_(memory),
      hosting_(hosting),
      place_of_(std::move(place_of)),
      describe_group_(std::move(describe_group)),
      overrun_(overrun) {
  if (memory.hierarchy()) pool_.emplace(*memory.hierarchy());
}

void MemoryServers::handle(const pdes::Event& event) {
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::access:
      return serve(event);
    case EventKind::group_access:
      return serve_group(event);
    case EventKind::gathered:
      return close(event);
  }
  ensure_failed("an event that no memory server handles", std::source_location::current());
}

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

void MemoryServers::ask(Rank to, pdes::Event request) {
  request.kind = static_cast<std::uint16_t>(EventKind::access);
  kernel_.send(to, request);
}

void MemoryServers::ask(Rank to, pdes::Event request, const GroupAccess& access) {
  request.kind = static_cast<std::uint16_t>(EventKind::group_access);
  if (to == hosting_.here) {
    request.detail = put(access);
    return kernel_.send(to, request);
  }
  kernel_.send(to, request, std::as_bytes(std::span(&access, 1)));
}

void MemoryServers::unpack(pdes::Event& request, std::span<const std::byte> bytes) {
  GroupAccess access;
  ensure(bytes.size() == sizeof access, "an access of a group of wrong size");
  std::memcpy(&access, bytes.data(), sizeof access);
  request.detail = put(access);
}

void MemoryServers::serve(const pdes::Event& request) {
  const Asker asker{NpuId(request.source().value()), NodeId(request.node)};
  const Bytes size(request.detail);
  if (pool_) return begin(request, size, PathCollective::none, {&asker, 1});
  const Time done = servers_[request.target].memory.serve(request.time, memory_.access_time(size));
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
  begin(request, access.size, alone ? PathCollective::none : path_collective(access.collective), gathering.askers);
  gathering_.erase(found);
}

void MemoryServers::require_same(const Gathering& gathering, const GroupAccess& other, NpuId npu) const {
  const GroupAccess& first = gathering.first;
  if (first.kind == other.kind && first.collective == other.collective && first.size == other.size) return;
  const auto describe = [](const GroupAccess& access) {
    return fmt::format("{} of {}", trace::name(access.kind, access.collective), counted(access.size.count(), "byte"));
  };
  const NpuId before = gathering.askers.front().npu;
  const Place there = place_of_(before, first.node_id);
  throw Error(ErrorCode::bad_input, place_of_(npu, other.node_id),
              fmt::format("the members of {} disagree on their access number {}: here it is {}, but {} at NPU {}, node "
                          "{} '{}' of {}",
                          describe_group_(other.group), other.ordinal + 1, describe(other), describe(first),
                          before.value(), first.node_id, there.node_name, there.file),
              "the same kind and size in the same order on all members",
              "No dependencies fix this order, so it is a matter of time: let the accesses of a group depend on each "
              "other.");
}

/// In the hierarchical pool, at the time of this request.
void MemoryServers::begin(const pdes::Event& request, Bytes size, PathCollective collective,
                          std::span<const Asker> askers) {
  if (waiting_.empty() || waiting_.back().since < request.time) {
    pdes::Event end = pdes::Event::make(request.time + gathering_time, pdes::Stage::server, request.target,
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
  if (!pool_ || hosting_.of_server.front() != hosting_.here) return records;
  for (const auto& stage : pool_->stages())
    records.push_back({static_cast<std::uint32_t>(records.size()), stage.servers, stage.bytes, stage.busy});
  return records;
}

void MemoryServers::answer(LpId lp, Time done, Time since, const Asker& asker) {
  if (done == Time::max()) return keep_earliest(overrun_, {since, asker.npu, asker.node});
  auto answer = pdes::Event::make(done, pdes::Stage::client, lp, servers_[lp].sequence++, LpId(asker.npu.value()));
  answer.node = asker.node.value();
  answer.kind = pdes::completion;
  kernel_.send(hosting_.of_npu[asker.npu.index()], answer);
}

}  // namespace orrery::memory
