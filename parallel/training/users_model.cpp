#include "muster/parallel/training/users_model.h"

#include <algorithm>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/training/named_call.h"
#include "muster/parallel/training/strategy_state.h"

namespace muster {

void UsersModel::lend() {
  lent_ = true;
  fill();
}

/// On devices a merge may be lost after its operations have returned: its transfers were aborted, or it has
/// written numbers that are not finite.
void UsersModel::findLostMerge() {
  if (run_.shares.mergeFailed() || run_.decisions.ledger().merges == 0) return;
  Exchange& exchange = setting_.replicas.exchange();
  exchange.wait();
  if (!exchange.whole() || setting_.replicas.undo()->failed()) run_.decisions.loseMerge();
}

void UsersModel::fill() {
  if (run_.failure && run_.shares.localWork() == LocalWork::Step) findLostMerge();
  const Ledger& now = run_.decisions.ledger();
  if (now.rounds == 0 || held_ == now.rounds) return;
  const bool failed = static_cast<bool>(run_.failure);
  for (const auto& worker : setting_.replicas.workers())
    if (run_.shares.ahead(worker->thread().index())) worker->setWhole(false);
  const bool whole =
      !run_.shares.mergeFailed() || (run_.shares.mergeKept() && setting_.replicas.undo()->rollBack());
  // If nothing was merged, the model keeps its state.
  const bool filled = now.merges == 0 ||
                      (whole && setting_.replicas.fill(now, /*afterFailure=*/failed,
                                                       /*together=*/!failed && moment_ != Moment::RoundEnd));
  held_ = filled ? std::optional(now.rounds) : std::nullopt;
  if (!filled) return;
  setting_.model.setCounters(now.iteration, now.epoch);
  if (const auto updates = setting_.replicas.updatesAfterReset(); updates && now.merges > 0)
    setting_.model.setUpdates(*updates);
  if (now.merges > 0) setting_.model.setScore(now.score);
  // The training is past the point at which it was resumed.
  if (now.merges == 0 && now.verdict != Verdict::EpochOver) return;
  setting_.model.trainingState().clear();
  setting_.model.setLoadedFrom({});
}

TrainingState UsersModel::positionNow() {
  const EpochPosition now = position(run_.decisions.ledger());
  return callIterator("report its size", [&] { return positionState(setting_.model, setting_.data, now); });
}

void UsersModel::keepPlace() {
  const Ledger& now = run_.decisions.ledger();
  if (now.rounds == 0) return;  // the model is as it was when the run began
  if (held_ != now.rounds)
    throw Error("the model could not be filled with the last merge, so other nodes cannot continue");
  TrainingState& state = setting_.model.trainingState();
  state = positionNow();
  addRule(state, ruleText(setting_.options));
}

/// Says once why a checkpoint lacks the state of the training.
TrainingState UsersModel::lack(std::string_view why) {
  if (std::exchange(warnedOfLack_, true)) return {};
  const Ledger& now = run_.decisions.ledger();
  logWarning(
      "there is no checkpoint of the training after iteration {}{}: {}", now.iteration,
      now.verdict == Verdict::Continue
          ? ""
          : "; a training that is resumed from the model file begins the next epoch with each worker at "
            "the merged model",
      why);
  return {};
}

void UsersModel::copyReplica(int worker, Model& into) {
  const auto workers = setting_.replicas.workers();
  const auto found =
      std::ranges::find_if(workers, [&](const auto& w) { return w->thread().index() == worker; });
  require(found != workers.end() && (*found)->thread().hasReplica(),
          "copyReplica: there is no replica of worker {} on this node, which has {}", worker,
          plural(workers.size(), "worker"));
  Exchange& exchange = setting_.replicas.exchange();
  exchange.wait();
  into.copyStateFrom((*found)->thread().replica());
  // A replica is given its counters when it continues.
  const Ledger& now = run_.decisions.ledger();
  into.setCounters(now.iteration, now.epoch);
  if (const auto* const own = OwnUpdates::find(exchange, static_cast<std::size_t>(worker)))
    into.setUpdates(static_cast<std::int64_t>(own->count));
}

TrainingState UsersModel::trainingState() {
  if (run_.failure) return {};
  fill();
  const Ledger& now = run_.decisions.ledger();
  if (now.rounds == 0 || !setting_.model.trainingState().empty()) return setting_.model.trainingState();
  auto* const nodes = setting_.replicas.exchange().nodeGroup();
  if (nodes && !nodes->awaitLaunched()) return {};  // the training will fail, too
  const bool overNodes = run_.place.nodes > 1;
  if (overNodes && moment_ == Moment::Training) return {};
  if (overNodes && setting_.replicas.workerBlocks().differUnexpectedly())
    return lack(
        "the strategy says that all replicas are equal (StrategyTraits::replicasDiffer), so those of other "
        "nodes are not collected, but they differ");
  if (overNodes && moment_ == Moment::RoundEnd)  // at the end of the run, all nodes have collected it
    collectStrategyState(setting_.replicas.exchange(), setting_.model);
  // On the wall clock the order of arrivals is not known in advance: only a point where all land can be
  // resumed.
  if (now.arrivals && now.arrivals->onWallClock() && now.verdict == Verdict::Continue)
    return lack("on the wall clock only the end of an epoch can be resumed");
  TrainingState state = positionNow();
  addLedger(state, now, ruleText(setting_.options));
  // At the end of the run, all nodes have formed the means of what workers keep.
  setting_.replicas.addOwn(state, now, /*means=*/moment_ == Moment::RoundEnd);
  return state;
}

/// Can fail if a device is lost, since the last merge is lost with it; that loss is usually the run's
/// failure, too. If memory is short, the second attempt leaves out what it is needed for.
void UsersModel::fillAtEnd() {
  constexpr std::string_view what = "the model could not be filled with the last merge";
  const bool failed = static_cast<bool>(run_.failure);
  if (lent_ || run_.place.nodes > 1) held_.reset();  // refill: listeners change it, nodes fill together
  try {
    return fill();
  } catch (...) {
    setting_.replicas.setUntrained();
    run_.fail(-1, std::current_exception(), [&] { return what; });
  }
  try {
    fill();
  } catch (...) {
    held_.reset();
    if (failed) try {
        logWarning("{}, and keeps its earlier state: {}", what, describe(std::current_exception()));
      } catch (...) {  // no memory for the log line: continue without it
      }
  }
}

}  // namespace muster
