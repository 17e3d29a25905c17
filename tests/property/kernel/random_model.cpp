#include "random_model.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace orrery::pdes::test {
namespace {

enum Purpose : std::uint64_t {
  partition = 1'000'000'000,
  layout,
  delay_of,
  start_of,
  extra_of,
  completion_of,
  bound_of_draw,
  ahead,
  relaying,
  home,
  cell,
  at_once,
  under_way,
  celled
};

template <class T, std::size_t N>
T pick(const std::array<T, N>& values, std::uint64_t random) {
  return values[random % N];
}

/// A stream of numbers for the layout of a model.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t next() { return mix(seed_, layout, count_++); }
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(next() % n); }
  Time delay(std::int64_t spread) {
    return Time::from_ps(1 + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(spread)));
  }

 private:
  std::uint64_t seed_, count_ = 0;
};

/// Makes a system with relays fall into cells: more servers, each of few clients, and no groups.
void divide(System& system) {
  system.groups.clear();
  system.servers.resize(1 + mix(system.seed, celled) % 9);
  for (std::uint32_t i = 0; i < system.clients.size(); ++i)
    if (system.clients[i].server >= 0)
      system.clients[i].server = static_cast<int>(mix(system.seed, celled, i / 3) % system.servers.size());
}

void spread_over_ranks(System& system) {
  const auto ranks = static_cast<std::uint64_t>(system.ranks);
  const auto way = mix(system.seed, partition) % 4;
  for (std::uint32_t lp = 0; lp < system.num_lps(); ++lp) {
    std::uint64_t rank = 0;
    switch (way) {
      case 0:
        rank = lp % ranks;
        break;
      case 1:
        rank = lp * ranks / system.num_lps();
        break;
      case 2:
        rank = mix(system.seed, partition, lp) % ranks;
        break;
      default:
        rank = ranks < 2 ? 0 : mix(system.seed, partition, lp) % (ranks - 1) + 1;
        break;  // rank 0 has nothing
    }
    system.host.push_back(Rank(static_cast<int>(rank)));
  }
}

}  // namespace

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15U + b + 0x632be59bd9b4e019U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

System make_system(std::uint64_t seed, int ranks) {
  System system;
  system.seed = seed;
  system.ranks = ranks;
  Stream random(seed);
  system.sight = static_cast<Sight>(random.below(3));
  system.spread = pick<std::int64_t, 5>({1, 2, 10, 100, 10000}, random.next());
  system.least_quiet_steps = random.below(3);
  system.quiet_delay = Time::from_ps(pick<std::int64_t, 4>({1, 5, 100, 5000}, random.next()));
  system.clients.resize(2 + random.below(25));
  system.servers.resize(random.below(4));
  system.groups.resize(random.below(4));
  const auto n = static_cast<std::uint32_t>(system.clients.size());
  const auto cluster = pick<std::uint32_t, 3>({n, 3, 8}, random.next());  // peers are near: some ranks never talk
  const auto start_spread = pick<std::int64_t, 3>({1, 20, 5000}, random.next());
  for (std::uint32_t i = 0; i < n; ++i) {
    auto& client = system.clients[i];
    for (std::uint32_t p = random.below(4); p > 0; --p) {
      const std::uint32_t peer = i / cluster * cluster + random.below(cluster);
      if (peer >= n || peer == i) continue;
      client.peers.push_back(peer);
      client.delays.push_back(random.delay(system.spread));
    }
    if (!system.servers.empty() && random.below(2) == 0)
      client.server = static_cast<int>(random.below(system.servers.size()));
    client.budget = random.below(40);
    for (std::uint32_t s = random.below(4); s > 0; --s) client.starts.push_back(random.delay(start_spread));
  }
  system.relays = !system.servers.empty() && mix(seed, relaying) % 3 == 0;
  if (system.relays && mix(seed, relaying, celled) % 3 != 0) divide(system);
  for (auto& server : system.servers) server.delay = random.delay(2 * system.spread);
  for (std::uint32_t s = 0; s < system.servers.size(); ++s)
    system.servers[s].next = static_cast<std::uint32_t>(mix(seed, relaying, s) % system.servers.size());
  for (std::uint32_t i = 0; i < n; ++i)
    system.clients[i].is_at_home = system.relays && mix(seed, relaying, i, home) % 2 == 0;
  for (std::uint32_t g = 0; g < system.groups.size(); ++g) {
    auto& group = system.groups[g];
    const auto first = random.below(n), count = 1 + random.below(std::min<std::uint32_t>(n, 9));
    for (std::uint32_t i = 0; i < count; ++i) group.members.push_back((first + i) % n);
    for (const auto member : group.members) system.clients[member].groups.push_back(g);
    group.from_first = random.delay(10 * system.spread);
    group.from_last = random.delay(system.spread);
  }
  spread_over_ranks(system);
  for (std::uint32_t i = 0; i < n; ++i)
    for (const auto peer : system.clients[i].peers) {
      auto& hears = system.clients[peer];
      (system.host[i] == system.host[peer] ? hears.hears_near : hears.hears_far) = true;
    }
  return system;
}

System make_stuck_system(std::uint64_t seed, int ranks) {
  System system = make_system(seed, ranks);
  const auto group = static_cast<std::uint32_t>(system.groups.size());
  system.clients[0].budget = 0;
  system.groups.push_back({{}, Time::from_ps(10), Time::from_ps(1)});
  for (std::uint32_t i = 0; i < system.clients.size(); ++i) {
    system.groups.back().members.push_back(i);
    system.clients[i].groups.push_back(group);
  }
  system.host.push_back(Rank(static_cast<int>(mix(seed, partition, group) % static_cast<std::uint64_t>(ranks))));
  return system;
}

bool System::is_local(const Group& group, std::uint32_t g) const {
  const Rank at = host[group_lp(g).index()];
  return std::all_of(group.members.begin(), group.members.end(), [&](auto m) { return host[m] == at; });
}

std::vector<std::uint32_t> System::cells(Rank here) const {
  std::vector<std::uint32_t> of_lp(num_lps());
  if (!relays || !groups.empty()) return of_lp;
  std::iota(of_lp.begin(), of_lp.end(), 0U);
  const auto join = [&](LpId a, LpId b) {
    if (host[a.index()] != here || host[b.index()] != here) return;
    const std::uint32_t from = of_lp[a.index()], to = of_lp[b.index()];
    std::ranges::replace(of_lp, from, to);
  };
  for (std::uint32_t i = 0; i < clients.size(); ++i) {
    for (const std::uint32_t peer : clients[i].peers) join(LpId(i), LpId(peer));
    if (clients[i].server >= 0) join(LpId(i), server_lp(static_cast<std::uint32_t>(clients[i].server)));
  }
  return of_lp;
}

namespace {

/// All that may pass from `here`, per rank.
std::vector<Neighbour> outgoing(const System& system, Rank here) {
  std::vector<Neighbour> table(static_cast<std::size_t>(system.ranks));
  for (std::size_t r = 0; r < table.size(); ++r) table[r].rank = Rank(static_cast<int>(r));
  const auto at = [&](LpId lp) -> Neighbour& { return table[system.host[lp.index()].index()]; };
  for (std::uint32_t i = 0; i < system.clients.size(); ++i) {
    const auto& client = system.clients[i];
    const bool is_here = system.host[i] == here;
    if (is_here)
      for (std::size_t p = 0; p < client.peers.size(); ++p)
        at(LpId(client.peers[p])).event_delay = std::min(at(LpId(client.peers[p])).event_delay, client.delays[p]);
    if (client.server < 0) continue;
    const auto s = static_cast<std::uint32_t>(client.server);
    if (is_here) at(system.server_lp(s)).requests = true;
    if (system.host[system.server_lp(s).index()] == here)
      at(LpId(i)).service_delay = std::min(at(LpId(i)).service_delay, system.servers[s].delay);
  }
  for (std::uint32_t s = 0; system.relays && s < system.servers.size(); ++s) {
    const auto& server = system.servers[s];
    if (system.host[system.server_lp(s).index()] != here) continue;
    for (const std::uint32_t onward : {server.next, system.partner(s)}) {
      auto& next = at(system.server_lp(onward));
      if (next.rank != here) next.relay_delay = std::min(next.relay_delay, server.delay);
    }
    for (std::uint32_t i = 0; i < system.clients.size(); ++i)
      at(LpId(i)).service_delay = std::min(at(LpId(i)).service_delay, server.delay);
  }
  for (std::uint32_t g = 0; g < system.groups.size(); ++g) {
    const auto& group = system.groups[g];
    if (system.is_local(group, g)) continue;
    for (const auto member : group.members) {
      if (system.host[member] == here) at(system.group_lp(g)).requests = true;
      if (system.host[system.group_lp(g).index()] == here)
        at(LpId(member)).reply_delay = std::min(at(LpId(member)).reply_delay, group.from_first);
    }
  }
  for (auto& n : table)
    n.outgoing = n.requests || std::min({n.event_delay, n.service_delay, n.reply_delay, n.relay_delay}) != Time::max();
  return table;
}

}  // namespace

Options System::kernel_options(Rank here) const {
  Options options;
  options.num_lps = num_lps();
  options.watchdog_seconds = watchdog_seconds;
  if (mix(seed, under_way) % 3 == 0) options.most_bytes_under_way = mix(seed, under_way, 1) % 400;
  options.lps_run_ahead = mix(seed, ahead) % 4 != 0 && !relays;
  if (relays) options.cell_of = cells(here);
  for (std::uint32_t i = 0; options.lps_run_ahead && i < clients.size(); ++i)
    options.cell_of.push_back(static_cast<std::uint32_t>(mix(seed, cell, i) % (1 + mix(seed, cell) % clients.size())));
  Time least_final = Time::max();
  for (const auto& group : groups) least_final = std::min(least_final, group.from_last);
  if (least_final != Time::max()) options.final_delay = least_final;
  for (int r = 0; r < ranks; ++r) {
    const Rank rank(r);
    const auto table = outgoing(*this, rank);
    for (const auto& n : table) {
      if (n.rank != rank) options.least_event_delay = std::min(options.least_event_delay, n.event_delay);
      options.least_service_delay = std::min({options.least_service_delay, n.service_delay, n.relay_delay});
      options.least_reply_delay = std::min(options.least_reply_delay, n.reply_delay);
    }
    if (rank == here) continue;
    auto neighbour = outgoing(*this, here)[static_cast<std::size_t>(r)];
    neighbour.incoming = table[here.index()].outgoing;
    if (neighbour.incoming || neighbour.outgoing) options.neighbours.push_back(neighbour);
  }
  for (const auto& n : outgoing(*this, here)) options.service_delay = std::min(options.service_delay, n.service_delay);
  options.reply_delay = outgoing(*this, here)[here.index()].reply_delay;
  return options;
}

RandomModel::RandomModel(const System& system, Rank here)
    : system_(system),
      here_(here),
      clients_(system.clients.size()),
      servers_(system.servers.size()),
      groups_(system.groups.size()),
      logs_(system.num_lps()),
      cells_(system.cells(here)),
      leaves_(system.num_lps()),
      served_(system.num_lps(), Time::from_ps(-1)),
      servers_settled_(system.num_lps(), Time::from_ps(-1)) {
  for (Outward& leaves : leaves_) leaves.may.resize(clients_.size());
  sends_.may.resize(clients_.size());
  calls_.may.resize(clients_.size());
  relays_.may.resize(clients_.size());
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    const auto& client = system.clients[i];
    const auto is_far = [&](auto peer) { return host(LpId(peer)) != here; };
    sends_.may[i] = std::any_of(client.peers.begin(), client.peers.end(), is_far);
    calls_.may[i] = client.server >= 0 && is_far(system.server_lp(static_cast<std::uint32_t>(client.server)).value());
    const bool relays = system.relays && client.server >= 0;
    const Scope scope = relays ? scope_of_requests(i) : Scope::cell;
    relays_.may[i] = scope == Scope::anywhere;
    leaves_[cell(LpId(i))].may[i] = scope != Scope::cell;
    for (const auto g : client.groups)
      if (!system.is_local(system.groups[g], g)) calls_.may[i] = 1;
  }
}

void RandomModel::start(Kernel& kernel) {
  kernel_ = &kernel;
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    if (host(LpId(i)) != here_) continue;
    clients_[i].budget = system_.clients[i].budget;
    for (auto* outward : outwards(i)) outward->active += outward->may[i] && clients_[i].budget > 0 ? 1U : 0U;
    for (const Time time : system_.clients[i].starts) {
      Event event = event_of(i, Stage::client, start_event, time - Time::from_ps(1), LpId(i));
      event.node = static_cast<std::uint32_t>(event.detail % 4);
      dispatch(event);
    }
  }
}

Time RandomModel::extra(std::uint64_t random) const {
  if (random % 2 == 0) return Time::zero();
  return Time::from_ps(static_cast<std::int64_t>(random / 2 % static_cast<std::uint64_t>(system_.spread)));
}

Time RandomModel::step_delay(const Event& event) const {
  return system_.quiet_delay + extra(mix(event.detail, extra_of, event.node));
}

Time RandomModel::loud_time(const Event& event) const {
  Time time = event.time;
  for (Event e = event; e.node > 0; --e.node) time += step_delay(e);
  return time;
}

Event RandomModel::event_of(std::uint32_t client, Stage stage, Kind kind, Time time, LpId target) {
  Event event;
  event.time = time;
  event.order = Event::make_order(stage, LpId(client), clients_[client].sequence++);
  event.detail = draw(client, clients_[client].draws);
  event.target = target;
  event.kind = kind;
  return event;
}

void RandomModel::dispatch(const Event& event) { kernel_->send(host(event.target), event); }

bool RandomModel::admit(Event& event) {
  for (auto* outward : outwards(event.target.value()))
    if (outward->may[event.target.index()]) outward->times.insert(loud_time(event));
  Client& me = clients_[event.target.index()];
  if (event.kind == answer && !system_.relays) --me.requests;
  if (event.kind == completion) --me.joins;
  return true;
}

Awaited RandomModel::awaits(LpId lp) const {
  const Client& me = clients_[lp.index()];
  const auto& about = system_.clients[lp.index()];
  return {
      .here = about.hears_near || me.joins > 0, .sends = about.hears_far, .replies = me.requests > 0 || me.joins > 0};
}

void RandomModel::proceed(LpId) { ensure(false, "nobody waits here"); }

void RandomModel::note(const Event& event) {
  Log& log = logs_[event.target.index()];
  log.hash =
      mix(log.hash, static_cast<std::uint64_t>(event.time.ps()), event.order, event.detail, event.node, event.kind);
  ++log.events;
}

void RandomModel::handle(const Event& event) {
  note(event);
  if (event.stage() == Stage::server) return serve(event);
  ensure(event.time > clients_[event.target.index()].settled, "an event after its time has been settled");
  const auto client = event.target.value();
  for (auto* outward : outwards(client))
    if (outward->may[client]) outward->times.erase(outward->times.find(loud_time(event)));
  Client& me = clients_[client];
  if (event.kind == completion) me.waiting.erase(event.source().value() - system_.group_lp(0).value());
  if (event.node > 0) {
    Event next = next_step(event);
    while (next.node > 0 && may_step_at_once(client) && kernel_->advance(event.target, next.time)) {
      note(next);
      next = next_step(next);
    }
    return dispatch(next);
  }
  if (me.budget == 0) return;
  if (--me.budget == 0)
    for (auto* outward : outwards(client)) outward->active -= outward->may[client] ? 1U : 0U;
  if (me.loud++ == 0) touched_.push_back(client);
  act(client, event.time);
}

Event RandomModel::next_step(const Event& event) {
  Event next = event;
  next.time += step_delay(event);
  next.order = Event::make_order(Stage::client, event.target, clients_[event.target.index()].sequence++);
  --next.node;
  next.kind = step;
  return next;
}

/// Some clients take quiet steps before the kernel sees their events, when they await nothing.
bool RandomModel::may_step_at_once(std::uint32_t client) const {
  return mix(system_.seed, at_once, client) % 2 == 0 && clients_[client].loud == 0 && !awaits(LpId(client)).anything();
}

/// Events for peers and for itself, now and then many at once.
void RandomModel::act(std::uint32_t client, Time now) {
  Client& me = clients_[client];
  const auto& about = system_.clients[client];
  const auto random = draw(client, me.draws);
  for (auto count = random % 16 == 0 ? 6 : random % 3; count > 0; --count) {
    const auto choice = draw(client, me.draws);
    const auto peer = choice / 16 % (about.peers.size() + 1);
    const bool to_itself = peer == about.peers.size();
    const Time delay = to_itself ? Time::from_ps(1) : about.delays[peer];
    Event event = event_of(client, Stage::client, message, now + delay + extra(choice / 1024),
                           LpId(to_itself ? client : about.peers[peer]));
    event.node = static_cast<std::uint32_t>(system_.least_quiet_steps + event.detail % 3);
    dispatch(event);
  }
}

/// Requests and joins wait until all events of the time are known.
void RandomModel::settle(Time now, Stage stage) {
  if (stage == Stage::server) {
    ensure(now > servers_settled_[serving_] && now == served_[serving_],
           "a time of servers is settled twice, or another one than theirs");
    servers_settled_[serving_] = now;
    return;
  }
  for (const auto client : touched_) {
    Client& me = clients_[client];
    ensure(now > me.settled, "a time is settled twice");
    me.settled = now;
    const auto& about = system_.clients[client];
    const auto random = draw(client, me.draws) + me.loud;
    me.loud = 0;
    if (about.server >= 0 && random % 4 != 0) {
      ++me.requests;
      Event call =
          event_of(client, Stage::server, request, now, system_.server_lp(static_cast<std::uint32_t>(about.server)));
      if (about.is_at_home) call.node = client + 1;
      dispatch(call);
    }
    for (const auto group : about.groups)
      if (mix(random, group) % 4 != 0 && me.waiting.insert(group).second)
        ++me.joins, join(client, group, now, mix(random, client));
  }
  touched_.clear();
}

void RandomModel::serve(const Event& event) {
  serving_ = cell(event.target);
  ensure(event.time > servers_settled_[serving_], "a server handles an event of a time that is settled");
  served_[serving_] = event.time;
  const auto s = event.target.value() - system_.server_lp(0).value();
  Server& server = servers_[s];
  server.free =
      std::max(server.free, event.time) + system_.servers[s].delay + extra(draw(event.target.value(), server.draws));
  if (system_.relays) {
    Event onward = event;
    onward.time = server.free;
    return hand_on(event, server, onward);
  }
  Event reply;
  reply.time = server.free;
  reply.order = Event::make_order(Stage::client, event.target, server.sequence++);
  reply.detail = mix(event.detail, server.draws);
  reply.target = event.source();
  reply.node = static_cast<std::uint32_t>(system_.least_quiet_steps + reply.detail % 2);
  reply.kind = answer;
  dispatch(reply);
}

Scope RandomModel::scope_of_requests(std::uint32_t client) const {
  const auto& about = system_.clients[client];
  const auto server = static_cast<std::uint32_t>(about.server);
  const LpId own = system_.server_lp(server), partner = system_.server_lp(system_.partner(server));
  if (!about.is_at_home || host(LpId(client)) != here_ || host(own) != here_ || host(partner) != here_)
    return Scope::anywhere;
  return cell(LpId(client)) == cell(own) && cell(own) == cell(partner) ? Scope::cell : Scope::rank;
}

/// A request of a client that is at home says who that is.
Scope RandomModel::scope(const Event& event) const {
  return event.node == 0 ? Scope::anywhere : scope_of_requests(event.node - 1);
}

/// To the next server, or to any client; for a client that is at home to itself or its partner, or to that client. What
/// the event says goes beside it where it leaves the rank.
void RandomModel::hand_on(const Event& event, const Server& server, Event onward) {
  const auto s = event.target.value() - system_.server_lp(0).value();
  onward.detail = mix(event.detail, server.draws);
  const bool is_over = onward.detail % 3 == 0;
  const bool is_at_home = event.node > 0;
  const auto client = is_at_home ? event.node - 1 : static_cast<std::uint32_t>(onward.detail / 3 % clients_.size());
  const std::uint32_t kept = onward.detail % 2 == 0 ? s : system_.partner(s);
  onward.target = is_over ? LpId(client) : system_.server_lp(is_at_home ? kept : system_.servers[s].next);
  onward.order = Event::make_order(is_over ? Stage::client : Stage::server, event.target, servers_[s].sequence++);
  if (is_over) {
    onward.node = static_cast<std::uint32_t>(system_.least_quiet_steps + onward.detail % 2);
    onward.kind = answer;
  }
  if (host(onward.target) == here_) return dispatch(onward);
  Event bare = onward;
  bare.detail = 0;
  kernel_->send(host(onward.target), bare, std::as_bytes(std::span(&onward.detail, 1)));
}

void RandomModel::unpack(Event& event, std::span<const std::byte> bytes) {
  ensure(bytes.size() == sizeof event.detail && event.detail == 0, "what goes with an event");
  std::memcpy(&event.detail, bytes.data(), bytes.size());
}

void RandomModel::join(std::uint32_t client, std::uint32_t group, Time now, std::uint64_t payload) {
  const Post post{.time = now, .payload = payload, .group = group, .depth = kernel_->depth(LpId(client))};
  if (const Rank to = host(system_.group_lp(group)); to != here_)
    kernel_->post(to, std::as_bytes(std::span(&post, 1)));
  else
    contribute(post);
}

void RandomModel::contribute(const Post& post) {
  const auto& about = system_.groups[post.group];
  Group& group = groups_[post.group];
  const LpId lp = system_.group_lp(post.group);
  group.first = std::min(group.first, post.time);
  group.last = std::max(group.last, post.time);
  group.depth = std::max(group.depth, post.depth);
  group.payload += post.payload;
  if (++group.arrived < about.members.size()) return;
  kernel_->raise_depth(lp, group.depth + 1);
  const Group whole = std::exchange(group, Group{.round = group.round + 1});
  const Time least = std::max(whole.first + about.from_first, whole.last + about.from_last);
  for (std::uint32_t p = 0; p < about.members.size(); ++p) {
    const Post result{.time = least + extra(mix(system_.seed, completion_of, post.group, whole.round, p)),
                      .payload = mix(whole.payload, p),
                      .group = post.group,
                      .round = whole.round,
                      .position = p,
                      .depth = kernel_->depth(lp),
                      .is_completion = 1};
    if (const Rank to = host(LpId(about.members[p])); to != here_)
      kernel_->post(to, std::as_bytes(std::span(&result, 1)));
    else
      complete(result);
  }
}

void RandomModel::complete(const Post& post) {
  const auto& members = system_.groups[post.group].members;
  const LpId lp = system_.group_lp(post.group);
  kernel_->raise_depth(lp, post.depth);
  Event event;
  event.time = post.time;
  event.order = Event::make_order(Stage::client, lp, post.round * members.size() + post.position);
  event.detail = post.payload;
  event.target = LpId(members[post.position]);
  event.node = static_cast<std::uint32_t>(system_.least_quiet_steps + post.payload % 2);
  event.kind = completion;
  dispatch(event);
}

void RandomModel::receive(Rank, std::span<const std::byte> bytes) {
  Post post;
  ensure(bytes.size() == sizeof post, "a post of wrong size");
  std::memcpy(&post, bytes.data(), sizeof post);
  if (post.is_completion)
    complete(post);
  else
    contribute(post);
}

std::uint64_t RandomModel::waits_for(std::uint32_t client) const {
  std::uint64_t groups = 0;
  for (const auto group : clients_[client].waiting) groups |= std::uint64_t{1} << group;
  return groups;
}

LookaheadBound RandomModel::bound_of(const Outward& outward) {
  LookaheadBound bound;
  if (!outward.times.empty()) bound.output = *outward.times.begin();
  if (outward.active > 0) bound.reaction = system_.quiet_delay * system_.least_quiet_steps;
  if (system_.sight == Sight::blind) bound = {Time::zero(), Time::zero()};
  if (system_.sight == Sight::sloppy) {  // a little less, in a way that is not monotone
    for (Time* time : {&bound.output, &bound.reaction}) {
      const auto part = static_cast<std::int64_t>(mix(system_.seed, bound_of_draw, bounds_drawn_++) % 4);
      if (*time != Time::max()) *time -= Time::from_ps(time->ps() / 8 * part);
    }
  }
  return {bound.output + system_.lie, bound.reaction + system_.lie};
}

LookaheadBounds RandomModel::lookahead() {
  LookaheadBounds bounds{bound_of(sends_), bound_of(calls_), {}};
  if (system_.relays) bounds.relays = bound_of(relays_);
  return bounds;
}

LookaheadBound RandomModel::lookahead_of_cell(std::uint32_t cell) { return bound_of(leaves_[cell]); }

Time RandomModel::pending_reply(Rank to) const {
  Time least = Time::max();
  for (std::uint32_t g = 0; g < groups_.size(); ++g) {
    const auto& about = system_.groups[g];
    if (groups_[g].arrived == 0 || system_.is_local(about, g)) continue;
    if (std::any_of(about.members.begin(), about.members.end(), [&](auto m) { return host(LpId(m)) == to; }))
      least = std::min(least, groups_[g].first + about.from_first);
  }
  return least;
}

}  // namespace orrery::pdes::test
