#include "muster/parallel/strategies/overlapped_averaging.h"

#include "tests/parallel/rule_wrapper.h"
#include "tests/support/on_merge.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;

TEST_CASE("a listener tells a launch from a landing, and sees the merged model and each replica") {
  // p = 0, worker 0 on {2}, worker 1 on {6}, learning rate 0.5; launched after iterations 1 and 3, landed
  // after 2 and 4: 1, 3, mean 2; 1.5, 4.5 land as 2.5, 3.5. Then 2.25, 4.75, mean 3.5; 2.125, 5.375 land as
  // 3.375, 4.125, mean 3.75.
  struct Seen {
    std::int64_t iteration;
    bool launched, landed;
    float model, first, second;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  const auto watcher = onMerge([&](const MergeEvent& event) {
    const auto replica = [&](int worker) {
      ToyModel copied;
      event.trainer.copyReplica(worker, copied);
      CHECK(copied.iteration() == event.iteration);
      return copied.parameters()[0];
    };
    const float merged = static_cast<ToyModel&>(event.trainer.model()).parameters()[0];
    seen.push_back({event.iteration, event.launched, event.landed, merged, replica(0), replica(1)});
    CHECK_REFUSED(replica(2),
                  "copyReplica: there is no replica of worker 2 on this node, which has 2 workers");
  });
  ToyModel model({.training = {.updater = Sgd{.learningRate = 0.5}}});
  auto data = ToyIterator::ofValues({2, 6, 2, 6, 2, 6, 2, 6});
  wrapperOf(model, 2, OverlappedAveraging{}, 0, {watcher}).fit(data);
  CHECK(seen == std::vector<Seen>{{1, true, false, 0, 1, 3},
                                  {2, false, true, 2, 2.5f, 3.5f},
                                  {3, true, false, 2, 2.25f, 4.75f},
                                  {4, false, true, 3.5f, 3.375f, 4.125f},
                                  {4, true, true, 3.75f, 3.75f, 3.75f}});
  seen.clear();
  auto four = ToyIterator::ofValues({2, 6, 2, 6});
  wrapperOf(model, 2, Averaging{}, 0, {watcher}).fit(four);
  for (const Seen& one : seen) CHECK((one.launched && one.landed && one.first == one.model));
}

TEST_CASE("a period no longer than the delay merges at once") {
  const auto period = Period::postLocal(5, 4);
  CHECK(trainRule(OverlappedAveraging{.frequency = Period::postLocal(1000, 4)}) == trainRule(Averaging{}));
  CHECK(trainRule(OverlappedAveraging{.frequency = period}) != trainRule(Averaging{.frequency = period}));
}
