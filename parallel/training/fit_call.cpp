#include "muster/parallel/training/fit_call.h"

#include <algorithm>
#include <chrono>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/nn/fit_remarks.h"
#include "muster/core/nn/state_recorder.h"
#include "muster/parallel/nodes/node_transport.h"
#include "muster/parallel/training/dispatcher.h"
#include "muster/parallel/training/named_call.h"

namespace muster {
namespace {

bool isCalledAtMerges(const std::shared_ptr<Listener>& listener) {
  return listener->scope() == ListenerScope::Merged;
}

RoundOptions roundsOf(const FitSetting& setting) {
  const bool joins = std::ranges::any_of(setting.listeners, isCalledAtMerges);
  const bool onePlace = setting.replicas.made() && setting.replicas.exchange().topology().onePlace;
  return {.strategy = setting.replicas.strategy(),
          .traits = setting.replicas.traits(),
          .stop = setting.stop,
          .learningRate = setting.model.learningRate(),
          .coordinatorJoinsEveryRound = joins,
          .meetAtLandings = joins || !onePlace,
          .patience = setting.patience,
          .undo = setting.replicas.undo(),
          .undoesMerges = onePlace && setting.replicas.exchange().topology().checksResults,
          .regroup = setting.parts ? setting.parts->regroup : nullptr,
          .divergenceRead = std::ranges::any_of(
              setting.listeners, [](const auto& listener) { return listener->readsDivergence(); })};
}

/// The ledger from which the run begins.
Ledger startOf(const FitSetting& setting) {
  const int workers = setting.replicas.place().workers();
  const Ledger& resumed = setting.prepared.resumed.ledger;
  Ledger start = ledgerAt(resumed.begun, setting.model.iteration(), setting.model.epoch(), workers);
  resume(start, resumed);
  if (const auto& arrivals = setting.replicas.traits().arrivals)
    setArrivals(start, *arrivals, setting.model.trainingOptions().updater.learningRate());
  return start;
}

}  // namespace

bool isOfAnotherNode(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const NodeFailure&) {
    return true;
  } catch (...) {
    return false;
  }
}

FitCall::FitCall(const FitSetting& setting)
    : setting_(setting),
      run_(setting.replicas.place(), setting.batches, roundsOf(setting), startOf(setting),
           setting.replicas.made() ? &setting.replicas.exchange() : nullptr, setting.replicas.link(),
           setting.prepared.numbered),
      usersModel_(setting_, run_) {}

void FitCall::run(std::int64_t epochs) {
  if (epochs > 0) namingResumedFile(setting_.model, [&] { run_.decisions.prepare(); });
  // Planned after the listeners' start, where one may set the learning rate's factor.
  if (callStart(epochs) && epochs > 0 &&
      attempt([] { return "the first round could not be planned"; }, [&] { run_.rounds.begin(epochs); }))
    train(epochs);
  if (epochs > 0) endTogether();
  if (run_.failure) setting_.replicas.setUntrained();
  usersModel_.fillAtEnd();
  const bool endedWell = epochs > 0 && !run_.failure;  // on all nodes, which wait for a checkpoint of the end
  if (endedWell) usersModel_.setMoment(UsersModel::Moment::RunEnd);
  callEnd();
  usersModel_.setMoment(UsersModel::Moment::Training);
  if (endedWell) answerNodes([] { return "at its end"; });
  run_.failure.rethrow();
}

/// Calls the listeners that were not called in an earlier part.
bool FitCall::callStart(std::int64_t epochs) {
  const Model& model = setting_.model;
  const FitEvent start{setting_.trainer, model.epoch(), epochs,
                       callForTraining([] { return "the data iterator failed to report its size"; },
                                       [&] { return setting_.data.batchesPerEpoch(); })};
  const bool begins = !setting_.parts || setting_.parts->started.empty();
  // A program that calls fit() for each epoch is warned once.
  if (run_.place.node == 0 && begins && start.batchesPerEpoch && (epochs > 1 || model.epoch() == 0))
    for (const auto& remark : fitRemarks(model, epochs, *start.batchesPerEpoch, run_.place.workers()))
      logWarning("fit: {}", remark);
  const EpochEvent firstEpoch{setting_.trainer, model.epoch(), model.iteration(), 0, 0};
  const auto before = setting_.parts ? setting_.parts->started : Listeners{};
  const auto isNew = [&](const Listener& l) {
    return std::ranges::none_of(before, [&](const auto& one) { return one.get() == &l; });
  };
  if (setting_.parts)
    for (const auto& listener : setting_.listeners)
      if (isNew(*listener)) setting_.parts->started.push_back(listener);
  const auto notifyNew = [&](std::string_view when, auto call) {
    return notifyAll(when, [&](Listener& l) {
      if (isNew(l)) call(l);
    });
  };
  return notifyNew("the start", [&](Listener& l) { l.onFitStart(start); }) &&
         (epochs == 0 ||
          notifyNew("the start of an epoch", [&](Listener& l) { l.onEpochStart(firstEpoch); }));
}

/// Calls the listeners, unless another part may follow.
void FitCall::callEnd() {
  if (setting_.parts) {
    if (regrouping()) return;
    try {
      run_.failure.rethrow();
    } catch (const TrainingError& failure) {
      if (isOfAnotherNode(failure.cause())) return;
    } catch (...) {  // a cause without text, because memory ran out
    }
    setting_.parts->ended = true;
  }
  forEachAtEnd(setting_.listeners, [&](Listener& listener) {
    try {  // call each, even if another one throws
      notify(listener, [&](Listener& l) { l.onFitEnd(setting_.trainer); });
    } catch (...) {
      failInListener([] { return "at the end"; });
    }
  });
}

/// Sends replicas to the nodes that collect them. @param when  returns the end of a failure's message.
template <typename When>
void FitCall::answerNodes(When when) {
  attempt([&] { return nodesFailed(when()); },
          [&] { run_.rounds.answerNodes(setting_.replicas.exchange()); });
}

std::string FitCall::nodesFailed(std::string_view when) const {
  return fmt::format("the training on {} nodes has failed {}", run_.place.nodes, when);
}

/// The exception in progress becomes the run's failure: another node's while a listener made a checkpoint, or
/// a listener's own.
template <typename When>
void FitCall::failInListener(When when) {
  const auto cause = std::current_exception();
  run_.fail(-1, cause, [&] {
    return isOfAnotherNode(cause) ? nodesFailed(when()) : fmt::format("a listener failed {}", when());
  });
}

void FitCall::train(std::int64_t epochs) {
  WorkerListeners workerListeners{setting_.trainer, setting_.listeners, {}};
  std::erase_if(workerListeners.listeners, isCalledAtMerges);
  Tasks tasks;
  const auto runTasks = [&] {
    for (const auto& worker : setting_.replicas.workers())
      worker->train(tasks, run_, setting_.replicas.exchange(), workerListeners);
    Batch* const first = setting_.prepared.first ? &*setting_.prepared.first : nullptr;
    tasks.add(setting_.reader,
              [this, epochs, first] { dispatch(run_, setting_.data, epochs, first, setting_.reading); });
    tasks.start();
    coordinate();
  };
  attempt([] { return "the training failed"; }, runTasks);
  tasks.wait();
  run_.decisions.close();
}

/// Waits for all nodes, so that no node's `fit` succeeds while another node's fails.
void FitCall::endTogether() {
  if (run_.failure || run_.place.nodes == 1) return;
  const auto meet = [&] {
    std::vector<std::byte> all(static_cast<std::size_t>(run_.place.nodes));
    setting_.replicas.exchange().allGather(std::as_bytes(std::span("", 1)), all);
  };
  attempt([&] { return nodesFailed("at its end"); }, meet);
}

void FitCall::coordinate() {
  setting_.caller.set(Activity::Kind::WaitingForWorkers);
  for (bool over = false; !over && run_.rounds.await();) {
    over = run_.decisions.isOver();
    const auto begun = std::chrono::steady_clock::now();
    usersModel_.setMoment(UsersModel::Moment::RoundEnd);
    const auto after = [&] { return fmt::format("after iteration {}", run_.decisions.ledger().iteration); };
    try {
      endRound();
      answerNodes(after);
    } catch (...) {
      failInListener(after);
    }
    usersModel_.setMoment(UsersModel::Moment::Training);
    run_.rounds.resume(std::chrono::steady_clock::now() - begun);
  }
  run_.queues.close();  // after a stop, the reader may still push batches that no worker takes
}

void FitCall::endRound() {
  const RoundResult& round = run_.decisions.result();
  const Ledger& now = run_.decisions.ledger();
  if (round.merging) {
    const MergeEvent event{.trainer = setting_.trainer,
                           .kind = run_.decisions.report().kind,
                           .launched = run_.decisions.launched(),
                           .landed = run_.decisions.landed(),
                           .epoch = round.epoch,
                           .iteration = now.iteration,
                           .batchesInEpoch = round.inEpoch.batches,
                           .examples = round.examples,
                           .score = now.score,
                           .mergeTime = run_.shares.time(),
                           .bytes = run_.shares.bytes(),
                           .divergence = run_.decisions.report().divergence,
                           .values = run_.decisions.report().values};
    for (const auto& listener : setting_.listeners)
      if (isCalledAtMerges(listener)) notify(*listener, [&](Listener& l) { l.onMerge(event); });
  }
  if (now.verdict != Verdict::EpochOver) return;
  EpochEvent event{setting_.trainer, round.epoch, now.iteration, 0, round.inEpoch.examples};
  if (round.inEpoch.weight > 0) event.score = round.inEpoch.scoreSum / round.inEpoch.weight;
  notifyAll([&](Listener& l) { l.onEpochEnd(event); });
  const EpochEvent next{setting_.trainer, now.epoch, now.iteration, 0, 0};
  // After a stop the workers end one more round, but no epoch begins.
  if (!run_.decisions.isOver() && !setting_.stop) notifyAll([&](Listener& l) { l.onEpochStart(next); });
}

}  // namespace muster
