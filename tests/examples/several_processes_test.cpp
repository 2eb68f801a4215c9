// Programs over elastic processes, as a user starts them from several terminals.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <memory>
#include <regex>
#include <utility>

#include "tests/examples/convnet.h"

namespace muster {
namespace {

using test::contains;
using test::Convnet;
using test::Outcome;
using test::Program;

/// What comes beside the options of a small training.
std::vector<std::string> elastic(const test::TemporaryDirectory& store, const std::string& least,
                                 const std::string& epochs) {
  return Convnet::small({"--workers", "1", "--averaging-frequency", "2", "--batch", "32", "--epochs", epochs,
                         "--store", store.path().string(), "--interface", "lo", "--min-nodes", least,
                         "--silence", "4", "--json", "run.json"});
}

void checkFirst(const Convnet& terminal, const Outcome& run) {
  CHECK(contains(run.out, "test: accuracy 0."));
  CHECK(contains(run.out, "saved: mnist-convnet.safetensors; loaded again, it gives the same outputs"));
  CHECK(contains(test::readFile(terminal.directory / "run.json"), R"("nodes": "elastic")"));
}

}  // namespace

TEST_CASE("two processes without node numbers train together, and one of them saves and tests") {
  const test::TemporaryDirectory store;
  const Convnet a, b;
  const auto arguments = test::withReport(elastic(store, "2", "2"), "report");
  Program other(Convnet::kExecutable, b.launch(arguments));
  const Outcome outcomes[] = {a.run(arguments), other.wait()};
  int saved = 0;
  for (const auto& [terminal, run] : {std::pair(&a, &outcomes[0]), std::pair(&b, &outcomes[1])}) {
    CAPTURE(run->err);
    CHECK(run->exit == 0);
    // It is not known beforehand which process would continue it.
    CHECK(!std::filesystem::exists(terminal->directory / "report" / "training.curves.jsonl"));
    CHECK(contains(run->err, "for at least 2 nodes"));
    CHECK(contains(run->err, " of 2, from iteration 0 "));
    CHECK(std::regex_search(
        run->err, std::regex(R"(muster: node (\d) \([^)\n]+\): generation \d+: this is node \1 of 2)")));
    if (std::filesystem::exists(terminal->directory / "mnist-convnet.safetensors")) {
      ++saved;
      CHECK(std::filesystem::exists(terminal->directory / "report" / "confusion.txt") == test::kWithPage);
      checkFirst(*terminal, *run);
    } else {
      CHECK(
          contains(run->out, "this was process 1 of the training: process 0 saves the network and tests it"));
      CHECK(!contains(run->out, "test: accuracy"));
      CHECK(!std::filesystem::exists(terminal->directory / "run.json"));
    }
  }
  CHECK(saved == 1);
  CHECK(std::filesystem::is_empty(store.path()));
}

TEST_CASE("if the process that would save is killed, the other one continues and saves") {
  const test::TemporaryDirectory store;
  const Convnet a, b;
  auto first = std::make_unique<Program>(Convnet::kExecutable, a.launch(elastic(store, "1", "100000")));
  auto second = std::make_unique<Program>(Convnet::kExecutable, b.launch(elastic(store, "1", "100000")));
  REQUIRE(first->awaitText(" of 2, from iteration"));
  REQUIRE(second->awaitText(" of 2, from iteration"));
  const bool firstLeads =
      contains(test::readFile(a.directory.path().string() + ".err"), "this is node 0 of 2");
  const Convnet& left = firstLeads ? b : a;
  auto& killed = firstLeads ? first : second;
  killed->signal(SIGKILL);
  auto& goesOn = firstLeads ? second : first;
  REQUIRE(goesOn->awaitText("this is node 0 of 1, from iteration"));
  REQUIRE(goesOn->awaitText("/100000: score"));  // of an epoch that it has ended alone
  goesOn->signal(SIGINT);
  const auto run = goesOn->wait();
  CAPTURE(run.err);
  CHECK(run.exit == 130);
  CHECK(std::regex_search(run.err,
                          std::regex(R"(muster: node 0 \([^)\n]+\): generation \d+: this is node 0 of 1)")));
  CHECK(contains(run.out, "test: accuracy 0."));
  CHECK(contains(run.out, "and --resume continues from there"));
  CHECK(std::filesystem::exists(left.directory / "mnist-convnet.safetensors"));
  CHECK(contains(test::readFile(left.directory / "run.json"), R"("nodes": "elastic")"));
  CHECK(killed->wait().exit == -SIGKILL);
}

TEST_CASE("two nodes with different options both end with one line that begins with their own name") {
  const test::TemporaryDirectory store;
  const Convnet a, b;
  const auto as = [&](const char* node, const char* rate) {
    return Convnet::small({"--workers", "1", "--store", store.path().string(), "--interface", "lo", "--nodes",
                           "2", "--node", node, "--lr", rate});
  };
  Program other(Convnet::kExecutable, b.launch(as("1", "0.02")));
  const Outcome outcomes[] = {a.run(as("0", "0.01")), other.wait()};
  for (int n = 0; n < 2; ++n) {
    CAPTURE(outcomes[n].err);
    CHECK(outcomes[n].exit == 2);
    CHECK(std::regex_search(
        outcomes[n].err,
        std::regex(fmt::format(R"(muster: node {} \([^)\n]+\): nodes: node 0 \([^)\n]+\) and )"
                               R"(node 1 \([^)\n]+\) differ in the training options of the model)",
                               n))));
  }
}

TEST_CASE("muster trains over processes that join and leave") {
  const test::TemporaryDirectory store;
  const test::Sandbox a(MUSTER_PROGRAM), b(MUSTER_PROGRAM);
  std::vector<std::string> arguments{"train", "run.json"};
  for (const char* const set :
       {"data.trainExamples=600", "data.testExamples=200", "training.epochs=1", "training.pinThreads=false",
        "training.devices=cpu", "training.workers=1", "listeners.progress=false", "training.nodes=elastic"})
    arguments.insert(arguments.end(), {"--set", set});
  const auto launch = [&](const test::Sandbox& terminal) {
    test::writeFile(terminal.directory / "run.json", terminal.run({"example"}).out);
    auto started = terminal.launch(arguments);
    started.environment.insert(
        {{"MUSTER_STORE", store.path().string()}, {"MUSTER_INTERFACE", "lo"}, {"MUSTER_MIN_NODES", "2"}});
    return started;
  };
  Program other(MUSTER_PROGRAM, launch(b));
  const Outcome here = test::runProgram(MUSTER_PROGRAM, launch(a)), there = other.wait();
  CAPTURE(here.err);
  CHECK(here.exit == 0);
  CHECK(there.exit == 0);
  for (const char* const part :
       {"test: accuracy 0.", "saved: model.safetensors", "this was process 1 of the"})
    CHECK(contains(here.out, part) != contains(there.out, part));
  CHECK(std::filesystem::exists(a.directory / "model.safetensors") !=
        std::filesystem::exists(b.directory / "model.safetensors"));
}

TEST_CASE("options that do not fit processes that join and leave are refused") {
  const Convnet convnet;
  const auto problem = [&](std::vector<std::string> more) { return convnet.runSmall(std::move(more)).err; };
  CHECK(contains(problem({"--min-nodes", "2"}), "--min-nodes needs --store"));
  CHECK(contains(problem({"--silence", "2"}), "--silence needs --store"));
  CHECK(contains(problem({"--min-nodes", "0", "--store", "s"}),
                 "--min-nodes must be between 1 and 1024, got 0"));
  CHECK(contains(problem({"--min-nodes", "2", "--store", "s", "--node", "0"}),
                 "--node cannot be combined with --min-nodes"));
  if (test::kWithPage)  // without it --curves is refused by itself
    CHECK(contains(problem({"--min-nodes", "2", "--store", "s", "--curves", "a.curves.jsonl"}),
                   "training.nodes: elastic, so listeners.page and listeners.curves must be left out"));
  CHECK(contains(problem({"--min-nodes", "2", "--store", "s"}), "interface: name the network interface"));
  CHECK(contains(problem({"--min-nodes", "2", "--store", "s", "--interface", "lo", "--silence", "1e300"}),
                 "silence must be above 0 and at most 1000000 s, got 1e+300"));
  for (const std::string name : {"MUSTER_NODE", "MUSTER_NODES", "MUSTER_MIN_NODES", "MUSTER_SILENCE"}) {
    auto launch = convnet.launch(Convnet::small({}));
    launch.environment[name] = "2x";
    CHECK(
        contains(test::runProgram(Convnet::kExecutable, launch).err, name + " must be a number, got \"2x\""));
  }
  const auto inEnvironment = [&](const std::string& name, const std::string& value,
                                 std::vector<std::string> more = {}) {
    auto launch = convnet.launch(Convnet::small(std::move(more)));
    launch.environment[name] = value;
    return test::errorOf(test::runProgram(Convnet::kExecutable, launch));
  };
  for (const std::string name : {"MUSTER_NODES", "MUSTER_MIN_NODES"})
    for (const std::string value : {"0", "-2", "1025"})
      CHECK(inEnvironment(name, value) ==
            fmt::format("muster: {} must be between 1 and 1024, got {}\n", name, value));
  for (const std::string value : {"0", "2000000"})
    CHECK(
        inEnvironment("OMPI_COMM_WORLD_SIZE", value) ==
        fmt::format("muster: the number of launched processes must be between 1 and 1024, got {}\n", value));
  CHECK(inEnvironment("OMPI_COMM_WORLD_SIZE", "1024", {"--workers", "1024", "--strategy", "averaging"}) ==
        "muster: training.workers: 1024 nodes of 1024 workers are more than 1024 workers\n");
  const test::Sandbox muster(MUSTER_PROGRAM);
  test::writeFile(muster.directory / "run.json", muster.run({"example"}).out);
  const auto refused = [&](const char* set) {
    return muster.run({"train", "run.json", "--set", "training.nodes=elastic", "--set", set}).err;
  };
  CHECK(contains(refused("listeners.page=true"), "training.nodes: elastic, so listeners.page and"));
  CHECK(contains(refused("training.epochs=1"), "training.nodes: elastic needs --store and --interface"));
}

}  // namespace muster
