#include <algorithm>
#include <tuple>

#include "draws.hpp"
#include "orrery/serving/policy.hpp"

namespace orrery::serving {
namespace {

/// Returns the position in the pool of the instance with the least value(view), the lowest number among equal ones.
template <class Value>
std::size_t least_of(const Choice& choice, Value value) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < choice.pool.size(); ++i)
    if (value(choice.views[choice.pool[i]]) < value(choice.views[choice.pool[best]])) best = i;
  return best;
}

std::size_t drawn(const Choice& choice, std::uint64_t number) {
  return static_cast<std::size_t>(whole_draw(choice.seed, choice.request, draw_of_router + number, choice.pool.size()));
}

constexpr Policy round_robin{
    .name = "round-robin",
    .help = "the next in turn",
    .looks_at_instances = false,
    .choose = [](const Choice& choice) -> std::size_t { return choice.turn % choice.pool.size(); }};

constexpr Policy by_session{.name = "session",
                            .help = "the session modulo the number of instances, or the request without a session",
                            .looks_at_instances = false,
                            .choose = [](const Choice& choice) -> std::size_t {
                              const auto own = choice.requests[choice.request].session;
                              const std::uint64_t number = own < 0 ? choice.request : static_cast<std::uint64_t>(own);
                              return number % choice.pool.size();
                            }};

constexpr Policy random_choice{
    .name = "random", .help = "a drawn one", .looks_at_instances = false, .choose = [](const Choice& choice) {
      return drawn(choice, 0);
    }};

constexpr Policy least_requests{.name = "least-requests",
                                .help = "the one with the fewest requests sent and not reported finished",
                                .choose = [](const Choice& choice) {
                                  return least_of(choice, [](const InstanceView& v) { return v.open_requests; });
                                }};

constexpr Policy least_tokens{.name = "least-tokens",
                              .help = "the one with the fewest prompt tokens of such requests",
                              .choose = [](const Choice& choice) {
                                return least_of(choice, [](const InstanceView& v) { return v.open_tokens; });
                              }};

constexpr Policy two_choices{.name = "two-choices",
                             .help = "the better of two drawn ones by least-requests",
                             .choose = [](const Choice& choice) {
                               const std::size_t a = drawn(choice, 0), b = drawn(choice, 1);
                               const auto rank = [&](std::size_t i) {
                                 return std::pair(choice.views[choice.pool[i]].open_requests, choice.pool[i]);
                               };
                               return rank(b) < rank(a) ? b : a;
                             }};

constexpr Policy vllm_dp{.name = "vllm-dp",
                         .help = "the least of 4 * waiting + running, as reported, with those under way as waiting",
                         .looks_at_counts = true,
                         .choose = [](const Choice& choice) {
                           return least_of(choice, [](const InstanceView& v) {
                             return 4 * (std::uint64_t{v.waiting} + v.under_way) + v.running;
                           });
                         }};

/// Returns how many leading blocks of a prompt an instance was sent before.
std::uint32_t known_blocks(const Choice& choice, const InstanceView& view) {
  const std::uint32_t most = choice.requests.num_keys(choice.request, choice.block);
  std::uint32_t count = 0;
  while (count < most && view.keys.contains(*choice.requests.key(choice.request, count, choice.block))) ++count;
  return count;
}

constexpr Policy prefix{.name = "prefix",
                        .help = "the one that was sent the longest beginning of the prompt, then least-requests",
                        .looks_at_keys = true,
                        .choose = [](const Choice& choice) {
                          std::size_t best = 0;
                          std::uint32_t most = 0;
                          for (std::size_t i = 0; i < choice.pool.size(); ++i) {
                            const InstanceView& view = choice.views[choice.pool[i]];
                            const std::uint32_t known = known_blocks(choice, view);
                            const auto& other = choice.views[choice.pool[best]];
                            const bool is_better =
                                known > most || (known == most && view.open_requests < other.open_requests);
                            if (i > 0 && !is_better) continue;
                            best = i;
                            most = known;
                          }
                          return best;
                        }};

}  // namespace

std::span<const Policy* const> Policy::registry() {
  static constexpr const Policy* all[] = {&round_robin,  &by_session,  &random_choice, &least_requests,
                                          &least_tokens, &two_choices, &vllm_dp,       &prefix};
  return all;
}

}  // namespace orrery::serving
