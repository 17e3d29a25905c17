#include "output.hpp"

#include "orrery/results/read.hpp"

namespace orrery::results {

Output::Output(const std::filesystem::path& path, parallel::Communicator& world) : world_(world) {
  world_.agree([&] {
    if (world_.is_root()) open_ = std::make_unique<Open>(path);
  });
}

std::filesystem::path Output::commit(bool force) {
  std::filesystem::path name;
  on_root([&](File& file) {
    file.close();
    name = open_->path;
    if (force || is_interrupted(name))
      open_->partial.commit_durably();
    else
      name = open_->partial.commit_durably_beside();
  });
  return name;
}

}  // namespace orrery::results
