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

std::optional<std::int64_t> batchesPerEpoch(const DataSetIterator& data) {
  try {
    return data.batchesPerEpoch();
  } catch (...) {
    const auto cause = std::current_exception();
    throw TrainingError(fmt::format("the data iterator failed to report its size: {}", describe(cause)), -1,
                        cause);
  }
}

RoundOptions roundsOf(const FitSetting& setting) {
  const auto isMerged = [](const auto& listener) { return listener->scope() == ListenerScope::Merged; };
  const bool joins = std::ranges::any_of(setting.listeners, isMerged);
  const bool onePlace = setting.replicas.made() && setting.replicas.exchange().topology().onePlace;
  return {.strategy = setting.strategy,
          .traits = setting.replicas.traits(),
          .stop = setting.stop,
          .learningRate = setting.model.learningRate(),
          .coordinatorJoinsEveryRound = joins,
          .meetAtLandings = joins || !onePlace,
          .patience = setting.patience,
          .undo = setting.replicas.undo(),
          .undoesMerges = onePlace && setting.replicas.exchange().topology().checksResults,
          .regroup = setting.parts ? &setting.parts->regroup : nullptr,
          .divergenceRead = std::ranges::any_of(
              setting.listeners, [](const auto& listener) { return listener->readsDivergence(); })};
}

/// The ledger from which the run begins.
Ledger startOf(const FitSetting& setting) {
  const int workers = setting.replicas.place().workers();
  Ledger start =
      ledgerAt(setting.resumed.position, setting.model.iteration(), setting.model.epoch(), workers);
  if (setting.resumed.ledger) resume(start, *setting.resumed.ledger);
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
           setting.numbered),
      usersModel_(setting_, run_) {}

Listeners FitCall::listenersOf(ListenerScope scope) const {
  Listeners some;
  for (const auto& listener : setting_.listeners)
    if (listener->scope() == scope) some.push_back(listener);
  return some;
}

void FitCall::run(DataSetIterator& data, std::int64_t epochs, Batch* first) {
  if (epochs > 0) namingResumedFile(setting_.model, [&] { run_.decisions.prepare(); });
  if (callStart(data, epochs) && epochs > 0 && begin(epochs)) train(data, epochs, first);
  if (epochs > 0) endTogether();
  if (run_.failure) setting_.replicas.setUntrained();
  usersModel_.fillAtEnd();
  if (epochs > 0 && !run_.failure)
    callEndAndAnswer();
  else
    callEnd();
  run_.failure.rethrow();
}

/// Calls the listeners that were not called in an earlier part.
bool FitCall::callStart(const DataSetIterator& data, std::int64_t epochs) {
  const Model& model = setting_.model;
  const FitEvent start{setting_.trainer, model.epoch(), epochs, batchesPerEpoch(data)};
  const bool begins = !setting_.parts || setting_.parts->started.empty();
  // A program that calls fit() for each epoch is warned once.
  if (run_.place.node == 0 && begins && start.batchesPerEpoch && (epochs > 1 || model.epoch() == 0))
    for (const auto& remark : fitRemarks(model, epochs, *start.batchesPerEpoch, run_.place.workers()))
      logWarning("fit: {}", remark);
  const EpochEvent firstEpoch{setting_.trainer, model.epoch(), model.iteration(), 0, 0};
  const auto before = setting_.parts ? setting_.parts->started : std::vector<const Listener*>{};
  const auto isNew = [&](const Listener& l) { return std::ranges::find(before, &l) == before.end(); };
  if (setting_.parts)
    for (const auto& listener : setting_.listeners)
      if (isNew(*listener)) setting_.parts->started.push_back(listener.get());
  return notifyAll("the start",
                   [&](Listener& l) {
                     if (isNew(l)) l.onFitStart(start);
                   }) &&
         (epochs == 0 || notifyAll("the start of an epoch", [&](Listener& l) {
            if (isNew(l)) l.onEpochStart(firstEpoch);
          }));
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

/// All nodes have ended well: they wait for a checkpoint of the end.
void FitCall::callEndAndAnswer() {
  usersModel_.setMoment(UsersModel::Moment::RunEnd);
  callEnd();
  usersModel_.setMoment(UsersModel::Moment::Training);
  answerNodes([] { return "at its end"; });
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

void FitCall::train(DataSetIterator& data, std::int64_t epochs, Batch* first) {
  WorkerListeners workerListeners{setting_.trainer, listenersOf(ListenerScope::Worker), {}};
  Tasks tasks;
  const auto runTasks = [&] {
    for (const auto& worker : setting_.replicas.workers())
      worker->train(tasks, run_, setting_.replicas.exchange(), workerListeners);
    tasks.add(setting_.reader,
              [this, &data, epochs, first] { dispatch(run_, data, epochs, first, setting_.reading); });
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
    const auto after = [&] { return fmt::format("after iteration {}", run_.decisions.result().iteration); };
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
  if (round.merging) {
    const MergeEvent event{.trainer = setting_.trainer,
                           .kind = run_.decisions.report().kind,
                           .launched = run_.decisions.launched(),
                           .landed = run_.decisions.landed(),
                           .epoch = round.epoch,
                           .iteration = round.iteration,
                           .batchesInEpoch = round.inEpoch.batches,
                           .examples = round.examples,
                           .score = round.score,
                           .mergeTime = run_.shares.time(),
                           .bytes = run_.shares.bytes(),
                           .divergence = run_.decisions.report().divergence,
                           .values = run_.decisions.report().values};
    for (const auto& listener : setting_.listeners)
      if (listener->scope() == ListenerScope::Merged)
        notify(*listener, [&](Listener& l) { l.onMerge(event); });
  }
  if (round.verdict != Verdict::EpochOver) return;
  EpochEvent event{setting_.trainer, round.epoch, round.iteration, 0, round.inEpoch.examples};
  if (round.inEpoch.weight > 0) event.score = round.inEpoch.scoreSum / round.inEpoch.weight;
  notifyAll([&](Listener& l) { l.onEpochEnd(event); });
  const EpochEvent next{setting_.trainer, round.epoch + 1, round.iteration, 0, 0};
  // After a stop the workers end one more round, but no epoch begins.
  if (!run_.decisions.isOver() && !setting_.stop) notifyAll([&](Listener& l) { l.onEpochStart(next); });
}

}  // namespace muster
