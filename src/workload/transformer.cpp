#include "orrery/workload/transformer.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/trace/writer.hpp"

namespace orrery::workload {
namespace {

constexpr std::uint64_t bytes_per_value = 2;             // bf16
constexpr std::uint64_t optimizer_bytes_per_value = 16;  // fp32 master weight, two moments, gradient
constexpr std::uint64_t optimizer_ops_per_value = 12;

/// The place of an NPU in the three kinds of parallelism, and its groups.
struct Place {
  std::uint32_t tensor = 0, stage = 0, data = 0;
};

NpuId npu_at(const Transformer& model, const Place& place) {
  return NpuId(place.tensor + model.tensor * (place.stage + model.pipeline * place.data));
}

std::string tensor_group(const Place& place) { return fmt::format("tp_{}_{}", place.stage, place.data); }
std::string data_group(const Place& place) { return fmt::format("dp_{}_{}", place.tensor, place.stage); }

/// One micro-batch's passage through one stage.
struct Pass {
  bool forward = true;
  std::uint32_t micro_batch = 0;
};

/// The order of one stage's work under 1F1B (Narayanan et al., SC 2021): as many forward passes as there are stages
/// after it, then one of each in turn, then the backward passes that are left.
std::vector<Pass> one_forward_one_backward(const Transformer& model, std::uint32_t stage) {
  const std::uint32_t warm_up = std::min(model.pipeline - stage - 1, model.micro_batches);
  std::vector<Pass> order;
  for (std::uint32_t m = 0; m < warm_up; ++m) order.push_back({true, m});
  for (std::uint32_t m = 0; m < model.micro_batches; ++m) {
    if (warm_up + m < model.micro_batches) order.push_back({true, warm_up + m});
    order.push_back({false, m});
  }
  return order;
}

/// Writes the trace of one NPU. Nodes that compute form one chain in the order of the schedule.
class Author {
 public:
  Author(const Transformer& model, const Place& place, const std::filesystem::path& path)
      : model_(model), place_(place), writer_(path) {}

  void write() {
    last_gradient_.resize(model_.layers / model_.pipeline);
    for (const Pass& pass : one_forward_one_backward(model_, place_.stage)) {
      receive(pass);
      const auto layers = model_.layers / model_.pipeline;
      for (std::uint32_t k = 0; k < layers; ++k) layer(pass, pass.forward ? k : layers - 1 - k);
      send(pass);
    }
    update();
    writer_.close();
  }

 private:
  std::uint64_t activation_bytes() const { return model_.sequence * model_.hidden * bytes_per_value; }
  std::uint64_t parameters_per_layer() const { return 12 * model_.hidden * model_.hidden / model_.tensor; }

  trace::Writer::Common node(const std::string& name, std::vector<std::uint64_t> deps) {
    deps_ = std::move(deps);
    name_ = name;
    return {next_++, name_, deps_};
  }
  std::vector<std::uint64_t> after_chain() const {
    return chain_ ? std::vector<std::uint64_t>{*chain_} : std::vector<std::uint64_t>{};
  }

  /// A compute node at the end of the chain.
  void compute(const std::string& name, std::uint64_t num_ops, std::uint64_t bytes) {
    const auto common = node(name, after_chain());
    writer_.compute(common, num_ops, Bytes(bytes));
    chain_ = common.id;
  }
  void tensor_all_reduce(const std::string& name) {
    if (model_.tensor == 1) return;
    const auto common = node(name, after_chain());
    writer_.collective(common, trace::CollectiveKind::all_reduce, Bytes(activation_bytes()), tensor_group(place_));
    chain_ = common.id;
  }

  /// FLOPs per token and layer: attention 8 h^2 + 4 s h, MLP 16 h^2 (Narayanan et al.); backward twice that.
  void layer(const Pass& pass, std::uint32_t layer) {
    const auto h = model_.hidden, s = model_.sequence;
    const std::uint64_t times = pass.forward ? 1 : 2;
    const auto label = fmt::format("{}.micro_batch_{}.layer_{}", pass.forward ? "forward" : "backward",
                                   pass.micro_batch, place_.stage * (model_.layers / model_.pipeline) + layer);
    const auto attention = [&] {
      compute(label + ".attention", times * s * (8 * h * h + 4 * s * h) / model_.tensor,
              times * (4 * h * h * bytes_per_value / model_.tensor + 2 * activation_bytes()));
      tensor_all_reduce(label + ".attention.all_reduce");
    };
    const auto mlp = [&] {
      compute(label + ".mlp", times * s * 16 * h * h / model_.tensor,
              times * (8 * h * h * bytes_per_value / model_.tensor + 2 * activation_bytes()));
      tensor_all_reduce(label + ".mlp.all_reduce");
    };
    if (pass.forward) {
      attention();
      mlp();
      return;
    }
    mlp();
    attention();
    if (pass.micro_batch + 1 == model_.micro_batches) last_gradient_[layer] = *chain_;
  }

  /// Of activations from the stage before, or of their gradients from the stage after.
  void receive(const Pass& pass) {
    const bool first = pass.forward ? place_.stage == 0 : place_.stage + 1 == model_.pipeline;
    if (first) return;
    Place from = place_;
    from.stage = pass.forward ? place_.stage - 1 : place_.stage + 1;
    const auto common =
        node(fmt::format("receive.{}.micro_batch_{}", pass.forward ? "forward" : "backward", pass.micro_batch),
             after_chain());
    writer_.receive(common, npu_at(model_, from), npu_at(model_, place_), tag(pass), Bytes(activation_bytes()));
    chain_ = common.id;
  }
  void send(const Pass& pass) {
    const bool last = pass.forward ? place_.stage + 1 == model_.pipeline : place_.stage == 0;
    if (last) return;
    Place to = place_;
    to.stage = pass.forward ? place_.stage + 1 : place_.stage - 1;
    const auto common = node(
        fmt::format("send.{}.micro_batch_{}", pass.forward ? "forward" : "backward", pass.micro_batch), after_chain());
    writer_.send(common, npu_at(model_, place_), npu_at(model_, to), tag(pass), Bytes(activation_bytes()));
  }
  std::uint32_t tag(const Pass& pass) const { return 2 * pass.micro_batch + (pass.forward ? 0 : 1); }

  /// Gradients are summed over the replicas as soon as the last micro-batch has them; then the optimizer runs.
  void update() {
    std::vector<std::uint64_t> ready = after_chain();
    const auto bytes = parameters_per_layer() * bytes_per_value;
    for (std::uint32_t k = model_.data == 1 ? 0 : static_cast<std::uint32_t>(last_gradient_.size()); k-- > 0;) {
      const auto common = node(fmt::format("gradient.layer_{}.all_reduce", k), {last_gradient_[k]});
      writer_.collective(common, trace::CollectiveKind::all_reduce, Bytes(bytes), data_group(place_));
      ready.push_back(common.id);
    }
    const auto parameters = parameters_per_layer() * last_gradient_.size();
    writer_.compute(node("optimizer", std::move(ready)), optimizer_ops_per_value * parameters,
                    Bytes(optimizer_bytes_per_value * parameters));
  }

  const Transformer& model_;
  Place place_;
  trace::Writer writer_;
  std::uint64_t next_ = 0;
  std::optional<std::uint64_t> chain_;        // the last node that computes, or that computing waits for
  std::vector<std::uint64_t> last_gradient_;  // [layers of this stage] node after which a layer's gradient is complete
  std::vector<std::uint64_t> deps_;
  std::string name_;
};

template <class F>
void for_each_place(const Transformer& model, F&& visit) {
  for (std::uint32_t data = 0; data < model.data; ++data)
    for (std::uint32_t stage = 0; stage < model.pipeline; ++stage)
      for (std::uint32_t tensor = 0; tensor < model.tensor; ++tensor) visit(Place{tensor, stage, data});
}

std::string groups_of(const Transformer& model) {
  nlohmann::ordered_json groups;
  for_each_place(model, [&](const Place& place) {
    const auto npu = npu_at(model, place).value();
    if (model.tensor > 1) groups[tensor_group(place)].push_back(npu);
    if (model.data > 1) groups[data_group(place)].push_back(npu);
  });
  return (groups.is_null() ? nlohmann::ordered_json::object() : groups).dump(1) + '\n';
}

}  // namespace

void Transformer::validate() const {
  const auto positive = [](const char* option, std::uint64_t value) {
    if (value == 0) throw Error(ErrorCode::usage, {.key = option}, "found 0", "1 or more");
  };
  positive("--tp", tensor);
  positive("--pp", pipeline);
  positive("--dp", data);
  positive("--layers", layers);
  positive("--micro-batches", micro_batches);
  positive("--hidden", hidden);
  positive("--sequence", sequence);
  if (layers % pipeline != 0)
    throw Error(ErrorCode::usage, {.key = "--layers"}, fmt::format("found {} layers for {} stages", layers, pipeline),
                "as many layers on each stage");
  if (hidden % tensor != 0)
    throw Error(ErrorCode::usage, {.key = "--hidden"},
                fmt::format("found {} for {} tensor-parallel NPUs", hidden, tensor), "a multiple");
}

void write_traces(const Transformer& model, const std::filesystem::path& prefix, bool force) {
  model.validate();
  std::error_code failure;
  if (prefix.has_parent_path()) std::filesystem::create_directories(prefix.parent_path(), failure);
  if (failure) throw Error(ErrorCode::output, {.file = prefix.parent_path().string()}, failure.message());
  std::vector<std::filesystem::path> paths{std::filesystem::path(prefix).concat(".json")};
  for (std::uint32_t npu = 0; npu < model.num_npus(); ++npu)
    paths.push_back(std::filesystem::path(prefix).concat(fmt::format(".{}.et", npu)));
  check_outputs(paths, force);
  std::vector<PartialFile> files(paths.begin(), paths.end());
  files[0].write(groups_of(model));
  for_each_place(model, [&](const Place& place) {
    Author(model, place, files[1 + npu_at(model, place).index()].partial()).write();
  });
  for (auto& file : files) file.commit();
}

}  // namespace orrery::workload
