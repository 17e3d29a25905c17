#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::config {

/// Looks at a configuration as a whole. Faults name the key, and where it was given. Each function is in the file of
/// the keys that it is about.
class Validation {
 public:
  Validation(const Configuration& configuration, Faults& faults)
      : c_(configuration), faults_(faults), topology_(configuration.topology()) {}

  void run();

 private:
  /// Runs `action`; a fault that it throws gets the line of its key, or of the mapping that holds the key.
  template <class Action>
  bool attempt(Action action) {
    return faults_.attempt([&] {
      try {
        action();
      } catch (const Error& error) {
        throw Error(error.code(), located(error.place()), error.text());
      }
    });
  }

  void require(bool holds, std::string_view key, std::string_view found, std::string_view expected) {
    if (!holds) refuse(key, found, expected);
  }
  /// The same where texts are made for a fault only, because studies read many configurations.
  void refuse(std::string_view key, std::string_view found, std::string_view expected) {
    faults_.add(Error(ErrorCode::bad_input, located({.key = std::string(key)}), found, expected));
  }
  /// Returns a place that is only a key with the file and the line where the key was given. A key of a workload is that
  /// of the job at hand.
  Place located(Place place) const;

  void validate_workload();  ///< current workload, in the system that it runs on
  void validate_uses();
  void validate_compute_share();
  void validate_modules();
  void validate_network();
  void validate_flits();
  void validate_ports();
  void validate_graph();
  void validate_packets();
  void validate_reduction();
  void validate_recording();
  void validate_recorded_communication();
  void validate_library();
  void validate_gpu();
  void validate_streams();
  void validate_traces();
  void validate_generated();
  void validate_experts(const workload::Description& generated);
  void validate_load();
  void validate_jobs();

  const Configuration& c_;
  Faults& faults_;
  topology::Topology topology_;
  // The workload at hand, its job's key with a dot behind it (empty: the only workload), and its NPUs.
  const Workload* workload_ = nullptr;
  std::string job_;
  std::uint32_t num_npus_ = 0;
};

}  // namespace orrery::config
