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

/// The processes of one training and their output files.
class Cluster {
 public:
  explicit Cluster(Training training) : training_(std::move(training)) {}

  Process start(const std::string& name, const std::string& fate = "well", int number = 0) const {
    const auto& t = training_;
    return Process({MUSTER_ELASTIC_NODE, folder_.path().string(), name, t.rule, std::to_string(t.workers),
                    std::to_string(t.least), std::to_string(t.epochs), std::to_string(t.step), fate,
                    std::to_string(number), t.store});
  }
  std::string left(const std::string& kind, const std::string& name) const {
    return readFile(folder_ / (kind + "-" + name));
  }
  std::vector<std::string> logs(const std::vector<std::string>& names) const {
    std::vector<std::string> all;
    for (const auto& name : names) all.push_back(left("log", name));
    return all;
  }
  /// Waits until a line of the process's log contains `what`.
  bool says(const std::string& name, const std::string& what, std::chrono::seconds limit = kLimit) const {
    for (const auto end = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(5ms))
      if (left("log", name).find(what) != std::string::npos) return true;
    return false;
  }
  std::vector<std::string> inStore() const {
    std::vector<std::string> names;
    for (const auto& one : std::filesystem::directory_iterator(folder_ / "store"))
      names.push_back(one.path().filename().string());
    return names;
  }

 private:
  const Training training_;
  TemporaryDirectory folder_;
};

/// A training, and its processes "a" and "b" and those that come later.
struct Processes {
  explicit Processes(Training settings) : training(std::move(settings)) {
    for (const auto* name : {"a", "b"}) start(name);
  }
  void start(const std::string& name, const std::string& fate = "well", int number = 0) {
    all.push_back(cluster.start(name, fate, number));
  }
  const Training training;
  const Cluster cluster{training};
  std::vector<Process> all = {};
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

/// Checks that each batch counts once: batches of a lost node are dealt again.
void checkEachBatchOnce(const Training& training, const std::vector<Begin>& history,
                        const std::vector<std::string>& logs) {
  const auto trained = trainedIn(history, logs);
  CHECK(std::ssize(trained) == training.epochs * (7 * kElasticData + 1));
  for (const auto& [batch, times] : trained) {
    CAPTURE(batch.first);
    CAPTURE(batch.second);
    CHECK(times == 1);
  }
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

/// Checks each of these trainings at the same time, because their processes mostly wait.
void atOnce(const std::vector<Training>& all, const std::function<void(const Training&)>& check) {
  std::vector<std::future<void>> checks;
  for (const Training& one : all) checks.push_back(std::async(std::launch::async, check, one));
  for (auto& one : checks) one.get();
}

/// `a` and `b` train; a third process joins and is killed later. @param between  is called once `a` and `b`
/// train
void checkJoinAndKill(
    const Training& training, const std::function<void()>& between = [] {}) {
  CAPTURE(training.rule);
  const Cluster cluster(training);
  auto a = cluster.start("a"), b = cluster.start("b");
  REQUIRE(cluster.says("a", " of 2, from iteration 0"));
  between();
  auto c = cluster.start("c", "kill", 60);
  CHECK(a.wait(kLimit) == 0);
  CHECK(b.wait(kLimit) == 0);
  CHECK(c.wait(1s) == -1);
  const auto history = historyIn(cluster.left("log", "a"));
  REQUIRE(history.size() == 3);
  CHECK(history[1].nodes == 3);
  CHECK(history[1].iteration > 0);
  CHECK(history[2].nodes == 2);
  CHECK(history[2].iteration > history[1].iteration);
  CHECK(cluster.left("bits", "a") == replayed(training, history));
  CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
  checkEachBatchOnce(training, history, cluster.logs({"a", "b", "c"}));
  CHECK(countsAll(cluster.left("log", "a")));
  if (training.store.empty()) CHECK(cluster.inStore() == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("if a process is killed, the others finish with the bits of the same history") {
  struct Case {
    std::string rule;
    int iteration, workers = 1;
  };
  // With overlapped averaging an epoch's last two merges are after its last iteration.
  const std::vector<Case> cases = {Case{"averaging", 25},        Case{"diloco", 25},
                                   Case{"overlapped", 30},       Case{"gossip on a ring", 25},
                                   Case{"shared gradients", 25}, Case{"hierarchical averaging", 25, 2}};
  std::list<Processes> started;  // all at once, because they mostly wait
  for (const auto& [rule, iteration, workers] : cases)
    started.emplace_back(Training{.rule = rule, .workers = workers}).start("c", "kill", iteration);
  for (auto& [training, cluster, all] : started) {
    CAPTURE(training.rule);
    CHECK(all[0].wait(kLimit) == 0);
    CHECK(all[1].wait(kLimit) == 0);
    CHECK(all[2].wait(1s) == -1);
    CHECK(cluster.left("problem", "a") == "");
    const auto history = historyIn(cluster.left("log", "a"));
    CHECK(history == historyIn(cluster.left("log", "b")));
    CHECK(history.size() >= 2);
    CHECK(history.back().nodes == 2);
    CHECK(history.back().iteration > 0);
    CHECK(cluster.left("bits", "a") == replayed(training, history));
    CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
    checkEachBatchOnce(training, history, cluster.logs({"a", "b", "c"}));
    CHECK(cluster.inStore() == std::vector<std::string>{});
  }
}

TEST_CASE("a process that joins later takes part") {
  std::list<Processes> started;
  for (const std::string rule : {"diloco", "gossip on a ring"})
    started.emplace_back(Training{.rule = rule, .epochs = 8, .step = 30});
  for (const auto& one : started) REQUIRE(one.cluster.says("a", "from iteration 0"));
  std::this_thread::sleep_for(500ms);
  for (auto& one : started) one.start("c");
  for (auto& [training, cluster, all] : started) {
    CAPTURE(training.rule);
    CHECK(all[0].wait(kLimit) == 0);
    CHECK(all[1].wait(kLimit) == 0);
    CHECK(all[2].wait(kLimit) == 0);
    const auto history = historyIn(cluster.left("log", "a"));
    REQUIRE(history.size() == 2);
    CHECK(history[0].nodes == 2);
    CHECK(history[1].nodes == 3);
    CHECK(historyIn(cluster.left("log", "c")) == std::vector{history[1]});
    CHECK(cluster.left("bits", "a") == replayed(training, history));
    for (const auto* name : {"b", "c"}) CHECK(cluster.left("bits", name) == cluster.left("bits", "a"));
    CHECK(cluster.inStore() == std::vector<std::string>{});
  }
}

TEST_CASE("when a process joins and is lost, residuals start anew; launched merges land, then are lost") {
  atOnce({{.rule = "shared gradients", .epochs = 8, .step = 30},
          {.rule = "overlapped", .epochs = 8, .step = 30},
          {.rule = "streaming", .epochs = 8, .step = 30}},
         [](const Training& training) { checkJoinAndKill(training); });
}

TEST_CASE("Redis as the store may lose all data and restart, while a process joins and another is killed") {
#ifdef MUSTER_REDIS_SERVER
  RedisServer server(MUSTER_REDIS_SERVER);
  checkJoinAndKill({.epochs = 8, .step = 30, .store = server.address()}, [&] {
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
  atOnce({diloco, diloco}, [&](const Training& training) {
    const int piece = next.fetch_add(8);
    CAPTURE(piece);
    const Cluster cluster(training);
    auto a = cluster.start("a", "serve", piece), b = cluster.start("b", "serve", piece);
    REQUIRE(cluster.says("a", " of 2, from iteration 0"));
    std::this_thread::sleep_for(500ms);
    auto c = cluster.start("c");
    CHECK(c.wait(kLimit) == 0);
    const int endOfA = a.wait(kLimit), endOfB = b.wait(kLimit);
    CHECK(std::min(endOfA, endOfB) == -1);
    CHECK(std::max(endOfA, endOfB) == 0);
    const std::string other = endOfA == 0 ? "a" : "b";
    const auto history = historyIn(cluster.left("log", other));
    REQUIRE(history.size() >= 2);
    CHECK(history.back().nodes == 2);
    CHECK(history.back().iteration > 0);
    CHECK(historyIn(cluster.left("log", "c")) == std::vector{history.back()});
    CHECK(cluster.left("bits", other) == replayed(training, history));
    CHECK(cluster.left("bits", "c") == cluster.left("bits", other));
    checkEachBatchOnce(training, history, cluster.logs({"a", "b", "c"}));
    CHECK(cluster.inStore() == std::vector<std::string>{});
  });
}

TEST_CASE("if the only process with the model is killed while it sends it, the other one trains alone") {
  const Training training{.rule = "diloco", .least = 1, .step = 30};
  Cluster cluster(training);
  auto a = cluster.start("a", "serve", 4);
  REQUIRE(cluster.says("a", " of 1, from iteration 0"));
  std::this_thread::sleep_for(300ms);
  auto b = cluster.start("b");
  CHECK(a.wait(kLimit) == -1);
  CHECK(b.wait(kLimit) == 0);
  const auto history = historyIn(cluster.left("log", "b"));
  REQUIRE(history.size() == 1);
  CHECK(history[0].nodes == 1);
  CHECK(history[0].iteration == 0);
  CHECK(cluster.left("bits", "b") == replayed(training, history));
}

TEST_CASE("a process that throws leaves with its own error, and a waiting one takes its place") {
  const Training training{.workers = 2, .step = 5};
  Cluster cluster(training);
  auto a = cluster.start("a"), b = cluster.start("b", "throw", 12);
  CHECK(b.wait(kLimit) == 3);
  CHECK(cluster.left("problem", "b").find("out of coffee") != std::string::npos);
  auto c = cluster.start("c");
  CHECK(a.wait(kLimit) == 0);
  CHECK(c.wait(kLimit) == 0);
  const auto history = historyIn(cluster.left("log", "a"));
  REQUIRE(history.size() == 2);
  CHECK(history[1].nodes == 2);
  CHECK(cluster.left("bits", "a") == replayed(training, history));
  CHECK(cluster.left("bits", "c") == cluster.left("bits", "a"));
}

TEST_CASE("a process that was suspended and resumes ends, because the others have the lease") {
  Cluster cluster({.step = 10});
  auto a = cluster.start("a"), b = cluster.start("b"), c = cluster.start("c", "stop", 12);
  REQUIRE(cluster.says("a", " of 2, from iteration"));
  c.send(SIGCONT);
  CHECK(c.wait(kLimit) == 3);
  CHECK(cluster.left("problem", "c").find("the other nodes continue without this one") != std::string::npos);
  CHECK(a.wait(kLimit) == 0);
  CHECK(b.wait(kLimit) == 0);
  CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
}

TEST_CASE("a process with another listener is refused before it joins, without effect on the others") {
  const Training training{.epochs = 8, .step = 30};
  Cluster cluster(training);
  auto a = cluster.start("a"), b = cluster.start("b");
  REQUIRE(cluster.says("a", " of 2, from iteration 0"));
  auto c = cluster.start("c", "evaluate");
  CHECK(c.wait(kLimit) == 3);
  const auto problem = cluster.left("problem", "c");
  CAPTURE(problem);
  CHECK(
      problem.find("the processes that train have \"the listeners that are called on all nodes: none\", and "
                   "this one has \"the listeners that are called on all nodes: EvaluationListener") !=
      std::string::npos);
  CHECK(a.wait(kLimit) == 0);
  CHECK(b.wait(kLimit) == 0);
  const auto history = historyIn(cluster.left("log", "a"));
  CHECK(history.size() == 1);
  CHECK(cluster.left("bits", "a") == replayed(training, history));
  CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
  CHECK(cluster.inStore() == std::vector<std::string>{});
}

TEST_CASE("too few waiting processes end with one error") {
  Cluster cluster({.least = 2});
  auto a = cluster.start("a", "impatient");
  CHECK(a.wait(kLimit) == 3);
  const auto problem = cluster.left("problem", "a");
  CHECK(problem.starts_with(
      "the training over elastic nodes has failed: only 1 of at least 2 nodes has joined"));
  CHECK(cluster.inStore() == std::vector<std::string>{});
}
