// Programs over processes with fixed numbers, by Gloo: a full disk, and another number of them at the
// resumption.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <deque>
#include <memory>

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/nn/network.h"
#include "tests/examples/convnet.h"

namespace muster {
namespace {

using test::contains;
using test::Convnet;
using test::Outcome;
using test::Program;

/// Processes of a small training, each in a directory of its own.
class Terminals {
 public:
  explicit Terminals(int nodes) : all_(static_cast<std::size_t>(nodes)) {}

  /// @param limited  a node with a full disk; -1: none. @return [node]
  std::vector<Outcome> run(const std::vector<std::string>& more, int limited = -1) const {
    std::vector<std::unique_ptr<Program>> programs;
    for (std::size_t n = 0; n < all_.size(); ++n) {
      auto arguments = Convnet::small({"--workers", "1", "--averaging-frequency", "2", "--batch", "32",
                                       "--store", store_.path().string(), "--interface", "lo", "--nodes",
                                       std::to_string(all_.size()), "--node", std::to_string(n)});
      arguments.insert(arguments.end(), more.begin(), more.end());
      auto launch = all_[n].launch(arguments);
      if (static_cast<int>(n) == limited) launch.fileSizeLimit = 64 * 1024;  // the model takes 3.4 MB
      programs.push_back(std::make_unique<Program>(Convnet::kExecutable, launch));
    }
    std::vector<Outcome> outcomes;
    for (const auto& program : programs) outcomes.push_back(program->wait());
    CHECK(std::filesystem::is_empty(store_.path()));
    return outcomes;
  }
  const test::TemporaryDirectory& directory(std::size_t node) const { return all_[node].directory; }

 private:
  test::TemporaryDirectory store_;
  std::deque<Convnet> all_;
};

}  // namespace

TEST_CASE("a full disk of the node that saves ends all nodes, with two sentences and no partial file") {
  const Terminals three(3);
  const auto runs = three.run(
      {"--epochs", "100000", "--quiet", "--checkpoint-dir", "c", "--checkpoint-iterations", "4"}, 0);
  CHECK(runs[0].exit == 1);
  CAPTURE(runs[0].err);
  const auto& err = runs[0].err;  // the model that could not be saved, then the checkpoint that ended the training
  const auto second = err.find("\nmuster: ");
  CHECK(contains(err.substr(0, second), "what was trained could not be saved: mnist-convnet.safetensors"));
  CHECK(contains(err.substr(second + 1), "could not be written: File too large"));
  CHECK(second == err.rfind("\nmuster: "));
  for (std::size_t n = 1; n < 3; ++n) {
    CAPTURE(runs[n].err);
    CHECK(runs[n].exit == 1);
    CHECK(contains(runs[n].err, "node 0 ("));
    CAPTURE(runs[n].out);
    CHECK(three.directory(n).names() == std::set<std::string>{});
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(three.directory(0).path()))
    CHECK(entry.is_directory());
}

TEST_CASE("a full disk of a node that writes nothing has no effect") {
  const Terminals two(2);
  const auto runs = two.run({"--epochs", "1", "--quiet"}, 1);
  for (const auto& run : runs) {
    CAPTURE(run.err);
    CHECK(run.exit == 0);
  }
  CHECK(two.directory(0).names() == std::set<std::string>{"mnist-convnet.safetensors"});
  CHECK(two.directory(1).names() == std::set<std::string>{});
}

TEST_CASE("a signal to any node ends all of them with the status of an interrupted program") {
  const test::TemporaryDirectory store;
  const Convnet terminals[2];
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t n = 0; n < 2; ++n)
    programs.push_back(std::make_unique<Program>(
        Convnet::kExecutable,
        terminals[n].launch(Convnet::small({"--workers", "1", "--batch", "32", "--epochs", "100000",
                                            "--store", store.path().string(), "--interface", "lo", "--nodes",
                                            "2", "--node", std::to_string(n)}))));
  REQUIRE(programs[0]->awaitText("/100000: score"));
  programs[1]->signal(SIGTERM);
  const auto first = programs[0]->wait(), second = programs[1]->wait();
  CAPTURE(first.err);
  CAPTURE(second.err);
  CHECK(first.exit == 130);
  CHECK(second.exit == 130);
  CHECK(contains(first.out, "and --resume continues from there"));
}

TEST_CASE("if node 0 is killed, the first node that is left saves what was trained, and says so") {
  const test::TemporaryDirectory store;
  std::deque<test::Sandbox> terminals;
  for (int n = 0; n < 3; ++n) terminals.emplace_back(MUSTER_PROGRAM);
  std::vector<std::unique_ptr<Program>> programs;
  for (std::size_t n = 0; n < terminals.size(); ++n) {
    const auto& terminal = terminals[n];
    test::writeFile(terminal.directory / "run.json", terminal.run({"example"}).out);
    std::vector<std::string> arguments{"train", "run.json"};
    for (const char* const set :
         {"training.nodes=gloo", "training.workers=1", "training.epochs=100000", "training.devices=cpu",
          "training.pinThreads=false", "data.trainExamples=300", "data.testExamples=100"})
      arguments.insert(arguments.end(), {"--set", set});
    auto launch = terminal.launch(arguments);
    launch.environment.insert({{"MUSTER_STORE", store.path().string()},
                               {"MUSTER_INTERFACE", "lo"},
                               {"MUSTER_NODE", std::to_string(n)},
                               {"MUSTER_NODES", "3"}});
    programs.push_back(std::make_unique<Program>(MUSTER_PROGRAM, launch));
  }
  REQUIRE(programs[0]->awaitText("/100000: score"));  // an epoch has ended
  programs[0]->signal(SIGKILL);
  const auto second = programs[1]->wait(), third = programs[2]->wait();
  CAPTURE(second.out);
  CAPTURE(second.err);
  CHECK(second.exit == 1);
  CHECK(third.exit == 1);
  CHECK(contains(second.out,
                 "saved: model.safetensors, with what was trained before the failure, by this node, "
                 "because node 0 is lost\n"));
  CHECK(Network::load(terminals[1].directory / "model.safetensors")->epoch() >= 1);
  CHECK(terminals[2].directory.names() == std::set<std::string>{"run.json"});
}

#ifdef MUSTER_WITH_PAGE
TEST_CASE("only the first of several nodes writes a file of curves") {
  const Terminals two(2);
  for (const auto& run : two.run({"--epochs", "1", "--quiet", "--curves", "a.curves.jsonl"})) {
    CAPTURE(run.err);
    CHECK(run.exit == 0);
  }
  CHECK(two.directory(0).names() == std::set<std::string>{"a.curves.jsonl", "mnist-convnet.safetensors"});
  CHECK(two.directory(1).names() == std::set<std::string>{});
}
#endif

TEST_CASE("three nodes continue a training that two nodes saved in the middle of an epoch") {
  const Terminals two(2), three(3);
  // Due at iteration 12, and saved at a later merge if the file of the epoch's end is still being written,
  // which may last until the end of the next epoch.
  std::optional<std::filesystem::path> within;
  for (int i = 0; !within && i < 20; ++i) {
    const auto name = fmt::format("c{}", i);
    const auto saved = two.run({"--epochs", "2", "--checkpoint-dir", name, "--checkpoint-iterations", "12"});
    for (const auto& run : saved) {
      CAPTURE(run.err);
      CHECK(run.exit == 0);
    }
    for (const auto& file : checkpointsIn(two.directory(0) / name, "checkpoint"))
      if (file.place.epoch == 1 && file.place.iteration > 0) within = file.path;
  }
  REQUIRE(within);
  const auto resumed = three.run({"--epochs", "3", "--resume", within->string()});
  for (const auto& run : resumed) {
    CAPTURE(run.err);
    CHECK(run.exit == 0);
  }
  CHECK(contains(resumed[0].out, "with 1 epoch finished, and "));
  CHECK(contains(resumed[0].err, "epoch 3/3"));
  CHECK(
      contains(resumed[0].out, "saved: mnist-convnet.safetensors; loaded again, it gives the same outputs"));
  for (std::size_t n = 1; n < 3; ++n) CHECK(three.directory(n).names() == std::set<std::string>{});
}

TEST_CASE("nodes that find no checkpoint say what to do, and one command line begins a training of all") {
  const Terminals two(2);
  for (const auto& run : two.run({"--epochs", "1", "--resume", "c"})) {
    CHECK(run.exit == 1);
    CHECK_MESSAGE(contains(run.err,
                           "c: cannot be resumed: there is no such file or directory; each node "
                           "reads the checkpoint, and only node 0 writes it: let all nodes share"),
                  run.err);
    CHECK(contains(run.err, "On every node, --resume c and --checkpoint-dir c together begin a training"));
  }
  const auto begun = two.run({"--epochs", "1", "--resume", "c", "--checkpoint-dir", "c"});
  for (const auto& run : begun) {
    CAPTURE(run.err);
    CHECK(run.exit == 0);
  }
  CHECK(contains(begun[0].out, "nothing to resume in c: the training begins\n"));
  CHECK(contains(begun[1].err, "nothing to resume in c: this node begins the training; if other nodes"));
  // Now only node 0 has the checkpoint.
  const auto apart = two.run({"--epochs", "2", "--resume", "c", "--checkpoint-dir", "c"});
  for (const auto& run : apart) CHECK(run.exit != 0);
  CHECK(contains(apart[1].err, "let all share the directory, or copy its newest checkpoint to each"));
}

}  // namespace muster
