#pragma once

#include "muster/parallel/strategies/any_strategy.h"
#include "tests/support/recording_listener.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

namespace muster::test {

/// Makes the user's code fail or sleep at the n-th visit of a place such as "iterator: next". Any thread may
/// visit; the other members need a single thread while no training runs.
class Faults {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kDelay{3};

  /// Removes the faults and restarts counting.
  void clear() {
    failing_ = slow_ = {};
    struck_ = begun_ = false;
    counts_.clear();
  }
  /// Makes visit `nth`, counted from 0, throw. If another place is to sleep, the visit first waits for that
  /// sleep to begin, up to a limit.
  void failAt(std::string place, long nth) { failing_ = {std::move(place), nth}; }
  void sleepAt(std::string place, long nth) { slow_ = {std::move(place), nth}; }

  /// @param where  the batch, epoch or iteration, as errors name it.
  void visit(std::string_view place, std::string_view where = {}) {
    const long visit = count(place);
    if (place == slow_.place && visit == slow_.nth) {
      announce();
      std::this_thread::sleep_for(kDelay);
      leave();
    }
    if (place != failing_.place || visit != failing_.nth) return;
    if (!slow_.place.empty()) awaitSleeper();
    where_ = where;
    struck_ = true;
    leave();
    throw std::runtime_error("boom");
  }

  bool struck() const { return struck_; }
  bool slept() const { return begun_; }
  /// Where the failing code was, once it has failed.
  const std::string& where() const { return where_; }
  /// When the failing or sleeping code was left.
  Clock::time_point left() const { return left_; }
  /// Visits of each place.
  const std::map<std::string, long, std::less<>>& visits() const { return counts_; }

 private:
  struct Fault {
    std::string place;
    long nth = 0;
  };

  long count(std::string_view place) {
    const std::scoped_lock lock(mutex_);
    const auto found = counts_.find(place);
    return found == counts_.end() ? (counts_.emplace(place, 1), 0) : found->second++;
  }
  void announce() {
    const std::scoped_lock lock(mutex_);
    begun_ = true;
    changed_.notify_all();
  }
  void awaitSleeper() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 2 * kDelay, [&] { return begun_.load(); });
  }
  void leave() {
    const std::scoped_lock lock(mutex_);
    left_ = Clock::now();
  }

  Fault failing_, slow_;
  std::string where_;  // only of the thread that fails
  std::atomic<bool> struck_{false}, begun_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, long, std::less<>> counts_;  // guarded by mutex_, like the following members
  Clock::time_point left_ = Clock::now();
};

/// An iterator with faults in each of its functions.
class FaultyIterator final : public DataSetIterator {
 public:
  FaultyIterator(Faults& faults, DataSetIterator& data) : faults_(faults), data_(data) {}
  void reset(std::int64_t epoch) override {
    faults_.visit("iterator: reset", fmt::format("epoch {}", epoch + 1));
    data_.reset(epoch);
    stamp_ = {.epoch = epoch};
  }
  bool next(Batch& batch) override {
    faults_.visit("iterator: next", stamp_.toString());
    ++stamp_.sequence;
    return data_.next(batch);
  }
  std::optional<std::int64_t> examples() const override {
    faults_.visit("iterator: size");
    return data_.examples();
  }

 private:
  Faults& faults_;
  DataSetIterator& data_;
  BatchStamp stamp_;  // of the next batch
};

inline std::shared_ptr<Listener> faultyListener(Faults& faults, ListenerScope scope) {
  const std::string name = scope == ListenerScope::Merged ? "merged listener: " : "worker listener: ";
  return std::make_shared<RecordingListener>(scope, [&faults, name](const RecordedCall& call, Trainer&) {
    const bool step = call.event == "iteration";
    faults.visit(name + call.event, step ? BatchStamp{.sequence = call.batch, .epoch = call.epoch}.toString()
                                         : fmt::format("iteration {}", call.iteration));
  });
}

inline void addFaults(ToyControl& control, Faults& faults) {
  control.onStep = [&](const Batch& batch) { faults.visit("model: step", batch.stamp.toString()); };
  control.onUpdate = [&](const Model&, const BatchStamp& stamp) {
    faults.visit("model: update", stamp.toString());
  };
  control.onReplicate = [&](int) { faults.visit("model: replicate"); };
  control.onOutput = [&](const Batch&) { faults.visit("model: output"); };
}

/// A strategy with faults in each of its functions, before and after the rule's own work.
class FaultyStrategy final : public Strategy {
 public:
  FaultyStrategy(std::unique_ptr<Strategy> rule, Faults& faults) : rule_(std::move(rule)), faults_(faults) {}

  std::string describe() const override { return rule_->describe(); }
  std::vector<StrategyBlock> blocks(int workers) const override {
    faults_.visit("strategy: blocks");
    return rule_->blocks(workers);
  }
  StrategyTraits traits(int workers) const override {
    faults_.visit("strategy: traits");
    StrategyTraits traits = rule_->traits(workers);
    traits.mayThrow = traits.extrapolates = traits.replicasDiffer = true;
    traits.mergesBeforeScores = false;
    return traits;
  }
  void begin(const Exchange& exchange) override {
    faults_.visit("strategy: begin");
    rule_->begin(exchange);
  }
  void start(MergeOps& ops) override {
    faults_.visit("strategy: start");
    rule_->start(ops);
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    faults_.visit("strategy: plan");
    return rule_->plan(progress);
  }
  void contribute(double weight, MergeOps& ops) override {
    faults_.visit("strategy: contribute");
    rule_->contribute(weight, ops);
    faults_.visit("strategy: contribute, done");
  }
  void prepare(const Round& round) override {
    faults_.visit("strategy: prepare");
    rule_->prepare(round);
  }
  void launch(int fragment, const Round& round, MergeOps& ops) override {
    faults_.visit("strategy: launch");
    rule_->launch(fragment, round, ops);
    faults_.visit("strategy: launch, done");
  }
  void land(int fragment, const Round& round, MergeOps& ops) override {
    faults_.visit("strategy: land");
    rule_->land(fragment, round, ops);
    faults_.visit("strategy: land, done");
  }
  void afterReduction(const Round& round, MergeOps& ops) override {
    faults_.visit("strategy: afterReduction");
    rule_->afterReduction(round, ops);
    faults_.visit("strategy: afterReduction, done");
  }
  bool pending() const override { return rule_->pending(); }
  MergeReport report() const override { return rule_->report(); }

 private:
  const std::unique_ptr<Strategy> rule_;
  Faults& faults_;
};

/// Its options.
struct Faulty {
  AnyStrategy rule;
  Faults* faults = nullptr;

  void validate() const { rule.validate(); }
  std::unique_ptr<Strategy> make() const { return std::make_unique<FaultyStrategy>(rule.make(), *faults); }
};

}  // namespace muster::test
