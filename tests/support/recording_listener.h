#pragma once

#include "muster/core/nn/listener.h"
#include "tests/support/standard.h"

namespace muster::test {

/// One call of a listener; members that an event lacks keep their defaults.
struct RecordedCall {
  std::string event;  ///< "fitStart", "epochStart", "iteration", "merge", "epochEnd", "fitEnd"
  int worker = -1;
  std::int64_t batch = -1;  ///< in its epoch; for a merge: batches finished in the epoch
  std::int64_t epoch = -1;
  std::int64_t iteration = -1;
  std::int64_t examples = -1;
  double score = 0;
  std::thread::id thread = {};
};

/// Records its calls in order. Each call runs the hook, which may throw, sleep or query the trainer.
class RecordingListener final : public Listener {
 public:
  using Hook = std::function<void(const RecordedCall&, Trainer&)>;

  explicit RecordingListener(ListenerScope scope = ListenerScope::Merged, Hook hook = {})
      : scope_(scope), hook_(std::move(hook)) {}

  ListenerScope scope() const override { return scope_; }
  void onFitStart(const FitEvent& e) override {
    record({.event = "fitStart", .epoch = e.firstEpoch}, e.trainer);
  }
  void onEpochStart(const EpochEvent& e) override { record(ofEpoch("epochStart", e), e.trainer); }
  void onIteration(const IterationEvent& e) override {
    const auto& at = e.stamp;
    record({"iteration", e.worker, at.sequence, at.epoch, at.iteration, e.examples, e.score}, e.trainer);
  }
  void onMerge(const MergeEvent& e) override {
    record({"merge", -1, e.batchesInEpoch, e.epoch, e.iteration, e.examples, e.score}, e.trainer);
  }
  void onEpochEnd(const EpochEvent& e) override { record(ofEpoch("epochEnd", e), e.trainer); }
  void onFitEnd(Trainer& trainer) override { record({.event = "fitEnd"}, trainer); }

  /// Do not call during training.
  const std::vector<RecordedCall>& calls() const { return calls_; }
  std::vector<RecordedCall> calls(std::string_view event) const {
    std::vector<RecordedCall> some;
    for (const auto& call : calls_)
      if (call.event == event) some.push_back(call);
    return some;
  }
  /// "fitStart epochStart merge ... fitEnd"
  std::string order() const {
    std::string text;
    for (const auto& call : calls_) text += (text.empty() ? "" : " ") + call.event;
    return text;
  }
  /// Whether a call began while another one was in progress.
  bool overlapped() const { return overlapped_; }

 private:
  static RecordedCall ofEpoch(std::string event, const EpochEvent& e) {
    return {std::move(event), -1, -1, e.epoch, e.iteration, e.examples, e.score};
  }
  void record(RecordedCall call, Trainer& trainer) {
    if (inside_.exchange(true)) overlapped_ = true;
    struct Leave {
      std::atomic<bool>& inside;
      ~Leave() { inside = false; }
    } leave{inside_};
    call.thread = std::this_thread::get_id();
    calls_.push_back(call);
    if (hook_) hook_(call, trainer);
  }

  const ListenerScope scope_;
  const Hook hook_;
  std::vector<RecordedCall> calls_;  // unguarded on purpose: the trainer promises one call at a time
  std::atomic<bool> inside_{false}, overlapped_{false};
};

inline std::shared_ptr<RecordingListener> mergedListener(RecordingListener::Hook hook = {}) {
  return std::make_shared<RecordingListener>(ListenerScope::Merged, std::move(hook));
}
inline std::shared_ptr<RecordingListener> workerListener(RecordingListener::Hook hook = {}) {
  return std::make_shared<RecordingListener>(ListenerScope::Worker, std::move(hook));
}

}  // namespace muster::test
