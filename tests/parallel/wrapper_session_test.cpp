#include "muster/parallel/wrapper_session.h"

#include "muster/core/listeners/evaluation_listener.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/optim/schedules.h"
#include "tests/parallel/two_worker_session.h"
#include "tests/support/recording_listener.h"
#include "tests/support/texts.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("the plan has the batches of a late round, and tells schedules that are longer with more workers") {
  const std::string begin = "2 workers on cpu (1 thread each, not pinned), ";
  ToyModel plain, scheduled({.training = {.updater = Sgd{.learningRate = CosineSchedule{.iterations = 50}}}});
  CHECK(TwoWorkerSession(plain, Averaging{.frequency = 3})->plan() ==
        begin + "averaging every 3 iterations: 6 batches per round");
  CHECK_CONTAINS(TwoWorkerSession(plain, Averaging{.frequency = Period::postLocal(1000, 4)})->plan(),
                 ": 8 batches per round");
  CHECK(TwoWorkerSession(scheduled)->plan() ==
        begin +
            "averaging every iteration: 2 batches per round; the learning rate's "
            "schedule (cosine) ends after 50 iterations (100 batches)");
}

TEST_CASE("replicas are made once memory has room for them, by the settings of tests") {
  ToyModel model({.size = 100'000});
  CHECK_FALSE(internalsOf({}).pretendedDevices > 0);
  TwoWorkerSession session(model);
  CHECK_FALSE(session->replicas().made());
  // Of 0.4 MB: parameters and gradients of two workers, and a merged copy.
  CHECK(session->memoryNeed()->bytes() == doctest::Approx(5 * 400'000).epsilon(1e-3));
  session->makeReplicas({}, true);
  CHECK(session->replicas().made());
}

TEST_CASE("the first batch that is not trained is read, with the position of its first example") {
  ToyModel model;
  TwoWorkerSession session(model);
  ToyIterator data({{{2, 4}}, {{6}}});
  Batch first;
  CHECK(session->prepareModel(data, /*epoch=*/3, {.nextBatch = 1, .examples = 2}, first));
  CHECK(data.resets == std::vector<std::int64_t>{3});
  CHECK(first.features.front().value.data<float>()[0] == 6);
  CHECK(first.stamp.firstExample == 2);
  CHECK_FALSE(session->prepareModel(data, 3, {.nextBatch = 2, .examples = 3}, first));
}

TEST_CASE("an iterator that fails before a training begins is named, with the epoch") {
  ToyModel model;
  TwoWorkerSession session(model);
  auto data = ToyIterator::ofValues({1});
  data.onReset = [](std::int64_t) { throw std::runtime_error("no disk"); };
  Batch first;
  CHECK(thrown<TrainingError>([&] { session->prepareModel(data, 3, {}, first); }) ==
        "the data iterator failed in reset to epoch 4: no disk");
}

TEST_CASE("the first batch is read once, and replicas begin with the model's state") {
  ToyModel model;
  TwoWorkerSession session(model);
  auto data = ToyIterator::ofValues({2, 6});
  const auto prepare = [&](FitParts* parts) {
    PreparedFit fit = session->prepareFit(data, data, 1, parts);
    for (ReplicaThread* thread : session->replicas().threads())
      CHECK(dynamic_cast<ToyModel&>(thread->replica()).parameters() == model.parameters());
    return fit;
  };
  const PreparedFit first = prepare(nullptr);
  REQUIRE(first.first);
  CHECK(first.first->examples() == 1);
  CHECK_FALSE(first.resumed.any);
  CHECK(first.numbered == nullptr);  // the reader has a core, and the data have no numbers

  model.setParameters({4});
  CHECK_FALSE(prepare(nullptr).first);

  const std::atomic<bool> regroup = false;
  FitParts parts{.regroup = &regroup, .first = first.first};
  CHECK(prepare(&parts).first);
  CHECK_FALSE(parts.first.has_value());
  CHECK(data.resets == std::vector<std::int64_t>{0});
}

TEST_CASE("a data set without batches is refused for a model that has no blocks yet") {
  ToyIterator none({});
  const auto prepare = [&](Model& model) {
    TwoWorkerSession session(model);
    const PreparedFit fit = session->prepareFit(none, none, 1, nullptr);
    CHECK_FALSE(fit.first);
    CHECK(session->replicas().made());
  };
  ToyModel withBlocks;
  CHECK_NOTHROW(prepare(withBlocks));
  MultiLayerNetwork withoutBlocks(mlp({2}, 2));
  CHECK_REFUSED(prepare(withoutBlocks), "fit: the data set has no batches");
}

TEST_CASE("merged listeners are called on node 0, and on others only those that evaluate on all nodes") {
  auto validation = ToyIterator::ofValues({1});
  const auto merged = mergedListener(), ofWorkers = workerListener();
  const auto everywhere = std::make_shared<EvaluationListener>(validation);
  const Listeners all{merged, ofWorkers, everywhere};
  CHECK(listenersHere(all, /*report=*/false, /*node=*/0) == all);
  CHECK(listenersHere(all, false, 1) == Listeners{ofWorkers, everywhere});
  CHECK(listenersHere(all, /*report=*/true, 0).size() == 4);
  CHECK(listenersHere(all, true, 1).size() == 2);
}
