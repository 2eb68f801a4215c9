#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "muster/core/nn/listener.h"

namespace muster::test {

/// A listener that calls `use` after each merge, on the thread that called `fit()`.
inline std::shared_ptr<Listener> onMerge(std::function<void(const MergeEvent&)> use) {
  struct OnMerge final : Listener {
    explicit OnMerge(std::function<void(const MergeEvent&)> u) : use(std::move(u)) {}
    void onMerge(const MergeEvent& event) override { use(event); }
    const std::function<void(const MergeEvent&)> use;
  };
  return std::make_shared<OnMerge>(std::move(use));
}

}  // namespace muster::test
