#include "muster/parallel/training/users_model.h"

#include "tests/parallel/training/small_fit.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

namespace {

/// A fit of one worker, whose rounds the test carries out on its own thread.
struct Rounds1 {
  Rounds1() {
    fit.load();
    run.decisions.prepare();
    run.rounds.begin(/*epochs=*/2);
  }
  /// The worker has trained a batch of two examples, to `parameter` and with score 4.
  void train(float parameter) {
    ++iteration;
    fit.replica(0).setParameters({parameter});
    const Contribution trained{
        .scoreSum = 8, .weight = 2, .plainScoreSum = 4, .batches = 1, .examples = 2, .iteration = iteration};
    REQUIRE(run.rounds.next(me(), trained).what == Order::Do::Merge);
  }
  void merge() { run.shares.merge(me(), run.decisions.decision()); }
  void round(float parameter) {
    train(parameter);
    merge();
    REQUIRE(run.rounds.next(me(), {}).what == Order::Do::Train);
  }
  Participant me() {
    return {0, fit.replicas.exchange(), fit.replicas.workers()[0]->thread().context(), times, activity};
  }

  SmallFit fit;
  const FitSetting setting = fit.setting();
  const StrategyTraits& traits = fit.replicas.traits();
  FitRun run{fit.replicas.place(),
             fit.batches,
             {.strategy = fit.replicas.strategy(),
              .traits = traits,
              .stop = fit.stop,
              .learningRate = 0.5,
              .undo = fit.replicas.undo()},
             ledgerAt({}, 0, 0, 1),
             &fit.replicas.exchange()};
  UsersModel users{setting, run};
  TimeSheet times;
  Activity activity;
  std::int64_t iteration = 0;
};

}  // namespace

TEST_CASE("the user's model is filled with the last merge when a listener asks, and at the end") {
  Rounds1 rounds;
  rounds.users.lend();
  CHECK(rounds.fit.parameter() == 0);  // nothing is merged yet
  rounds.round(6);
  rounds.round(7);
  CHECK(rounds.fit.parameter() == 0);
  rounds.users.lend();
  CHECK(rounds.fit.parameter() == 7);
  CHECK(rounds.fit.model.iteration() == 2);
  CHECK(rounds.fit.model.score() == 4);
  rounds.fit.model.setParameters({100});  // is not trained
  rounds.users.fillAtEnd();
  CHECK(rounds.fit.parameter() == 7);
  CHECK_FALSE(rounds.run.failure);
}

TEST_CASE("other nodes continue at the last merge, whose place is kept with the model") {
  Rounds1 rounds;
  rounds.users.keepPlace();
  CHECK(rounds.fit.model.trainingState().empty());  // nothing is trained
  rounds.round(6);
  CHECK(thrown<Error>([&] { rounds.users.keepPlace(); }) ==
        "the model could not be filled with the last merge, so other nodes cannot continue");
  rounds.users.fillAtEnd();
  rounds.users.keepPlace();
  const auto position = positionIn(rounds.fit.model.trainingState());
  REQUIRE(position);
  CHECK(position->nextBatch == 1);
  CHECK(position->examples == 2);
  CHECK(position->scoreSum == 8);
}

TEST_CASE("a checkpoint holds the place in the epoch; after a failure there is none") {
  Rounds1 rounds;
  CHECK(rounds.users.trainingState().empty());
  rounds.round(6);
  const TrainingState state = rounds.users.trainingState();
  CHECK(rounds.fit.parameter() == 6);  // it is of the model as it is
  const auto position = positionIn(state);
  REQUIRE(position);
  CHECK(position->nextBatch == 1);
  rounds.run.fail(0, std::make_exception_ptr(Error("boom")), [] { return "worker 0 failed"; });
  CHECK(rounds.users.trainingState().empty());
}

TEST_CASE("a copy of a replica has its parameters and the counters of the last merge") {
  Rounds1 rounds;
  rounds.round(6);
  rounds.fit.replica(0).setParameters({8});  // trained since
  ToyModel copy;
  rounds.users.copyReplica(0, copy);
  CHECK(copy.parameters().front() == 8);
  CHECK(copy.iteration() == 1);
  CHECK_REFUSED(rounds.users.copyReplica(3, copy),
                "copyReplica: there is no replica of worker 3 on this node, which has 1 worker");
}

TEST_CASE("after a merge that failed and cannot be undone the model keeps its state") {
  Rounds1 rounds;
  rounds.round(6);
  rounds.users.lend();
  rounds.train(7);
  rounds.run.shares.lose();
  rounds.run.fail(0, std::make_exception_ptr(Error("boom")), [] { return "worker 0 failed"; });
  rounds.run.decisions.close();
  rounds.fit.merged() = 99;  // a part of its result
  rounds.users.fillAtEnd();
  CHECK(rounds.fit.parameter() == 6);
  CHECK(rounds.fit.model.iteration() == 1);
}
