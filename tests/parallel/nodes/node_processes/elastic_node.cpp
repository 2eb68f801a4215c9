// One process of an elastic training, for elastic_nodes_test and storms.py: <folder> <name> <rule> <workers>
// <least nodes> <epochs> <milliseconds per step, until the folder has a file "hurry"> <fate> <its number>
// <store, or "": in the folder>. Writes into the folder the bits of its model, the exception of `fit`, and
// its log with a line for each batch, which begins with the machine's seconds. With the argument "rules" it
// prints the rules that allow elastic nodes, each with a number of workers for a node.

#include "muster/core/base/log.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/nodes/node_processes/dies_serving.h"
#include "tests/parallel/nodes/node_processes/train_process.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

void printRules() {
  const TemporaryDirectory store;
  const auto nodes = Nodes::elastic({.store = store.path().string(), .interface = "lo"});
  for (const auto& rule : everyRule())
    for (const int workers : {1, 2}) {
      auto model = processToy();
      try {
        ParallelWrapper::Builder(model).workers(workers).strategy(rule.options).nodes(nodes).build();
      } catch (const InvalidArgument&) {
        continue;
      }
      fmt::print("{}\t{}\n", rule.name, workers);
      break;
    }
}

int train(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "rules") {
    printRules();
    return 0;
  }
  if (argc != 11) return 2;
  const std::filesystem::path folder = argv[1];
  const std::string name = argv[2], rule = argv[3], fate = argv[8];
  const int workers = std::atoi(argv[4]), epochs = std::atoi(argv[6]);
  const auto step = std::chrono::milliseconds(std::atoi(argv[7]));
  const std::int64_t number = std::atoi(argv[9]);
  const std::string store = argv[10];
  const char* const interface = std::getenv("MUSTER_INTERFACE");
  const char* const milliseconds = std::getenv("MUSTER_TEST_SILENCE");
  const std::chrono::milliseconds silence(milliseconds ? std::atoi(milliseconds) : 5000);
  const auto own = [&](const char* kind) { return folder / (std::string(kind) + "-" + name); };
  std::ofstream log(own("log"));
  setLogSink([&](LogLevel level, std::string_view text) {
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    log << fmt::format("{:.3f} {}", now.count(), text) << std::endl;
    if (!text.starts_with("begins batch")) printLogLine(level, fmt::format("{}: {}", name, text));
  });
  const Nodes::Elastic how{.store = store.empty() ? (folder / "store").string() : store,
                           .minNodes = std::atoi(argv[5]),
                           .interface = interface ? interface : "lo",
                           .silence = silence,
                           .patience = fate == "impatient" ? 3s : 60s};
  const auto nodes = fate == "serve" ? nodesThatDieServing(how, static_cast<int>(number), folder / "dead")
                                     : Nodes::elastic(how);
  return trainProcess(rule, own, [&](const AnyStrategy& options, ToyModel& model) {
    auto data = processToyData(kElasticData);
    std::atomic<bool> fated{false};
    model.control().onStep = [&](const Batch& batch) {
      logInfo("begins batch {} of epoch {} in iteration {}", batch.stamp.sequence, batch.stamp.epoch,
              batch.stamp.iteration);
      if (!std::filesystem::exists(folder / "hurry")) std::this_thread::sleep_for(step);
      if (batch.stamp.iteration >= number && !fated.exchange(true)) suffer(fate);
    };
    auto validation = processToyData(1);
    Listeners listeners;
    if (fate == "evaluate") listeners.push_back(std::make_shared<EvaluationListener>(validation));
    auto wrapper = ParallelWrapper::Builder(model)
                       .workers(workers)
                       .pinThreads(false)
                       .strategy(options)
                       .nodes(nodes)
                       .listeners(listeners)
                       .build();
    wrapper.fit(data, epochs);
    std::int64_t trained = 0;
    for (const auto& times : wrapper.workerTimes()) trained += times.batches;
    logInfo("has trained {} batches", trained);
    wrapper.fit(data, 0);
    for (const auto& times : wrapper.workerTimes())
      if (times.batches != 0) throw std::runtime_error("workerTimes() counts batches of an earlier fit()");
  });
}

}  // namespace

int main(int argc, char** argv) {
  return test::exitStatus([&] { return train(argc, argv); });
}
