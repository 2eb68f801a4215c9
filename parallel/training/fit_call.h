#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "muster/core/listeners/node_listener.h"
#include "muster/parallel/training/fit_run.h"
#include "muster/parallel/training/users_model.h"

namespace muster {

/// Whether another node caused a failure, so that this node can continue without it.
bool isOfAnotherNode(const std::exception_ptr& cause);

/// One `fit()` call, once the replicas hold the model's state: calls the listeners, starts workers and
/// reader, coordinates. Used by the thread that called `fit()`.
class FitCall {
 public:
  explicit FitCall(const FitSetting& setting);

  /// @throws TrainingError for the first failure, when all threads are idle again.
  void run(std::int64_t epochs);

  /// After `run`: whether it has paused because some node set `FitParts::regroup`.
  bool regrouping() const { return run_.decisions.ledger().verdict == Verdict::Pause; }
  /// In a listener's call: whether the other nodes make the same call.
  bool calledOnAllNodes() const { return dynamic_cast<const NodeListener*>(called_) != nullptr; }
  UsersModel& usersModel() { return usersModel_; }
  /// Whether all workers wait at the end of a round, for the listeners.
  bool atRoundEnd() const { return usersModel_.moment() == UsersModel::Moment::RoundEnd; }
  /// At the end of a round; see Rounds::visit. @return false if the training has failed meanwhile.
  template <typename Meanwhile>
  bool visit(const std::function<void(int)>& task, Meanwhile meanwhile) {
    return !run_.failure && run_.rounds.visit(task, meanwhile);
  }

 private:
  void train(std::int64_t epochs);
  bool callStart(std::int64_t epochs);
  void callEnd();
  void endTogether();
  void coordinate();
  void endRound();
  template <typename When>
  void answerNodes(When when);
  template <typename When>
  void failInListener(When when);
  /// @param when  the end of the text.
  std::string nodesFailed(std::string_view when) const;

  /// One listener's call.
  template <typename Call>
  void notify(Listener& listener, Call call) {
    setting_.caller.set(Activity::Kind::InListener);
    called_ = &listener;
    call(listener);
    setting_.caller.set(Activity::Kind::WaitingForWorkers);
  }
  template <typename Call>
  void notifyAll(Call call) {
    for (const auto& listener : setting_.listeners) notify(*listener, call);
  }
  /// As `notifyAll`; the first exception becomes the run's failure. @return false if there was one.
  template <typename Call>
  bool notifyAll(std::string_view when, Call call) {
    return attempt([&] { return fmt::format("a listener failed at {}", when); }, [&] { notifyAll(call); });
  }
  /// An exception of the call becomes the run's failure. @param where  see FirstFailure.
  /// @return false if there was one.
  template <typename Where, typename Call>
  bool attempt(Where where, Call call) {
    try {
      call();
      return true;
    } catch (...) {
      run_.fail(-1, std::current_exception(), where);
      return false;
    }
  }

  const FitSetting setting_;
  FitRun run_;
  UsersModel usersModel_;
  const Listener* called_ = nullptr;  // the listener called last
};

}  // namespace muster
