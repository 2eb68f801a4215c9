#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "muster/core/io/json_fields.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/nn/listener.h"

namespace muster {

/// The score of each finished epoch, and the results of the tests during the training. They are kept with
/// the model (Model::listenerState), so checkpoints hold them, and a resumed training has them from its
/// beginning.
class EpochRecord final : public Listener {
 public:
  /// A result of a test during the training.
  struct Test {
    std::int64_t epoch = 0;      ///< epochs finished
    std::int64_t iteration = 0;  ///< iterations finished
    double value = 0;            ///< accuracy, or R2 of a regression
  };

  /// @param tests  may be null. Must come earlier in the list of listeners.
  explicit EpochRecord(std::shared_ptr<const EvaluationListener> tests = {})
      : evaluation_(std::move(tests)) {}

  /// The first epoch that `scores` has, counted from 1; 0 if none has finished.
  std::int64_t firstEpoch() const { return scores_.empty() ? 0 : firstEpoch_ + 1; }
  const std::vector<double>& scores() const { return scores_; }
  const std::vector<Test>& tests() const { return tests_; }
  /// Writes these as `firstEpoch`, `scoreByEpoch` and, if there are any, `testAccuracyByEpoch`, or
  /// `testR2ByEpoch` of a regression.
  /// @param task  of the tests.  @param data  of the tests: "test" or "validation", the beginning of the
  /// names.
  void write(JsonWriter& json, Task task = Task::Classification, std::string_view data = "test") const;

  void onFitStart(const FitEvent& event) override;
  void onMerge(const MergeEvent& event) override { readTests(event.trainer.model()); }
  void onEpochEnd(const EpochEvent& event) override;

 private:
  void readScores(Model& model);
  void readTests(Model& model);

  std::shared_ptr<const EvaluationListener> evaluation_;
  std::size_t testsRead_ = 0;
  std::int64_t firstEpoch_ = 0;  // from 0
  std::vector<double> scores_;   // [epoch - firstEpoch_]
  std::vector<Test> tests_;
};

}  // namespace muster
