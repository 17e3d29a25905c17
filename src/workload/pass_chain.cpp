#include "pass_chain.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace orrery::workload {

void PassChain::extend(NodeId node) {
  after_ = {node};
  last_ = node;
  if (noted_ != nullptr) noted_->push_back(node);
  if (!first_) first_ = node;
  for (const MadeTensor& received : std::exchange(received_, {})) list_until(builder_, received, node);
}

void PassChain::extend_with_receive(NodeId node, MadeTensor tensor) {
  auto received = std::exchange(received_, {});
  extend(node);
  received_ = std::move(received);
  received_.push_back(std::move(tensor));
}

std::optional<NodeId> PassChain::add(const std::vector<Operator>& operators, const std::string& prefix) {
  begin();
  for (const Operator& op : operators) add_operator(op, prefix);
  finish_products();
  return first_;
}

bool PassChain::add_until_exchange(std::span<const Operator>& operators, const std::string& prefix) {
  for (; !operators.empty(); operators = operators.subspan(1)) {
    if (operators.front().kind == Operator::Kind::wait && std::exchange(exchanges_, false)) return true;
    add_operator(operators.front(), prefix);
  }
  finish_products();
  return false;
}

void PassChain::add_operator(const Operator& op, const std::string& prefix) {
  if (op.kind == Operator::Kind::compute) {
    add_compute(op, prefix);
  } else if (op.kind != Operator::Kind::wait) {
    finish_products();
    add_collective(op, prefix);
  } else if (!asynchronous_.empty()) {
    finish_products();
    wait_for_collectives();
  }
}

void PassChain::finish_compute_node() {
  if (merged_.sum.flops + merged_.sum.bytes > 0 || merged_.sum.duration > Time::zero())
    extend(builder_.compute(std::move(merged_.name), merged_.sum.flops, Bytes(merged_.sum.bytes), after_,
                            merged_.sum.duration));
  merged_ = {};
}

void PassChain::wait_for_collectives() { wait_for(std::exchange(asynchronous_, {})); }

void PassChain::add_compute(const Operator& op, const std::string& prefix) {
  // A node of several operators has the name of their part of the layer: "attention", not "attention.qkv".
  const bool is_fine = detail_ == Detail::op;
  if (is_fine) finish_compute_node();
  const std::string_view name(op.name);
  if (!has_product()) merged_.name = fmt::format("{}.{}", prefix, is_fine ? name : name.substr(0, name.find('.')));
  merged_.sum.flops += op.flops;
  merged_.sum.bytes += op.bytes;
  merged_.sum.duration += op.duration;
}

void PassChain::add_collective(const Operator& op, const std::string& prefix) {
  const NodeId node = builder_.collective(fmt::format("{}.{}", prefix, op.name), op.collective, Bytes(op.bytes),
                                          static_cast<std::uint32_t>(op.group), after_);
  if (op.kind != Operator::Kind::asynchronous) return extend(node);
  asynchronous_.push_back(node);
  exchanges_ = exchanges_ || op.group == GroupKind::expert;
}

void PassChain::finish_products() {
  if (has_product() || detail_ == Detail::op) finish_compute_node();
}

}  // namespace orrery::workload
