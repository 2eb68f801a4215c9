#include "muster/parallel/nodes/elastic/membership.h"

#include <algorithm>

#include "muster/core/base/start_thread.h"
#include "muster/parallel/nodes/node_transport.h"

namespace muster {

using namespace std::chrono_literals;

Membership::Membership(NodeStore& store, Options options)
    : store_(store), options_(std::move(options)), process_(drawnNumber()), rules_(process_, options_) {
  {
    const Lock lock(mutex_);
    rules_.beat(store_, Clock::now());
  }
  thread_ = startThread("the membership", [this](const std::stop_token& stop) { beat(stop); });
}

Membership::~Membership() {
  thread_.request_stop();
  thread_.join();
  const auto rest = std::clamp<std::chrono::milliseconds>(options_.silence / 50, 1ms, 50ms);
  const Lock lock(mutex_);
  try {
    while (!rules_.tryLeave(store_, Clock::now())) std::this_thread::sleep_for(rest);
  } catch (const std::exception&) {  // the store is not available: the others detect this process's silence
  }
}

/// Rewrites the card several times in the interval after which others consider this process dead.
void Membership::beat(const std::stop_token& stop) {
  const auto rest = std::max<std::chrono::milliseconds>(options_.silence / 10, 5ms);
  while (!stop.stop_requested()) {
    Lock lock(mutex_);
    try {
      rules_.beat(store_, Clock::now());
      joinRequested_ = rules_.joinRequested();
    } catch (const NodeFailure&) {  // `next` reports it
    }
    changed_.wait_for(lock, stop, rest, [] { return false; });
  }
}

std::optional<Generation> Membership::next(const std::function<bool()>& stopped) {
  const auto rest = std::clamp<std::chrono::milliseconds>(options_.silence / 50, 1ms, 50ms);
  Lock lock(mutex_);
  for (rules_.begin(store_, Clock::now());; changed_.wait_for(lock, rest)) {
    if (stopped()) return {};
    if (auto generation = rules_.tryNext(store_, Clock::now())) {
      joinRequested_ = rules_.joinRequested();
      return generation;
    }
  }
}

}  // namespace muster
