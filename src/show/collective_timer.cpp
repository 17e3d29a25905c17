#include "collective_timer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/check/overrun.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/collective/whole_durations.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/gpu/options.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::show {
namespace {

trace::CollectiveKind trace_kind(collective::Kind kind) {
  using enum trace::CollectiveKind;
  constexpr std::array all = {all_reduce, reduce,         all_gather, gather,          scatter,       broadcast,
                              all_to_all, reduce_scatter, barrier,    expert_dispatch, expert_combine};
  return *std::ranges::find(all, kind, collective::kind_of);
}

/// Returns the trace of an NPU that does one collective.
trace::NpuTrace trace_of(collective::Kind kind, Bytes bytes, GroupId group, trace::Store& store) {
  trace::Builder builder;
  builder.collective("collective", trace_kind(kind), std::max(bytes, Bytes(1)), 0, {});
  trace::NpuTrace trace = store.keep(builder.finish(), "orrery show collective");
  trace.groups = {group};
  return trace;
}

}  // namespace

CollectiveTimer::CollectiveTimer(const config::Configuration& configuration, std::vector<NpuId> members,
                                 collective::Kind kind, std::uint32_t at_once)
    : configuration_(configuration), system_(configuration), members_(std::move(members)), kind_(kind) {
  const std::uint32_t num_npus = system_.topology().num_npus();
  const std::size_t num_sets = configuration.collectives.sharing.set_of.empty()
                                   ? 1
                                   : std::ranges::max(configuration.collectives.sharing.set_of) + std::size_t{1};
  if (at_once > 1 && !configuration.execution.network.model->simulates_links())
    system_.engine.share_among({num_sets, std::vector(system_.topology().num_dimensions(), at_once)});
  num_members_ = members_.empty() ? num_npus : static_cast<std::uint32_t>(members_.size());
  layout_ = system_.engine.layout(members_, trace::all_dimensions);
  system_.engine.validate(*layout_, kind_);
}

collective::CollectiveFigures CollectiveTimer::figures(Bytes bytes) const {
  collective::CollectiveFigures figures = system_.engine.figures(*layout_, kind_, bytes);
  const auto& gpu = configuration_.execution.gpu;  // whose thread blocks carry out plans over the links
  if (!gpu || figures.phases.empty()) return figures;
  const Bytes whole = collective::whole_buffer(kind_, num_members_, bytes);
  const auto plan = gpu::plan_durations(*gpu)->carrier(kind_, num_members_, whole);
  if (!plan) return figures;
  collective::PhaseFigures phase;
  phase.size = num_members_;
  phase.algorithm = *plan;
  phase.kind = kind_;
  phase.bytes = bytes;
  for (const auto& replaced : figures.phases)
    for (const std::uint32_t dimension : replaced.dimensions)
      if (std::ranges::find(phase.dimensions, dimension) == phase.dimensions.end())
        phase.dimensions.push_back(dimension);
  return {1, {phase}};
}

CollectiveTimer::Done CollectiveTimer::done(Bytes bytes) {
  if (!system_.engine.fits(*layout_, kind_, bytes))
    throw Error(ErrorCode::usage, {.key = "--bytes"},
                fmt::format("found {}, for which the collective does not fit the range of time (106 days) or of bytes",
                            bytes.count()),
                "fewer bytes");
  if (configuration_.execution.network.model->simulates_links()) return simulated(bytes);
  const std::vector<Time> arrivals(num_members_);
  std::vector<Time> completions(num_members_);
  system_.engine.finish(*layout_, kind_, bytes, arrivals, completions);
  const auto [first, last] = std::ranges::minmax(completions);
  return {first, last};
}

CollectiveTimer::Done CollectiveTimer::simulated(Bytes bytes) {
  npu::Options options = configuration_.execution;
  options.replay_only = false;
  options.iterations = 1;
  const auto world = parallel::make_serial();
  const auto& topology = system_.topology();
  const std::vector<Rank> host_of_npu(topology.num_npus(), Rank(0)),
      host_of_server(system_.memory.num_servers(), Rank(0));

  trace::Store store({.num_npus = topology.num_npus()}, {});
  const trace::NpuTrace of_member = trace_of(kind_, bytes, store.keep_group("members", members_), store);
  const trace::NpuTrace of_other = store.keep(trace::Builder().finish(), "orrery show collective");
  const auto dimensions = communicator::dimensions_in_use(topology, system_.engine);
  const npu::Program program_of_member = npu::make_program(of_member.graph, options, dimensions);
  const npu::Program program_of_other = npu::make_program(of_other.graph, options, dimensions);
  std::vector<npu::NpuSpec> npus;  // all: the links of those that are no members carry messages too
  std::vector<communicator::CommunicatorRequest> requests;
  for (std::uint32_t i = 0; i < topology.num_npus(); ++i) {
    const NpuId npu(i);
    const bool is_member = members_.empty() || std::ranges::binary_search(members_, npu);
    npus.push_back(
        {npu, is_member ? &of_member : &of_other, is_member ? &program_of_member : &program_of_other, {}, nullptr});
    requests.push_back({npu, npus.back().trace->groups, npus.back().program->uses});
  }
  auto numbered = communicator::number_communicators(requests, store.groups(), topology, system_.engine, *world);
  const communicator::CommunicatorTable communicators(std::move(numbered.all), configuration_.collectives, host_of_npu);
  for (std::size_t i = 0; i < npus.size(); ++i) npus[i].groups = std::move(numbered.of_request[i]);

  model::RankModel model({options,
                          system_.delays,
                          system_.memory,
                          system_.engine,
                          communicators.specs(),
                          npus,
                          {Rank(0), host_of_npu, host_of_server},
                          [&](NpuId npu, std::uint64_t) { return store.place(of_member, npu, NodeId(0)); }});
  pdes::Kernel kernel(*world, model, model.kernel_options(*world));
  model.start(kernel);
  kernel.run();
  check::require_no_overrun(model, store, *world);
  Done done{Time::max(), Time::zero()};
  for (const npu::NpuRecord& record : model.npus().records()) {
    if (record.nodes_completed == 0) continue;
    done.first = std::min(done.first, record.finish);
    done.last = std::max(done.last, record.finish);
  }
  return done;
}

}  // namespace orrery::show
