#include "output.hpp"

namespace orrery::results {

Output::Output(const std::filesystem::path& path, parallel::Communicator& world) : world_(world) {
  world_.agree([&] {
    if (world_.is_root()) open_ = std::make_unique<Open>(path);
  });
}

void Output::commit() {
  on_root([&](File& file) {
    file.close();
    open_->partial.commit_durably();
  });
}

}  // namespace orrery::results
