#include <google/protobuf/stubs/common.h>

#include "orrery/trace/store.hpp"

namespace orrery::trace {

std::string protobuf_version() { return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION); }

}  // namespace orrery::trace
