#include "trial_journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::study {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t checksum_digits = 16;

/// Returns the record of a line; none if the line is torn.
std::optional<std::string_view> record_of(std::string_view line) {
  if (line.size() <= checksum_digits || line[checksum_digits] != ' ') return {};
  const std::string_view record = line.substr(checksum_digits + 1);
  std::uint64_t expected = 0;
  const auto read = std::from_chars(line.data(), line.data() + checksum_digits, expected, 16);
  if (read.ptr != line.data() + checksum_digits || digest_of(record) != expected) return {};
  return record;
}

std::string header_of(const TrialJournal::Identity& identity, const TrialJournal::Request& request) {
  ordered_json header = {{"format", "orrery-explore-journal 2"}, {"request", json::object()}};
  for (const auto& [option, value] : request) header["request"][option] = value;
  for (const auto& [name, digest] : identity) header["inputs"][name] = digest;
  return header.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Returns in what two requests differ: "it has --limit 5 and this job has none"; nothing if they are the same.
std::optional<std::string> difference_of_requests(const json& mine, const json& its) {
  const auto text = [](const json& request, const std::string& option) {
    const auto found = request.find(option);
    return found == request.end() || !found->is_string() ? "no " + option
                                                         : fmt::format("{} {}", option, found->get<std::string>());
  };
  for (const json& request : {mine, its})
    for (const auto& [option, value] : request.items())
      if (text(mine, option) != text(its, option))
        return fmt::format("it is of a job with {}, and this job has {}", cited(text(its, option)), text(mine, option));
  return {};
}

/// Returns what is wrong with the header of a journal.
std::string difference_of_headers(std::string_view one, std::string_view other) {
  const json mine = json::parse(one, nullptr, false), its = json::parse(other, nullptr, false);
  if (mine.is_discarded() || its.is_discarded() || !its.is_object() || its.value("format", json()) != mine["format"] ||
      !its.contains("inputs") || !its["inputs"].is_object())
    return "a journal of another version of the program";
  for (const auto& [name, digest] : mine["inputs"].items())
    if (its["inputs"].value(name, json()) != digest)
      return fmt::format("a journal of another study: {} differs", cited(name));
  for (const auto& [name, digest] : its["inputs"].items())
    if (!mine["inputs"].contains(name))
      return fmt::format("a journal of another study: this one does not read {}", cited(name));
  const auto requests = difference_of_requests(mine["request"], its.value("request", json::object()));
  return fmt::format("a journal of other trials of the study: {}", requests.value_or("it is written otherwise"));
}

std::filesystem::path folder_of(const std::filesystem::path& output) {
  return output.parent_path().empty() ? std::filesystem::path(".") : output.parent_path();
}

/// Returns what the names of journals begin with whose first line is not written yet.
std::string unfinished_prefix(const std::filesystem::path& output) { return output.string() + ".new-journal."; }

/// Gives a file that is written a name that no other file has. Returns false if there is a file of this name.
bool rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return ::unlink(from.c_str()) == 0;
  if (errno == EEXIST) return false;
  if (std::filesystem::exists(to)) {  // a file system without links
    errno = EEXIST;
    return false;
  }
  return ::rename(from.c_str(), to.c_str()) == 0;
}

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw Error(ErrorCode::output, {.file = file.string()},
              fmt::format("cannot be written: {}", std::generic_category().message(errno)));
}

/// Throws if a process that still runs writes to a journal.
void require_no_writer(const std::filesystem::path& file) {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return;
  const bool is_locked = ::flock(opened, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(opened);
  if (is_locked)
    throw Error(ErrorCode::output, {.file = file.string()}, "another job that still runs writes to it",
                "a job with an output of its own", "Wait for its end, or give another --output.");
}

}  // namespace

std::vector<std::string> differences(const TrialJournal::Identity& mine, const TrialJournal::Identity& other) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : mine) {
    const auto found = std::ranges::find(other, name, &std::pair<std::string, std::uint64_t>::first);
    if (found == other.end() || found->second != digest) names.push_back(name);
  }
  for (const auto& [name, digest] : other)
    if (std::ranges::find(mine, name, &std::pair<std::string, std::uint64_t>::first) == mine.end())
      names.push_back(name);
  return names;
}

std::vector<std::filesystem::path> journals_of(const std::filesystem::path& output) {
  std::vector<std::filesystem::path> found;
  const std::string prefix = output.filename().string() + ".journal.";
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(output), failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.size() > prefix.size() &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos)
      found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

TrialJournal::TrialJournal(std::filesystem::path output, const Identity& identity, const Request& request,
                           parallel::Communicator& world)
    : output_(std::move(output)) {
  const std::string header = header_of(identity, request);
  parallel::Packer packer;
  std::uint64_t next = 0;
  world.agree([&] {
    if (!world.is_root()) return;
    for (const auto& file : journals_of(output_)) {
      require_no_writer(file);
      read(file, header);
      std::uint64_t number = 0;
      const std::string text = file.extension().string();
      std::from_chars(text.data() + 1, text.data() + text.size(), number);
      next = std::max(next, number + 1);
    }
    if (world.size() == 1) return;
    packer.put(next);
    for (const auto& [number, trial] : known_) {
      packer.put(number);
      packer.put(trial.status);
      packer.put_all(std::span<const double>(trial.metrics));
      packer.put_text(trial.text);
    }
  });
  auto bytes = packer.take();
  world.broadcast_bytes(bytes, Rank(0));
  parallel::Unpacker unpacker(bytes);
  if (!unpacker.empty()) next = unpacker.get<std::uint64_t>();
  while (!world.is_root() && !unpacker.empty()) {
    Trial& trial = known_[unpacker.get<std::uint64_t>()];
    trial.status = unpacker.get<TrialStatus>();
    trial.metrics = unpacker.get_all<double>();
    trial.text = unpacker.get_text();
  }
  own_ = fmt::format("{}.journal.{}", output_.string(), next + static_cast<std::uint64_t>(world.rank().value()));
  world.agree([&] { create(header); });
}

TrialJournal::~TrialJournal() {
  if (file_ < 0) return;
  if (!is_kept_ && (is_dropped_ || !has_trials_)) ::unlink(own_.c_str());
  ::close(file_);
}

// The file gets its name when its first line is on the disk. So a journal without one is damaged, whenever jobs end.
void TrialJournal::create(const std::string& header) {
  const std::filesystem::path unfinished =
      fmt::format("{}{}-{}", unfinished_prefix(output_), own_.extension().string().substr(1), ::getpid());
  file_ = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail(own_);
  ::flock(file_, LOCK_EX | LOCK_NB);  // it ends with the process; a file system without locks does without
  append(header);
  if (::fdatasync(file_) != 0 || !rename_to_new(unfinished, own_)) {
    const int failure = errno;
    ::unlink(unfinished.c_str());
    ::close(std::exchange(file_, -1));
    errno = failure;
    fail(own_);
  }
}

void TrialJournal::read(const std::filesystem::path& file, std::string_view header) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  std::getline(stream, line);
  const auto first = record_of(line);
  if (!first || !first->starts_with("{\"format\":"))
    throw Error(ErrorCode::output, {.file = file.string(), .line = 1},
                "the first line, which says of which study this journal is, is damaged or missing", "an intact journal",
                "Give another --output; or, to begin anew, remove the journal, and with it the trials that it holds.");
  const bool is_other = *first != header;
  const std::string its_header(*first);
  bool holds_trials = false;
  while (std::getline(stream, line)) {
    const auto record = record_of(line);
    if (!record) continue;
    if (is_other && std::exchange(holds_trials, true)) break;
    if (is_other) continue;
    const json trial = json::parse(*record);
    Trial& known = known_[trial["number"].get<std::uint64_t>()];
    known.status = static_cast<TrialStatus>(trial["status"].get<int>());
    known.metrics.clear();
    for (const auto& bits : trial["metrics"]) known.metrics.push_back(std::bit_cast<double>(bits.get<std::uint64_t>()));
    known.text = trial["text"].get<std::string>();
  }
  if (holds_trials)
    throw Error(ErrorCode::bad_input, {.file = file.string()}, difference_of_headers(header, its_header),
                "the journal of this study and of this job",
                "Run that study with the same options to its end, give another --output, or remove the journal.");
  if (!stream.eof()) throw Error(ErrorCode::bad_input, {.file = file.string()}, "the journal cannot be read");
  if (std::error_code failure; is_other) std::filesystem::remove(file, failure);
}

void TrialJournal::append(const std::string& record) {
  const std::string line = fmt::format("{:016x} {}\n", digest_of(record), record);
  for (std::size_t done = 0; done < line.size();) {
    const auto written = ::write(file_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(own_);
    done += static_cast<std::size_t>(written);
  }
  if (const auto now = std::chrono::steady_clock::now(); now - synced_ >= std::chrono::seconds(1)) {
    if (::fdatasync(file_) != 0) fail(own_);
    synced_ = now;
  }
}

void TrialJournal::add(std::uint64_t number, const Trial& trial) {
  std::vector<std::uint64_t> bits;
  for (const double metric : trial.metrics) bits.push_back(std::bit_cast<std::uint64_t>(metric));
  const ordered_json record = {
      {"number", number}, {"status", static_cast<int>(trial.status)}, {"metrics", bits}, {"text", trial.text}};
  append(record.dump(-1, ' ', false, json::error_handler_t::replace));
  has_trials_ = true;
}

void TrialJournal::remove() {
  std::error_code failure;
  for (const auto& file : journals_of(output_)) std::filesystem::remove(file, failure);
  std::vector<std::filesystem::path> unfinished;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(output_), failure))
    if (entry.path().filename().string().starts_with(
            std::filesystem::path(unfinished_prefix(output_)).filename().string()))
      unfinished.push_back(entry.path());
  for (const auto& file : unfinished) std::filesystem::remove(file, failure);
}

}  // namespace orrery::study
