#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/parallel/communicator.hpp"
#include "trial.hpp"

namespace orrery::study {

/// What a study has found so far, in files beside its output, so that a job that ends early loses nothing. Each rank
/// appends a line for each of its trials to a file of its own: OUTPUT.journal.N. A line begins with a checksum; torn
/// lines do not count.
class TrialJournal {
 public:
  /// What a study depends on: names, and digests of what they hold.
  using Identity = std::vector<std::pair<std::string, std::uint64_t>>;
  /// Options by which a job asks for some of the trials only, with their values.
  using Request = std::map<std::string, std::string>;

  /// Reads the journals that earlier jobs have left beside `output`, and creates this rank's own one. Collective.
  /// Throws Error: bad_input for a journal with trials of something else than `identity`, or of a job that asked for
  /// other trials, with what differs; output for one whose first line is damaged, if a file cannot be written, or if
  /// another job that still runs writes to one. A journal of something else that holds no trial is removed.
  TrialJournal(std::filesystem::path output, const Identity& identity, const Request& request,
               parallel::Communicator& world);
  /// Removes this rank's own journal if it holds no trial, or after `drop_unless_stopped`. Does nothing of this after
  /// `keep`.
  ~TrialJournal();
  TrialJournal(const TrialJournal&) = delete;
  TrialJournal& operator=(const TrialJournal&) = delete;

  /// Returns the trials of earlier jobs by number, the same on all ranks.
  const std::map<std::uint64_t, Trial>& known() const { return known_; }
  /// Adds trials that are known from elsewhere to those of earlier jobs. All ranks give the same ones.
  void adopt(std::map<std::uint64_t, Trial> trials) { known_.merge(std::move(trials)); }
  /// Appends a trial. What is older than a second is on the disk. Throws Error (output).
  void add(std::uint64_t number, const Trial& trial);
  /// Lets a job that ends early leave its own journal beside the output.
  void keep() { is_kept_ = true; }
  /// Lets a job that fails leave no journal of its own, unless it is stopped on request.
  void drop_unless_stopped() { is_dropped_ = true; }
  /// Removes all journals of this output. Call it on rank 0 when the results are written.
  void remove();

 private:
  void read(const std::filesystem::path& file, std::string_view header);
  void create(const std::string& header);
  void append(const std::string& record);

  std::filesystem::path output_, own_;
  std::map<std::uint64_t, Trial> known_;
  int file_ = -1;
  bool has_trials_ = false, is_kept_ = false, is_dropped_ = false;  ///< this rank's own journal
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

/// Returns the names of what differs between two studies.
std::vector<std::string> differences(const TrialJournal::Identity& mine, const TrialJournal::Identity& other);

/// Returns the journals of an output, whoever wrote them, ascending.
std::vector<std::filesystem::path> journals_of(const std::filesystem::path& output);

}  // namespace orrery::study
