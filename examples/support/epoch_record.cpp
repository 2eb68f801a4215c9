#include "examples/support/epoch_record.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "muster/core/nn/model.h"
#include "muster/core/nn/training_state.h"

namespace example {
namespace {

using namespace muster;

constexpr std::string_view kScores = "scores by epoch", kTests = "test accuracies";

/// Values under this name; empty if there are none, or others than doubles.
std::vector<double> numbersNamed(const std::vector<NamedValues>& state, std::string_view name) {
  const Tensor* const saved = findValues(state, name);
  if (saved == nullptr || saved->dtype() != DType::Float64) return {};
  const Tensor here = saved->device().isCpu() ? *saved : copyTo(*saved, Device::cpu());
  const auto numbers = here.span<double>();
  return {numbers.begin(), numbers.end()};
}

void keep(Model& model, std::string_view name, const std::vector<double>& numbers) {
  auto& state = model.listenerState();
  const auto known = std::ranges::find(state, name, &NamedValues::name);
  if (known != state.end())
    known->values = numbersAs<double>(numbers);
  else
    state.push_back({std::string(name), numbersAs<double>(numbers)});
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
  if (model.trainingState().empty()) return forget(model);
  scores_ = numbersNamed(model.listenerState(), kScores);
  if (static_cast<std::int64_t>(scores_.size()) > model.epoch()) scores_.clear();
  firstEpoch_ -= static_cast<std::int64_t>(scores_.size());
  const auto tests = numbersNamed(model.listenerState(), kTests);
  for (std::size_t i = 0; i + 2 < tests.size(); i += 3)
    tests_.push_back(
        {static_cast<std::int64_t>(tests[i]), static_cast<std::int64_t>(tests[i + 1]), tests[i + 2]});
}

void EpochRecord::onEpochEnd(const EpochEvent& event) {
  scores_.push_back(event.score);
  keep(event.trainer.model(), kScores, scores_);
  readTests(event.trainer.model());
}

void EpochRecord::readTests(Model& model) {
  if (!evaluation_) return;
  const auto& results = evaluation_->results();
  if (testsRead_ == results.size()) return;
  for (; testsRead_ < results.size(); ++testsRead_) {
    const auto& result = results[testsRead_];
    tests_.push_back({result.epoch, result.iteration, result.evaluation.accuracy()});
  }
  std::vector<double> numbers;
  for (const auto& [epoch, iteration, accuracy] : tests_)
    numbers.insert(numbers.end(), {static_cast<double>(epoch), static_cast<double>(iteration), accuracy});
  keep(model, kTests, numbers);
}

void EpochRecord::write(JsonWriter& json) const {
  json.put("firstEpoch", firstEpoch());
  json.put("scoreByEpoch", std::span<const double>(scores_));
  if (tests_.empty()) return;
  json.list("testAccuracyByEpoch", tests_.size(), [&](std::size_t i, JsonWriter& test) {
    test.put("epoch", tests_[i].epoch);
    test.put("iteration", tests_[i].iteration);
    test.put("testAccuracy", tests_[i].accuracy);
  });
}

}  // namespace example
