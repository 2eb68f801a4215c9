// Elastic trainings over real processes of this machine.
#include <doctest/doctest.h>

#include <future>
#include <list>
#include <regex>

#include "muster/core/nn/training_state.h"
#include "muster/parallel/nodes/gloo/redis_store.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/nodes/node_processes/redis_server.h"
#include "tests/parallel/nodes/node_processes/toy.h"
#include "tests/support/recording_listener.h"
#include "tests/support/skip.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

/// After it a process counts as hanging; a busy machine needs a part of it.
constexpr auto kLimit = 300s;

struct Training {
  std::string rule = "averaging";
  int workers = 1, least = 2, epochs = 5, step = 1;
  std::string store = {};  // "": a directory
};

struct Begin {
  std::int64_t generation = 0;
  int nodes = 0;
  std::int64_t iteration = 0, batches = 0;  // finished iterations; batches trained in the epoch
  bool operator==(const Begin&) const = default;
};

/// The history of generations in a log.
std::vector<Begin> historyIn(const std::string& log) {
  static const std::regex kLine(
      R"(generation (\d+): this is node \d+ of (\d+), from iteration (\d+) \(epoch \d+, after (\d+) batch)");
  std::vector<Begin> history;
  for (std::sregex_iterator it(log.begin(), log.end(), kLine), end; it != end; ++it)
    history.push_back(
        {std::stoll((*it)[1]), std::stoi((*it)[2]), std::stoll((*it)[3]), std::stoll((*it)[4])});
  return history;
}

/// How often each batch of an epoch was trained in rounds that count, by the logs of all processes.
std::map<std::pair<std::int64_t, std::int64_t>, int> trainedIn(const std::vector<Begin>& history,
                                                               const std::vector<std::string>& logs) {
  static const std::regex kLine(
      R"(generation (\d+): this is node|begins batch (\d+) of epoch (\d+) in iteration (\d+))");
  std::map<std::pair<std::int64_t, std::int64_t>, int> trained;
  for (const auto& log : logs) {
    std::int64_t end = 0;  // last iteration of the current generation
    for (std::sregex_iterator it(log.begin(), log.end(), kLine), last; it != last; ++it) {
      const auto& line = *it;
      if (!line[1].matched) {
        if (std::stoll(line[4]) < end) ++trained[{std::stoll(line[3]), std::stoll(line[2])}];
        continue;
      }
      const auto here = std::ranges::find(history, std::stoll(line[1]), &Begin::generation);
      end = here == history.end()       ? 0  // it had no round
            : here + 1 == history.end() ? std::numeric_limits<std::int64_t>::max()
                                        : (here + 1)->iteration;
    }
  }
  return trained;
}

/// Whether a process counts all batches that it has trained, also those in earlier generations.
bool countsAll(const std::string& log) {
  static const std::regex kLine("begins batch");
  const auto steps = std::distance(std::sregex_iterator(log.begin(), log.end(), kLine), {});
  return log.find(fmt::format("has trained {} batches", steps)) != std::string::npos;
}

/// The bits of a single process that replays this history.
std::string replayed(const Training& training, const std::vector<Begin>& history) {
  auto model = processToy();
  auto data = processToyData(kElasticData);
  for (const auto& one : everyRule()) {
    if (one.name != training.rule) continue;
    for (std::size_t i = 0; i < history.size(); ++i) {
      const bool last = i + 1 == history.size();
      const Begin next = last ? Begin{.iteration = -1} : history[i + 1];
      if (next.iteration == history[i].iteration) continue;
      // A generation ends by a stop or like the loss of a node; after an epoch, when no landing is pending.
      const bool loss = !last && next.nodes < history[i].nodes;
      TrainingState state;
      const auto end = mergedListener([&](const RecordedCall& call, Trainer& trainer) {
        if (call.event != (next.batches == 0 ? "epochEnd" : "merge") || call.iteration != next.iteration)
          return;
        state = trainer.trainingState();
        if (loss) throw std::runtime_error("a node is lost");
        trainer.stopFit();
      });
      auto wrapper = builderOf(model, history[i].nodes * training.workers, one.options)
                         .groups(history[i].nodes)
                         .listeners({end})
                         .build();
      const auto fit = [&] { wrapper.fit(data, training.epochs - model.epoch()); };
      if (loss)
        CHECK_THROWS_AS(fit(), TrainingError);
      else
        fit();
      // Each worker starts from the merged model, also if the number of workers did not change.
      std::erase_if(state, [](const NamedValues& v) {
        return v.name != "position" && v.name != "scores" && v.name != "fingerprint";
      });
      model.trainingState() = state;
    }
  }
  const auto bits = stateBits(model);
  return {reinterpret_cast<const char*>(bits.data()), bits.size()};
}

/// The processes of one training and their output files.
class Cluster {
 public:
  explicit Cluster(Training training) : training_(std::move(training)) {}

  const Training& training() const { return training_; }
  void start(const std::string& name, const std::string& fate = "well", int number = 0) {
    const auto& t = training_;
    all_.try_emplace(name,
                     std::vector{std::string(MUSTER_ELASTIC_NODE), folder_.path().string(), name, t.rule,
                                 std::to_string(t.workers), std::to_string(t.least), std::to_string(t.epochs),
                                 std::to_string(t.step), fate, std::to_string(number), t.store});
  }
  /// Waits for the process's end. @return its status
  int end(const std::string& name) { return all_.at(name).wait(kLimit); }
  void wake(const std::string& name) { all_.at(name).send(SIGCONT); }
  std::string left(const std::string& kind, const std::string& name) const {
    return readFile(folder_ / (kind + "-" + name));
  }
  /// Waits until a line of the process's log contains `what`.
  bool says(const std::string& name, const std::string& what) const {
    for (const auto end = std::chrono::steady_clock::now() + kLimit; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(5ms))
      if (left("log", name).find(what) != std::string::npos) return true;
    return false;
  }
  /// Checks that the processes end with these statuses, that those that end well have the bits of a single
  /// process with the same history, that each batch counts once (batches of a lost node are dealt again), and
  /// that nothing is left in the store. @return the history
  std::vector<Begin> checkEnds(const std::map<std::string, int>& statuses) {
    CAPTURE(training_.rule);
    std::vector<std::string> well, logs;
    for (const auto& [name, status] : statuses) {
      CAPTURE(name);
      CHECK(end(name) == status);
      logs.push_back(left("log", name));
      if (status == 0) well.push_back(name);
    }
    const auto history = historyIn(left("log", well.front()));
    const auto bits = replayed(training_, history);
    for (const auto& name : well) {
      CHECK(left("problem", name) == "");
      CHECK(left("bits", name) == bits);
    }
    const auto trained = trainedIn(history, logs);
    CHECK(std::ssize(trained) == training_.epochs * (7 * kElasticData + 1));
    for (const auto& [batch, times] : trained) {
      CAPTURE(batch.first);
      CAPTURE(batch.second);
      CHECK(times == 1);
    }
    checkStoreIsEmpty();
    return history;
  }
  void checkStoreIsEmpty() const {
    if (training_.store.empty()) CHECK(namesIn(folder_ / "store") == std::set<std::string>{});
  }

 private:
  const Training training_;
  TemporaryDirectory folder_;
  std::map<std::string, Process> all_;
};

/// Checks each of these trainings at the same time, because their processes mostly wait.
void atOnce(const std::vector<Training>& all, const std::function<void(Cluster&)>& check) {
  std::list<Cluster> clusters;
  std::vector<std::future<void>> checks;
  for (const Training& one : all)
    checks.push_back(std::async(std::launch::async, check, std::ref(clusters.emplace_back(one))));
  for (auto& one : checks) one.get();
}

/// `a` and `b` train; a third process joins and is killed later. @param between  is called once `a` and `b`
/// train
void checkJoinAndKill(
    Cluster& cluster, const std::function<void()>& between = [] {}) {
  for (const auto* const name : {"a", "b"}) cluster.start(name);
  REQUIRE(cluster.says("a", " of 2, from iteration 0"));
  between();
  cluster.start("c", "kill", 60);
  const auto history = cluster.checkEnds({{"a", 0}, {"b", 0}, {"c", -1}});
  REQUIRE(history.size() == 3);
  CHECK(history[1].nodes == 3);
  CHECK(history[1].iteration > 0);
  CHECK(history[2].nodes == 2);
  CHECK(history[2].iteration > history[1].iteration);
  CHECK(countsAll(cluster.left("log", "a")));
}

}  // namespace

TEST_CASE("if a process is killed, the others finish with the bits of the same history") {
  // With overlapped averaging an epoch's last two merges are after its last iteration.
  atOnce({{.rule = "averaging"},
          {.rule = "diloco"},
          {.rule = "overlapped"},
          {.rule = "gossip on a ring"},
          {.rule = "shared gradients"},
          {.rule = "hierarchical averaging", .workers = 2}},
         [](Cluster& cluster) {
           for (const auto* const name : {"a", "b"}) cluster.start(name);
           cluster.start("c", "kill", cluster.training().rule == "overlapped" ? 30 : 25);
           const auto history = cluster.checkEnds({{"a", 0}, {"b", 0}, {"c", -1}});
           CHECK(history == historyIn(cluster.left("log", "b")));
           CHECK(history.size() >= 2);
           CHECK(history.back().nodes == 2);
           CHECK(history.back().iteration > 0);
         });
}

TEST_CASE("a process that joins later takes part") {
  atOnce({{.rule = "diloco", .epochs = 8, .step = 30}, {.rule = "gossip on a ring", .epochs = 8, .step = 30}},
         [](Cluster& cluster) {
           for (const auto* const name : {"a", "b"}) cluster.start(name);
           REQUIRE(cluster.says("a", "from iteration 0"));
           std::this_thread::sleep_for(500ms);
           cluster.start("c");
           const auto history = cluster.checkEnds({{"a", 0}, {"b", 0}, {"c", 0}});
           REQUIRE(history.size() == 2);
           CHECK(history[0].nodes == 2);
           CHECK(history[1].nodes == 3);
           CHECK(historyIn(cluster.left("log", "c")) == std::vector{history[1]});
         });
}

TEST_CASE("when a process joins and is lost, residuals start anew; launched merges land, then are lost") {
  atOnce({{.rule = "shared gradients", .epochs = 8, .step = 30},
          {.rule = "overlapped", .epochs = 8, .step = 30},
          {.rule = "streaming", .epochs = 8, .step = 30}},
         [](Cluster& cluster) { checkJoinAndKill(cluster); });
}

TEST_CASE("Redis as the store may lose all data and restart, while a process joins and another is killed") {
#ifdef MUSTER_REDIS_SERVER
  RedisServer server(MUSTER_REDIS_SERVER);
  Cluster cluster({.epochs = 8, .step = 30, .store = server.address()});
  checkJoinAndKill(cluster, [&] {
    server.kill();
    std::this_thread::sleep_for(300ms);
    server.start();
  });
  CHECK(openRedisStore(server.address())->names("").empty());
#else
  skip("there is no hiredis, or no redis-server");
#endif
}

TEST_CASE("if a process is killed while it sends its model to one that joins, another one sends it") {
  // While it sends the first piece of the model, or the ninth.
  std::atomic<int> next{1};
  const Training diloco{.rule = "diloco", .epochs = 8, .step = 30};
  atOnce({diloco, diloco}, [&](Cluster& cluster) {
    const int piece = next.fetch_add(8);
    CAPTURE(piece);
    for (const auto* const name : {"a", "b"}) cluster.start(name, "serve", piece);
    REQUIRE(cluster.says("a", " of 2, from iteration 0"));
    std::this_thread::sleep_for(500ms);
    cluster.start("c");
    CHECK(cluster.end("c") == 0);
    const bool killedA = cluster.end("a") == -1;
    const auto history = cluster.checkEnds({{"a", killedA ? -1 : 0}, {"b", killedA ? 0 : -1}, {"c", 0}});
    REQUIRE(history.size() >= 2);
    CHECK(history.back().nodes == 2);
    CHECK(history.back().iteration > 0);
    CHECK(historyIn(cluster.left("log", "c")) == std::vector{history.back()});
  });
}

TEST_CASE("if the only process with the model is killed while it sends it, the other one trains alone") {
  Cluster cluster({.rule = "diloco", .least = 1, .step = 30});
  cluster.start("a", "serve", 4);
  REQUIRE(cluster.says("a", " of 1, from iteration 0"));
  std::this_thread::sleep_for(300ms);
  cluster.start("b");
  const auto history = cluster.checkEnds({{"a", -1}, {"b", 0}});
  REQUIRE(history.size() == 1);
  CHECK(history[0].nodes == 1);
  CHECK(history[0].iteration == 0);
}

TEST_CASE("a process that throws leaves with its own error, and a waiting one takes its place") {
  Cluster cluster({.workers = 2, .step = 5});
  cluster.start("a");
  cluster.start("b", "throw", 12);
  CHECK(cluster.end("b") == 3);
  CHECK(cluster.left("problem", "b").find("out of coffee") != std::string::npos);
  cluster.start("c");
  const auto history = cluster.checkEnds({{"a", 0}, {"b", 3}, {"c", 0}});
  REQUIRE(history.size() == 2);
  CHECK(history[1].nodes == 2);
}

TEST_CASE("a process that was suspended and resumes ends, because the others have the lease") {
  Cluster cluster({.step = 10});
  for (const auto* const name : {"a", "b"}) cluster.start(name);
  cluster.start("c", "stop", 12);
  REQUIRE(cluster.says("a", " of 2, from iteration"));
  cluster.wake("c");
  cluster.checkEnds({{"a", 0}, {"b", 0}, {"c", 3}});
  CHECK(cluster.left("problem", "c").find("the other nodes continue without this one") != std::string::npos);
}

TEST_CASE("a process with another listener is refused before it joins, without effect on the others") {
  Cluster cluster({.epochs = 8, .step = 30});
  for (const auto* const name : {"a", "b"}) cluster.start(name);
  REQUIRE(cluster.says("a", " of 2, from iteration 0"));
  cluster.start("c", "evaluate");
  CHECK(cluster.checkEnds({{"a", 0}, {"b", 0}, {"c", 3}}).size() == 1);
  const auto problem = cluster.left("problem", "c");
  CAPTURE(problem);
  CHECK(
      problem.find("the processes that train have \"the listeners that are called on all nodes: none\", and "
                   "this one has \"the listeners that are called on all nodes: EvaluationListener") !=
      std::string::npos);
}

TEST_CASE("too few waiting processes end with one error") {
  Cluster cluster({.least = 2});
  cluster.start("a", "impatient");
  CHECK(cluster.end("a") == 3);
  CHECK(
      cluster.left("problem", "a")
          .starts_with("the training over elastic nodes has failed: only 1 of at least 2 nodes has joined"));
  cluster.checkStoreIsEmpty();
}
