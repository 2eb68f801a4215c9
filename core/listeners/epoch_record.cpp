#include "muster/core/listeners/epoch_record.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "muster/core/nn/model.h"
#include "muster/core/nn/training_state.h"

namespace muster {
namespace {

// The first number of the scores is the epoch of the first score, from 0.
constexpr std::string_view kScores = "scores by epoch", kTests = "test accuracies";

/// Values under this name; empty if there are none, or others than doubles.
std::vector<double> numbersNamed(const std::vector<NamedValues>& state, std::string_view name) {
  const Tensor* const saved = findValues(state, name);
  if (saved == nullptr || saved->dtype() != DType::Float64) return {};
  const Tensor here = saved->device().isCpu() ? *saved : copyTo(*saved, Device::cpu());
  const auto numbers = here.span<double>();
  return {numbers.begin(), numbers.end()};
}

/// Whether it is a whole number from 0 to `most`.
bool isCount(double number, std::int64_t most) {
  return number >= 0 && number <= static_cast<double>(most) && std::trunc(number) == number;
}

void forget(Model& model) {
  std::erase_if(model.listenerState(),
                [](const NamedValues& one) { return one.name == kScores || one.name == kTests; });
}

}  // namespace

void EpochRecord::onFitStart(const FitEvent& event) {
  Model& model = event.trainer.model();
  if (!scores_.empty() || !tests_.empty()) return;  // a further fit of this process
  firstEpoch_ = model.epoch();
  if (model.iteration() == 0) return forget(model);
  readScores(model);
  const auto tests = numbersNamed(model.listenerState(), kTests);
  for (std::size_t i = 0; i + 2 < tests.size(); i += 3)
    if (isCount(tests[i], model.epoch()) && isCount(tests[i + 1], model.iteration()))
      tests_.push_back(
          {static_cast<std::int64_t>(tests[i]), static_cast<std::int64_t>(tests[i + 1]), tests[i + 2]});
}

/// Scores that do not end at the model's epoch are of another training, or early stopping has restored an
/// earlier state.
void EpochRecord::readScores(Model& model) {
  auto numbers = numbersNamed(model.listenerState(), kScores);
  if (numbers.empty() || !isCount(numbers.front(), model.epoch())) return;
  const auto first = static_cast<std::int64_t>(numbers.front());
  numbers.erase(numbers.begin());
  if (first + static_cast<std::int64_t>(numbers.size()) != model.epoch()) return;
  firstEpoch_ = first;
  scores_ = std::move(numbers);
}

void EpochRecord::onEpochEnd(const EpochEvent& event) {
  scores_.push_back(event.score);
  std::vector<double> numbers{static_cast<double>(firstEpoch_)};
  numbers.insert(numbers.end(), scores_.begin(), scores_.end());
  putValues(event.trainer.model().listenerState(), kScores, numbersAs<double>(numbers));
  readTests(event.trainer.model());
}

void EpochRecord::readTests(Model& model) {
  if (!evaluation_) return;
  const auto& results = evaluation_->results();
  if (testsRead_ == results.size()) return;
  for (; testsRead_ < results.size(); ++testsRead_) {
    const auto& result = results[testsRead_];
    tests_.push_back({result.epoch, result.iteration, result.evaluation.mainScore().second});
  }
  std::vector<double> numbers;
  for (const auto& [epoch, iteration, value] : tests_)
    numbers.insert(numbers.end(), {static_cast<double>(epoch), static_cast<double>(iteration), value});
  putValues(model.listenerState(), kTests, numbersAs<double>(numbers));
}

void EpochRecord::write(JsonWriter& json, Task task, std::string_view data) const {
  json.put("firstEpoch", firstEpoch());
  json.put("scoreByEpoch", std::span<const double>(scores_));
  if (tests_.empty()) return;
  const auto name = fmt::format("{}{}", data, task == Task::Regression ? "R2" : "Accuracy");
  json.list(fmt::format("{}ByEpoch", name), tests_.size(), [&](std::size_t i, JsonWriter& test) {
    test.put("epoch", tests_[i].epoch);
    test.put("iteration", tests_[i].iteration);
    test.put(name, tests_[i].value);
  });
}

}  // namespace muster
