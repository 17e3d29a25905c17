#include "output.hpp"

#include <string>

#include "orrery/parallel/lead.hpp"
#include "orrery/results/read.hpp"

namespace orrery::results {
namespace {

namespace fs = std::filesystem;

}  // namespace

Output::Output(const std::filesystem::path& path, parallel::Communicator& world) : world_(world) {
  world_.agree([&] {
    if (world_.is_root()) open_ = std::make_unique<Open>(path);
  });
  if (path.empty()) return;
  std::error_code failure;
  std::string partial = world_.is_root() ? fs::absolute(open_->partial->partial(), failure).string() : "";
  world_.broadcast(partial, Rank(0));
  if (!world_.is_root()) of_rank_0_.emplace(partial);
}

std::filesystem::path Output::commit(bool force) {
  fs::path name;
  world_.agree([&] {
    if (world_.is_root() && !open_->partial) return;
    if (!world_.is_root() && !of_rank_0_) return;
    parallel::lead(world_, [&](const parallel::GivesSigns& give_sign) {
      file().close(give_sign);
      name = open_->path;
      give_sign(seconds_for(open_->partial->size()));
      if (force || is_interrupted(name))
        open_->partial->commit_durably();
      else
        name = open_->partial->commit_durably_beside();
    });
  });
  return name;
}

}  // namespace orrery::results
