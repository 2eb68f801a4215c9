#pragma once

#include "muster/core/nn/model.h"
#include "tests/support/state_bits.h"

namespace muster::test {

/// One step of a replica and its state before the step.
struct ToyStep {
  BatchStamp stamp;
  std::thread::id thread;
  const Model* model = nullptr;
  const float* parameters = nullptr;
  std::vector<float> before;  ///< the parameters
  std::int64_t iteration = 0, epoch = 0;
};

/// Shared by a toy model and all its replicas: the test's hooks and the record of calls.
struct ToyControl {
  // Set by the test before it trains; workers call them concurrently.
  std::function<void(const Batch&)> onStep;                       ///< before a step; may throw or sleep
  std::function<void(const Model&, const BatchStamp&)> onUpdate;  ///< before an update; may throw or sleep
  std::function<double(const Batch&, double)> reportedScore;      ///< replaces a score, for example by NaN
  std::function<void(const Batch&)> onOutput;                     ///< before an output; may throw or sleep
  std::function<void(int)> onReplicate;                           ///< gets the replica's number, from 0
  std::function<double(const Batch&)> reportedWeight;             ///< replaces a weight
  bool shareMemory = false;  ///< simulates a bug: replicas share the model's memory
  bool replicateNothing = false;
  std::int64_t replicaSize = 0;  ///< size of replicas, if different

  std::atomic<int> replicated{0};  ///< calls of replicate()
  std::atomic<int> alive{0};       ///< live models, including the user's

  void record(ToyStep step);
  /// All steps, sorted by epoch and batch.
  std::vector<ToyStep> steps() const;
  void forgetSteps();

 private:
  mutable std::mutex mutex_;
  std::vector<ToyStep> steps_;  // guarded by mutex_
};

struct ToyOptions {
  std::int64_t size = 1;  ///< P
  TrainingOptions training = {.updater = Sgd{.learningRate = 0.5}};
  bool statistics = false;  ///< add a Moments block: mean and variance of the last batch, each [P]
  bool split = false;       ///< the parameters are two tensors, p and q, instead of one; P above 16
};

/// A user's model whose numbers can be computed by hand. Parameters p [P], initially 0. The loss of a batch x
/// [N, P] is the mean over its examples, weighted by a mask if there is one, of 0.5 |p - x|^2; its gradient
/// is p - mean(x). With SGD and learning rate 0.5, a step moves halfway to the batch's mean.
class ToyModel final : public Model {
 public:
  explicit ToyModel(ToyOptions options = {}, std::shared_ptr<ToyControl> control = nullptr,
                    Context* context = nullptr);
  ~ToyModel() override;

  std::unique_ptr<Model> replicate(Context& context) const override;
  StepTicket gradient(const Batch& batch) override;
  double update(const BatchStamp& stamp) override;
  std::span<StateBlock> blocks() override { return blocks_; }
  /// Each example plus the parameters.
  void output(const Batch& batch, Tensor& out) override;

  ToyControl& control() const { return *control_; }
  std::vector<float> parameters();
  void setParameters(const std::vector<float>& values);
  /// Means, then variances, [2 P].
  std::vector<float> statistics();
  using Model::updaterState;
  /// The updater's block of this name, [P].
  std::vector<float> updaterState(std::string_view name);
  /// Every bit of the state but the gradients: parameters, statistics, updater, counters.
  std::vector<std::byte> allBits() { return stateBits(*this); }

 private:
  void takeStatistics(const Tensor& x);

  ToyOptions options_;
  std::shared_ptr<ToyControl> control_;
  std::vector<StateBlock> blocks_;
};

}  // namespace muster::test
