#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery {

/// The faults of the input that a search has found. A search goes on after a fault, so that all of them can be told.
/// What is kept and how it is told depends neither on the order in which faults were found nor on who found them: of
/// faults that differ in their NPU alone, that of the lowest NPU is kept, and of one file the first thousand.
class Faults {
 public:
  void add(const Error& fault);
  /// Runs `action`; an Error about the input that it throws becomes a fault, any other goes on. Returns whether
  /// none was thrown.
  template <class Action>
  bool attempt(Action action) {
    try {
      action();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input && error.code() != ErrorCode::usage) throw;
      add(error);
      return false;
    }
  }

  bool empty() const { return files_.empty(); }
  /// Returns the number of faults that are kept.
  std::size_t count() const;
  /// Calls visit(fault) for each that is kept.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [name, file] : files_)
      for (const Error& fault : file.faults) visit(fault);
  }
  /// Returns one text for each fault: first those without an NPU, then by NPU, file and place. Of one file at most
  /// `most_of_file`, then one that says how many more it has.
  std::vector<std::string> texts(std::size_t most_of_file = 20) const;
  /// Returns `usage` if there is a fault of usage, else `bad_input`.
  ErrorCode code() const;
  /// Throws them as one Error unless there are none: a single fault as it is, several as a list of 20 at most.
  void raise() const;

 private:
  /// By what stands in the file, whoever reads it.
  struct ByPlace {
    bool operator()(const Error& a, const Error& b) const;
  };
  struct File {
    std::set<Error, ByPlace> faults;
    bool is_full = false;  ///< there were more
  };

  std::map<std::string, File> files_;  // by name; "" holds what is in no file
};

}  // namespace orrery
