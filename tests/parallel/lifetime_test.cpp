// Wrappers that were moved from, destroyed too early, created in another process, or cannot start threads.

#include "tests/parallel/data_parallel.h"
#include "tests/support/child_process.h"
#include "tests/support/recording_listener.h"
#include "tests/support/skip.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

/// The errors of all calls except stopFit(), which does nothing.
std::vector<std::string> refusals(ParallelWrapper& wrapper) {
  auto data = ToyIterator::ofValues({1, 2, 3});
  wrapper.stopFit();
  return {thrown<InvalidArgument>([&] { wrapper.fit(data); }),
          thrown<InvalidArgument>([&] { wrapper.evaluate(data); }),
          thrown<InvalidArgument>([&] { wrapper.workerTimes(); }),
          thrown<InvalidArgument>([&] { wrapper.plan(); }),
          thrown<InvalidArgument>([&] { wrapper.options(); })};
}

}  // namespace

TEST_CASE("a moved-from wrapper throws a clear exception, and its target works") {
  ToyModel model;
  auto wrapper = toyWrapper(model, 2).build();
  auto other = std::move(wrapper);
  for (const auto& refusal : refusals(wrapper))  // NOLINT(bugprone-use-after-move)
    CHECK(refusal.ends_with(": this object was moved from; use the one that it was moved to"));
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  other.fit(data);
  CHECK(model.epoch() == 1);
  wrapper = std::move(other);
  wrapper.fit(data);
  CHECK(model.epoch() == 2);
  auto& same = wrapper;
  wrapper = std::move(same);
  wrapper.fit(data);
  CHECK(model.epoch() == 3);
}

TEST_CASE("a moved-from DataParallel throws a clear exception") {
  SequenceModel<double> model;
  DataParallel parallel(model, cpus(2), 0, unpinned());
  const DataParallel other = std::move(parallel);
  CHECK_REFUSED(parallel.forward(randomTensor<double>({4, 2, 3}, 1)),
                "data parallel: this object was moved from; use the one that it was moved to");
  CHECK_THROWS_AS(parallel.zeroGradients(), InvalidArgument);
  CHECK_THROWS_AS(parallel.syncParameters(), InvalidArgument);
  CHECK_THROWS_AS(parallel.shapes(), InvalidArgument);
}

TEST_CASE("a wrapper that a listener destroys ends the program with a message") {
  for (const auto scope : {ListenerScope::Merged, ListenerScope::Worker}) {
    const auto words = dyingWords([&] {
      ToyModel model;
      auto data = ToyIterator::ofValues({1, 2, 3, 4});
      std::optional<ParallelWrapper> wrapper;
      const auto destroying =
          std::make_shared<RecordingListener>(scope, [&](const RecordedCall& call, Trainer&) {
            if (call.event == "merge" || call.event == "iteration") wrapper.reset();
          });
      wrapper.emplace(toyWrapper(model, 2).listeners({destroying}).build());
      wrapper->fit(data);
    });
    CHECK(words.find("a ParallelWrapper is destroyed while its fit() or evaluate() runs") !=
          std::string::npos);
  }
}

TEST_CASE("a child of fork() cannot use its parent's wrapper, but may destroy its copy") {
  ToyModel model;
  auto data = ToyIterator::ofValues({1, 2, 3, 4});
  auto wrapper = toyWrapper(model, 2).build();
  wrapper.fit(data);
  const auto texts = inChild([&] {
    ::alarm(20);  // ends a child that hangs
    std::string all;
    for (const auto& refusal : refusals(wrapper)) all += refusal + "\n";
    const auto copy = std::move(wrapper);
    return all;
  });
  CHECK(texts.starts_with("fit: this process is a child of the one that made the object"));
  CHECK(std::ranges::count(texts, '\n') == 5);
  wrapper.fit(data);
  CHECK(model.epoch() == 2);
}

TEST_CASE("a child of fork() cannot use its parent's DataParallel") {
  SequenceModel<double> model;
  std::optional<DataParallel> parallel(std::in_place, model, cpus(2), 0, unpinned());
  const auto text = inChild([&] {
    ::alarm(20);
    const auto refusal = thrown<InvalidArgument>([&] {
      parallel->forward(randomTensor<double>({4, 2, 3}, 1));
    });
    parallel.reset();
    return refusal;
  });
  CHECK(text.starts_with("data parallel: this process is a child"));
}

TEST_CASE("a worker whose thread cannot be started is named") {
  if (kSanitized) return skip("sanitizers need the address space for themselves");
  const auto text = inChild([] {
    ToyModel model;
    std::ifstream status("/proc/self/statm");
    rlim_t pages = 0;
    status >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (64 << 20);
    const rlimit limit{bytes, bytes};  // room for a few stacks of 8 MiB
    ::setrlimit(RLIMIT_AS, &limit);
    return thrown<Error>([&] { toyWrapper(model, 64).build(); });
  });
  CHECK(text.starts_with("the thread of worker "));
  CHECK(text.find(" on cpu could not be started: Resource temporarily unavailable") != std::string::npos);
}
