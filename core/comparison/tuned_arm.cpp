#include "muster/core/comparison/tuned_arm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "muster/core/base/number_text.h"

namespace muster {
namespace {

/// The number to which a choice sets its only field, as in `learningRate=0.03`; NaN if there is none.
double numberOf(const TuningChoice& choice) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (choice.settings.size() != 1) return kNone;
  const std::string_view set = choice.settings.front();
  return parsedNumber(set.substr(set.find('=') + 1)).value_or(kNone);
}

}  // namespace

bool TunedArm::failed() const {
  return std::ranges::none_of(losses, [](double loss) { return std::isfinite(loss); });
}

bool TunedArm::atEnd() const {
  if (choices.size() < 2 || failed()) return false;
  std::vector<double> tried;
  for (const auto& choice : choices) tried.push_back(numberOf(choice));
  if (std::ranges::any_of(tried, [](double number) { return std::isnan(number); })) return false;
  const auto [least, most] = std::ranges::minmax(tried);
  return tried[best] == least || tried[best] == most;
}

TunedArm chooseTuning(std::string arm, std::vector<TuningChoice> choices,
                      std::span<const RunRecord* const> runs) {
  TunedArm tuned{.arm = std::move(arm), .choices = std::move(choices), .losses = {}};
  for (const auto* run : runs) {
    const double loss = run->failed() ? std::numeric_limits<double>::infinity() : run->end().loss;
    tuned.losses.push_back(std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity());
    if (!run->points.empty()) tuned.seconds += run->end().seconds;
    if (run->oversubscribed()) tuned.threads = run->threads, tuned.cores = run->cores;
    if (run->loaded) tuned.loaded = true, tuned.othersBusy = std::max(tuned.othersBusy, run->othersBusy);
  }
  tuned.best = static_cast<std::size_t>(std::ranges::min_element(tuned.losses) - tuned.losses.begin());
  return tuned;
}

}  // namespace muster
