#pragma once

#include "muster/core/nn/listener.h"
#include "tests/support/standard.h"

namespace muster::test {

/// A listener that calls `use` after each merge, on the thread that called `fit()`.
/// @param reads  whether it reads the divergence.
inline std::shared_ptr<Listener> onMerge(std::function<void(const MergeEvent&)> use, bool reads = false) {
  struct OnMerge final : Listener {
    OnMerge(std::function<void(const MergeEvent&)> u, bool r) : use(std::move(u)), reads(r) {}
    bool readsDivergence() const override { return reads; }
    void onMerge(const MergeEvent& event) override { use(event); }
    const std::function<void(const MergeEvent&)> use;
    const bool reads;
  };
  return std::make_shared<OnMerge>(std::move(use), reads);
}

/// Stops the training at the merge after this iteration.
inline std::shared_ptr<Listener> stopAt(std::int64_t iteration) {
  return onMerge([iteration](const MergeEvent& event) {
    if (event.iteration == iteration) event.trainer.stopFit();
  });
}

}  // namespace muster::test
