#pragma once

#include <memory>
#include <vector>

#include "group_layout.hpp"
#include "orrery/collective/library.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::collective {

/// What each member of a collective of a library sends along one axis of its grid; for members that fill no grid, along
/// the one axis of all.
struct LibraryFlow {
  const Axis* axis = nullptr;
  double bytes = 0;        ///< bytes of data of a member
  double share = 1;        ///< share of the links that they reach
  double rate = 0;         ///< bytes per second of a member
  bool is_outer = false;   ///< the axis is between nodes
  bool to_all = false;     ///< to all positions; else to the neighbours
  bool one_way = false;    ///< to the next position only, in Rings and Meshes too
  std::uint32_t port = 0;  ///< port of an axis between nodes: LibraryGroup::port
};

/// Returns the flows that put the bytes of a collective on the links of its grid. Of what leaves a node, each axis
/// carries what differs in its dimension and in no higher one. O(axes).
std::vector<LibraryFlow> library_flows(const GroupLayout& layout, const Options& options, const LibraryGroup& group,
                                       const LibraryTime& time);

/// Returns a program whose flows share links with whatever else is under way, and which takes `time` where nothing is:
/// the members wait for what the flows do not take, send, and end together, after the last flow.
std::shared_ptr<const MessageProgram> library_program(const network::DelayModel& delays,
                                                      std::shared_ptr<const GroupLayout> layout, const Options& options,
                                                      const LibraryGroup& group, const LibraryTime& time);

}  // namespace orrery::collective
