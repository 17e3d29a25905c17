// Text workloads of ASTRA-sim 1.0, SimAI and AICB: what the reader takes from a file, and what nodes become of it.
#include "text_workload.hpp"
#include "fixture.hpp"

namespace orrery::trace {
namespace {

class TextWorkloads : public TraceTest {
 protected:
  TextWorkload workload(const std::string& text) {
    const auto path = write(text, "t.txt");
    TraceFile file(path, {.file = path.string(), .npu = {}});
    LineReader lines(file);
    return read_text_workload(lines, notices_);
  }
  std::string refusal_of_text(const std::string& text) {
    return refusal_of([&] { (void)workload(text); });
  }

  Notices notices_;
};

// A workload of two layers with all parameters: each number and collective is where the file has it.
TEST_F(TextWorkloads, ParametersAndLayersAreTaken) {
  const TextWorkload read = workload(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 4 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 1 "
      "0 "
      "checkpoint_initiates: 1 1 pp_comm: 77\n2\n"
      "one\t-1\t10\tALLGATHER\t20\t30\tNONE\t0\t40\tALLTOALL_EP\t50\t60\r\n"
      "two -1 1 ALLREDUCE_DP_EP 2 3 REDUCESCATTER 4 5 BROADCAST 6 7\n");
  EXPECT_EQ(read.loop, TrainingLoop::hybrid_transformer_fwd_in_bckwd);
  EXPECT_EQ(read.model_parallel, 2U);
  EXPECT_EQ(read.expert_parallel, 4U);
  EXPECT_EQ(read.all_gpus, 8U);
  EXPECT_EQ(read.pipeline_bytes, 77U);
  EXPECT_EQ(read.checkpoints, std::set<std::uint64_t>{0});
  EXPECT_EQ(read.initiates, std::set<std::uint64_t>{1});
  ASSERT_EQ(read.layers.size(), 2U);
  const TextLayer &one = read.layers[0], &two = read.layers[1];
  EXPECT_EQ(one.name, "one");
  EXPECT_EQ(one[Pass::forward].kind, CollectiveKind::all_gather);
  EXPECT_EQ(one[Pass::forward].compute_ns, 10U);
  EXPECT_EQ(one[Pass::forward].bytes, 20U);
  EXPECT_FALSE(one[Pass::input_gradient].kind.has_value());
  EXPECT_EQ(one[Pass::weight_gradient].group, TextGroup::expert);
  EXPECT_EQ(one.update_ns, 60U);
  EXPECT_EQ(two.line, 4U);
  EXPECT_EQ(two[Pass::forward].group, TextGroup::data_of_expert);
  EXPECT_EQ(two[Pass::weight_gradient].kind, CollectiveKind::broadcast);
}

// HYBRID_CUSTOMIZED has a loop for each layer in column 13; in other files each layer has the loop of the file.
TEST_F(TextWorkloads, EachLayerHasALoop) {
  const std::string row = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1";
  const TextWorkload own = workload("HYBRID_CUSTOMIZED\n2\n" + row + " DATA\n" + row + " MODEL\n");
  EXPECT_EQ(own.layers[0].loop, TrainingLoop::data);
  EXPECT_EQ(own.layers[1].loop, TrainingLoop::model);
  EXPECT_EQ(workload("MICRO\n1\n" + row + "\n").layers[0].loop, TrainingLoop::micro);
}

// COMET's version has operations and bytes before the time of each pass, or a matrix product after it. The product of
// 3 x 5 and 5 x 7 has 210 FLOPs and moves 2 (15 + 35 + 21) bytes.
TEST_F(TextWorkloads, OperationsAndProductsOfCometAreTaken) {
  const TextWorkload operations = workload(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\n"
      "a -1 1e3 64 10 ALLGATHER 8 2000.5 65 11 NONE 0 3000 66 12 ALLREDUCE 9 4\n");
  EXPECT_EQ(operations.layout, TextLayout::operations);
  const TextLayer& layer = operations.layers.front();
  EXPECT_EQ(layer[Pass::forward].flops, 1000U);
  EXPECT_EQ(layer[Pass::forward].moved_bytes, 64U);
  EXPECT_EQ(layer[Pass::forward].compute_ns, 10U);
  EXPECT_EQ(layer[Pass::forward].kind, CollectiveKind::all_gather);
  EXPECT_EQ(layer[Pass::input_gradient].flops, 2000U);
  EXPECT_EQ(layer[Pass::weight_gradient].compute_ns, 12U);
  EXPECT_EQ(layer[Pass::weight_gradient].bytes, 9U);
  EXPECT_EQ(layer.update_ns, 4U);
  const TextWorkload products =
      workload("MODEL\n1\na -1 10 0 3 5 7 ALLREDUCE 8 11 0 3 5 7 NONE 0 12 0 1 1 1 NONE 0 4\n");
  EXPECT_EQ(products.layout, TextLayout::products);
  EXPECT_EQ(products.layers.front()[Pass::forward].flops, 210U);
  EXPECT_EQ(products.layers.front()[Pass::forward].moved_bytes, 142U);
  EXPECT_EQ(products.layers.front()[Pass::forward].compute_ns, 10U);
  EXPECT_EQ(products.layers.front()[Pass::input_gradient].compute_ns, 11U);
}

// Texts with one mistake each: the message has the line, what was found and what was expected.
TEST_F(TextWorkloads, MistakesAreRefusedWithTheirLine) {
  const std::string row = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
  EXPECT_HAS(refusal_of_text("MODEL ep: 0\n1\n" + row), "t.txt:1: ep is 0");
  EXPECT_HAS(refusal_of_text("MODEL ep:\n1\n" + row), "ep without its value");
  EXPECT_HAS(refusal_of_text("MODEL\nx\n" + row), "t.txt:2: the number of layers is 'x'");
  EXPECT_HAS(refusal_of_text("MODEL\n1\na -1\n"), "t.txt:3: a layer of 2 columns");
  EXPECT_HAS(refusal_of_text("MODEL\n2\n" + row + "a -1 1 1 1 NONE 0 1 1 1 NONE 0 1 1 1 NONE 0 1\n"),
             "t.txt:4: a layer of 18 columns");
  EXPECT_HAS(refusal_of_text("MODEL\n1\na -1 x 1 1 NONE 0 1 1 1 NONE 0 1 1 1 NONE 0 1\n"),
             "the number of operations (column 3) is 'x'");
  EXPECT_HAS(refusal_of_text("MODEL\n1\n"), "the file has no layer");
  EXPECT_HAS(refusal_of_text("MODEL\n1\na -1 1 SUM 0 1 NONE 0 1 NONE 0 1\n"), "a collective 'SUM'");
}

// HYBRID_DATA_MODEL with one layer on 8 NPUs: the forward pass names dimension 0, and the weight gradient all but
// dimension 0. The layer is the first one, so that its input gradient does not travel.
TEST_F(TextWorkloads, HybridLoopsNameDimensions) {
  store_ = Store({.num_npus = 8, .num_dimensions = 3}, {});
  const NpuTrace trace =
      store_.read(write("HYBRID_DATA_MODEL\n1\na -1 1 ALLREDUCE 8 1 ALLREDUCE 8 1 ALLREDUCE 8 0\n", "t.txt"), NpuId(0));
  std::vector<std::uint64_t> dimensions;
  for (const Node& node : trace.graph->nodes)
    if (node.kind == NodeKind::collective) dimensions.push_back(node.detail);
  EXPECT_EQ(dimensions, (std::vector<std::uint64_t>{1, 6}));
}

}  // namespace
}  // namespace orrery::trace
