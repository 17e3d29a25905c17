// results.h5 read back, as `orrery show`, `compare` and `report` do: damaged results are read or refused. An input that
// begins as an HDF5 file does is the file itself, of which the seal is checked. HDF5 does not read it: without a seal
// that tells of the damage, HDF5 1.10 itself has endless loops. Any other input says what to change by means of HDF5 in
// good results, those that the variable ORRERY_FUZZ_RESULTS of the environment names; these are read.
#include <fuzzer/FuzzedDataProvider.h>
#include <hdf5.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz_input.hpp"
#include "hdf5_file.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/read.hpp"
#include "orrery/trace/graph.hpp"
#include "seal.hpp"
#include "source.hpp"

namespace {
using namespace orrery;
using results::Handle;

constexpr std::size_t seal_size = 24;
constexpr std::uint32_t most_npus = 64;  ///< whose rows are read
/// Of a dataset that is written to. HDF5 would take 128 GiB to write a row of one that claims 2^60.
constexpr hssize_t most_rows = hssize_t{1} << 20U;

/// Returns good results without their seal.
const std::string& good_results() {
  static const std::string bytes = [] {
    const char* const path = std::getenv("ORRERY_FUZZ_RESULTS");
    if (path == nullptr) fuzz::fail("ORRERY_FUZZ_RESULTS does not name good results; scripts/fuzz.sh makes them");
    std::ifstream file(path, std::ios::binary);
    std::string all(std::istreambuf_iterator<char>(file), {});
    if (all.size() <= seal_size) fuzz::fail(std::string(path) + " holds no results");
    return all.substr(0, all.size() - seal_size);
  }();
  return bytes;
}

/// The datasets and groups of a file.
std::vector<std::string> objects_of(hid_t file) {
  std::vector<std::string> names;
  const auto note = [](hid_t, const char* name, const H5O_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, note, &names, H5O_INFO_BASIC);
  return names;
}

std::int64_t number(FuzzedDataProvider& input) {
  constexpr std::int64_t extremes[] = {0,          1,         -1,       2, 127, 1LL << 31U, (1LL << 31U) - 1,
                                       1LL << 40U, INT64_MAX, INT64_MIN};
  return input.ConsumeBool() ? input.PickValueInArray(extremes) : input.ConsumeIntegral<std::int64_t>();
}

/// Writes a number to one row of a dataset of numbers.
void change_row(FuzzedDataProvider& input, hid_t file, const std::string& name) {
  const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset.id() < 0) return;
  const Handle space(H5Dget_space(dataset.id()), H5Sclose), one(H5Screate(H5S_SCALAR), H5Sclose);
  const hssize_t rows = H5Sget_simple_extent_npoints(space.id());
  const std::int64_t value = number(input);
  if (rows > most_rows) return;
  if (H5Sget_simple_extent_ndims(space.id()) == 1 && rows > 0) {
    const hsize_t row = input.ConsumeIntegralInRange<hsize_t>(0, static_cast<hsize_t>(rows) - 1);
    H5Sselect_elements(space.id(), H5S_SELECT_SET, 1, &row);
  }
  H5Dwrite(dataset.id(), H5T_NATIVE_INT64, one.id(), space.id(), H5P_DEFAULT, &value);
}

/// Puts a dataset of numbers or of texts, of some size, in the place of an object.
void replace(FuzzedDataProvider& input, hid_t file, const std::string& name) {
  H5Ldelete(file, name.c_str(), H5P_DEFAULT);
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text.id(), H5T_VARIABLE);
  const hid_t types[] = {H5T_STD_I8LE, H5T_STD_I64LE, H5T_STD_U64LE, H5T_IEEE_F64LE, text.id()};
  const hid_t type = input.PickValueInArray(types);
  constexpr hsize_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 9, 100, hsize_t{1} << 20U, hsize_t{1} << 40U, hsize_t{1} << 60U};
  const hsize_t size = input.PickValueInArray(sizes), part = std::min<hsize_t>(std::max<hsize_t>(size, 1), 1024);
  const Handle space(input.ConsumeBool() ? H5Screate_simple(1, &size, nullptr) : H5Screate(H5S_SCALAR), H5Sclose);
  const Handle layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_chunk(layout.id(), 1, &part);  // no row takes room before it is written
  const bool is_scalar = H5Sget_simple_extent_ndims(space.id()) == 0;
  const Handle made(
      H5Dcreate2(file, name.c_str(), type, space.id(), H5P_DEFAULT, is_scalar ? H5P_DEFAULT : layout.id(), H5P_DEFAULT),
      H5Dclose);
}

/// Removes an attribute of the root, or gives it another value.
void change_attribute(FuzzedDataProvider& input, hid_t file) {
  constexpr const char* names[] = {"format", "format_version", "status", "num_ranks", "wall_time"};
  const char* const name = input.PickValueInArray(names);
  H5Adelete(file, name);
  const hsize_t size = input.ConsumeIntegralInRange<hsize_t>(0, 4);
  const Handle space(size == 4 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Handle made(H5Acreate2(file, name, H5T_STD_I64LE, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  const std::vector<std::int64_t> values(4, number(input));
  H5Awrite(made.id(), H5T_NATIVE_INT64, values.data());
}

void change(FuzzedDataProvider&& input, const std::filesystem::path& path) {
  const results::Silence silence;
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  static const std::vector<std::string> names = objects_of(file.id());  // the first call has good results
  for (int changes = 0; changes < 4 && input.remaining_bytes() > 0; ++changes) {
    const auto kind = input.ConsumeIntegralInRange(0, 5);
    if (kind == 0) {
      change_attribute(input, file.id());
      continue;
    }
    const std::string& name = names[input.ConsumeIntegralInRange<std::size_t>(0, names.size() - 1)];
    if (kind == 1)
      H5Ldelete(file.id(), name.c_str(), H5P_DEFAULT);
    else if (kind == 2)
      replace(input, file.id(), name);
    else
      change_row(input, file.id(), name);
  }
}

void read(const std::filesystem::path& path) {
  (void)fuzz::accepts([&] { (void)results::read_kernel(path); });
  (void)results::is_interrupted(path);
  (void)fuzz::accepts([&] {
    const results::Timeline timeline(path);
    for (std::uint32_t npu = 0; npu < std::min(timeline.num_npus(), most_npus); ++npu) {
      for (const auto& row : timeline.rows(NpuId(npu))) {
        (void)timeline.name(row.name).size();
        if (row.group != npu::TimelineRecord::no_group) (void)timeline.group(row.group).size();
        if (row.operation != npu::TimelineRecord::no_operation)
          (void)trace::name(trace::CollectiveKind{static_cast<std::uint8_t>(row.operation)}).size();
      }
      (void)timeline.usage(NpuId(npu));
    }
  });
}

/// A seal fits the bytes that it was made of, and none that differ in one bit.
void check_seal(std::string_view bytes) {
  const auto path = fuzz::write_input(bytes, "sealed.h5");
  (void)results::has_broken_seal(path);
  if (results::seal(path)) fuzz::fail("no seal can be made");
  if (results::has_broken_seal(path)) fuzz::fail("a seal does not fit the bytes that it was made of");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto place = static_cast<std::streamoff>(std::hash<std::string_view>()(bytes) % bytes.size());
  file.seekp(place);
  file.put(static_cast<char>(bytes[static_cast<std::size_t>(place)] ^ 1));
  file.close();
  if (!results::has_broken_seal(path)) fuzz::fail("a seal fits other bytes than those that it was made of");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  if (bytes.starts_with("\x89HDF")) {
    check_seal(bytes);
    return 0;
  }
  const auto path = fuzz::write_input(good_results(), "results.h5");
  change(FuzzedDataProvider(data, size), path);
  read(path);
  return 0;
}
