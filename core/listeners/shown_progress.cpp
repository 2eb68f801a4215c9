#include "muster/core/nn/shown_progress.h"

#include <algorithm>
#include <atomic>

#include "muster/core/listeners/progress_listener.h"
#include "muster/core/listeners/watch_listener.h"

namespace muster {
namespace {

std::atomic<bool> shown{true};

bool showsProgress(const std::shared_ptr<Listener>& listener) {
  const auto* const one = listener.get();
  return dynamic_cast<const ProgressListener*>(one) != nullptr ||
         dynamic_cast<const WatchListener*>(one) != nullptr;
}

}  // namespace

void showProgress(bool wanted) {
  shown = wanted;
}

Listeners detail::withProgress(Listeners listeners) {
  if (shown && standardErrorIsTerminal() && std::ranges::none_of(listeners, showsProgress))
    listeners.insert(listeners.begin(), std::make_shared<ProgressListener>());
  return listeners;
}

}  // namespace muster
