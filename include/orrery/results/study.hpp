#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/parallel/communicator.hpp"

namespace orrery::results {

/// A column of texts, of which many are alike: each text is kept once.
class TextColumn {
 public:
  void add(const std::string& text);
  std::size_t size() const { return rows_.size(); }
  const std::string& operator[](std::size_t row) const { return texts_[rows_[row]]; }
  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<std::uint32_t>& rows() const { return rows_; }  ///< [rows] positions in `texts`

 private:
  std::vector<std::string> texts_;
  std::vector<std::uint32_t> rows_;
  std::unordered_map<std::string, std::uint32_t> position_of_;
};

/// A column of numbers of a study's trials.
struct StudyColumn {
  std::string name, units, description;
  std::vector<double> values;  ///< [trials]; NaN: not known
};

/// A parameter or a derived value of a study.
struct StudyParameter {
  std::string name;
  TextColumn values;            ///< [trials] as the configuration has them; empty where it has none
  std::string units;            ///< units of the numbers
  std::vector<double> numbers;  ///< [texts of `values`] in SI units, NaN for none; empty if not all are numbers
};

/// What varying one parameter around the best trial does to the first objective.
struct TornadoBar {
  std::string parameter;
  std::string low_value, high_value;  ///< the lowest and the highest of its values that can be used
  double low = 0, high = 0;           ///< the first objective with them
};

/// What the first objective depends on.
struct StudySensitivity {
  std::vector<std::pair<std::string, double>> main_effects;  ///< parameters, and their shares of the variance
  std::vector<TornadoBar> tornado;
};

/// How a study was searched: all that may differ between two files of one study.
struct StudyJob {
  std::string command_line;
  std::string shard;                                            ///< "I/N"; empty: the whole study
  std::vector<std::pair<std::string, std::uint64_t>> identity;  ///< inputs on which the trials depend: names, digests
  std::vector<std::uint64_t> extra;  ///< numbers that were simulated although their bounds rule them out
};

/// What a study found, as explore.h5 holds it (docs/exploration.md).
struct StudyTable {
  std::vector<std::pair<std::string, std::string>> inputs;      ///< names and texts: STUDY.yaml, CONFIG.yaml
  std::vector<std::pair<std::string, std::string>> attributes;  ///< attributes of /study: how it was searched
  std::vector<std::pair<std::string, bool>> objectives;         ///< metrics, and whether more is better
  std::vector<std::string> constraints;
  std::vector<std::uint64_t> number;  ///< [trials] among the legal points
  TextColumn status, error, caveat;   ///< [trials]
  std::vector<StudyColumn> metrics;
  std::vector<StudyParameter> parameters;
  std::vector<std::uint64_t> best;  ///< numbers: the top, the best one first, or the Pareto front
  std::vector<std::pair<std::string, std::uint64_t>> funnel;  ///< reasons, and how many points fell to them
  StudySensitivity sensitivity;
  StudyJob job;
};

/// The trials of a file that `write_study` has written.
struct StoredStudy {
  std::string shard;
  std::vector<std::pair<std::string, std::uint64_t>> identity;
  std::vector<std::uint64_t> number;         ///< [trials]
  std::vector<std::string> status, error;    ///< [trials]
  std::vector<std::vector<double>> metrics;  ///< [columns][trials]
};
/// Reads trials with these columns of metrics; NaN for columns that the file lacks. Throws Error (bad_input) that names
/// the file.
StoredStudy read_study(const std::filesystem::path& path, std::span<const std::string> columns);

/// Writes the file on rank 0, as `write` does. Returns the name that it has got there. Collective. Throws Error
/// (output) on all ranks if rank 0 cannot write.
std::filesystem::path write_study(const std::filesystem::path& path, const StudyTable& study, bool force,
                                  parallel::Communicator& world);

}  // namespace orrery::results
