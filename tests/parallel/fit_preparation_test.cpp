#include "muster/parallel/fit_preparation.h"

#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/parallel/two_worker_session.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("the first batch is read once, and replicas begin with the model's state") {
  ToyModel model;
  TwoWorkerSession session(model);
  auto data = ToyIterator::ofValues({2, 6});
  const auto prepare = [&](FitPreparation& preparation, FitParts* parts) {
    preparation.prepare(data, data, 1, parts);
    for (ReplicaThread* thread : session->replicas().threads())
      CHECK(dynamic_cast<ToyModel&>(thread->replica()).parameters() == model.parameters());
  };
  FitPreparation first(model, session.options, session.placements, session.session, session.caller);
  CHECK(first.first() == nullptr);
  prepare(first, nullptr);
  REQUIRE(first.first() != nullptr);
  CHECK(first.first()->examples() == 1);
  CHECK_FALSE(first.resumed().any);
  CHECK(first.numbered() == nullptr);  // the reader has a core, and the data have no numbers

  model.setParameters({4});
  FitPreparation second(model, session.options, session.placements, session.session, session.caller);
  prepare(second, nullptr);
  CHECK(second.first() == nullptr);

  const std::atomic<bool> regroup = false;
  FitParts parts{.regroup = regroup, .first = *first.first()};
  FitPreparation ofParts(model, session.options, session.placements, session.session, session.caller);
  prepare(ofParts, &parts);
  CHECK(ofParts.first() != nullptr);
  CHECK_FALSE(parts.first.has_value());
  CHECK(data.resets == std::vector<std::int64_t>{0});
}

TEST_CASE("a data set without batches is refused for a model that has no blocks yet") {
  ToyIterator none({});
  const auto prepare = [&](Model& model) {
    TwoWorkerSession session(model);
    FitPreparation preparation(model, session.options, session.placements, session.session, session.caller);
    preparation.prepare(none, none, 1, nullptr);
    CHECK(session->replicas().made());
    CHECK(preparation.first() == nullptr);
  };
  ToyModel withBlocks;
  CHECK_NOTHROW(prepare(withBlocks));
  MultiLayerNetwork withoutBlocks(mlp({2}, 2));
  CHECK_REFUSED(prepare(withoutBlocks), "fit: the data set has no batches");
}
