#include "serving_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::serving {
namespace {

using pdes::Event;
using pdes::Stage;

/// What lies between two events of a logical process that runs by itself: so many times of it.
constexpr int times_of_event = 4096;

constexpr unsigned shift_of_member = 50;
/// Set in a delivery of a request whose gaps between tokens do not count.
constexpr std::uint64_t unmeasured = std::uint64_t{1} << (shift_of_member - 1);
constexpr std::uint64_t mask_of_time = (std::uint64_t{1} << shift_of_member) - 1;

/// Makes an instance whose first scheduler has this number.
std::unique_ptr<Instance> make_instance(const Scenario& scenario, const InstanceSpec& spec, std::uint32_t number) {
  const Options& options = scenario.options;
  std::vector<Scheduler> members;
  for (std::uint32_t m = 0; m < spec.members; ++m)
    members.emplace_back(scenario.requests, spec.scheduler, spec.role, number + m, spec.kv_blocks, options.record_steps,
                         spec.pipeline.stages, options.transfer.by_layer);
  return std::make_unique<Instance>(
      std::move(members), spec.pipeline, *spec.cost,
      Instance::Ways{.reports_counts = options.router.policy->looks_at_counts,
                     .records_steps = options.record_steps,
                     .tells_prefills = options.transfer.by_layer && spec.role == Role::prefill,
                     .is_carried_out = spec.programs != nullptr});
}

bool looks_at_nothing(const Scenario& scenario) {
  return !scenario.options.router.policy->looks_at_instances && !scenario.requests.is_closed &&
         std::ranges::none_of(scenario.instances, [](const auto& i) { return i.role == Role::decode; });
}

}  // namespace

std::vector<Rank> ranks_of_instances(const Scenario& scenario, int num_ranks) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < scenario.instances.size(); ++i)
    ranks.emplace_back(static_cast<int>(i * static_cast<std::size_t>(num_ranks) / scenario.instances.size()));
  return ranks;
}

ServingModel::ServingModel(const Scenario& scenario, parallel::Communicator& world, std::uint32_t first_lp,
                           const network::DelayModel* delays)
    : scenario_(scenario),
      parts_(scenario),
      here_(world.rank()),
      base_(first_lp),
      delays_(delays),
      num_lps_(static_cast<std::uint32_t>(scenario.instances.size())) {
  const Options& options = scenario.options;
  const auto roles = scenario.roles();
  has_decode_ = std::ranges::count(roles, Role::decode) > 0;
  const bool runs_alone = std::ranges::all_of(scenario.instances, [](const auto& i) { return i.programs == nullptr; });
  routing_ = runs_alone && num_lps_ == 1                ? Routing::inside
             : runs_alone && looks_at_nothing(scenario) ? Routing::from_start
                                                        : Routing::by_server;
  needs_reports_ = options.router.policy->looks_at_instances || scenario.requests.is_closed ||
                   scenario.instances.front().members > 1;
  rank_of_lp_ = ranks_of_instances(scenario, world.size());
  std::uint32_t number = 0;
  for (std::uint32_t lp = 0; lp < num_lps_; ++lp) {
    const InstanceSpec& spec = scenario.instances[lp];
    first_member_.push_back(number);
    lp_of_member_.insert(lp_of_member_.end(), spec.members, lp);
    if (rank_of_lp_[lp] == here_) {
      if (instances_.empty()) first_lp_ = lp;
      for (const NpuId npu : spec.npus)
        local_of_npu_.emplace(npu.value(), static_cast<std::uint32_t>(instances_.size()));
      instances_.push_back(make_instance(scenario, spec, number));
      make_traffic(static_cast<std::uint32_t>(instances_.size() - 1), spec);
    }
    number += spec.members;
  }
  inbox_.resize(instances_.size());
  known_.resize(instances_.size());
  next_known_.resize(instances_.size());
  sequence_.resize(instances_.size() + 2);
  if (has_decode_) lead_ = Time::from_ps(options.transfer.latency.ps() / 3);
  const bool is_root = here_ == Rank(0);
  if (routing_ == Routing::from_start || is_root) {
    const std::uint32_t block = scenario.instances.front().scheduler.block;
    router_ = std::make_unique<Router>(scenario.requests, options.router, roles, block, options.seed, options.measure,
                                       options.transfer.by_layer);
  }
  if (is_root && has_decode_) ports_.emplace(options.transfer, number);
  if (routing_ != Routing::from_start) return;
  router_->take_arrivals(Time::from_ps(Time::max().ps() - 1));
  for (const Delivery& each : router_->deliveries()) {
    const std::uint32_t lp = lp_of_member(each.instance);
    if (rank_of_lp_[lp] != here_) continue;
    Delivery delivery = each;
    delivery.time = scenario.requests[each.request].arrival + options.router.dispatch;
    known_[lp - first_lp_].push_back(delivery);
  }
  router_.reset();
}

pdes::Options ServingModel::kernel_options(const parallel::Communicator& world) const {
  pdes::Options options;
  options.num_lps = base_ + num_lps_ + 2;
  const Time of_ports = scenario_.options.transfer.latency - lead_ - lead_;
  const Time answer =
      has_decode_ ? std::min(scenario_.options.router.dispatch, of_ports) : scenario_.options.router.dispatch;
  const bool by_server = routing_ == Routing::by_server;
  const bool is_root = here_ == Rank(0);
  if (by_server && is_root) options.service_delay = answer;
  if (!by_server || world.size() == 1) return options;
  options.least_service_delay = answer;
  const auto hosts = [&](int rank) { return std::ranges::find(rank_of_lp_, Rank(rank)) != rank_of_lp_.end(); };
  for (int r = 0; r < world.size(); ++r) {
    if (Rank(r) == here_) continue;
    pdes::Neighbour neighbour{.rank = Rank(r)};
    if (is_root && hosts(r)) {
      neighbour.outgoing = neighbour.incoming = true;
      neighbour.service_delay = answer;
    }
    if (r == 0 && !instances_.empty()) {
      neighbour.outgoing = neighbour.incoming = true;
      neighbour.requests = true;
    }
    if (neighbour.outgoing) options.neighbours.push_back(neighbour);
  }
  return options;
}

void ServingModel::start(pdes::Scheduler& scheduler) {
  kernel_ = &scheduler;
  if (routing_ == Routing::by_server) {
    if (here_ == Rank(0)) schedule_arrival();
    return;
  }
  for (std::uint32_t i = 0; i < instances_.size(); ++i) {
    const Time first = next_alone(*instances_[i], i);
    if (first == Time::max()) continue;
    const LpId lp = lp_of(first_lp_ + i);
    kernel_->schedule(event_of(first, Stage::client, lp, lp, wake, 0, 0));
  }
}

Event ServingModel::event_of(Time time, Stage stage, LpId source, LpId target, Kind kind, std::uint32_t node,
                             std::uint64_t detail) {
  const std::uint32_t number = number_of(source);
  const std::size_t counter =
      number >= num_lps_ ? instances_.size() + (number - num_lps_) : std::size_t{number - first_lp_};
  Event event = Event::make(time, stage, source, sequence_[counter]++, target);
  event.kind = kind;
  event.node = node;
  event.detail = detail;
  return event;
}

void ServingModel::schedule_arrival() {
  const Time next = router_->next_arrival();
  if (next >= scheduled_arrival_ || next == Time::max()) return;
  scheduled_arrival_ = next;
  kernel_->schedule(event_of(next, Stage::server, router_lp(), router_lp(), wake, 0, 0));
}

void ServingModel::handle(const Event& event) {
  if (event.target == router_lp()) return handle_router(event);
  if (event.target == ports_lp()) return handle_ports(event);
  const std::uint32_t local = number_of(event.target) - first_lp_;
  Inbox& inbox = touched_inbox(local);
  const std::uint32_t first = instances_[local]->first();
  const auto member = static_cast<std::uint32_t>(event.detail >> shift_of_member);
  switch (event.kind) {
    case deliver:
      inbox.deliveries.push_back({.time = event.time,
                                  .request = event.node,
                                  .instance = first + member,
                                  .is_measured = (event.detail & unmeasured) == 0});
      break;
    case deliver_decode: {
      const RouterOptions& router = scenario_.options.router;
      inbox.deliveries.push_back({.time = event.time,
                                  .request = event.node,
                                  .instance = first + member,
                                  .home = static_cast<std::uint32_t>(event.detail),
                                  .is_decode = true,
                                  .first_token = event.time - router.dispatch - router.report,
                                  .is_measured = (event.detail & unmeasured) == 0});
      break;
    }
    case arrive: {
      const Time taken = Time::from_ps(static_cast<std::int64_t>(event.detail & mask_of_time));
      inbox.arrived.push_back({event.node, true, member, event.time - taken});
      if (!scenario_.options.transfer.by_layer)
        transfer_times_.emplace_back(event.node, taken);
      else if (auto open = coming_.extract(event.node))
        transfer_times_.emplace_back(event.node, event.time - open.mapped().asked);
      break;
    }
    case traffic_wake:
      traffic_[local]->take_wake(event.node, event.time);
      break;
    case layer_due:
      next_sends_.erase(next_sends_.find(event.time));
      inbox.layers.push_back(event.node);
      break;
    case release:
      inbox.arrived.push_back({event.node, false, member});
      break;
    case ask:
    case ask_due:
      take_ask(event, inbox);
      break;
    default:
      break;
  }
}

/// Takes in that an instance is asked for KV. It answers a part of the latency later, so that others know of it before.
void ServingModel::take_ask(const Event& event, Inbox& inbox) {
  if (event.kind == ask && lead_ > Time::zero()) {
    const Event due =
        event_of(event.time + lead_, Stage::client, event.target, event.target, ask_due, event.node, event.detail);
    next_sends_.insert(due.time);
    kernel_->schedule(due);
    return;
  }
  if (event.kind == ask_due) next_sends_.erase(next_sends_.find(event.time));
  inbox.asked.push_back({.request = event.node,
                         .tokens = static_cast<std::uint32_t>(event.detail),
                         .member = static_cast<std::uint32_t>(event.detail >> 52U),
                         .to = static_cast<std::uint32_t>(event.detail >> 32U & 0xfffffU)});
}

ServingModel::Inbox& ServingModel::touched_inbox(std::uint32_t local) {
  Inbox& inbox = inbox_[local];
  if (!inbox.is_touched) touched_.push_back(local);
  inbox.is_touched = true;
  return inbox;
}

void ServingModel::settle(Time now, Stage stage) {
  if (stage == Stage::server) {
    settle_router(now);
    return;
  }
  for (const std::uint32_t local : touched_) {
    if (routing_ == Routing::by_server)
      settle_instance(local, now);
    else
      run_alone(local, now);
    Inbox& inbox = inbox_[local];
    inbox.deliveries.clear();
    inbox.arrived.clear();
    inbox.asked.clear();
    inbox.layers.clear();
    inbox.is_touched = false;
  }
  touched_.clear();
}

void ServingModel::settle_instance(std::uint32_t local, Time now) {
  Instance& instance = *instances_[local];
  const Inbox& inbox = inbox_[local];
  effects_.clear();
  end_traffic(local, now);
  // What the network asks of an instance is no event of its scheduler.
  if (instance.next_end() == now || !inbox.arrived.empty() || !inbox.deliveries.empty()) {
    instance.end_steps(now, effects_);
    instance.take_arrived(inbox.arrived);
    instance.take_deliveries(inbox.deliveries);
    instance.begin_steps(now, effects_);
    begin_traffic(local, now);
    send_effects(local, now);
  }
  for (const Asked& asked : inbox.asked) {
    if (scenario_.options.transfer.by_layer)
      begin_layers(local, now, asked);
    else
      send_messages(local, now, asked);
  }
  for (const std::uint32_t request : inbox.layers) send_layers(local, now, request);
}

/// Tells the router and the ports, and wakes the instance at the ends of its steps.
void ServingModel::send_effects(std::uint32_t local, Time now) {
  const LpId lp = lp_of(first_lp_ + local);
  for (const Time end : effects_.step_ends) kernel_->schedule(event_of(end, Stage::client, lp, lp, wake, 0, 0));
  const Time reported = now + scenario_.options.router.report;
  const std::uint32_t first = instances_[local]->first();
  for (const Report& report : effects_.reports) {
    const Kind kind = report.kind == Report::Kind::finished     ? finished
                      : report.kind == Report::Kind::prefilling ? prefilling
                      : report.kind == Report::Kind::waiting    ? waiting
                                                                : running;
    // The time of scheduling tells by how much the step was scheduled before its end, which fits.
    call(local, router_lp(), reported, kind, report.value,
         std::uint64_t{report.instance - first} << shift_of_member |
             static_cast<std::uint64_t>((now - report.scheduled).ps()));
  }
  for (const Instance::Prefill& each : effects_.prefills) prefills_[each.request] = each;
  for (const auto& [number, asked] : effects_.pulls) {
    const bool by_layer = scenario_.options.transfer.by_layer;
    if (sends_over_links() && asked.tokens > 0)
      coming_[asked.request] = {.messages = parts_.count(asked.home, number), .member = number - first, .asked = now};
    else if (by_layer)
      coming_[asked.request] = {.messages = 0, .member = number - first, .asked = now};
    call(local, ports_lp(), now + lead_, pull, asked.request,
         std::uint64_t{asked.home} << 44U | std::uint64_t{number - first} << 32U | asked.tokens);
  }
}

void ServingModel::call(std::uint32_t local, LpId server, Time time, Kind kind, std::uint32_t node,
                        std::uint64_t detail) {
  const Event event = event_of(time, Stage::server, lp_of(first_lp_ + local), server, kind, node, detail);
  kernel_->send(Rank(0), event);
}

void ServingModel::handle_router(const Event& event) {
  if (event.kind == wake) {
    scheduled_arrival_ = Time::max();
    return;
  }
  const Report::Kind kind = event.kind == finished     ? Report::Kind::finished
                            : event.kind == prefilling ? Report::Kind::prefilling
                            : event.kind == waiting    ? Report::Kind::waiting
                                                       : Report::Kind::running;
  const std::uint32_t first = first_member_[number_of(event.source())];
  const Time before = Time::from_ps(static_cast<std::int64_t>(event.detail & mask_of_time));
  reports_.push_back({kind, first + static_cast<std::uint32_t>(event.detail >> shift_of_member), event.node,
                      event.time - scenario_.options.router.report - before});
}

void ServingModel::settle_router(Time now) {
  if (!router_) return;
  router_->take_reports(now, reports_);
  reports_.clear();
  router_->take_arrivals(now);
  for (const Delivery& each : router_->deliveries()) {
    const std::uint32_t lp = lp_of_member(each.instance);
    const std::uint64_t member = std::uint64_t{each.instance - first_member_[lp]} << shift_of_member;
    kernel_->send(rank_of_lp_[lp],
                  event_of(each.time, Stage::client, router_lp(), lp_of(lp), each.is_decode ? deliver_decode : deliver,
                           each.request, member | (each.is_measured ? 0 : unmeasured) | each.home));
  }
  router_->clear_deliveries();
  schedule_arrival();
}

Time ServingModel::next_alone(const Instance& instance, std::uint32_t local) const {
  Time next = instance.next_end();
  if (next_known_[local] < known_[local].size()) next = std::min(next, known_[local][next_known_[local]].time);
  if (routing_ != Routing::inside) return next;
  if (!reports_inside_.empty()) next = std::min(next, reports_inside_.front().first);
  return std::min(next, router_->next_arrival());
}

/// Lets an instance run by itself: nobody sends it anything that is not known yet.
void ServingModel::run_alone(std::uint32_t local, Time now) {
  Instance& instance = *instances_[local];
  for (int i = 0; i < times_of_event && now != Time::max(); ++i) {
    moment_alone(instance, local, now);
    now = next_alone(instance, local);
  }
  if (now == Time::max()) return;
  const LpId lp = lp_of(first_lp_ + local);
  kernel_->schedule(event_of(now, Stage::client, lp, lp, wake, 0, 0));
}

void ServingModel::moment_alone(Instance& instance, std::uint32_t local, Time now) {
  effects_.clear();
  // Ranks that begin steps together look for one at every event of the group.
  const bool is_end = instance.next_end() == now;
  bool is_touched = instance.num_members() > 1 || is_end;
  instance.end_steps(now, effects_);
  auto& known = known_[local];
  if (routing_ == Routing::inside) {
    // A report is an event of ranks that begin steps together, even if it says nothing.
    if (needs_reports_ && (!effects_.reports.empty() || (is_end && instance.num_members() > 1)))
      reports_inside_.emplace_back(now + scenario_.options.router.report, effects_.reports);
    while (!reports_inside_.empty() && reports_inside_.front().first == now) {
      router_->take_reports(now, reports_inside_.front().second);
      reports_inside_.erase(reports_inside_.begin());
    }
    router_->take_arrivals(now);
    known.insert(known.end(), router_->deliveries().begin(), router_->deliveries().end());
    router_->clear_deliveries();
  }
  std::size_t& next = next_known_[local];
  const std::size_t first = next;
  while (next < known.size() && known[next].time == now) ++next;
  instance.take_deliveries(std::span(known).subspan(first, next - first));
  is_touched = is_touched || next > first;
  if (next == known.size()) {
    known.clear();
    next = 0;
  }
  if (is_touched) instance.begin_steps(now, effects_);
}

std::vector<std::pair<std::uint32_t, Time>> ServingModel::late_arrivals() const {
  if (!router_) return {};
  return {router_->late_arrivals().begin(), router_->late_arrivals().end()};
}

/// A report leaves with the end of a step, a pull a part of the latency after any event of a decode instance, a message
/// over links as long after what asks the home for it, and a layer when it is complete.
pdes::LookaheadBounds ServingModel::lookahead() {
  if (routing_ != Routing::by_server) return {{}, {}, {}};
  const Time report = scenario_.options.router.report;
  pdes::LookaheadBound bound{Time::max(), Time::max()};
  for (const auto& instance : instances_) {
    const Role role = instance->members().front().role();
    const bool sends = role == Role::prefill && (sends_over_links() || scenario_.options.transfer.by_layer);
    const Time first = role == Role::decode ? std::min(lead_, report) : report;
    bound.output = std::min(bound.output, instance->next_end() + first);
    bound.reaction =
        std::min(bound.reaction, role == Role::decode || sends ? std::min(lead_, report) : report + Time::from_ps(1));
  }
  // The next message of a step is not known.
  if (std::ranges::any_of(traffic_, [](const auto& each) { return each != nullptr; })) bound = {Time(), Time()};
  if (!next_sends_.empty()) bound.output = std::min(bound.output, *next_sends_.begin());
  return {.sends = {}, .calls = bound, .relays = bound};
}

std::string ServingModel::status() const {
  std::uint64_t waiting_here = 0, running_here = 0;
  for (const auto& instance : instances_)
    for (const Scheduler& member : instance->members()) {
      waiting_here += member.num_waiting();
      running_here += member.num_running();
    }
  return fmt::format("{} instances, {} requests wait, {} run", instances_.size(), waiting_here, running_here);
}

}  // namespace orrery::serving
