#include "orrery/model/rank_model.hpp"

#include <fmt/format.h>

#include "cells.hpp"
#include "orrery/base/error.hpp"
#include "orrery/model/reduction_groups.hpp"
#include "parts.hpp"

namespace orrery::model {
namespace {

std::vector<NpuId> ids_of(std::span<const npu::NpuSpec> npus) {
  std::vector<NpuId> ids;
  for (const npu::NpuSpec& npu : npus) ids.push_back(npu.id);
  return ids;
}

}  // namespace

RankModel::Parts::Parts(RankModel& model, pdes::Scheduler& kernel)
    : communicators({.kernel = kernel,
                     .engine = model.run_.engine,
                     .network = model.network_,
                     .specs = model.run_.communicators,
                     .hosting = model.run_.hosting,
                     .first_lp = model.run_.first_communicator(),
                     .place_of = model.run_.place_of,
                     .execution = model.run_.options.goes_over_links() ? communicator::Execution::by_members
                                                                       : communicator::Execution::at_host,
                     .least_recorded = model.run_.of_all.least_recorded,
                     .variations = &model.run_.options.noise.variations,
                     .knows_places = model.run_.orders_collectives(),
                     .rendezvous = model.run_.options.rendezvous,
                     .load = model.load_},
                    [this](const communicator::Completion& completion) { npus.announce(completion); }),
      places(model.run_.hosting.here),
      servers(
          kernel, model.run_.memory, model.run_.hosting, model.run_.place_of,
          [&run = model.run_](GroupId group) { return trace::describe(*run.communicators[group.index()].group); },
          model.overrun_, model.run_.knows_places() ? &places : nullptr),
      npu_ids(ids_of(model.run_.npus)),
      links(model.simulated_network_ ? model.simulated_network_->on_rank({kernel, npu_ids, model.run_.hosting,
                                                                          model.run_.first_link(), model.overrun_})
                                     : nullptr),
      npus(model.run_,
           {kernel, model.network_, communicators.members(), servers, links.get(),
            model.run_.knows_places() ? &places : nullptr},
           model.overrun_) {}

RankModel::RankModel(npu::RunContext run)
    : run_(std::move(run)),
      network_(run_.delays, run_.options.network.circuits.get()),
      simulated_network_(run_.options.goes_over_links()
                             ? network::make_network(run_.topology(), with_reduction_groups(run_))
                             : nullptr) {
  if (!simulated_network_) return;
  run_.links = simulated_network_.get();
  cell_of_ = cells_of_links(run_);
  run_.cell_of = cell_of_;
}

RankModel::~RankModel() = default;

void RankModel::start(pdes::Scheduler& kernel, pdes::LoadRecorder* load) {
  load_ = load;
  parts_ = std::make_unique<Parts>(*this, kernel);
  parts_->npus.start();
  if (parts_->links) parts_->links->start();
}

void RankModel::stop(Time now) {
  parts_->is_stopped = true;
  parts_->npus.stop(now);
}

void RankModel::handle(const pdes::Event& event) {
  if (event.target < run_.first_communicator()) return parts_->npus.handle(event);
  if (event.target < run_.first_link()) return parts_->servers.handle(event);
  parts_->links->serve(event);
}

void RankModel::prefetch(const pdes::Event& event) const {
  if (event.target >= run_.first_link()) parts_->links->prefetch(event);
}

pdes::Scope RankModel::scope(const pdes::Event& event) const {
  return event.target < run_.first_link() ? pdes::Scope::anywhere : parts_->links->scope(event);
}

void RankModel::settle(Time now, pdes::Stage stage) {
  if (stage == pdes::Stage::server) {
    if (parts_->links) parts_->links->settle();
    return;
  }
  parts_->npus.settle(now);
  parts_->communicators.settle();
}

void RankModel::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  if (event.target >= run_.first_server() && event.target < run_.first_link())
    return parts_->servers.unpack(event, bytes);
  const bool is_of_link = event.source() >= run_.first_link();
  if (event.target < run_.first_communicator() && !is_of_link) return parts_->places.unpack(event, bytes);
  parts_->links->unpack(event, bytes);
}

bool RankModel::admit(pdes::Event& event) { return parts_->npus.admit(event); }

void RankModel::proceed(LpId npu) { parts_->npus.proceed(NpuId(npu.value())); }

pdes::Awaited RankModel::awaits(LpId npu) const { return parts_->npus.awaits(NpuId(npu.value())); }

void RankModel::receive(Rank from, std::span<const std::byte> message) { parts_->communicators.receive(from, message); }

pdes::LookaheadBounds RankModel::lookahead() { return parts_->npus.lookahead(); }

pdes::LookaheadBound RankModel::lookahead_of_cell(std::uint32_t cell) {
  return npu::lookahead_of_cell(parts_->npus, cell);
}

Time RankModel::pending_reply(Rank to) const { return parts_->communicators.pending_reply(to); }

std::string RankModel::status() const {
  return fmt::format("{} of {} NPUs of this rank are done", parts_->npus.num_done(), run_.npus.size());
}

const npu::Npus& RankModel::npus() const { return parts_->npus; }

const communicator::Communicators& RankModel::communicators() const { return parts_->communicators; }

const memory::MemoryServers& RankModel::memory_servers() const { return parts_->servers; }

network::NetworkRecords RankModel::network_records() const {
  if (!parts_->links) return {};
  const std::string leak = parts_->is_stopped ? std::string() : parts_->links->find_leak();
  ensure(leak.empty(), leak);
  return {parts_->links->records(), parts_->links->packet_records(), parts_->links->flit_records()};
}

network::MessageNetwork* links_of(RankModel& model) { return model.parts_->links.get(); }

std::vector<network::CreditWait> credit_waits_of(const RankModel& model) {
  if (!model.parts_->links) return {};
  return model.parts_->links->credit_waits();
}

}  // namespace orrery::model
