// Programs over processes, as a user starts them from several terminals.
#include <csignal>
#include <deque>
#include <regex>

#include "muster/core/io/checkpoint_files.h"
#include "muster/core/nn/network.h"
#include "tests/examples/convnet.h"

namespace muster {
namespace {

using test::ConvnetRun;
using test::errorOf;
using test::Outcome;
using test::Program;
using Names = std::set<std::string>;

/// The terminals in which a user starts the processes of one training, each in a sandbox with run.json. They
/// find each other by their environment.
class Terminals {
 public:
  enum Kind { Numbered, Elastic };

  explicit Terminals(std::size_t count, Kind kind = Numbered) : all_(count) {
    for (std::size_t n = 0; n < count; ++n) {
      auto& environment = all_[n].environment;
      environment.insert({{"MUSTER_STORE", store_.path().string()}, {"MUSTER_INTERFACE", "lo"}});
      if (kind == Numbered)
        environment.insert({{"MUSTER_NODES", std::to_string(count)}, {"MUSTER_NODE", std::to_string(n)}});
    }
  }

  ConvnetRun& operator[](std::size_t node) { return all_[node]; }

  /// Starts `train run.json` with these options and one worker in each. @return [node]
  std::deque<Program> start(const std::string& options) const {
    std::deque<Program> programs;
    for (const auto& terminal : all_)
      programs.emplace_back(
          MUSTER_PROGRAM,
          terminal.launchOf("train run.json --workers 1 --averaging-frequency 2 --batch 32 " + options));
    return programs;
  }
  std::vector<Outcome> train(const std::string& options) const {
    std::vector<Outcome> outcomes;
    for (auto& program : start(options)) outcomes.push_back(program.wait());
    CHECK(std::filesystem::is_empty(store_.path()));
    return outcomes;
  }
  /// The outcomes of a training that must succeed in each.
  std::vector<Outcome> succeed(const std::string& options) const {
    auto outcomes = train(options);
    for (const auto& outcome : outcomes) test::succeeded(outcome);
    return outcomes;
  }

 private:
  test::TemporaryDirectory store_;
  std::deque<ConvnetRun> all_;
};

TEST_CASE("a full disk of the node that saves ends all nodes, with two sentences and no partial file") {
  Terminals three(3);
  three[0].fileSizeLimit = 64 * 1024;  // the model takes 3.4 MB
  const auto runs = three.train("--epochs 100000 --quiet --checkpoint-dir c --checkpoint-iterations 4");
  // The model that could not be saved, then the checkpoint that ended the training.
  const auto err = errorOf(runs[0], 1);
  const auto second = err.find("\nmuster: ");
  CHECK_CONTAINS(err.substr(0, second), "what was trained could not be saved: model.safetensors");
  CHECK_CONTAINS(err.substr(second + 1), "could not be written: File too large");
  CHECK(second == err.rfind("\nmuster: "));
  CHECK(three[0].directory.names() == Names{"c", "run.json"});
  CHECK(test::namesIn(three[0].directory / "c").empty());
  for (std::size_t n = 1; n < 3; ++n) {
    CHECK_CONTAINS(errorOf(runs[n], 1), "node 0 (");
    CHECK(three[n].directory.names() == Names{"run.json"});
  }
}

TEST_CASE("a signal to any node ends all of them with the status of an interrupted program") {
  Terminals two(2);
  auto programs = two.start("--epochs 100000");
  REQUIRE(programs[0].awaitText("/100000: score"));
  programs[1].signal(SIGTERM);
  const auto first = programs[0].wait();
  errorOf(first, 130);
  errorOf(programs[1].wait(), 130);
  CHECK_CONTAINS(first.out, "and --resume continues from there");
}

TEST_CASE("if node 0 is killed, the first node that is left saves what was trained, and says so") {
  Terminals three(3);
  auto programs = three.start("--epochs 100000 --set training.nodes=gloo");
  REQUIRE(programs[0].awaitText("/100000: score"));  // an epoch has ended
  programs[0].signal(SIGKILL);
  const auto second = programs[1].wait();
  errorOf(second, 1);
  errorOf(programs[2].wait(), 1);
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

TEST_CASE(
    "one command line begins a training of all nodes, of which the first writes; all need a checkpoint") {
  Terminals two(2);
  two[1].fileSizeLimit = 64 * 1024;  // a full disk of a node that writes nothing has no effect
  const std::string curves = test::kWithPage ? " --curves a.curves.jsonl" : "";
  const auto begun = two.succeed("--resume c --checkpoint-dir c" + curves);
  CHECK_CONTAINS(begun[0].out, "nothing to resume in c: the training begins\n");
  CHECK_CONTAINS(begun[1].err, "nothing to resume in c: this node begins the training; if other nodes");
  CHECK(two[0].has("a.curves.jsonl") == test::kWithPage);
  CHECK(two[0].has("model.safetensors"));
  CHECK(two[1].directory.names() == Names{"run.json"});
  // Now only node 0 has the checkpoint.
  const auto apart = two.train("--epochs 2 --resume c --checkpoint-dir c");
  for (const auto& run : apart) CHECK(run.exit != 0);
  CHECK_CONTAINS(apart[1].err, "let all share the directory, or copy its newest checkpoint to each");
}

TEST_CASE("two nodes with different options both end with one line that begins with their own name") {
  const test::TemporaryDirectory store;
  const ConvnetRun terminals[2];
  const auto start = [&](int node, const char* rate) {
    return terminals[node].start(
        fmt::format("train run.json --workers 1 --store {} --interface lo --nodes 2 --node {} --lr {}",
                    store.path().string(), node, rate));
  };
  Program programs[]{start(0, "0.01"), start(1, "0.02")};
  for (int n = 0; n < 2; ++n) {
    const auto error = errorOf(programs[n].wait());
    const auto line = fmt::format(R"(muster: node {} \([^)\n]+\): nodes: node 0 \([^)\n]+\) and )"
                                  R"(node 1 \([^)\n]+\) differ in the training options of the model)",
                                  n);
    CHECK_MESSAGE(std::regex_search(error, std::regex(line)), error);
  }
}

TEST_CASE("two processes without node numbers train together, and one of them saves and tests") {
  Terminals two(2, Terminals::Elastic);
  const auto runs = two.succeed("--epochs 2 --set training.nodes=elastic --min-nodes 2 --json result.json" +
                                test::reportIn("report"));
  int saved = 0;
  for (std::size_t n = 0; n < 2; ++n) {
    const auto& [exit, out, err] = runs[n];
    // It is not known beforehand which process would continue it.
    CHECK_FALSE(two[n].has("report/training.curves.jsonl"));
    for (const char* part : {"for at least 2 nodes", " of 2, from iteration 0 "}) CHECK_CONTAINS(err, part);
    CHECK(std::regex_search(
        err, std::regex(R"(muster: node (\d) \([^)\n]+\): generation \d+: this is node \1 of 2)")));
    const bool saves = two[n].has("model.safetensors");
    saved += saves ? 1 : 0;
    CHECK(test::contains(out, "test: accuracy 0.") == saves);
    CHECK_CONTAINS(out, saves
                            ? "saved: model.safetensors; loaded again, it gives the same outputs"
                            : "this was process 1 of the training: process 0 saves the network and tests it");
    CHECK(test::contains(two[n].read("result.json"), R"("nodes": "elastic")") == saves);
    CHECK(two[n].has("report/confusion.txt") == (saves && test::kWithPage));
  }
  CHECK(saved == 1);
}

TEST_CASE("if the process that would save is killed, the other one continues and saves") {
  Terminals two(2, Terminals::Elastic);
  auto programs = two.start("--epochs 100000 --json result.json --min-nodes 1 --silence 4");
  for (auto& program : programs) REQUIRE(program.awaitText(" of 2, from iteration"));
  const auto errors = test::readFile(two[0].directory.path().string() + ".err");
  const std::size_t first = test::contains(errors, "this is node 0 of 2") ? 0 : 1, other = 1 - first;
  programs[first].signal(SIGKILL);
  REQUIRE(programs[other].awaitText("this is node 0 of 1, from iteration"));
  REQUIRE(programs[other].awaitText("/100000: score"));  // of an epoch that it has ended alone
  programs[other].signal(SIGINT);
  const auto run = programs[other].wait();
  CHECK(std::regex_search(errorOf(run, 130),
                          std::regex(R"(muster: node 0 \([^)\n]+\): generation \d+: this is node 0 of 1)")));
  CHECK_CONTAINS(run.out, "test: accuracy 0.");
  CHECK_CONTAINS(run.out, "and --resume continues from there");
  CHECK(two[other].has("model.safetensors"));
  CHECK_CONTAINS(two[other].read("result.json"), R"("nodes": "elastic")");
  CHECK(programs[first].wait().exit == -SIGKILL);
}

TEST_CASE("options that do not fit processes that join and leave are refused") {
  ConvnetRun muster;
  const std::string elastic = "train run.json --store s --min-nodes ", train = "train run.json ";
  muster.refuses(train + "--min-nodes 2", "--min-nodes needs --store");
  muster.refuses(train + "--silence 2", "--silence needs --store");
  muster.refuses(train + "--set training.nodes=elastic",
                 "training.nodes: elastic needs --store and --interface");
  muster.refuses(elastic + "0", "--min-nodes must be between 1 and 1024, got 0");
  muster.refuses(elastic + "2 --node 0", "--node cannot be combined with --min-nodes");
  muster.refuses(elastic + "2", "interface: name the network interface");
  if (test::kWithPage)  // without it --curves is refused by itself
    muster.refuses(elastic + "2 --curves a.curves.jsonl",
                   "training.nodes: elastic, so listeners.page and listeners.curves must be left out");
  muster.environment["OMPI_COMM_WORLD_SIZE"] = "1024";
  muster.refuses(train + "--workers 1024",
                 "muster: training.workers: 1024 nodes of 1024 workers are more than 1024 workers\n");
}

}  // namespace
}  // namespace muster
