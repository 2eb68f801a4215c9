#include "muster/parallel/training/internals.h"
#include "tests/support/failure.h"
#include "tests/support/one_block_model.h"
#include "tests/support/recording_listener.h"

// Tests the order in which a worker enqueues steps and waits for scores while its device is still computing.

using namespace muster;
using namespace muster::test;

namespace {

/// A model whose steps run in the background until a caller waits for them. A step's score is the batch's
/// number, and so is the parameter after it, even if not finite.
class LateModel final : public OneBlockModel, PendingScores {
 public:
  using OnStep = std::function<void(const Batch&)>;

  explicit LateModel(std::shared_ptr<std::string> order = std::make_shared<std::string>(),
                     std::shared_ptr<OnStep> onStep = std::make_shared<OnStep>(), Context* context = nullptr)
      : OneBlockModel(context), order_(std::move(order)), onStep_(std::move(onStep)) {}
  /// Makes steps report whether they were refused, and their weights, so that merges need not wait for
  /// scores.
  void guard() { guarded_ = true; }
  Tensor stepRefused() override { return guarded_ ? refused_ : Tensor(); }
  std::unique_ptr<Model> replicate(Context& context) const override {
    auto replica = std::make_unique<LateModel>(order_, onStep_, &context);
    replica->guarded_ = guarded_;
    return replica;
  }
  StepTicket gradient(const Batch& batch) override { return step(batch); }
  StepTicket step(const Batch& batch) override {
    if (batch.features[0].value.data<float>()[0] == kRefused) throw DeviceFailure("the step was refused");
    const float value = batch.features[0].value.data<float>()[0];
    if (*onStep_) (*onStep_)(batch);
    scores_.push_back(value);
    *refused_.data<double>() = std::isfinite(value) ? 0 : 1;
    blocks_[0].values.data<float>()[0] = value;
    if (guarded_) return {*this, scores_.size(), 1.0};  // several workers: the order is undefined
    *order_ += fmt::format("step{} ", scores_.size());
    return {*this, scores_.size()};
  }
  bool ready(std::uint64_t) override { return false; }
  StepScore wait(std::uint64_t step) override {
    if (guarded_) {
      if (scores_[step - 1] == kWatched) seen_ = parameter();
      return {.score = scores_[step - 1], .weight = 1};
    }
    *order_ += fmt::format("wait{} ", step);
    return {.score = scores_[step - 1], .weight = 1};
  }
  static constexpr float kRefused = -1;
  /// When the score of this step is read, records the parameter in `seen_`.
  static constexpr double kWatched = 5;
  static inline float seen_ = 0;
  std::string takeOrder() { return std::exchange(*order_, {}); }
  void onStep(OnStep call) { *onStep_ = std::move(call); }
  float parameter() { return blocks_[0].values.data<float>()[0]; }

 private:
  std::shared_ptr<std::string> order_;  // calls of a single worker
  std::shared_ptr<OnStep> onStep_;      // likewise
  std::vector<double> scores_;
  bool guarded_ = false;
  Tensor refused_ = Tensor::zeros({1}, DType::Float64);
};

}  // namespace

TEST_CASE("a worker reads a score while the next step runs, and all scores before it merges") {
  LateModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4, 5});
  auto wrapper = toyWrapper(model, 1, 3).build();
  wrapper.fit(data);
  CHECK(model.takeOrder() == "step1 step2 wait1 step3 wait2 wait3 step4 step5 wait4 wait5 ");
  CHECK(model.score() == 4.5);

  auto listened = toyWrapper(model, 1, 3).listeners({workerListener()}).build();
  listened.fit(data);
  CHECK(model.takeOrder() == "step1 wait1 step2 wait2 step3 wait3 step4 wait4 step5 wait5 ");
}

TEST_CASE("the error about a late score that is not finite names its batch, and the score is never merged") {
  LateModel model;
  auto data = ToyIterator::ofValues({1, std::nanf(""), 3, 4, 5, 6});
  auto wrapper = toyWrapper(model, 1, 4).build();
  const auto failure = failureOf(wrapper, data);
  CHECK(contains(failure.text, "batch 2 of epoch 1"));
  CHECK(model.takeOrder() == "step1 step2 wait1 step3 wait2 ");

  // The same if the step is the round's last.
  auto last = ToyIterator::ofValues({1, std::nanf("")});
  CHECK(contains(failureOf(wrapper, last).text, "batch 2 of epoch 1"));
  CHECK(model.takeOrder() == "step4 step5 wait4 wait5 ");
}

TEST_CASE("if a score is not finite and a later step fails, the error names the score") {
  LateModel model;
  auto wrapper = toyWrapper(model, 1, 4).build();
  auto both = ToyIterator::ofValues({1, std::nanf(""), LateModel::kRefused, 4});
  CHECK(contains(failureOf(wrapper, both).text, "batch 2 of epoch 1"));
  CHECK(model.takeOrder() == "step1 step2 wait1 wait2 ");
  auto one = ToyIterator::ofValues({1, 2, LateModel::kRefused, 4});
  CHECK(contains(failureOf(wrapper, one).text, "batch 3 of epoch 1"));
  CHECK(model.takeOrder() == "step3 step4 wait3 wait4 ");
}

namespace {

/// Two workers that share one (pretended) device.
auto twoOnDevice(LateModel& model, std::int64_t frequency) {
  model.guard();
  auto builder = toyWrapper(model, 2, frequency);
  builder.internals({.pretendedDevices = 1});
  return builder;
}

}  // namespace

TEST_CASE("several workers on a device are merged before their last scores are read") {
  // In the first round worker 0 gets 1 and 5, worker 1 gets 2 and 6; then 3 and 7, 4 and 8.
  const auto data = [] { return ToyIterator::ofValues({1, 2, 5, 6, 3, 4, 7, 8, 9, 10}); };
  LateModel::seen_ = 0;
  LateModel guarded, waiting;
  auto batches = data();
  twoOnDevice(guarded, 2).build().fit(batches);
  CHECK(LateModel::seen_ == 5.5f);  // worker 0 merges for both
  CHECK(guarded.parameter() == 9.5f);
  CHECK(guarded.iteration() == 5);

  // The scores equal those read immediately, also per epoch and in listeners.
  const auto seen = mergedListener(), expected = mergedListener();
  batches = data();
  LateModel watched;
  twoOnDevice(watched, 2).listeners({seen}).build().fit(batches);
  batches = data();
  auto builder = twoOnDevice(waiting, 2);
  builder.listeners({expected}).measureDivergence(true).build().fit(batches);
  const auto scoresOf = [](const RecordingListener& listener) {
    std::vector<double> scores;
    for (const auto& call : listener.calls()) scores.push_back(call.score);
    return scores;
  };
  CHECK(scoresOf(*seen) == scoresOf(*expected));
  CHECK(guarded.score() == waiting.score());
}

TEST_CASE("a score that is not finite and read after its merge leaves replicas and merged copy as before") {
  LateModel model;
  auto wrapper = twoOnDevice(model, 2).build();
  for (const bool first : {true, false}) {
    CAPTURE(first);
    auto bad = first ? ToyIterator::ofValues({1, 2, 3, std::nanf(""), 5, 6, 7, 8})
                     : ToyIterator::ofValues({1, 2, 3, 4, 5, 6, std::nanf(""), 8, 9, 10});
    const auto before = model.parameter();
    const auto iteration = model.iteration();
    const auto failure = failureOf(wrapper, bad);
    CHECK(contains(failure.text, first ? "batch 4 of epoch" : "batch 7 of epoch"));
    CHECK(model.parameter() == (first ? before : 3.5f));
    CHECK(model.iteration() == iteration + (first ? 0 : 2));
  }
  auto good = ToyIterator::ofValues({1, 2, 3, 4, 6, 8, 7, 10, 11, 12});
  wrapper.fit(good);  // the refused step leaves no trace
  CHECK(model.parameter() == 11.5f);
}
