#include "orrery/memory/memory_servers.hpp"

#include <source_location>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::memory {
namespace {

enum class EventKind : std::uint16_t {
  access,        ///< NPU `source` asks for `detail` bytes for its node `node`
  group_access,  ///< the same for its part of an access of a group, which is in slot `detail` of MemoryServers
  close,         ///< a server has asked for SharedServer::close at this time
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

std::vector<std::byte> packed(GroupAccess access) {
  Archive archive;
  archive(access);
  return archive.written();
}

}  // namespace

// ---- Accesses of groups ----

std::optional<std::vector<Requester>> GroupAccesses::add(const GroupAccess& access, const Requester& member) {
  const auto found = incomplete_.try_emplace({access.group, access.ordinal}, Gathered{access, {}}).first;
  Gathered& gathered = found->second;
  require_same(gathered, access, member.npu);
  gathered.members.push_back(member);
  if (gathered.members.size() < access.members) return {};
  std::vector<Requester> members = std::move(gathered.members);
  incomplete_.erase(found);
  return members;
}

void GroupAccesses::require_same(const Gathered& gathered, const GroupAccess& other, NpuId npu) const {
  const GroupAccess& first = gathered.first;
  if (first.kind == other.kind && first.collective == other.collective && first.size == other.size) return;
  const auto describe = [](const GroupAccess& access) {
    return fmt::format("{} of {}", trace::name(access.kind, access.collective), counted(access.size.count(), "byte"));
  };
  const NpuId before = gathered.members.front().npu;
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

void GroupAccesses::serialize(Archive& archive, const std::function<bool(NpuId)>& is_of) {
  Incomplete some;
  if (!archive.reads())
    for (const auto& [key, gathered] : incomplete_)
      if (is_of(gathered.members.front().npu)) some.emplace(key, gathered);
  archive(some);
  if (archive.reads()) incomplete_.merge(some);
}

// ---- Requests of NPUs of this rank ----

MemoryServers::MemoryServers(pdes::Scheduler& kernel, const RemoteMemory& memory, const Hosting& hosting,
                             PlaceOf place_of, DescribeGroup describe_group, std::optional<Overrun>& overrun,
                             pdes::CarriedPlaces* places)
    : kernel_(kernel),
      memory_(memory),
      hosting_(hosting),
      overrun_(overrun),
      places_(places),
      groups_(std::move(place_of), std::move(describe_group)) {}

void MemoryServers::ask(Rank to, pdes::Event request) {
  request.kind = static_cast<std::uint16_t>(EventKind::access);
  kernel_.send(to, request);
}

void MemoryServers::ask(Rank to, pdes::Event request, const GroupAccess& access) {
  request.kind = static_cast<std::uint16_t>(EventKind::group_access);
  if (to == hosting_.here) {
    request.detail = asked_.put(access);
    return kernel_.send(to, request);
  }
  kernel_.send(to, request, packed(access));
}

void MemoryServers::unpack(pdes::Event& request, std::span<const std::byte> bytes) {
  GroupAccess access;
  Archive archive(bytes);
  archive(access);
  ensure(archive.is_at_end(), "an access of a group of wrong size");
  request.detail = asked_.put(access);
}

std::vector<std::byte> MemoryServers::pack(const pdes::Event& event) const {
  if (event.kind != static_cast<std::uint16_t>(EventKind::group_access)) return {};
  return packed(asked_[static_cast<std::uint32_t>(event.detail)]);
}

// ---- Servers of this rank ----

MemoryServers::Server& MemoryServers::server(LpId lp) {
  Server& server = servers_[lp];
  if (!server.memory) server.memory = memory_.make_server();
  return server;
}

void MemoryServers::handle(const pdes::Event& event) {
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::access:
      return serve(event);
    case EventKind::group_access:
      return serve_group(event);
    case EventKind::close:
      return close(event);
  }
  ensure_failed("an event that no memory server handles", std::source_location::current());
}

/// Serves an NPU's request for itself.
void MemoryServers::serve(const pdes::Event& request) {
  const Requester requester{NpuId(request.source().value()), NodeId(request.node)};
  begin(request, {.since = request.time, .size = Bytes(request.detail), .requesters = {&requester, 1}});
}

/// Serves an access of a group when its last member has asked, or an access of one NPU.
void MemoryServers::serve_group(const pdes::Event& request) {
  const auto slot = static_cast<std::uint32_t>(request.detail);
  const GroupAccess access = asked_.take(slot);
  asked_[slot].place = {};
  server(request.target);  // it is in use from now on
  const Requester requester{NpuId(request.source().value()), NodeId(request.node), access.place.end.is_known()};
  ServerAccess all{.since = request.time, .size = access.size, .requesters = {&requester, 1}, .place = access.place};
  if (access.members == 0) return begin(request, all);
  const auto members = groups_.add(access, requester);
  if (!members) return;
  if (access.members > 1) all.collective = path_collective(access.collective);
  all.requesters = *members;
  begin(request, all);
}

/// Begins an access at the time of the request.
void MemoryServers::begin(const pdes::Event& request, const ServerAccess& access) {
  close_at(request.target, server(request.target).memory->access(access, answer_of(request.target)));
}

void MemoryServers::close(const pdes::Event& event) {
  close_at(event.target, server(event.target).memory->close(event.time, answer_of(event.target)));
}

/// Lets a server close at a time, if there is one.
void MemoryServers::close_at(LpId lp, std::optional<Time> time) {
  if (!time) return;
  pdes::Event end = pdes::Event::make(*time, pdes::Stage::server, lp, server(lp).sequence++, lp);
  end.kind = static_cast<std::uint16_t>(EventKind::close);
  kernel_.schedule(end);
}

SharedServer::Answer MemoryServers::answer_of(LpId lp) {
  return [this, lp](const Requester& requester, Time since, Time done, const EventPlace& place) {
    answer(lp, requester, since, done, place);
  };
}

void MemoryServers::answer(LpId lp, const Requester& requester, Time since, Time done, const EventPlace& place) {
  const Rank to = hosting_.of_npu[requester.npu.index()];
  const auto event_at = [&](Time time, std::uint16_t kind) {
    auto event = pdes::Event::make(time, pdes::Stage::client, lp, server(lp).sequence++, LpId(requester.npu.value()));
    event.node = requester.node.value();
    event.kind = kind;
    return event;
  };
  // It comes before the end, so that the requester never awaits nothing while it does not know this.
  if (requester.awaits_begin && whole_ns(done) > whole_ns(since))
    kernel_.send(to, event_at(kernel_.now() + gathering_time, access_goes_on));
  if (done == Time::max()) return keep_earliest(overrun_, {since, requester.npu, requester.node});
  const auto answer = event_at(done, pdes::completion);
  if (places_ != nullptr && place.is_known())
    places_->send(kernel_, to, answer, place);
  else
    kernel_.send(to, answer);
}

std::vector<LpId> MemoryServers::used() const {
  std::vector<LpId> used;
  for (const auto& [lp, server] : servers_) used.push_back(lp);
  return used;
}

void MemoryServers::serialize(LpId lp, std::uint32_t number, Archive& archive) {
  Server& its = server(lp);
  archive(its.sequence);
  its.memory->serialize(archive);
  groups_.serialize(archive, [&](NpuId npu) { return memory_.server_of(npu) == number; });
}

/// Only a kind with one server has stages.
std::vector<MemoryStageRecord> MemoryServers::stages() const {
  if (memory_.num_servers() == 0 || hosting_.of_server.front() != hosting_.here) return {};
  return servers_.empty() ? memory_.make_server()->stages() : servers_.begin()->second.memory->stages();
}

}  // namespace orrery::memory
