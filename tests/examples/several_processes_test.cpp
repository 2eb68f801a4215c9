// Programs over elastic processes, as a user starts them from several terminals.
#include <regex>

#include "tests/examples/terminals.h"

namespace muster {

using test::Terminals;

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
    if (two[n].has("model.safetensors")) {
      ++saved;
      CHECK_CONTAINS(out, "test: accuracy 0.");
      CHECK_CONTAINS(out, "saved: model.safetensors; loaded again, it gives the same outputs");
      CHECK_CONTAINS(two[n].read("result.json"), R"("nodes": "elastic")");
      CHECK(two[n].has("report/confusion.txt") == test::kWithPage);
    } else {
      CHECK_CONTAINS(out, "this was process 1 of the training: process 0 saves the network and tests it");
      CHECK_LACKS(out, "test: accuracy");
      CHECK_FALSE(two[n].has("result.json"));
    }
  }
  CHECK(saved == 1);
}

TEST_CASE("if the process that would save is killed, the other one continues and saves") {
  const test::TemporaryDirectory store;
  const test::ConvnetRun terminals[2];
  const auto start = [&](int n) {
    return terminals[n].start(
        "train run.json --workers 1 --averaging-frequency 2 --batch 32 --epochs 100000 --json result.json "
        "--store " +
        store.path().string() + " --interface lo --min-nodes 1 --silence 4");
  };
  test::Program programs[2]{start(0), start(1)};
  for (auto& program : programs) REQUIRE(program.awaitText(" of 2, from iteration"));
  const int first =
      test::contains(test::readFile(terminals[0].directory.path().string() + ".err"), "this is node 0 of 2")
          ? 0
          : 1;
  auto &killed = programs[first], &left = programs[1 - first];
  killed.signal(SIGKILL);
  REQUIRE(left.awaitText("this is node 0 of 1, from iteration"));
  REQUIRE(left.awaitText("/100000: score"));  // of an epoch that it has ended alone
  left.signal(SIGINT);
  const auto run = left.wait();
  CHECK(std::regex_search(test::errorOf(run, 130),
                          std::regex(R"(muster: node 0 \([^)\n]+\): generation \d+: this is node 0 of 1)")));
  CHECK_CONTAINS(run.out, "test: accuracy 0.");
  CHECK_CONTAINS(run.out, "and --resume continues from there");
  CHECK(terminals[1 - first].has("model.safetensors"));
  CHECK_CONTAINS(terminals[1 - first].read("result.json"), R"("nodes": "elastic")");
  CHECK(killed.wait().exit == -SIGKILL);
}

TEST_CASE("options that do not fit processes that join and leave are refused") {
  test::ConvnetRun muster;
  const auto refuses = [&](const std::string& options, const std::string& problem) {
    muster.refuses("train run.json " + options, problem);
  };
  refuses("--min-nodes 2", "--min-nodes needs --store");
  refuses("--silence 2", "--silence needs --store");
  refuses("--set training.nodes=elastic", "training.nodes: elastic needs --store and --interface");
  refuses("--min-nodes 0 --store s", "--min-nodes must be between 1 and 1024, got 0");
  refuses("--min-nodes 2 --store s --node 0", "--node cannot be combined with --min-nodes");
  refuses("--min-nodes 2 --store s", "interface: name the network interface");
  refuses("--min-nodes 2 --store s --interface lo --silence 1e300",
          "silence must be above 0 and at most 1000000 s, got 1e+300");
  if (test::kWithPage)  // without it --curves is refused by itself
    refuses("--min-nodes 2 --store s --curves a.curves.jsonl",
            "training.nodes: elastic, so listeners.page and listeners.curves must be left out");
  muster.environment["OMPI_COMM_WORLD_SIZE"] = "1024";
  refuses("--workers 1024",
          "muster: training.workers: 1024 nodes of 1024 workers are more than 1024 workers\n");
  muster.environment["MUSTER_NODES"] = "2x";
  refuses("", "muster: MUSTER_NODES must be a number, got \"2x\"\n");
}

}  // namespace muster
