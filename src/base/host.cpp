#include "orrery/base/host.hpp"

#include <unistd.h>

#include <array>

namespace orrery {

std::string host_name() {
  std::array<char, 256> text{};
  ::gethostname(text.data(), text.size() - 1);
  return text.data();
}

}  // namespace orrery
