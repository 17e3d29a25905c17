#include "kineto_launches.hpp"

#include <algorithm>
#include <unordered_set>

#include "kineto_communication.hpp"

namespace orrery::trace {
namespace {

/// Returns the operators that say how many bytes they move, without those that lie within another one of them: each of
/// them launches a kernel.
std::vector<std::uint32_t> launching_operators(const Recording& recording) {
  std::vector<std::uint32_t> launching;
  std::unordered_map<std::uint32_t, std::int64_t> end_of_thread;
  for (std::uint32_t i = 0; i < recording.operators.size(); ++i) {
    const CommunicationOperator& op = recording.operators[i];
    const CommunicationRecord& record = recording.records[op.record];
    if (record.in_bytes.value_or(0) == 0 && record.out_bytes.value_or(0) == 0) continue;
    auto& end = end_of_thread.try_emplace(op.thread, op.start).first->second;
    if (op.start < end) continue;
    end = op.end;
    launching.push_back(i);
  }
  return launching;
}

/// Says whether an operator may have launched a kernel: unless both tell different collectives.
bool may_launch(const CommunicationRecord& record, const GpuOperation& kernel) {
  const auto of_operator = collective_named(record.name), of_kernel = collective_named(kernel.name);
  return !of_operator || !of_kernel || *of_operator == *of_kernel;
}

/// Takes away the operators in which recorded calls launched kernels of communication.
void remove_used(const Recording& recording, std::vector<std::uint32_t>& operators) {
  std::unordered_set<std::uint64_t> of_kernels;
  for (const GpuOperation& operation : recording.operations)
    if (operation.communicates && operation.launch != GpuOperation::none) of_kernels.insert(operation.launch);
  std::unordered_map<std::uint32_t, std::vector<std::int64_t>> launches;  // by thread, ascending
  for (std::uint32_t i = 0; i < recording.calls.size(); ++i)
    if (of_kernels.contains(i)) launches[recording.calls[i].thread].push_back(recording.calls[i].start);
  std::erase_if(operators, [&](std::uint32_t i) {
    const CommunicationOperator& op = recording.operators[i];
    const auto found = launches.find(op.thread);
    if (found == launches.end()) return false;
    const auto first = std::ranges::lower_bound(found->second, op.start);
    return first != found->second.end() && *first <= op.end;
  });
}

void find_by_correlation(Recording& recording) {
  std::ranges::stable_sort(recording.calls, {}, &HostCall::start);
  std::unordered_map<std::uint64_t, std::uint32_t> by_correlation;
  for (std::uint32_t i = 0; i < recording.calls.size(); ++i)
    if (recording.calls[i].correlation != 0) by_correlation.try_emplace(recording.calls[i].correlation, i);
  for (GpuOperation& operation : recording.operations) {
    const auto found = by_correlation.find(operation.correlation);
    operation.launch = found == by_correlation.end() ? GpuOperation::none : found->second;
  }
}

/// Makes up the calls of kernels of communication from operators. Returns whether there are any.
bool make_up_calls(Recording& recording) {
  const auto is_lost = [](const GpuOperation& operation) {
    return operation.communicates && operation.launch == GpuOperation::none;
  };
  if (std::ranges::none_of(recording.operations, is_lost)) return false;
  auto operators = launching_operators(recording);
  remove_used(recording, operators);
  std::uint64_t correlation = 0;
  for (const HostCall& call : recording.calls) correlation = std::max(correlation, call.correlation);
  for (const GpuOperation& operation : recording.operations) correlation = std::max(correlation, operation.correlation);
  const std::size_t num_recorded = recording.calls.size();
  for (GpuOperation& operation : recording.operations) {
    if (!is_lost(operation)) continue;
    const auto found = std::ranges::find_if(operators, [&](std::uint32_t i) {
      const CommunicationOperator& op = recording.operators[i];
      return op.start > operation.start || may_launch(recording.records[op.record], operation);
    });
    if (found == operators.end() || recording.operators[*found].start > operation.start) continue;
    const CommunicationOperator& op = recording.operators[*found];
    operators.erase(found);
    operation.correlation = ++correlation;
    const std::int64_t at = std::min(op.end, operation.start);
    recording.calls.push_back({at, at, operation.position, correlation, op.thread, CallKind::other});
  }
  return recording.calls.size() > num_recorded;
}

}  // namespace

void find_launches(Recording& recording) {
  std::ranges::stable_sort(recording.operations, {}, &GpuOperation::start);
  std::ranges::stable_sort(recording.operators, {}, &CommunicationOperator::start);
  std::ranges::stable_sort(recording.library_operators, {}, &CommunicationOperator::start);
  std::ranges::stable_sort(recording.steps, {}, &RecordedStep::start);
  find_by_correlation(recording);
  if (make_up_calls(recording)) find_by_correlation(recording);
}

}  // namespace orrery::trace
