// The file of results: what is in it, that it is the same for any number of ranks, and that a failure leaves no file.
#include "orrery/results/results.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <optional>

#include "mpi_world.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/version.hpp"
#include "orrery/results/read.hpp"
#include "output.hpp"
#include "tables.hpp"
#include "temporary_folder.hpp"

namespace orrery::results {
namespace {

namespace fs = std::filesystem;

/// A folder that all ranks know and rank 0 makes and removes.
class Results : public testing::Test {
 protected:
  void SetUp() override {
    std::string name;
    if (test::world().is_root()) name = of_root.emplace().path();
    test::world().broadcast(name, Rank(0));
    folder = name;
  }
  void TearDown() override { test::world().barrier(); }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  fs::path folder;

 private:
  std::optional<test::TemporaryFolder> of_root;
};

constexpr std::uint32_t num_npus = 37;
constexpr std::uint32_t num_groups = 5;
constexpr auto busy = std::uint64_t{1'000'000'000'000'000'000};  // ps, of each NPU's links

RunDescription description() {
  RunDescription run;
  run.num_npus = num_npus;
  run.groups = {{"zeta", {NpuId(3), NpuId(1)}},
                {"", {}},
                {"alpha", {NpuId(0), NpuId(36)}},
                {"b", {NpuId(2), NpuId(4)}},
                {"b", {NpuId(2), NpuId(3)}}};
  run.network.dimension_sizes = {37, 1};
  run.network.links = {74, 0};
  run.inputs.command_line = "orrery run x.yaml";
  run.inputs.resolved_configuration = "workload: x\n";
  run.inputs.texts = {{"a/network.yml", "topology: [ Ring ]\n"}, {"b/network.yml", ""}};
  run.inputs.kernel_texts = {{"partition.txt", "0\n"}};
  run.wall_time = 1.5;
  return run;
}

npu::NpuRecord npu_record(std::uint32_t npu) {
  npu::NpuRecord record{};
  record.npu = NpuId(npu);
  record.compute = Time::from_ps(10 + npu);
  record.cpu = Time::from_ps(2);
  record.communication = Time::from_ps(50);
  record.waits[static_cast<std::size_t>(npu::Cause::data)] = Time::from_ps(30);
  record.exposed_memory = Time::from_ps(4);
  record.idle = Time::from_ps(npu * 3);
  record.finish = Time::from_ps(10 + npu + 2 + 30 + 4 + npu * 3);
  record.nodes_completed = 5 + npu;
  record.bytes_sent = Bytes(1000 * npu);
  record.peak_local_memory = Bytes(5000 * npu);
  record.peak_local_memory_time = Time::from_ps(npu);
  return record;
}

/// The records of the NPUs and groups that `hosts` says are here; each with its own seed, wherever it is.
template <class Hosts>
RankResults results_of(Hosts hosts, const std::string& extra_name) {
  RankResults mine;
  mine.timeline_names = {extra_name, "b", "a", "c"};
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    if (!hosts(npu)) continue;
    mine.npus.push_back(npu_record(npu));
    for (std::uint32_t i = 0; i < npu % 3; ++i)
      mine.usage.push_back({NpuId(npu), Time::from_ps(7 * i), Bytes(1000 * npu + i)});
    for (std::uint32_t i = 0; i < npu % 4; ++i) {
      mine.timeline.push_back({.npu = NpuId(npu),
                               .group = i == 0 ? npu % num_groups : npu::TimelineRecord::no_group,
                               .node = i + 100ULL * npu,
                               .start = Time::from_ps(10 * i),
                               .finish = Time::from_ps(10 * i + 5),
                               .kind = i == 0 ? trace::NodeKind::collective : trace::NodeKind::compute,
                               .name = 1 + (i + npu) % 3});
    }
  }
  for (std::uint32_t group = 0; group < num_groups; ++group) {
    if (!hosts(group)) continue;
    for (std::uint32_t i = 0; i <= group; ++i) {
      mine.collectives.push_back({GroupId(group), i, static_cast<std::uint8_t>(i % 2), 4, Bytes(1000), Time::from_ps(5),
                                  Time::from_ps(10 * i), Time::from_ps(10 * i + 1000)});
      mine.collective_sums.push_back({static_cast<std::uint8_t>(i % 2), 4, 1, 1000, 1000});
    }
  }
  mine.network.bytes = {Bytes(mine.npus.size() * 100), Bytes(0)};
  mine.network.busy_time = {SumOfTimes(mine.npus.size()) * busy, 0};
  mine.host = "host" + extra_name;
  mine.kernel.events = 7;
  return mine;
}

RankResults scattered() {
  const auto size = static_cast<std::uint32_t>(test::world().size());
  const auto rank = static_cast<std::uint32_t>(test::world().rank().value());
  return results_of([=](std::uint32_t thing) { return (thing * 7 + 3) % size == rank; }, std::to_string(rank));
}

class Reader {
 public:
  explicit Reader(const fs::path& path) : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {}
  ~Reader() { H5Fclose(file_); }

  template <class T>
  std::vector<T> column(const char* path, hid_t type) const {
    const hid_t dataset = H5Dopen2(file_, path, H5P_DEFAULT);
    EXPECT_GE(dataset, 0) << path;
    if (dataset < 0) return {};
    const hid_t space = H5Dget_space(dataset);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    EXPECT_GE(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << path;
    H5Sclose(space);
    H5Dclose(dataset);
    return values;
  }
  std::vector<std::int64_t> integers(const char* path) const { return column<std::int64_t>(path, H5T_NATIVE_INT64); }
  std::vector<double> reals(const char* path) const { return column<double>(path, H5T_NATIVE_DOUBLE); }
  std::vector<std::string> texts(const char* path) const {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const auto pointers = column<char*>(path, type);
    std::vector<std::string> values(pointers.begin(), pointers.end());
    for (char* pointer : pointers) H5free_memory(pointer);
    H5Tclose(type);
    return values;
  }
  std::string attribute(const char* object, const char* name) const {
    const hid_t attribute = H5Aopen_by_name(file_, object, name, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(attribute, 0) << object << " " << name;
    if (attribute < 0) return "";
    const hid_t type = H5Aget_type(attribute);
    char* text = nullptr;
    H5Aread(attribute, type, &text);
    std::string value(text ? text : "");
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
  }
  bool has(const char* path) const { return H5Lexists(file_, path, H5P_DEFAULT) > 0; }

 private:
  hid_t file_;
};

// The NPUs are scattered over the ranks. The file has them in ascending order, with units, attributes and texts of the
// input.
TEST_F(Results, holds_every_npu_in_order) {
  const auto path = folder / "results.h5";
  write(path, description(), scattered(), test::world());
  if (!test::world().is_root()) return;
  EXPECT_EQ(num_files(), 1U);
  const Reader reader(path);
  const auto finish = reader.integers("/npus/finish_time");
  const auto nodes = reader.integers("/npus/nodes_completed");
  ASSERT_EQ(finish.size(), num_npus);
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    EXPECT_EQ(finish[npu], npu_record(npu).finish.ps());
    EXPECT_EQ(nodes[npu], 5 + npu);
  }
  EXPECT_EQ(reader.attribute("/npus/finish_time", "units"), "ps");
  EXPECT_NE(reader.attribute("/npus/finish_time", "description"), "");
  EXPECT_EQ(reader.attribute("/", "format"), "orrery-results");
  EXPECT_EQ(reader.attribute("/", "orrery_version"), version());
  EXPECT_EQ(reader.attribute("/", "status"), "complete");
  EXPECT_EQ(reader.texts("/config/resolved").at(0), "workload: x\n");
  EXPECT_EQ(reader.texts("/config/inputs/network.yml").at(0), "topology: [ Ring ]\n");
  EXPECT_TRUE(reader.has("/config/inputs/network.yml.2"));
  EXPECT_EQ(reader.texts("/kernel/inputs/partition.txt").at(0), "0\n");
}

// There are five groups, two of one name, with collectives on different ranks. The file orders groups by name and
// members, and collectives by group and ordinal.
TEST_F(Results, groups_and_collectives_are_ordered_by_name_and_ordinal) {
  const auto path = folder / "results.h5";
  write(path, description(), scattered(), test::world());
  if (!test::world().is_root()) return;
  const Reader reader(path);
  EXPECT_EQ(reader.texts("/groups/names"), (std::vector<std::string>{"", "alpha", "b", "b", "zeta"}));
  const auto offsets = reader.integers("/groups/offsets");
  const auto members = reader.integers("/groups/members");
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 37, 39, 41, 43, 45}));
  // Of two groups of one name the smaller members come first; members keep the order in which the group lists them.
  EXPECT_EQ(std::vector<std::int64_t>(members.begin() + 37, members.end()),
            (std::vector<std::int64_t>{0, 36, 2, 3, 2, 4, 3, 1}));
  // Group number g of the run has g + 1 collectives; in the file the run's groups are in the order 1, 2, 4, 3, 0.
  EXPECT_EQ(reader.integers("/collectives/group"),
            (std::vector<std::int64_t>{0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4}));
  EXPECT_EQ(reader.integers("/collectives/ordinal"),
            (std::vector<std::int64_t>{0, 1, 0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 0}));
}

// 1000 bytes in 1000 ps are 1e12 bytes/s. Bus bandwidth of an all-reduce of 4 members: 2 * 3 / 4 of it. An all-gather's
// size is 4 shards, so its algorithm bandwidth is 4e12 and its bus bandwidth 3/4 of that.
TEST_F(Results, bandwidths_follow_nccl_tests) {
  const auto path = folder / "results.h5";
  write(path, description(), scattered(), test::world());
  if (!test::world().is_root()) return;
  const Reader reader(path);
  const auto algorithm = reader.reals("/collectives/algorithm_bandwidth");
  const auto bus = reader.reals("/collectives/bus_bandwidth");
  const auto kind = reader.integers("/collectives/kind");
  EXPECT_EQ(kind.at(0), 0);
  EXPECT_EQ(kind.at(1), 1);
  EXPECT_DOUBLE_EQ(algorithm.at(0), 1e12);
  EXPECT_DOUBLE_EQ(bus.at(0), 1.5e12);
  EXPECT_DOUBLE_EQ(algorithm.at(1), 4e12);
  EXPECT_DOUBLE_EQ(bus.at(1), 3e12);
  // 37 NPUs busy for 1e18 ps each on 74 links, longer in all than a Time can be; the last NPU finishes at 190 ps.
  EXPECT_DOUBLE_EQ(reader.reals("/network/busy_time").at(0), 37e18);
  EXPECT_DOUBLE_EQ(reader.reals("/network/utilisation").at(0), 37e18 / (74 * 190));
  EXPECT_EQ(reader.reals("/network/utilisation").at(1), 0);  // of one NPU: no links
  EXPECT_EQ(reader.integers("/network/bytes").at(0), 3700);
  EXPECT_EQ(reader.integers("/kernel/events"),
            std::vector<std::int64_t>(static_cast<std::size_t>(test::world().size()), 7));
}

// A run of 190 ps and two iterations has 15 collectives, 9 of them all-reduces. A complete run has metrics, an
// interrupted one has none.
TEST_F(Results, metrics_are_there_if_the_run_is_complete) {
  auto run = description();
  run.iterations = 2;
  run.step = TrainingStep{.samples = 19, .tokens = 190};
  const auto all = write(folder / "results.h5", run, scattered(), test::world());
  run.status = Status::interrupted;
  write(folder / "interrupted.h5", run, scattered(), test::world());
  if (!test::world().is_root()) return;
  ASSERT_TRUE(all.metrics);
  const Reader reader(folder / "results.h5");
  EXPECT_EQ(reader.integers("/metrics/step_time"), std::vector<std::int64_t>{95});
  EXPECT_EQ(reader.attribute("/metrics/step_time", "units"), "ps");
  EXPECT_EQ(reader.integers("/metrics/bytes_per_step"), (std::vector<std::int64_t>{1850, 0}));
  EXPECT_DOUBLE_EQ(reader.reals("/metrics/exposed_communication_share").at(0), 30.0 / 190);
  EXPECT_DOUBLE_EQ(reader.reals("/metrics/tokens_per_second").at(0), 2e12);
  EXPECT_FALSE(reader.has("/metrics/model_flops_utilisation"));
  EXPECT_EQ(reader.integers("/metrics/collectives/kind"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(reader.integers("/metrics/collectives/count"), (std::vector<std::int64_t>{9, 6}));
  EXPECT_DOUBLE_EQ(reader.reals("/metrics/collectives/bus_bandwidth").at(0), 1.5e12);
  EXPECT_FALSE(Reader(folder / "interrupted.h5").has("/metrics"));
}

// NPU i has i mod 4 rows. The offsets lead to its rows, and names and groups are numbered as in the file.
TEST_F(Results, timeline_rows_belong_to_their_npu_and_name) {
  const auto path = folder / "results.h5";
  write(path, description(), scattered(), test::world());
  if (!test::world().is_root()) return;
  const Reader reader(path);
  EXPECT_EQ(reader.texts("/timeline/names"), (std::vector<std::string>{"a", "b", "c"}));
  const auto offsets = reader.integers("/timeline/offsets");
  const auto npu = reader.integers("/timeline/npu");
  const auto node = reader.integers("/timeline/node");
  const auto name = reader.integers("/timeline/name");
  ASSERT_EQ(offsets.size(), num_npus + 1);
  ASSERT_EQ(static_cast<std::size_t>(offsets.back()), npu.size());
  const auto group = reader.integers("/timeline/group");
  const std::int64_t sorted_place[] = {1, 0, 2};          // of "b", "a", "c"
  const std::int64_t place_of_group[] = {4, 0, 1, 3, 2};  // groups in the file are in the order 1, 2, 4, 3, 0
  for (std::uint32_t i = 0; i < num_npus; ++i) {
    ASSERT_EQ(offsets[i + 1] - offsets[i], i % 4);
    for (std::uint32_t k = 0; k < i % 4; ++k) {
      const auto row = static_cast<std::size_t>(offsets[i]) + k;
      EXPECT_EQ(npu[row], i);
      EXPECT_EQ(node[row], k + 100 * i);
      EXPECT_EQ(name[row], sorted_place[(k + i) % 3]);
      EXPECT_EQ(group[row], k == 0 ? place_of_group[i % num_groups] : -1);
    }
  }
}

// NPU i has i mod 3 changes of its local memory. The offsets lead to them, and they are read back as they were.
TEST_F(Results, usage_of_local_memories_belongs_to_their_npus) {
  const auto path = folder / "results.h5";
  write(path, description(), scattered(), test::world());
  if (!test::world().is_root()) return;
  const Reader reader(path);
  const auto peaks = reader.integers("/npus/peak_local_memory"),
             times = reader.integers("/npus/peak_local_memory_time");
  const Timeline timeline(path);
  std::uint32_t rows = 0;
  for (std::uint32_t i = 0; i < num_npus; ++i) {
    EXPECT_EQ(peaks[i], 5000 * i);
    EXPECT_EQ(times[i], i);
    const auto usage = timeline.usage(NpuId(i));
    ASSERT_EQ(usage.size(), i % 3);
    EXPECT_EQ(reader.integers("/local_memory/offsets").at(i), rows);
    for (std::uint32_t k = 0; k < i % 3; ++k, ++rows) {
      EXPECT_EQ(usage[k].npu, NpuId(i));
      EXPECT_EQ(usage[k].since, Time::from_ps(7 * k));
      EXPECT_EQ(usage[k].usage, Bytes(1000 * i + k));
    }
  }
  EXPECT_EQ(reader.integers("/local_memory/usage").size(), rows);
}

/// Writes a number to the first row of a dataset.
void change_first_row(const fs::path& path, const char* name, std::int64_t value) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset), one = H5Screate(H5S_SCALAR);
  const hsize_t row = 0;
  H5Sselect_elements(space, H5S_SELECT_SET, 1, &row);
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_INT64, one, space, H5P_DEFAULT, &value), 0) << name;
  H5Sclose(one);
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
}

/// Puts a dataset of so many rows, of which none is written, in the place of another one.
void claim_rows(const fs::path& path, const char* name, hsize_t rows) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  EXPECT_GE(H5Ldelete(file, name, H5P_DEFAULT), 0) << name;
  const hid_t space = H5Screate_simple(1, &rows, nullptr), layout = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = 1024;
  H5Pset_chunk(layout, 1, &chunk);
  const hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_INT64, space, H5P_DEFAULT, layout, H5P_DEFAULT);
  EXPECT_GE(dataset, 0) << name;
  H5Dclose(dataset);
  H5Pclose(layout);
  H5Sclose(space);
  H5Fclose(file);
}

/// Reads the rows of all NPUs. Returns what was refused; "read" if nothing was.
std::string refusal_of_rows(const fs::path& path) {
  try {
    const Timeline timeline(path);
    for (std::uint32_t npu = 0; npu < timeline.num_npus(); ++npu) (void)timeline.rows(NpuId(npu));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "read";
}

// The first row of the timeline names a group, a peer or an operation below -1, which stands for none.
TEST_F(Results, numbers_below_none_are_refused) {
  const auto path = folder / "results.h5";
  for (const char* const name : {"/timeline/group", "/timeline/peer", "/timeline/operation"}) {
    write(path, description(), scattered(), test::world());
    if (!test::world().is_root()) continue;
    EXPECT_EQ(refusal_of_rows(path), "read");
    if (!Reader(path).has(name)) continue;
    change_first_row(path, name, -2);
    EXPECT_NE(refusal_of_rows(path).find("row 0 of /timeline makes no sense"), std::string::npos) << name;
  }
}

// Datasets of numbers and of texts claim rows that the file does not hold. No memory is taken for them, and HDF5 is not
// asked for the size of billions of chunks of 1,024 rows.
TEST_F(Results, rows_that_the_file_does_not_hold_are_refused) {
  const auto path = folder / "results.h5";
  for (const char* const name : {"/timeline/offsets", "/timeline/node", "/timeline/names"})
    for (const auto& [rows, refusal] :
         {std::pair(hsize_t{1} << 24U, "rows in 0 bytes"), std::pair(hsize_t{1} << 40U, "rows in chunks of 1024"),
          std::pair(hsize_t{1} << 61U, "rows in chunks of 1024")}) {
      write(path, description(), scattered(), test::world());
      if (!test::world().is_root()) continue;
      claim_rows(path, name, rows);
      EXPECT_NE(refusal_of_rows(path).find(refusal), std::string::npos) << refusal_of_rows(path);
    }
}

// No rank has rows of a timeline. The file has no groups for them.
TEST_F(Results, no_timeline_without_rows) {
  auto mine = scattered();
  mine.timeline.clear();
  mine.usage.clear();
  write(folder / "results.h5", description(), mine, test::world());
  if (test::world().is_root()) {
    EXPECT_FALSE(Reader(folder / "results.h5").has("/timeline"));
    EXPECT_FALSE(Reader(folder / "results.h5").has("/local_memory"));
  }
}

// One rank writes all records, or each rank writes its own. The files differ only in /kernel and the attributes of /.
TEST_F(Results, the_same_for_any_number_of_ranks) {
  write(folder / "many.h5", description(), scattered(), test::world());
  if (!test::world().is_root()) return;
  auto serial = parallel::make_serial();
  write(folder / "one.h5", description(), results_of([](std::uint32_t) { return true; }, "x"), *serial);
  const std::string command = "h5diff --exclude-path /kernel --exclude-attribute / '" + (folder / "many.h5").string() +
                              "' '" + (folder / "one.h5").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  auto other = results_of([](std::uint32_t) { return true; }, "x");
  other.npus[5].bytes_sent = Bytes(1);
  write(folder / "one.h5", description(), other, *serial);
  EXPECT_NE(std::system((command + " > /dev/null").c_str()), 0) << "h5diff sees a difference where there is one";
}

// The folder of the results does not exist. All ranks throw, and the error names the file and the reason.
TEST_F(Results, a_missing_folder_fails_on_all_ranks) {
  EXPECT_ANY_THROW(write(folder / "missing" / "results.h5", description(), scattered(), test::world()));
  if (!test::world().is_root()) return;
  try {
    auto serial = parallel::make_serial();
    write(folder / "missing" / "results.h5", description(), results_of([](std::uint32_t) { return true; }, "x"),
          *serial);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::output);
    EXPECT_NE(std::string(error.what()).find("missing/results.h5"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos) << error.what();
  }
}

// An NPU without a record, or times that do not add up, is a fault of the program that must not reach a file.
TEST_F(Results, wrong_records_fail_on_all_ranks_and_leave_the_old_file) {
  const auto path = folder / "results.h5";
  if (test::world().is_root()) std::ofstream(path) << "older";
  auto mine = scattered();
  if (!mine.npus.empty() && mine.npus.front().npu.value() < 3) mine.npus.front().idle += Time::from_ps(1);
  EXPECT_ANY_THROW(write(path, description(), mine, test::world()));
  mine = scattered();
  std::erase_if(mine.npus, [](const npu::NpuRecord& record) { return record.npu == NpuId(17); });
  EXPECT_ANY_THROW(write(path, description(), mine, test::world()));
  if (!test::world().is_root()) return;
  EXPECT_EQ(num_files(), 1U);
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "older");
}

// A limit on the size of files imitates a full disk. All ranks throw, and no file stays.
TEST_F(Results, a_full_disk_fails_on_all_ranks_and_leaves_no_file) {
  const auto path = folder / "results.h5";
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old.rlim_max};
  if (test::world().is_root()) ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_ANY_THROW(write(path, description(), scattered(), test::world()));
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  if (test::world().is_root()) {
    EXPECT_EQ(num_files(), 0U);
  }
  test::world().barrier();
  write(path, description(), scattered(), test::world());  // the library is still usable
  if (test::world().is_root()) {
    EXPECT_EQ(num_files(), 1U);
  }
}

/// Rank 0 of many ranks, which all say what it says.
class ManyRanks final : public parallel::Communicator {
 public:
  explicit ManyRanks(int size) : Communicator(Rank(0), size) {}

  void barrier() override {}
  void sum(std::span<std::int64_t>) override {}
  void minimum(std::span<std::int64_t>) override {}
  void maximum(std::span<std::int64_t>) override {}
  void broadcast_bytes(std::vector<std::byte>&, Rank) override {}
  std::vector<std::byte> gather_bytes(std::span<const std::byte> mine, Rank, std::vector<std::size_t>& sizes) override {
    std::vector<std::byte> all;
    for (int rank = 0; rank < size(); ++rank) all.insert(all.end(), mine.begin(), mine.end());
    sizes.assign(static_cast<std::size_t>(size()), mine.size());
    return all;
  }
  std::vector<std::vector<std::byte>> exchange_bytes(const std::vector<std::vector<std::byte>>& outgoing) override {
    return outgoing;
  }
  std::unique_ptr<Communicator> first(int count) override { return std::make_unique<ManyRanks>(count); }
};

// A job of 100,000 ranks writes what there is of each rank. No attribute, which HDF5 limits to 64 KiB, grows with it.
TEST_F(Results, a_hundred_thousand_ranks_have_a_row_each) {
  if (!test::world().is_root()) return;
  constexpr int num_ranks = 100'000;
  ManyRanks many(num_ranks);
  const auto path = folder / "results.h5";
  Output output(path, many);
  KernelRecord record{};
  record.events = 7;
  EXPECT_EQ(write_kernel(output, {}, record, "a-host").size(), num_ranks);
  write_attributes(output, description(), Time::from_ps(1));
  EXPECT_EQ(output.commit(true), path);
  const Reader reader(path);
  EXPECT_EQ(reader.texts("/kernel/host"), std::vector<std::string>(num_ranks, "a-host"));
  EXPECT_EQ(reader.integers("/kernel/events"), std::vector<std::int64_t>(num_ranks, 7));
}

// A file comes to the name of the results during the run. It stays, unless it is replaced on purpose.
TEST_F(Results, a_file_that_appears_is_kept_without_force) {
  auto run = description();
  run.force = false;
  const auto path = folder / "results.h5";
  const auto results = scattered();
  EXPECT_EQ(write(path, run, results, test::world()).file, test::world().is_root() ? path : fs::path());
  for (const char* beside : {"results.2.h5", "results.3.h5"}) {
    const auto file = write(path, run, results, test::world()).file;
    if (!test::world().is_root()) continue;
    EXPECT_EQ(file, folder / beside);
    EXPECT_EQ(Reader(file).integers("/npus/finish_time").size(), num_npus);
  }
  run.status = Status::interrupted;
  run.force = true;
  EXPECT_EQ(write(path, run, results, test::world()).file, test::world().is_root() ? path : fs::path());
  run = description();
  run.force = false;
  EXPECT_EQ(write(path, run, results, test::world()).file, test::world().is_root() ? path : fs::path());
  if (test::world().is_root()) {
    EXPECT_EQ(Reader(path).attribute("/", "status"), "complete") << "what was interrupted is replaced";
    EXPECT_EQ(num_files(), 3U);
  }
}

// Names that are no UTF-8 are stored as UTF-8.
TEST_F(Results, names_are_stored_as_utf8) {
  if (!test::world().is_root()) return;
  auto serial = parallel::make_serial();
  auto run = description();
  run.inputs.command_line = "orrery \xff\xc3\xa9 \xed\xa0\x80";
  write(folder / "results.h5", run, results_of([](std::uint32_t) { return true; }, "x"), *serial);
  EXPECT_EQ(Reader(folder / "results.h5").attribute("/", "command_line"), "orrery ?\xc3\xa9 ???");
}

// There is a file of the same name. The results replace it.
TEST_F(Results, replaces_an_older_file_when_complete) {
  const auto path = folder / "results.h5";
  if (test::world().is_root()) std::ofstream(path) << "older";
  test::world().barrier();
  write(path, description(), scattered(), test::world());
  if (test::world().is_root()) {
    EXPECT_EQ(Reader(path).integers("/npus/finish_time").size(), num_npus);
  }
}

ErrorCode code_of(const fs::path& path, bool force) {
  try {
    check_output(path, force);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

// Paths that cannot be written (a folder, an existing file, below a file, a fifo) are refused before the run. A missing
// folder is not: it will be made.
TEST_F(Results, check_output_says_what_could_not_be_written) {
  if (!test::world().is_root()) return;
  EXPECT_NO_THROW(check_output(folder / "results.h5", false));
  EXPECT_EQ(num_files(), 0U);
  EXPECT_NO_THROW(check_output(folder / "missing" / "results.h5", false));
  EXPECT_EQ(code_of(folder, true), ErrorCode::output);
  std::ofstream(folder / "results.h5") << "older";
  EXPECT_EQ(code_of(folder / "results.h5", false), ErrorCode::output);
  EXPECT_EQ(code_of(folder / "results.h5" / "of_a_file.h5", false), ErrorCode::output);
  EXPECT_NO_THROW(check_output(folder / "results.h5", true));
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(code_of(folder / "fifo", true), ErrorCode::output);
}

// Results of an interrupted run may be replaced without `force`, those of a complete run may not.
TEST_F(Results, those_of_an_interrupted_run_may_be_replaced) {
  const auto path = folder / "results.h5";
  for (const Status status : {Status::interrupted, Status::complete}) {
    auto run = description();
    run.status = status;
    write(path, run, scattered(), test::world());
    if (!test::world().is_root()) continue;
    EXPECT_EQ(is_interrupted(path), status == Status::interrupted);
    if (status == Status::interrupted)
      EXPECT_NO_THROW(check_output(path, false));
    else
      EXPECT_EQ(code_of(path, false), ErrorCode::output);
  }
}

// Writing returns the records of all NPUs and ranks on rank 0, and nothing on the others.
TEST_F(Results, what_was_gathered_is_known_on_rank_0) {
  const auto all = write(folder / "results.h5", description(), scattered(), test::world());
  if (!test::world().is_root()) {
    EXPECT_TRUE(all.npus.empty());
    return;
  }
  ASSERT_EQ(all.npus.size(), num_npus);
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) EXPECT_EQ(all.npus[npu].finish, npu_record(npu).finish);
  EXPECT_EQ(all.ranks.size(), static_cast<std::size_t>(test::world().size()));
}

}  // namespace
}  // namespace orrery::results
