#include "muster/parallel/inference/free_replicas.h"

#include "tests/support/one_block_model.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using Clock = ParallelInference::Clock;

namespace {

/// So many replicas of a model.
struct Replicas {
  explicit Replicas(int count, const InferenceOptions& options = {}) : all(options) {
    for (int i = 0; i < count; ++i) all.add(std::make_unique<FreeReplica>(model, Placement{}, 1));
  }
  OneBlockModel model;
  FreeReplicas all;
};

}  // namespace

TEST_CASE("loans have different replicas, and a returned one is lent again") {
  Replicas two(2);
  FreeReplicas::Loan first(two.all, ParallelInference::kNoDeadline);
  std::optional<FreeReplicas::Loan> second(std::in_place, two.all, ParallelInference::kNoDeadline);
  FreeReplica* const returned = &second->replica();
  CHECK(returned != &first.replica());
  CHECK(returned->version == 0);  // it holds no state yet
  second.reset();
  FreeReplicas::Loan third(two.all, ParallelInference::kNoDeadline);
  CHECK(&third.replica() == returned);
}

TEST_CASE("without a free replica a loan waits until its deadline, or is refused") {
  Replicas one(1), refusing(1, {.queueLimit = 0, .whenFull = WhenFull::Refuse});
  FreeReplicas::Loan held(one.all, ParallelInference::kNoDeadline);
  CHECK(thrown<DeadlineExceeded>([&] { FreeReplicas::Loan(one.all, Clock::now()); }) ==
        "output: the deadline passed before a replica was free");
  CHECK(one.all.waiting() == 0);
  FreeReplicas::Loan other(refusing.all, ParallelInference::kNoDeadline);
  CHECK(thrown<QueueFull>([&] { FreeReplicas::Loan(refusing.all, ParallelInference::kNoDeadline); }) ==
        "output: 0 calls wait, which is the queue limit");
}

TEST_CASE("a waiting loan gets the replica that is returned") {
  Replicas one(1);
  std::optional<FreeReplicas::Loan> held(std::in_place, one.all, ParallelInference::kNoDeadline);
  FreeReplica* lent = nullptr;
  FreeReplica* const only = &held->replica();
  std::jthread waiting(
      [&] { lent = &FreeReplicas::Loan(one.all, ParallelInference::kNoDeadline).replica(); });
  while (one.all.waiting() == 0) std::this_thread::yield();
  held.reset();
  waiting.join();
  CHECK(lent == only);
}

TEST_CASE("after a close loans are refused") {
  Replicas one(1);
  one.all.close();
  CHECK(thrown<InferenceShutDown>([&] { FreeReplicas::Loan(one.all, ParallelInference::kNoDeadline); }) ==
        "output: this ParallelInference was shut down");
}
