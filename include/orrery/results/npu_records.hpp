#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::results {

/// The records of all NPUs of a run. The NPUs of one class of a folded run have equal records, and share one here. So
/// sums and extremes over all NPUs cost O(classes).
class NpuRecords {
 public:
  NpuRecords() = default;
  /// Takes one record for each NPU, in order.
  NpuRecords(std::vector<npu::NpuRecord> records)  // NOLINT(google-explicit-constructor): it is just a list of them
      : records_(std::move(records)) {}
  /// Takes the records of the representatives of classes, in order of classes. `class_of`: [npus], it outlives this.
  /// The representative of a class is its lowest NPU. O(npus).
  NpuRecords(std::vector<npu::NpuRecord> records, std::span<const std::uint32_t> class_of)
      : records_(std::move(records)), class_of_(class_of), counts_(records_.size()), last_(records_.size()) {
    for (std::size_t npu = 0; npu < class_of_.size(); ++npu) {
      const std::uint32_t its = class_of_[npu];
      ensure(its < records_.size(), "every class has a record");
      if (counts_[its]++ == 0) ensure(records_[its].npu.index() == npu, "a record is of the first NPU of its class");
      last_[its] = NpuId(static_cast<std::uint32_t>(npu));
    }
  }

  /// Returns the number of NPUs.
  std::size_t size() const { return class_of_.empty() ? records_.size() : class_of_.size(); }
  bool empty() const { return size() == 0; }
  /// Returns the record of an NPU; `npu` in it is the first NPU that shares it.
  const npu::NpuRecord& operator[](std::size_t npu) const { return records_[number_of(npu)]; }

  /// Returns the records that NPUs share, each once, by the first NPU that has it.
  std::span<const npu::NpuRecord> distinct() const { return records_; }
  /// Returns which of `distinct` an NPU has.
  std::size_t number_of(std::size_t npu) const { return class_of_.empty() ? npu : class_of_[npu]; }
  /// Returns how many NPUs have a record of `distinct`.
  std::uint64_t count(std::size_t number) const { return class_of_.empty() ? 1 : counts_[number]; }
  /// Returns the last NPU that has a record of `distinct`.
  NpuId last(std::size_t number) const { return class_of_.empty() ? records_[number].npu : last_[number]; }

  /// Calls visit(record, count) for each of `distinct`.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < records_.size(); ++i) visit(records_[i], count(i));
  }
  /// Returns the record with the least of what `figure` says of records, and the first NPU that has it.
  template <class Figure>
  std::pair<const npu::NpuRecord&, NpuId> least(Figure figure) const {
    const auto& found = *std::ranges::min_element(records_, {}, figure);
    return {found, found.npu};
  }
  /// Returns the record with the most, and the last NPU that has it.
  template <class Figure>
  std::pair<const npu::NpuRecord&, NpuId> most(Figure figure) const {
    std::size_t found = 0;
    for (std::size_t i = 1; i < records_.size(); ++i) {
      const auto own = std::invoke(figure, records_[i]), best = std::invoke(figure, records_[found]);
      if (best < own || (!(own < best) && last(found) < last(i))) found = i;
    }
    return {records_[found], last(found)};
  }
  /// Returns one value of each NPU from `first` on, `number` of them, where `value` makes it of a record.
  template <class T, class Value>
  std::vector<T> column(std::size_t first, std::size_t number, Value value) const {
    std::vector<T> result(number);
    if (class_of_.empty()) {
      std::transform(records_.begin() + static_cast<std::ptrdiff_t>(first),
                     records_.begin() + static_cast<std::ptrdiff_t>(first + number), result.begin(), value);
      return result;
    }
    std::vector<T> of_class(records_.size());
    std::ranges::transform(records_, of_class.begin(), value);
    for (std::size_t i = 0; i < number; ++i) result[i] = of_class[class_of_[first + i]];
    return result;
  }

 private:
  std::vector<npu::NpuRecord> records_;
  std::span<const std::uint32_t> class_of_;  // empty: each NPU has a record of its own
  std::vector<std::uint64_t> counts_;        // [classes]
  std::vector<NpuId> last_;                  // [classes]
};

}  // namespace orrery::results
