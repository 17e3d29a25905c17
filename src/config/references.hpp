#pragma once

#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/config/provenance.hpp"
#include "value.hpp"

namespace orrery::config {

/// Puts the CONFIG.yaml that `base` of the root names below the root, which says only what differs. The base may have a
/// base in turn. Mappings are merged, and lists replaced. The texts of bases go to `inputs`. Throws Error (bad_input)
/// for a file that cannot be read or that stands on itself, and for a chain of more than 64 files.
void follow_base(Value& root, std::vector<InputText>& inputs, Faults& faults);

/// Puts what other files hold into the root, `system` and `workload.model`. `stack: FILE` of the root gives values for
/// what the root itself does not say. In `system` and `workload.model` the name of a file stands for all that it holds,
/// and in a mapping, that of a file too, `base: FILE` for what the mapping itself does not say. Files are found as
/// find_preset says, and their texts go to `inputs`. Faults are a file that cannot be read, one that stands on itself,
/// and a chain of more than 64 files.
void follow_references(Value& root, std::vector<InputText>& inputs, Faults& faults);

/// Says whether a setting of --set names a stack or a base, which takes the place of the one in the file. Such settings
/// belong to the root before its references are followed.
bool names_reference(std::string_view setting);
/// Lets a mapping stand on the file that a scalar names, so that a setting may name another base.
void make_references_mappings(Value& root);

/// Reads `provenance`. Throws Error (bad_input) with the line of a number that is none.
Provenance read_provenance(const Value& said);

}  // namespace orrery::config
