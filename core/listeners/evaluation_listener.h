#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/core/eval/any_evaluation.h"
#include "muster/core/listeners/every.h"
#include "muster/core/listeners/line_sink.h"
#include "muster/core/listeners/node_listener.h"

namespace muster {

/// Options of an EvaluationListener.
struct EvaluationOptions {
  std::int64_t everyEpochs = 1;      ///< 0: not at ends of epochs
  std::int64_t everyIterations = 0;  ///< 0: not by iterations
  std::optional<Task> task = {};     ///< empty: the model's own (`Model::task`)
  std::string data = {};             ///< name of the data in lines and curves, as in "validation"; "": none
  LineSink sink = {};
};

/// Evaluates the merged model every N epochs, every N iterations, or both, on a data set of its own with all
/// workers, by what the model predicts (`Model::task`). Keeps the results and writes lines such as `epoch 3:
/// accuracy 0.9834, macro F1 0.9833 on 10000 examples`, or for a regression `epoch 3: R2 0.8110, RMSE 2.31,
/// MAE 1.7 on 500 examples`; with `EvaluationOptions::data` that begins with `epoch 3: validation accuracy`.
/// Iterations are checked after each merge: "every N" means whenever a multiple of N was passed. With several
/// nodes each evaluates a share of the data, all have the results, and node 0 writes.
class EvaluationListener final : public NodeListener {
 public:
  /// An evaluation, and when it was.
  struct Result {
    std::int64_t epoch = 0;      ///< epochs finished
    std::int64_t iteration = 0;  ///< iterations finished
    AnyEvaluation evaluation;
  };

  /// @param data  must outlive the listener, and must not be the iterator of the training.
  /// @throws InvalidArgument for a negative number, or if both are 0.
  explicit EvaluationListener(DataSetIterator& data, EvaluationOptions options = {});

  std::string describe() const override;
  void onEpochStart(const EpochEvent& event) override;
  void onMerge(const MergeEvent& event) override;
  void onEpochEnd(const EpochEvent& event) override;

  /// In order of time. If the end of an epoch is also the end of N iterations, there are two results.
  const std::vector<Result>& results() const { return results_; }
  /// EvaluationOptions::data.
  const std::string& data() const { return options_.data; }

 private:
  void write(std::string_view unit, std::int64_t count);

  DataSetIterator& data_;
  const EvaluationOptions options_;
  Every everyIterations_;
  bool current_ = false;  // the last result is of the current model
  std::vector<Result> results_;
};

}  // namespace muster
