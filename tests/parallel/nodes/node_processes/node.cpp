// One node of a training for nodes_mpi_test or nodes_gloo_test: <rule> <workers> <folder> <what happens to
// node 1> [kill at ms]. Writes into the folder the bits of its model and the exception of `fit`. With the
// fate "cut", node 1 creates the file `begun` in its second epoch; with "slow" nothing happens to it, and the
// training has one epoch.
#include "muster/core/base/log.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/nodes/node_processes/train_process.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

#if defined(MUSTER_TEST_OVER_MPI)
// Open MPI leaks some kilobytes in plugins that it has unloaded, so no suppression can name them.
// LeakSanitizer checks the same code over Gloo.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return 1;
}
#endif

namespace {

Nodes connect(std::chrono::milliseconds silence) {
#ifdef MUSTER_TEST_OVER_GLOO
  const auto variable = [](const char* name) {
    const char* const text = std::getenv(name);
    require(text != nullptr, "{} is not set", name);
    return text;
  };
  return Nodes::gloo({.store = variable("MUSTER_STORE"),
                      .node = std::atoi(variable("MUSTER_NODE")),
                      .nodes = std::atoi(variable("MUSTER_NODES")),
                      .interface = variable("MUSTER_INTERFACE"),
                      .silence = silence});
#else
  return Nodes::mpi(silence);
#endif
}

int train(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string rule = argv[1], fate = argv[4];
  const int workers = std::atoi(argv[2]);
  const std::filesystem::path folder = argv[3];
  const bool faulty = fate != "well" && fate != "slow";
  const Nodes nodes = connect(faulty ? 3s : fate == "slow" ? 8s : 30s);
  const auto own = [&](const char* kind) {
    return folder / (std::string(kind) + std::to_string(nodes.node()));
  };
  logInfo("has connected");
  return trainProcess(rule, own, [&](const AnyStrategy& options, ToyModel& model) {
    auto data = processToyData(nodes.nodes() * workers);
    std::jthread killer;
    const bool mine = nodes.node() == 1;
    if (mine && fate == "kill")
      killer = std::jthread([after = std::chrono::milliseconds(std::atoi(argv[5]))] {
        std::this_thread::sleep_for(after);
        suffer("kill");
      });
    model.control().onStep = [&](const Batch& batch) {
      if (faulty) std::this_thread::sleep_for(1ms);
      if (!mine || batch.stamp.epoch != 1) return;
      if (fate == "cut" && batch.stamp.sequence < 3) std::ofstream(folder / "begun");
      if (fate != "kill") suffer(fate);
    };
    ParallelWrapper::Builder(model)
        .workers(workers)
        .pinThreads(false)
        .strategy(options)
        .nodes(nodes)
        .build()
        .fit(data, faulty           ? 1000
                   : fate == "slow" ? 1
                                    : 2);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return test::exitStatus([&] { return train(argc, argv); });
}
