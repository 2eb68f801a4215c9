// Programs over processes with fixed numbers, by Gloo: a full disk, a lost node, and another number of them
// at the resumption.
#include <regex>

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/nn/network.h"
#include "tests/examples/terminals.h"

namespace muster {

using test::Terminals;
using Names = std::set<std::string>;

TEST_CASE("a full disk of the node that saves ends all nodes, with two sentences and no partial file") {
  Terminals three(3);
  three[0].fileSizeLimit = 64 * 1024;  // the model takes 3.4 MB
  const auto runs = three.train("--epochs 100000 --quiet --checkpoint-dir c --checkpoint-iterations 4");
  // The model that could not be saved, then the checkpoint that ended the training.
  const auto err = test::errorOf(runs[0], 1);
  const auto second = err.find("\nmuster: ");
  CHECK_CONTAINS(err.substr(0, second), "what was trained could not be saved: model.safetensors");
  CHECK_CONTAINS(err.substr(second + 1), "could not be written: File too large");
  CHECK(second == err.rfind("\nmuster: "));
  CHECK(three[0].directory.names() == Names{"c", "run.json"});
  CHECK(test::namesIn(three[0].directory / "c").empty());
  for (std::size_t n = 1; n < 3; ++n) {
    CHECK_CONTAINS(test::errorOf(runs[n], 1), "node 0 (");
    CHECK(three[n].directory.names() == Names{"run.json"});
  }
}

TEST_CASE("a full disk of a node that writes nothing has no effect, and only the first writes curves") {
  Terminals two(2);
  two[1].fileSizeLimit = 64 * 1024;
  two.succeed(std::string("--quiet") + (test::kWithPage ? " --curves a.curves.jsonl" : ""));
  auto names = two[0].directory.names();
  CHECK(names.erase("a.curves.jsonl") == (test::kWithPage ? 1 : 0));
  CHECK(names == Names{"model.safetensors", "run.json"});
  CHECK(two[1].directory.names() == Names{"run.json"});
}

TEST_CASE("a signal to any node ends all of them with the status of an interrupted program") {
  Terminals two(2);
  auto programs = two.start("--epochs 100000");
  REQUIRE(programs[0].awaitText("/100000: score"));
  programs[1].signal(SIGTERM);
  const auto first = programs[0].wait();
  test::errorOf(first, 130);
  test::errorOf(programs[1].wait(), 130);
  CHECK_CONTAINS(first.out, "and --resume continues from there");
}

TEST_CASE("if node 0 is killed, the first node that is left saves what was trained, and says so") {
  Terminals three(3);
  auto programs = three.start("--epochs 100000 --set training.nodes=gloo");
  REQUIRE(programs[0].awaitText("/100000: score"));  // an epoch has ended
  programs[0].signal(SIGKILL);
  const auto second = programs[1].wait();
  test::errorOf(second, 1);
  test::errorOf(programs[2].wait(), 1);
  CHECK_CONTAINS(second.out,
                 "saved: model.safetensors, with what was trained before the failure, by this node, because "
                 "node 0 is lost\n");
  CHECK(Network::load(three[1].directory / "model.safetensors")->epoch() >= 1);
  CHECK(three[2].directory.names() == Names{"run.json"});
}

TEST_CASE("three nodes continue a training that two nodes saved in the middle of an epoch") {
  Terminals two(2), three(3);
  // Due at iteration 12, and saved at a later merge if the file of the epoch's end is still being written,
  // which may last until the end of the next epoch.
  std::string within;
  for (int i = 0; within.empty() && i < 20; ++i) {
    const auto name = fmt::format("c{}", i);
    two.succeed("--epochs 2 --checkpoint-iterations 12 --checkpoint-dir " + name);
    for (const auto& file : checkpointsIn(two[0].directory / name, "checkpoint"))
      if (file.place.epoch == 1 && file.place.iteration > 0) within = file.path;
  }
  REQUIRE(within != "");
  const auto resumed = three.succeed("--epochs 3 --resume " + within);
  CHECK_CONTAINS(resumed[0].out, "with 1 epoch finished, and ");
  CHECK_CONTAINS(resumed[0].err, "epoch 3/3");
  CHECK_CONTAINS(resumed[0].out, "saved: model.safetensors; loaded again, it gives the same outputs");
  for (std::size_t n = 1; n < 3; ++n) CHECK(three[n].directory.names() == Names{"run.json"});
}

TEST_CASE("nodes that find no checkpoint say what to do, and one command line begins a training of all") {
  Terminals two(2);
  for (const auto& run : two.train("--resume c")) {
    const auto error = test::errorOf(run, 1);
    CHECK_CONTAINS(error,
                   "c: cannot be resumed: there is no such file or directory; each node reads the "
                   "checkpoint, and only node 0 writes it: let all nodes share");
    CHECK_CONTAINS(error, "On every node, --resume c and --checkpoint-dir c together begin a training");
  }
  const auto begun = two.succeed("--resume c --checkpoint-dir c");
  CHECK_CONTAINS(begun[0].out, "nothing to resume in c: the training begins\n");
  CHECK_CONTAINS(begun[1].err, "nothing to resume in c: this node begins the training; if other nodes");
  // Now only node 0 has the checkpoint.
  const auto apart = two.train("--epochs 2 --resume c --checkpoint-dir c");
  for (const auto& run : apart) CHECK(run.exit != 0);
  CHECK_CONTAINS(apart[1].err, "let all share the directory, or copy its newest checkpoint to each");
}

TEST_CASE("two nodes with different options both end with one line that begins with their own name") {
  const test::TemporaryDirectory store;
  const test::ConvnetRun terminals[2];
  const auto line = [&](int node, const char* rate) {
    return fmt::format("train run.json --workers 1 --store {} --interface lo --nodes 2 --node {} --lr {}",
                       store.path().string(), node, rate);
  };
  auto other = terminals[1].start(line(1, "0.02"));
  const test::Outcome outcomes[] = {terminals[0](line(0, "0.01")), other.wait()};
  for (int n = 0; n < 2; ++n) {
    const auto error = test::errorOf(outcomes[n]);
    CHECK_MESSAGE(
        std::regex_search(
            error, std::regex(fmt::format(R"(muster: node {} \([^)\n]+\): nodes: node 0 \([^)\n]+\) and )"
                                          R"(node 1 \([^)\n]+\) differ in the training options of the model)",
                                          n))),
        error);
  }
}

}  // namespace muster
