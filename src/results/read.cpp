#include "orrery/results/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "format.hpp"
#include "hdf5_file.hpp"
#include "orrery/base/error.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"

namespace orrery::results {
namespace {

/// HDF5 prints nothing while this lives.
class Silence {
 public:
  Silence() {
    start_library();
    H5Eget_auto2(H5E_DEFAULT, &report_, &report_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, report_, report_data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t report_ = nullptr;
  void* report_data_ = nullptr;
};

/// One file of results that is only read.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) : path_(path) {
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) fail("no such file");
    file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (file_.id() < 0) fail("is no HDF5 file that can be read");
  }

  [[noreturn]] void fail(std::string_view found) const {
    throw Error(ErrorCode::bad_input, {.file = path_.string()}, found, "results of a run",
                "Give the HDF5 file of --output.");
  }

  void require_format() const {
    if (text("format") != format::name) fail("was not written by Orrery");
  }

  /// An attribute of the root that is one number.
  template <class T>
  T number(const char* name) const {
    const Handle attribute(H5Aopen(file_.id(), name, H5P_DEFAULT), H5Aclose);
    T value{};
    if (attribute.id() < 0 || size_of(Handle(H5Aget_space(attribute.id()), H5Sclose)) != 1 ||
        H5Aread(attribute.id(), memory_type<T>(), &value) < 0)
      fail(fmt::format("the attribute {} is missing", name));
    return value;
  }

  /// An attribute of the root that is one text of variable length.
  std::string text(const char* name) const {
    const Handle attribute(H5Aopen(file_.id(), name, H5P_DEFAULT), H5Aclose);
    const Handle type(attribute.id() < 0 ? H5I_INVALID_HID : H5Aget_type(attribute.id()), H5Tclose);
    char* characters = nullptr;
    if (type.id() < 0 || H5Tis_variable_str(type.id()) <= 0 ||
        size_of(Handle(H5Aget_space(attribute.id()), H5Sclose)) != 1 ||
        H5Aread(attribute.id(), type.id(), static_cast<void*>(&characters)) < 0)
      fail(fmt::format("the attribute {} is missing", name));
    std::string value(characters == nullptr ? "" : characters);
    H5free_memory(characters);
    return value;
  }

  void require_version() const {
    require_format();
    if (const auto version = number<std::int64_t>("format_version"); version != format::version)
      fail(fmt::format("has version {} of the format, where {} is known", version, format::version));
  }

  bool has(const char* path) const { return H5Lexists(file_.id(), path, H5P_DEFAULT) > 0; }

  /// All rows of a dataset of texts.
  std::vector<std::string> texts(const std::string& path) const {
    const Handle dataset = open(path);
    const Handle type(H5Dget_type(dataset.id()), H5Tclose);
    const Handle space(H5Dget_space(dataset.id()), H5Sclose);
    std::vector<char*> pointers(num_rows(dataset));
    if (H5Tis_variable_str(type.id()) <= 0 ||
        H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0)
      fail(fmt::format("{} cannot be read", path));
    std::vector<std::string> values;
    for (const char* characters : pointers) values.emplace_back(characters == nullptr ? "" : characters);
    if (!pointers.empty()) H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, pointers.data());
    return values;
  }

  Handle open(const std::string& path) const {
    Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset.id() < 0) fail(fmt::format("{} is missing", path));
    return dataset;
  }
  static std::uint64_t num_rows(const Handle& dataset) {
    return static_cast<std::uint64_t>(std::max<hssize_t>(size_of(Handle(H5Dget_space(dataset.id()), H5Sclose)), 0));
  }

  template <class T>
  std::vector<T> column(const std::string& path) const {
    const Handle dataset = open(path);
    std::vector<T> values(num_rows(dataset));
    if (H5Dread(dataset.id(), memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail(fmt::format("{} cannot be read", path));
    return values;
  }

 private:
  static hssize_t size_of(const Handle& space) {
    return space.id() < 0 ? -1 : H5Sget_simple_extent_npoints(space.id());
  }

  std::filesystem::path path_;
  Silence silence_;  // before the file, which is closed in silence
  Handle file_;
};

}  // namespace

KernelTable read_kernel(const std::filesystem::path& path) {
  const Source source(path);
  source.require_version();
  KernelTable table{source.text("status"), source.number<double>("wall_time"), {}};
  const auto num_ranks = source.number<std::int64_t>("num_ranks");
  if (num_ranks < 1) source.fail(fmt::format("is of {} ranks", num_ranks));
  const auto fill = [&]<class T>(const std::string& column, T KernelRecord::*member) {
    const auto values = source.column<T>(column);
    if (values.size() != static_cast<std::size_t>(num_ranks))
      source.fail(fmt::format("{} has {} rows for {} ranks", column, values.size(), num_ranks));
    table.ranks.resize(values.size());
    for (std::size_t rank = 0; rank < values.size(); ++rank) table.ranks[rank].*member = values[rank];
  };
  for (const auto& quantity : format::kernel_quantities) {
    const std::string column = fmt::format("/kernel/{}", quantity.name);
    if (quantity.count != nullptr)
      fill(column, quantity.count);
    else
      fill(column, quantity.seconds);
  }
  return table;
}

/// The rows of a table that belong to one NPU after the other. Datasets stay open, so that HDF5 unpacks each chunk once
/// where NPUs are read in their order.
class NpuTable {
 public:
  template <class Columns>
  NpuTable(const Source& source, std::string group, const Columns& columns)
      : source_(source), group_(std::move(group)), offsets_(source.column<std::uint64_t>(group_ + "/offsets")) {
    for (const auto& column : columns) {
      datasets_.emplace(column.name, source.open(fmt::format("{}/{}", group_, column.name)));
      if (offsets_.empty() || Source::num_rows(datasets_.at(column.name)) != offsets_.back())
        source.fail(fmt::format("{} is not whole", group_));
    }
    if (offsets_.front() != 0 || !std::ranges::is_sorted(offsets_))
      source.fail(fmt::format("{}/offsets do not ascend", group_));
  }

  std::size_t num_npus() const { return offsets_.size() - 1; }
  hsize_t first(NpuId npu) const { return offsets_[npu.index()]; }
  hsize_t count(NpuId npu) const { return offsets_[npu.index() + 1] - first(npu); }

  /// The rows of an NPU, of one column.
  template <class T>
  std::vector<T> read(const char* column, NpuId npu) const {
    const hsize_t first_row = first(npu), num_rows = count(npu);
    std::vector<T> values(num_rows);
    if (num_rows == 0) return values;
    const Handle& dataset = datasets_.at(column);
    const Handle there(H5Dget_space(dataset.id()), H5Sclose);
    const Handle here(H5Screate_simple(1, &num_rows, nullptr), H5Sclose);
    if (H5Sselect_hyperslab(there.id(), H5S_SELECT_SET, &first_row, nullptr, &num_rows, nullptr) < 0 ||
        H5Dread(dataset.id(), memory_type<T>(), here.id(), there.id(), H5P_DEFAULT, values.data()) < 0)
      source_.fail(fmt::format("{}/{} cannot be read", group_, column));
    return values;
  }

 private:
  const Source& source_;
  std::string group_;
  std::vector<std::uint64_t> offsets_;
  std::map<std::string, Handle, std::less<>> datasets_;
};

struct Timeline::State {
  explicit State(const std::filesystem::path& path) : source(path) {
    source.require_version();
    if (!source.has("/timeline"))
      throw Error(ErrorCode::bad_input, {.file = path.string()}, "holds no timeline",
                  "results of a run with --timeline", "Run it again with --timeline.");
    nodes.emplace(source, "/timeline", format::timeline_columns);
    names = source.texts("/timeline/names");
    groups = source.texts("/groups/names");
    if (!source.has("/local_memory")) return;
    usage.emplace(source, "/local_memory", format::usage_columns);
    if (usage->num_npus() != nodes->num_npus()) source.fail("/local_memory is not whole");
  }

  Source source;  // before its datasets, which are closed first
  std::optional<NpuTable> nodes, usage;
  std::vector<std::string> names, groups;
};

Timeline::Timeline(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
Timeline::~Timeline() = default;

std::uint32_t Timeline::num_npus() const { return static_cast<std::uint32_t>(state_->nodes->num_npus()); }

std::vector<npu::TimelineRecord> Timeline::rows(NpuId npu) const {
  const NpuTable& table = *state_->nodes;
  const auto node = table.read<std::uint64_t>("node", npu);
  const auto start = table.read<std::int64_t>("start", npu);
  const auto finish = table.read<std::int64_t>("finish", npu);
  const auto kind = table.read<std::int8_t>("kind", npu);
  const auto name = table.read<std::uint32_t>("name", npu);
  const auto group = table.read<std::int32_t>("group", npu);
  std::vector<npu::TimelineRecord> records;
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (name[i] >= state_->names.size() || kind[i] < 0 ||
        kind[i] > static_cast<std::int8_t>(trace::NodeKind::mem_store) ||
        (group[i] >= 0 && static_cast<std::size_t>(group[i]) >= state_->groups.size()) || start[i] < 0 ||
        finish[i] < start[i])
      state_->source.fail(fmt::format("row {} of /timeline makes no sense", table.first(npu) + i));
    records.push_back({npu, static_cast<std::uint32_t>(group[i]), node[i], Time::from_ps(start[i]),
                       Time::from_ps(finish[i]), static_cast<trace::NodeKind>(kind[i]), name[i]});
  }
  return records;
}

std::vector<memory::UsageRecord> Timeline::usage(NpuId npu) const {
  std::vector<memory::UsageRecord> records;
  if (!state_->usage) return records;
  const auto time = state_->usage->read<std::int64_t>("time", npu);
  const auto usage = state_->usage->read<std::int64_t>("usage", npu);
  for (std::size_t i = 0; i < time.size(); ++i) {
    if (time[i] < 0 || usage[i] < 0)
      state_->source.fail(fmt::format("row {} of /local_memory makes no sense", state_->usage->first(npu) + i));
    records.push_back({npu, Time::from_ps(time[i]), Bytes(static_cast<std::uint64_t>(usage[i]))});
  }
  return records;
}

const std::string& Timeline::name(std::uint32_t index) const { return state_->names[index]; }
const std::string& Timeline::group(std::uint32_t index) const { return state_->groups[index]; }

bool is_interrupted(const std::filesystem::path& path) {
  try {
    const Source source(path);
    source.require_format();
    return source.text("status") == format::status_name(Status::interrupted);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace orrery::results
