#include "muster/parallel/training/listeners_here.h"

#include <chrono>
#include <utility>

#include "muster/core/base/log.h"
#include "muster/core/listeners/node_listener.h"
#include "muster/core/nn/shown_progress.h"
#include "muster/core/nn/state_recorder.h"

namespace muster {
namespace {

/// The listener that `reportScoreAfterAveraging(true)` adds.
class ReportListener final : public Listener {
 public:
  void onMerge(const MergeEvent& event) override {
    logInfo("iteration {}: score {:.6f} after averaging in {:.3f} ms", event.iteration, event.score,
            std::chrono::duration<double, std::milli>(event.mergeTime).count());
  }
};

}  // namespace

bool isOnAllNodes(const Listener& listener) {
  return dynamic_cast<const NodeListener*>(&listener) != nullptr;
}

Listeners listenersHere(Listeners listeners, bool report, int node) {
  if (report) listeners.push_back(std::make_shared<ReportListener>());
  if (node == 0) listeners = detail::withProgress(std::move(listeners));
  if (node > 0)
    std::erase_if(listeners, [](const auto& one) {
      return one->scope() == ListenerScope::Merged && !isOnAllNodes(*one);
    });
  for (const auto& one : listeners)
    if (auto* const everywhere = dynamic_cast<NodeListener*>(one.get())) everywhere->setNode(node);
  return recordersLast(std::move(listeners));
}

}  // namespace muster
