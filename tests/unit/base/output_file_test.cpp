#include "orrery/base/output_file.hpp"
#include "orrery/base/job_context.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "temporary_folder.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// A process has a partial file, knows of one that another process writes, and of one that is at its place already. The
// first two are removed, and the last one stays.
TEST(PartialFiles, AreRemovedBeforeAProcessEnds) {
  const test::TemporaryFolder folder;
  JobContext job;
  const JobContext::Scope scope(job);
  const PartialFile mine(folder.path() / "mine");
  mine.write("1");
  const PartialFile other(folder.path() / "other");
  other.write("2");
  const fs::path renamed = folder.path() / "other.renamed";
  fs::rename(other.partial(), renamed);
  const PartialFileOfJob of_job(renamed);
  PartialFile whole(folder.path() / "whole");
  whole.write("3");
  whole.commit();
  job.partial_files.remove_all();
  EXPECT_FALSE(fs::exists(mine.partial()));
  EXPECT_FALSE(fs::exists(renamed));
  EXPECT_TRUE(fs::exists(folder.path() / "whole"));
}

// A file of another process is forgotten with its object. It is not removed.
TEST(PartialFiles, OfOtherProcessesAreForgotten) {
  const test::TemporaryFolder folder;
  JobContext job;
  const JobContext::Scope scope(job);
  const PartialFile partial(folder.path() / "name");
  partial.write("1");
  const fs::path renamed = folder.path() / "renamed";
  fs::rename(partial.partial(), renamed);
  { const PartialFileOfJob of_job(renamed); }
  job.partial_files.remove_all();
  EXPECT_TRUE(fs::exists(renamed));
}

}  // namespace
}  // namespace orrery
