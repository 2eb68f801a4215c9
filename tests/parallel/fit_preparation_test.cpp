#include "muster/parallel/fit_preparation.h"

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

TEST_CASE("a data set without batches is refused, unless the replicas are there") {
  ToyModel model;
  TwoWorkerSession session(model);
  ToyIterator none({});
  FitPreparation preparation(model, session.options, session.placements, session.session, session.caller);
  CHECK_NOTHROW(preparation.prepare(none, none, 1, nullptr));  // the model has its blocks already
  CHECK(preparation.first() == nullptr);
}
