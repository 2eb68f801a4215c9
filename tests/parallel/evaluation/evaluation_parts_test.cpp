// What a wrapper's evaluation is made of: the loan of a state, a run on the threads of replicas, the sum over
// nodes.

#include "muster/core/eval/evaluation.h"
#include "muster/parallel/evaluation/evaluation_run.h"
#include "muster/parallel/evaluation/state_loan.h"
#include "muster/parallel/runtime/replica_thread.h"
#include "tests/parallel/nodes/on_exchanges.h"
#include "tests/support/labelled_toy.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a replica has the lent state during a loan, and its own one afterwards") {
  ToyModel model({.size = 2}), replica({.size = 2});
  model.setParameters({1, 2});
  std::vector<Tensor> values;
  for (const auto* block : model.state()) values.push_back(block->values);
  for (const auto& own : {std::vector<float>{3, 4}, {1, 2}}) {  // {1, 2} is not saved
    replica.setParameters(own);
    {
      const StateLoan loan(replica, values, "/");
      CHECK(replica.parameters() == std::vector<float>{1, 2});
      replica.setParameters({9, 9});  // as an output() may
    }
    CHECK(replica.parameters() == own);
    CHECK(model.parameters() == std::vector<float>{1, 2});
  }
}

TEST_CASE("replicas count each batch once, by the state of the user's model") {
  ToyModel model({.size = 3});
  model.setParameters({0.1f, -0.2f, 0.3f});
  ReplicaThread first("worker", 0, {.device = Device::cpu()}, 1),
      second("worker", 1, {.device = Device::cpu()}, 1);
  ReplicaThread* const threads[] = {&first, &second};
  runOnAll(threads, "could not be made", [&](ReplicaThread& thread) { thread.makeReplica(model); });
  model.setParameters({-0.5f, 0.4f, 0.2f});
  LabelledToy data(randomBatches(3, 7, 5, 3, true), 3, 3);
  Activity caller;
  EvaluationRun run(model, {}, threads, /*batchesAhead=*/2, nullptr, nullptr, "/");
  const auto counts = run.evaluate(data, caller);
  CHECK(counts.classification() == evaluate(model, data));
}

TEST_CASE("the counts of all nodes are added up, and the earliest failure is named on the others") {
  constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
  VirtualNetwork network(2);
  const auto replicas = [](const std::vector<int>& workers) {
    return Replicas(workers, {{"parameters", BlockKind::Parameters, MergeRule::Average, 4}},
                    [](int, std::size_t, std::int64_t) { return 0; });
  };
  onExchanges(network, replicas, {}, [&](const ExchangeHere& here) {
    AnyEvaluation own(Task::Classification, 2);
    const Tensor predicted = Tensor::of({1, 0, 0, 1}, {2, 2});  // classes 0 and 1
    Tensor labels = Tensor::zeros({2}, DType::Int64);
    labels.data<std::int64_t>()[0] = here.node;
    own.add(predicted, labels, {});
    const auto sum = addUpNodes(here.exchange, here.link, kNever, own);
    REQUIRE(sum);
    CHECK(sum->examples() == 4);
    // Labels 0 0 on node 0 and 1 0 on node 1, predictions 0 1 on both.
    CHECK(sum->classification().confusionMatrix() == std::vector<std::int64_t>{1, 2, 1, 0});
    if (here.node == 1) {
      CHECK_FALSE(addUpNodes(here.exchange, here.link, 4, own));
    } else {
      CHECK(thrown<TrainingError>([&] { addUpNodes(here.exchange, here.link, kNever, own); }) ==
            "evaluate: node 1 (virtual1) has failed; its own message says why");
    }
  });
}
