#include "examples/compare_convergence/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/core/base/plural.h"

namespace convergence {
namespace {

/// Whether `member` differs between arms with several workers.
template <typename T>
bool varies(const Grid& grid, T Arm::*member) {
  const Arm* first = nullptr;
  for (const auto& arm : grid.arms) {
    if (arm.mode == Mode::Single) continue;
    if (first != nullptr && arm.*member != first->*member) return true;
    if (first == nullptr) first = &arm;
  }
  return false;
}

}  // namespace

std::string shortArmName(const Arm& arm) {
  switch (arm.mode) {
    case Mode::Single:
      return fmt::format("one worker, batch {}", arm.batch);
    case Mode::Synchronous:
      return "synchronous";
    case Mode::Shared:
      return "shared gradients";
    case Mode::Strategy:
      return arm.frequency > 0 ? fmt::format("{} every {}", arm.strategy, arm.frequency) : arm.strategy;
    case Mode::Averaging:
      break;
  }
  return fmt::format("averaging every {}{}", arm.frequency,
                     arm.synchronousUntil > 0 ? fmt::format(" after {}", arm.synchronousUntil) : "");
}

std::string armName(const Arm& arm, const Grid& grid) {
  std::string name = shortArmName(arm);
  if (arm.mode != Mode::Single) {
    name += fmt::format(", {}", muster::plural(arm.workers, "worker"));
    if (varies(grid, &Arm::batch)) name += fmt::format(", batch {}", arm.batch);
  }
  if (varies(grid, &Arm::updater)) name += ", " + arm.updater;
  const auto otherRate = [&](const Arm& other) { return other.learningRate != arm.learningRate; };
  if (std::ranges::any_of(grid.arms, otherRate)) name += fmt::format(", rate {:.4g}", arm.learningRate);
  return name;
}

std::string panelName(const Panel& panel) {
  const double factor = scalingFactor(panel.scaling, panel.workers);
  const auto scaled =
      panel.scaling == Scaling::None
          ? std::string()
          : fmt::format(" ({} scaling of {:.4g})", muster::nameOf(panel.scaling), panel.updater.learningRate);
  return fmt::format("{}, batch {} each, {} at learning rate {:.4g}{}",
                     muster::plural(panel.workers, "worker"), panel.batch, panel.updater.name,
                     panel.updater.learningRate * factor, scaled);
}

std::string armFileName(const Arm& arm) {
  std::string mode(arm.mode == Mode::Strategy ? arm.strategy : muster::nameOf(arm.mode));
  std::ranges::replace(mode, ':', '-');
  return fmt::format("{}-w{}-f{}-b{}-{}-lr{}-u{}", mode, arm.workers, arm.frequency, arm.batch, arm.updater,
                     arm.learningRate, arm.synchronousUntil);
}

}  // namespace convergence
