#include "muster/parallel/training/listeners_here.h"

#include <chrono>

#include "muster/core/base/log.h"

namespace muster {
namespace {

/// What `reportScoreAfterAveraging(true)` adds.
class ReportListener final : public Listener {
 public:
  void onMerge(const MergeEvent& event) override {
    logInfo("iteration {}: score {:.6f} after averaging in {:.3f} ms", event.iteration, event.score,
            std::chrono::duration<double, std::milli>(event.mergeTime).count());
  }
};

}  // namespace

Listeners listenersHere(Listeners listeners, bool report, int node) {
  if (report) listeners.push_back(std::make_shared<ReportListener>());
  if (node > 0)
    std::erase_if(listeners, [](const auto& one) { return one->scope() == ListenerScope::Merged; });
  return listeners;
}

}  // namespace muster
