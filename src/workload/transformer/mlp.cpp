#include "transformer/layers.hpp"

namespace orrery::workload {

using trace::CollectiveKind;
using enum Operator::Kind;

void TransformerLayers::mlp(Layer& layer, std::uint64_t whole_width) {
  const std::uint64_t into = matrices_into(model_), width = whole_width / tp_;
  const Operator first = operators_.product("mlp.first", tokens_, hidden_, into * width);
  const Operator activation = Operators::elementwise("mlp.activation", (into + 1) * bytes_ * tokens_ * width);
  const Operator second = operators_.product("mlp.second", tokens_, width, hidden_);

  auto& forward = layer.forward;
  const std::size_t begin = forward.size();
  forward.push_back(own("mlp.norm", 2 * bytes_));
  gather_into(forward, "mlp.all_gather", first);
  forward.push_back(activation);
  sum_of(forward, second, "mlp.sum");
  std::vector<Operator> backward = {own("mlp.residual", 2 * bytes_ + mask_)};
  if (recomputed_.mlp) append_again(backward, forward, begin);
  forward.push_back(own("mlp.residual", 3 * bytes_ + mask_));

  if (recomputed_.norms && !recomputed_.mlp) backward.push_back(forward[begin]);
  if (recomputed_.activation && !recomputed_.mlp) backward.push_back(activation);
  gather_gradient_into(backward, "mlp.gradient.all_gather", "mlp.input.all_gather",
                       Operators::backward("mlp.second", second));
  backward.insert(backward.end(), {Operators::backward("mlp.activation", activation), Operator{.kind = wait}});
  sum_of(backward, Operators::backward("mlp.first", first), "mlp.sum");
  backward.push_back(own("mlp.norm", 4 * bytes_));
  layer.backward.insert(layer.backward.begin(), backward.begin(), backward.end());

  const std::uint64_t biases = model_.biases ? into * width + hidden_ : 0;
  layer.of_dense.norms += norm_parameters(model_);
  layer.dense += (into + 1) * hidden_ * width + biases + norm_parameters(model_);
}

}  // namespace orrery::workload
