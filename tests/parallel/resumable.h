#pragma once

#include <cstring>

#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/every_rule.h"

namespace muster::test {

/// A copy of everything that a checkpoint holds of a model and its training.
class Held {
 public:
  Held() = default;
  Held(Model& model, TrainingState ofTraining) : training(std::move(ofTraining)), score(model.score()) {
    for (const auto* block : model.state())
      if (block->kind != BlockKind::Gradients) state.push_back({block->name, cloneTensor(block->values)});
    for (const auto& [name, values] : model.strategyState()) strategy.push_back({name, cloneTensor(values)});
  }

  /// Restores the state like loading a file: without the score.
  void giveTo(Model& model) const {
    std::size_t b = 0;
    for (auto* block : model.state())
      if (block->kind != BlockKind::Gradients) copy(state.at(b++).values, block->values);
    for (const auto& [name, values] : strategy) model.strategyState().push_back({name, cloneTensor(values)});
    for (const auto& [name, values] : training) model.trainingState().push_back({name, cloneTensor(values)});
  }

  /// The name of the first difference; "" if all bits are equal.
  std::string difference(const Held& other) const {
    if (score != other.score) return fmt::format("score {} and {}", score, other.score);
    for (const auto& [mine, theirs] :
         {std::pair{&state, &other.state}, {&strategy, &other.strategy}, {&training, &other.training}}) {
      for (std::size_t i = 0; i < std::min(mine->size(), theirs->size()); ++i)
        if (const auto &a = (*mine)[i], &b = (*theirs)[i];
            a.name != b.name || a.values.shape() != b.values.shape() ||
            std::memcmp(a.values.raw(), b.values.raw(), a.values.bytes()) != 0)
          return fmt::format("{} {} and {} {}", a.name, a.values.toString(), b.name, b.values.toString());
      if (mine->size() != theirs->size())
        return fmt::format("{} and {} values", mine->size(), theirs->size());
    }
    return "";
  }

  std::vector<NamedValues> state, strategy;
  TrainingState training;
  double score = 0;
};

/// Copies the content of a checkpoint at each merge and at the end.
class Holder final : public Listener {
 public:
  explicit Holder(std::vector<Held>* atMerges = nullptr) : atMerges_(atMerges) {}
  void onMerge(const MergeEvent& event) override {
    if (atMerges_) atMerges_->emplace_back(event.trainer.model(), event.trainer.trainingState());
  }
  void onFitEnd(Trainer& trainer) override { atEnd_ = Held(trainer.model(), trainer.trainingState()); }
  const Held& atEnd() const { return atEnd_; }

 private:
  std::vector<Held>* atMerges_;
  Held atEnd_;
};

/// Waits for each checkpoint's file, so that the next one is not postponed.
class AwaitFile final : public Listener {
 public:
  explicit AwaitFile(std::shared_ptr<CheckpointListener> checkpoints)
      : checkpoints_(std::move(checkpoints)) {}
  void onMerge(const MergeEvent&) override {
    while (checkpoints_->busy()) std::this_thread::yield();
  }

 private:
  std::shared_ptr<CheckpointListener> checkpoints_;
};

/// A rule with much state for a checkpoint. It averages half of the parameters at a time: it launches one
/// half at the end of a round and lands it at the end of the next. Replicas move halfway to the merged copy,
/// so they differ after a merge. The user's model is a moving average of the merged copies, and the lengths
/// of rounds depend on a number in the rule's state.
struct InFlight {
  void validate() const {}
  std::unique_ptr<Strategy> make() const;
};

class InFlightStrategy final : public Strategy {
 public:
  std::string describe() const override { return "a rule with fragments in flight"; }
  std::vector<StrategyBlock> blocks(int) const override {
    return {{.name = "mean"},
            {.name = "average", .start = StrategyBlock::Start::Parameters},
            {.name = "numbers", .place = StrategyBlock::Place::Replica, .numbers = 2}};
  }
  StrategyTraits traits(int) const override {
    return {.updaterState = UpdaterState::Keep, .fragments = 2, .modelSource = "average"};
  }
  void begin(const Exchange& exchange) override {
    const std::int64_t elements = exchange.block(BlockKind::Parameters).mergedCopy().elements();
    numbers_ = exchange.strategyBlock("numbers").values.front();
    fragments_ = {Fragment{{{0, 16}}}, Fragment{{{16, elements}}}};
  }
  RoundPlan plan(const TrainingProgress& progress) override {
    const int turn = static_cast<int>(progress.rounds % 2);
    std::int64_t iterations = 1;
    if (numbers_.defined()) {  // undefined if the rule is only used to describe the plan
      double& rates = numbers_.data<double>()[1];
      rates += progress.learningRate;
      iterations += static_cast<std::int64_t>(rates * 10) % 2;
    }
    return {.iterations = iterations, .launch = FragmentSet::of(turn), .land = FragmentSet::of(1 - turn)};
  }
  void launch(int fragment, const Round& round, MergeOps& ops) override {
    ops.mean(ops.block(BlockKind::Parameters).replicas, round.weights, ops.own("mean"), at(fragment));
  }
  void land(int fragment, const Round&, MergeOps& ops) override {
    const SharedBlock& parameters = ops.block(BlockKind::Parameters);
    const auto average = ops.own("average");
    ops.combine(parameters.mergedCopies, {{1, ops.own("mean")}}, at(fragment));
    ops.combine(average, {{0.5, average}, {0.5, parameters.mergedCopies}}, at(fragment));
    ops.writeBack(parameters.mergedCopies, parameters.replicas, 0.5, at(fragment));
    ops.own("numbers")[static_cast<std::size_t>(ops.participant())].data<double>()[0] += 1;
  }

 private:
  const Fragment& at(int fragment) const { return fragments_[static_cast<std::size_t>(fragment)]; }
  std::vector<Fragment> fragments_;
  Tensor numbers_;  // owned by the first worker
};

inline std::unique_ptr<Strategy> InFlight::make() const {
  return std::make_unique<InFlightStrategy>();
}

/// A rule and the training options of its model.
struct ResumableRule : NamedRule {
  Updater updater = Nesterovs{.learningRate = 0.1};
};

/// Every rule, and variants of some with other state for a checkpoint.
inline std::vector<ResumableRule> resumableRules() {
  const Updater adam = Adam{.learningRate = 0.05}, nesterovs = Nesterovs{.learningRate = 0.1};
  const Updater decaying = Sgd{.learningRate = StepSchedule{.initial = 0.2, .decay = 0.5, .every = 4}};
  std::vector<ResumableRule> rules;
  for (const auto& [name, strategy, options, updater] :
       {std::tuple<const char*, const char*, const char*, Updater>("averaging, every iteration", "averaging",
                                                                   "", adam),
        {"averaging, kept updater state", "averaging", "every=3,updaterState=keep", nesterovs},
        {"averaging, first every iteration", "averaging", "every=4,period.until=6", nesterovs},
        {"averaging, AdaComm", "averaging", "every=4,period=adacomm,period.interval=2", nesterovs},
        {"averaging, QSR", "averaging", "every=2,period=qsr,period.alpha=0.2", decaying},
        {"shared gradients, clipped", "shared",
         "threshold.initial=0.05,residualClipping=3,resynchronizationFrequency=4", adam},
        {"shared gradients, kept", "shared", "updaterState=keep", nesterovs},
        {"outer averaging, following", "outer",
         "every=2,momentum=0.5,followLearningRate=true,updaterState=keep", decaying},
        {"asynchronous, first part, Adam", "asynchronous",
         "every=2,period.until=3,rate=0.7,momentum=0.5,nesterov=true,grace=0.5,codec=int8", adam},
        {"gossip of pairs, reset", "gossip", "graph=pairs,every=2,updaterState=reset", adam},
        {"overlapped, reset", "overlapped", "every=3,delay=1,updaterState=reset", adam}})
    rules.push_back({{name, strategyNamed(strategy, options, 4)}, updater});
  for (auto& rule : everyRule()) rules.push_back({std::move(rule)});
  rules.push_back({{"fragments in flight", InFlight{}}});
  return rules;
}

}  // namespace muster::test
