// The system refuses to start threads: each one, and all from one on.
#include <cerrno>

#include "muster/core/base/interrupt.h"
#include "muster/core/data/prefetch.h"
#include "muster/core/listeners/checkpoint_listener.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/parallel/data_parallel/data_parallel.h"
#include "muster/parallel/nodes/node_link.h"
#include "tests/core/nn/batches.h"
#include "tests/faults/failing_calls.h"
#include "tests/parallel/data_parallel.h"
#include "tests/support/at_rest.h"
#include "tests/support/failure.h"
#include "tests/support/list_iterator.h"
#include "tests/support/log_lines.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "tests/support/virtual_network.h"

using namespace muster;
using namespace muster::test;

namespace {

/// Calls `call` with each of its threads refused, and with all threads from each on refused. @return the
/// number of refusals.
/// @param expected  the error's words before and after the thread's name.
template <typename Call>
long refuseEach(Call call, const std::string& before) {
  long all = 0;
  for (const long times : {1L, -1L})
    for (long nth = 0;; ++nth) {
      CAPTURE(nth);
      CAPTURE(times);
      const auto threads = awaitRest();
      std::string text;
      long refused = 0;
      {
        const FailingCalls calls({.name = "thread", .nth = nth, .error = EAGAIN, .times = times});
        text = thrown<Error>(call);
        refused = calls.count();
      }
      CHECK(awaitRest() == threads);
      if (refused == 0) {
        CHECK(text.empty());
        break;
      }
      ++all;
      CHECK_CONTAINS(text, before);
      CHECK_CONTAINS(text, " could not be started: Resource temporarily unavailable");
    }
  return all;
}

}  // namespace

TEST_CASE("if a wrapper's thread cannot be started, the error names the worker, the reader or the watch") {
  ToyModel model;
  const long refused = refuseEach([&] { toyWrapper(model, 3).build(); }, "the thread of ");
  CHECK(refused == 2 * 5);
  CHECK(model.control().alive == 1);
  MESSAGE(refused << " threads of a wrapper refused");
  auto wrapper = toyWrapper(model, 3).build();
  checkTrainsAgain(wrapper, model);
}

TEST_CASE("if the thread of a node's network cannot be started, the error says so") {
  VirtualNetwork network(1);
  CHECK(refuseEach([&] { NodeLink link([&] { return network.transport(0); }, std::chrono::seconds(1)); },
                   "the thread of the network") == 2);
}

TEST_CASE("threads of operations that cannot be started give an error instead of OpenMP's exit") {
  const long refused =
      refuseEach([] { const Context context(Device::cpu(), {.threads = 1}); }, "the thread of an operation");
  CHECK(refused == 0);
  for (const long nth : {0, 1, 2}) {
    const FailingCalls calls({.name = "thread", .nth = nth, .error = EAGAIN, .times = -1});
    CHECK(thrown<Error>([] { const Context context(Device::cpu(), {.threads = 4}); }) ==
          fmt::format("the thread of an operation, {} of 4, could not be started: Resource temporarily "
                      "unavailable; the limits on threads (ulimit -u, a container's pids.max) and on memory "
                      "decide how many there may be",
                      nth + 2));
  }
  ToyModel model;
  auto data = twosAndSixes();
  auto wrapper = toyWrapper(model, 1).threadsPerWorker(3).build();
  {
    const FailingCalls calls({.name = "thread", .error = EAGAIN, .times = -1});
    const auto failure = failureOf(wrapper, data);
    CHECK_MESSAGE(
        failure.text.starts_with("worker 0 on cpu could not be made: the thread of an operation, 2 of 3,"),
        failure.text);
  }
  checkTrainsAgain(wrapper, model);
}

TEST_CASE("a prefetching iterator, an interrupt and a DataParallel refuse to start without threads") {
  auto data = twosAndSixes();
  CHECK(refuseEach([&] { PrefetchingIterator prefetching(data, 2); },
                   "the thread of the prefetching iterator") == 2);
  const auto files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = files();
  CHECK(refuseEach([] { Interrupt interrupt("stopping"); }, "the thread of the interrupt") == 2);
  CHECK(files() == before);
  SequenceModel<double> model;
  CHECK(refuseEach([&] { DataParallel parallel(model, cpus(2), 0, unpinned()); }, "the thread of ") == 2 * 2);
}

TEST_CASE("the training thread itself writes a checkpoint if no thread can be started") {
  MultiLayerNetwork network({.inputShape = {3}, .layers = {Output{.classes = 2}}});
  network.init();
  ListIterator data(classBatches({3}, 2, 2, 4));
  const TemporaryDirectory directory;
  const auto checkpoints = std::make_shared<CheckpointListener>(
      CheckpointOptions{.directory = directory.path(), .everyIterations = 1});
  auto wrapper = toyWrapper(network, 2).listeners({checkpoints}).build();
  const FailingCalls calls({.name = "thread", .error = EAGAIN, .times = -1});
  wrapper.fit(data);
  CHECK(calls.count() > 0);
  CHECK(checkpoints->files().size() >= 2);
  for (const auto& file : checkpoints->files()) CHECK_NOTHROW(checkModelFile(file));
}

TEST_CASE("a worker whose cores were taken away is not pinned, which is logged") {
  ToyModel model;
  auto wrapper = toyWrapper(model, 1).pinThreads(true).build();
  if (!contains(wrapper.plan(), "pinned to core")) return;  // other programs have taken all cores
  LogLines log;
  auto data = twosAndSixes();
  const FailingCalls calls({.name = "affinity", .error = EINVAL, .times = -1});
  wrapper.fit(data);
  CHECK(calls.count() > 0);
  CHECK_CONTAINS(log.lineWith({"worker 0 on cpu is not pinned: "}), "may not use all of the cores");
}
