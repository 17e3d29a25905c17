#pragma once

#include "preflight.hpp"

namespace orrery::check {

/// Warns where the times of a library are extrapolated: on links or groups far from those that were measured, in nodes
/// that are not wired as its machines are, and where measured files correct nothing or other groups. There is one
/// warning of each kind, however many groups cause it.
class LibraryNotices {
 public:
  LibraryNotices(const Subject& subject, Notices& notices);

  /// Looks at a collective of a communicator. Call it for the first member.
  void look_at(const communicator::CommunicatorSpec& spec, const collective::GroupLayout& layout, collective::Kind kind,
               Bytes size, NpuId first_member);

 private:
  void look_at_system();

  const Subject& subject_;
  Notices& notices_;
  bool has_library_;
};

}  // namespace orrery::check
