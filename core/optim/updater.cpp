#include "muster/core/optim/updater.h"

#include <cmath>

#include "muster/core/base/error.h"
#include "muster/core/base/nearest_word.h"
#include "muster/core/optim/updaters.h"

namespace muster {
namespace {

/// A registry that initially contains the library's updaters.
struct UpdaterRegistry : Registry<detail::UpdaterHolder> {
  UpdaterRegistry() : Registry("updater") { addAll(static_cast<LibraryUpdaters*>(nullptr)); }
  template <typename... Rule>
  void addAll(std::tuple<Rule...>*) {
    (add(Rule::kType, [] { return std::make_unique<detail::UpdaterOf<Rule>>(); }), ...);
  }
};

}  // namespace

void detail::requireLearningRate(std::string_view type, const Schedule& schedule) {
  schedule.validate();
  const double first = schedule.at(0);
  require(std::isfinite(first) && first >= 0,
          "updater {}: the learning rate must be finite and not negative, but it starts at {}", type, first);
}

void detail::requireFraction(std::string_view type, std::string_view option, double value) {
  require(value >= 0 && value < 1, "updater {}: {} must be in [0, 1), got {}", type, option, value);
}

void detail::requireEpsilon(std::string_view type, double epsilon) {
  const auto used = static_cast<float>(epsilon);
  require(std::isfinite(used) && used > 0,
          "updater {}: epsilon must be positive and finite in float32, got {}", type, epsilon);
}

void detail::requireNotNegative(std::string_view type, std::string_view option, double value) {
  require(std::isfinite(value) && value >= 0, "updater {}: {} must be finite and not negative, got {}", type,
          option, value);
}

Updater::Updater() : Updater(Sgd{}) {}

void Updater::field(std::string_view name, Fields& fields) {
  std::string type(holder_->type());
  fields.object(name, type, [&](Fields& inside) {
    if (type != holder_->type()) holder_ = makeByName(registry(), type);
    holder_->fields(inside);
  });
}

Registry<detail::UpdaterHolder>& Updater::registry() {
  static UpdaterRegistry updaters;
  return updaters;
}

Updater Updater::named(std::string_view type, double learningRate) {
  Updater updater;
  updater.holder_ = makeByName(registry(), type);
  updater.holder_->setLearningRate(learningRate);
  return updater;
}

}  // namespace muster
