#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/trace/store.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::workload {
namespace {

using trace::NodeKind;

constexpr Transformer example{
    .tensor = 2, .pipeline = 3, .data = 2, .layers = 6, .micro_batches = 5, .hidden = 256, .sequence = 128};

/// Traces of a model, written and read back.
class Written {
 public:
  explicit Written(const Transformer& model) : model_(model) {
    std::string pattern = (std::filesystem::temp_directory_path() / "orrery-workload-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    write_traces(model, folder_ / "deep/workload");
    const auto groups = trace::read_group_file(folder_ / "deep/workload.json", model.num_npus());
    store_ = std::make_unique<trace::Store>(trace::ReadOptions{.num_npus = model.num_npus()}, groups);
    for (std::uint32_t npu = 0; npu < model.num_npus(); ++npu)
      traces_.push_back(store_->read(folder_ / ("deep/workload." + std::to_string(npu) + ".et"), NpuId(npu)));
  }
  ~Written() { std::filesystem::remove_all(folder_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  const trace::Store& store() const { return *store_; }
  const std::vector<trace::NpuTrace>& traces() const { return traces_; }
  const trace::NpuTrace& at(std::uint32_t tensor, std::uint32_t stage, std::uint32_t data) const {
    return traces_[tensor + model_.tensor * (stage + model_.pipeline * data)];
  }
  std::string name(const trace::NpuTrace& trace, std::uint32_t i) const {
    return std::string(store_->name_of(trace, NodeId(i)));
  }

  template <class F>
  static void for_each(const trace::NpuTrace& trace, NodeKind kind, F&& visit) {
    for (std::uint32_t i = 0; i < trace.graph->num_nodes(); ++i)
      if (trace.graph->nodes[i].kind == kind) visit(i, trace.graph->nodes[i]);
  }
  static std::size_t count(const trace::NpuTrace& trace, NodeKind kind) {
    std::size_t n = 0;
    for_each(trace, kind, [&](auto, const auto&) { ++n; });
    return n;
  }

 private:
  Transformer model_;
  std::filesystem::path folder_;
  std::unique_ptr<trace::Store> store_;
  std::vector<trace::NpuTrace> traces_;
};

// Per stage, with k = layers / pipeline and m micro-batches: 2 compute nodes per layer, pass and micro-batch and the
// optimizer; as many tensor all-reduces; one gradient all-reduce per layer; sends and receives on each side that has a
// neighbour, per micro-batch.
TEST(Transformer, NumbersOfNodes) {
  const Written written(example);
  const std::size_t k = 2, m = 5;
  for (std::uint32_t npu = 0; npu < example.num_npus(); ++npu) {
    const auto& trace = written.traces()[npu];
    const std::uint32_t stage = npu / 2 % 3;
    const std::size_t neighbours = stage == 1 ? 2 : 1;
    EXPECT_EQ(Written::count(trace, NodeKind::compute), 4 * k * m + 1);
    EXPECT_EQ(Written::count(trace, NodeKind::collective), 4 * k * m + k);
    EXPECT_EQ(Written::count(trace, NodeKind::send), neighbours * m);
    EXPECT_EQ(Written::count(trace, NodeKind::receive), neighbours * m);
  }
  EXPECT_LE(written.store().num_graphs(), 3U);
}

TEST(Transformer, WithoutParallelismNothingIsSent) {
  const Written written(
      {.tensor = 1, .pipeline = 1, .data = 1, .layers = 2, .micro_batches = 3, .hidden = 64, .sequence = 32});
  const auto& trace = written.traces().at(0);
  EXPECT_EQ(trace.graph->num_nodes(), 4U * 2 * 3 + 1);
  EXPECT_EQ(Written::count(trace, NodeKind::compute), 4U * 2 * 3 + 1);
}

TEST(Transformer, EverySendHasItsReceive) {
  const Written written(example);
  using Message = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;  // from, to, tag, bytes
  std::multiset<Message> sent, received;
  for (std::uint32_t npu = 0; npu < example.num_npus(); ++npu) {
    const auto& trace = written.traces()[npu];
    Written::for_each(trace, NodeKind::send, [&](auto, const auto& node) {
      sent.emplace(npu, trace.peers[node.slot].value(), trace.tags[node.detail], node.size);
    });
    Written::for_each(trace, NodeKind::receive, [&](auto, const auto& node) {
      received.emplace(trace.peers[node.slot].value(), npu, trace.tags[node.detail], node.size);
    });
  }
  EXPECT_EQ(sent, received);
  // Activations of each micro-batch pass each of the 2 boundaries both ways, in each of 2 x 2 pipelines, with tags of
  // their own, as bf16.
  EXPECT_EQ(sent.size(), 2U * 2 * 4 * 5);
  EXPECT_EQ(std::set<Message>(sent.begin(), sent.end()).size(), sent.size());
  for (const auto& message : sent) EXPECT_EQ(std::get<3>(message), 2U * 128 * 256);
}

TEST(Transformer, MembersOfAGroupAgree) {
  const Written written(example);
  using Call = std::tuple<trace::CollectiveKind, std::uint64_t>;
  std::map<std::uint32_t, std::map<std::uint32_t, std::vector<Call>>> calls;  // by group and NPU
  for (std::uint32_t npu = 0; npu < example.num_npus(); ++npu) {
    const auto& trace = written.traces()[npu];
    Written::for_each(trace, NodeKind::collective, [&](auto, const auto& node) {
      calls[trace.groups[node.slot].value()][npu].emplace_back(node.collective, node.size);
    });
  }
  EXPECT_EQ(calls.size(),
            3U * 2 + 2 * 3);  // tensor groups per stage and replica, data groups per tensor rank and stage
  for (const auto& [group, by_npu] : calls) {
    const auto& members = written.store().groups().at(group).members;
    ASSERT_EQ(by_npu.size(), members.size());
    for (const NpuId member : members) EXPECT_EQ(by_npu.at(member.value()), by_npu.begin()->second);
  }
}

TEST(Transformer, GroupsAreTheNpusOfOneDimension) {
  const Written written(example);
  std::map<std::string, std::vector<std::uint32_t>> members;
  for (const auto& group : written.store().groups())
    for (const NpuId npu : group.members) members[group.name].push_back(npu.value());
  EXPECT_EQ(members.at("tp_1_0"), (std::vector<std::uint32_t>{2, 3}));  // stage 1, replica 0
  EXPECT_EQ(members.at("tp_2_1"), (std::vector<std::uint32_t>{10, 11}));
  EXPECT_EQ(members.at("dp_1_2"), (std::vector<std::uint32_t>{5, 11}));  // tensor rank 1, stage 2
}

// A token costs 2 FLOPs per parameter forwards and 4 backwards, and 4 s h more in each layer for attention over s
// tokens, twice that backwards: 6 P T + 12 s h L T, for the P = 12 h^2 L parameters of the layers and T tokens.
TEST(Transformer, OperationsOfAStep) {
  const Written written(example);
  const std::uint64_t h = example.hidden, s = example.sequence, layers = example.layers;
  const std::uint64_t parameters = 12 * h * h * layers;
  const std::uint64_t tokens = std::uint64_t{example.data} * example.micro_batches * s;
  std::uint64_t ops = 0, optimizer_ops = 0;
  for (const auto& trace : written.traces())
    Written::for_each(trace, NodeKind::compute, [&](std::uint32_t i, const auto& node) {
      (written.name(trace, i) == "optimizer" ? optimizer_ops : ops) += node.detail;
    });
  EXPECT_EQ(ops, 6 * parameters * tokens + 12 * s * h * layers * tokens);
  EXPECT_EQ(optimizer_ops, 12 * parameters * example.data);  // each replica updates all
}

// Gradients of all parameters of an NPU are summed once, in bf16: 2 bytes for each of 12 h^2 / tensor in a layer.
TEST(Transformer, BytesOfTheCollectives) {
  const Written written(example);
  for (const auto& trace : written.traces())
    Written::for_each(trace, NodeKind::collective, [&](std::uint32_t i, const auto& node) {
      const bool gradient = written.name(trace, i).starts_with("gradient");
      EXPECT_EQ(node.size, gradient ? 2 * 12 * 256 * 256 / 2U : 2 * 128 * 256U);
      EXPECT_EQ(node.collective, trace::CollectiveKind::all_reduce);
      EXPECT_EQ(written.store().groups()[trace.groups[node.slot].index()].name.substr(0, 2), gradient ? "dp" : "tp");
    });
}

/// "F0 F1 B0 ...": the micro-batches in the order in which a stage computes them.
std::string schedule(const Written& written, const trace::NpuTrace& trace) {
  std::string order, last;
  Written::for_each(trace, NodeKind::compute, [&](std::uint32_t i, const auto&) {
    const auto name = written.name(trace, i);
    if (name == "optimizer") return;
    const auto batch = name.find("micro_batch_") + std::string("micro_batch_").size();
    std::string pass = name.starts_with("forward") ? "F" : "B";
    pass += name.substr(batch, name.find('.', batch) - batch);
    if (pass != last) {
      if (!order.empty()) order += ' ';
      order += pass;
    }
    last = pass;
  });
  return order;
}

// One forward, one backward: stage p of P does P - 1 - p forward passes first.
TEST(Transformer, OrderOfThePasses) {
  const Written written(example);
  EXPECT_EQ(schedule(written, written.at(0, 0, 0)), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(schedule(written, written.at(1, 1, 0)), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(schedule(written, written.at(0, 2, 1)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(Transformer, FewerMicroBatchesThanStages) {
  auto model = example;
  model.micro_batches = 1;
  const Written written(model);
  EXPECT_EQ(schedule(written, written.at(0, 0, 0)), "F0 B0");
}

TEST(Transformer, RefusesWhatCannotBeShared) {
  const auto refused = [](auto change) {
    auto model = example;
    change(model);
    try {
      model.validate();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused([](Transformer&) {}));
  EXPECT_TRUE(refused([](Transformer& m) { m.layers = 7; }));
  EXPECT_TRUE(refused([](Transformer& m) { m.hidden = 255; }));
  EXPECT_TRUE(refused([](Transformer& m) { m.tensor = 0; }));
  EXPECT_TRUE(refused([](Transformer& m) { m.micro_batches = 0; }));
}

}  // namespace
}  // namespace orrery::workload
