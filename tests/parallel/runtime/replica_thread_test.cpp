#include "muster/parallel/runtime/replica_thread.h"

#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("each replica is made and used on a thread of its own, and checked as a copy of the model") {
  ToyModel model;
  ReplicaThread first("worker", 0, {.device = Device::cpu()}, 1),
      second("worker", 1, {.device = Device::cpu()}, 1);
  ReplicaThread* const threads[] = {&first, &second};
  CHECK(second.name() == "worker 1 on cpu");
  CHECK_FALSE(first.hasReplica());
  std::thread::id ids[2];
  runOnAll(threads, "could not be made", [&](ReplicaThread& thread) {
    ids[thread.index()] = std::this_thread::get_id();
    thread.makeReplica(model);
  });
  CHECK(std::set{ids[0], ids[1], std::this_thread::get_id()}.size() == 3);
  CHECK(&first.replica() != &second.replica());
  const auto state = [](Model& of) { return of.state(); };
  CHECK_NOTHROW(requireCopies(threads, model, state));
  model.control().shareMemory = true;
  ReplicaThread third("worker", 2, {.device = Device::cpu()}, 1);
  ReplicaThread* const sharing[] = {&third};
  runOnAll(sharing, "could not be made", [&](ReplicaThread& thread) { thread.makeReplica(model); });
  CHECK(thrown<TrainingError>([&] {
          requireCopies(sharing, model, state);
        }).starts_with("worker 2 on cpu could not be made: its block parameters shares memory"));
}

TEST_CASE("the first thread that has failed is named, and all have ended") {
  ReplicaThread first("replica", 0, {.device = Device::cpu()}, 1),
      second("replica", 1, {.device = Device::cpu()}, 1);
  ReplicaThread* const threads[] = {&first, &second};
  std::atomic<int> ended{0};
  CHECK(thrown<TrainingError>([&] {
          runOnAll(threads, "failed in forward", [&](ReplicaThread& thread) {
            thread.makeContext();
            ++ended;
            if (thread.index() == 1) throw std::runtime_error("boom");
          });
        }) == "replica 1 on cpu failed in forward: boom");
  CHECK(ended == 2);
}
