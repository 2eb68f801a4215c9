// Trainings over real processes of this machine that come and go.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

#include "muster/core/nn/training_state.h"
#include "muster/parallel/gloo/redis_store.h"
#include "muster/parallel/parallel_wrapper.h"
#include "tests/parallel/every_rule.h"
#include "tests/parallel/node_processes/process.h"
#include "tests/parallel/node_processes/redis_server.h"
#include "tests/parallel/node_processes/toy.h"
#include "tests/support/skip.h"
#include "tests/support/state_bits.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct Training {
  std::string rule = "averaging";
  int workers = 1, least = 2, epochs = 5, step = 1;
  std::string store = {};  // "": a directory
};

/// The processes of one training and what they leave.
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
  /// Waits until a line of its log has this in it.
  bool says(const std::string& name, const std::string& what, std::chrono::seconds limit = 60s) const {
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

struct Begin {
  int nodes = 0;
  std::int64_t iteration = 0;
  bool operator==(const Begin&) const = default;
};

/// The history of membership in a log.
std::vector<Begin> historyIn(const std::string& log) {
  static const std::regex kLine(R"(membership \d+: this is node \d+ of (\d+), from iteration (\d+))");
  std::vector<Begin> history;
  for (std::sregex_iterator it(log.begin(), log.end(), kLine), end; it != end; ++it)
    history.push_back({std::stoi((*it)[1]), std::stoll((*it)[2])});
  return history;
}

/// Ends a training after this iteration, by a stop or as the loss of a node does, and keeps where it was.
struct EndAfter final : Listener {
  EndAfter(std::int64_t last, bool loses) : iteration(last), loss(loses) {}
  void onMerge(const MergeEvent& event) override {
    if (event.iteration != iteration) return;
    state = event.trainer.trainingState();
    if (loss) throw std::runtime_error("a node is lost");
    event.trainer.stopFit();
  }
  const std::int64_t iteration;
  const bool loss;
  TrainingState state;
};

/// The bits of one process that goes through this history.
std::string replayed(const Training& training, const std::vector<Begin>& history) {
  auto model = processToy();
  auto data = processToyData(kElasticData);
  for (const auto& one : everyRule()) {
    if (one.name != training.rule) continue;
    for (std::size_t i = 0; i < history.size(); ++i) {
      const bool last = i + 1 == history.size();
      if (!last && history[i + 1].iteration == history[i].iteration) continue;
      const auto end = std::make_shared<EndAfter>(last ? -1 : history[i + 1].iteration,
                                                  !last && history[i + 1].nodes < history[i].nodes);
      auto wrapper = ParallelWrapper::Builder(model)
                         .workers(history[i].nodes * training.workers)
                         .groups(history[i].nodes)
                         .pinThreads(false)
                         .strategy(one.options)
                         .listeners({end})
                         .build();
      const auto fit = [&] { wrapper.fit(data, training.epochs - model.epoch()); };
      if (end->loss)
        CHECK_THROWS_AS(fit(), TrainingError);
      else
        fit();
      // Each worker starts from the merged model, also where there are as many as before.
      std::erase_if(end->state, [](const NamedValues& v) {
        return v.name != "position" && v.name != "scores" && v.name != "fingerprint";
      });
      model.trainingState() = end->state;
    }
  }
  const auto bits = stateBits(model);
  return {reinterpret_cast<const char*>(bits.data()), bits.size()};
}

/// `a` and `b` train; a third process joins and is killed later.
void checkJoinAndKill(const Training& training, const Cluster& cluster, Process& a, Process& b) {
  auto c = cluster.start("c", "kill", 60);
  CHECK(a.wait(150s) == 0);
  CHECK(b.wait(60s) == 0);
  CHECK(c.wait(1s) == -1);
  const auto history = historyIn(cluster.left("log", "a"));
  REQUIRE(history.size() == 3);
  CHECK(history[1].nodes == 3);
  CHECK(history[1].iteration > 0);
  CHECK(history[2].nodes == 2);
  CHECK(history[2].iteration > history[1].iteration);
  CHECK(cluster.left("bits", "a") == replayed(training, history));
  CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
}

}  // namespace

TEST_CASE("a process is killed, and the others finish with the bits of their history") {
  for (const std::string rule : {"averaging", "diloco"}) {
    CAPTURE(rule);
    const Training training{.rule = rule};
    Cluster cluster(training);
    auto a = cluster.start("a"), b = cluster.start("b"), c = cluster.start("c", "kill", 25);
    CHECK(a.wait(150s) == 0);
    CHECK(b.wait(150s) == 0);
    CHECK(c.wait(1s) == -1);
    CHECK(cluster.left("problem", "a") == "");
    const auto history = historyIn(cluster.left("log", "a"));
    CHECK(history == historyIn(cluster.left("log", "b")));
    CHECK(history.size() >= 2);
    CHECK(history.back().nodes == 2);
    CHECK(history.back().iteration > 0);
    CHECK(cluster.left("bits", "a") == replayed(training, history));
    CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
    CHECK(cluster.inStore() == std::vector<std::string>{});
  }
}

TEST_CASE("a process that comes later takes part") {
  const Training training{.rule = "diloco", .epochs = 8, .step = 30};
  Cluster cluster(training);
  auto a = cluster.start("a"), b = cluster.start("b");
  REQUIRE(cluster.says("a", "from iteration 0"));
  std::this_thread::sleep_for(500ms);
  auto c = cluster.start("c");
  CHECK(a.wait(150s) == 0);
  CHECK(b.wait(150s) == 0);
  CHECK(c.wait(30s) == 0);
  const auto history = historyIn(cluster.left("log", "a"));
  REQUIRE(history.size() == 2);
  CHECK(history[0].nodes == 2);
  CHECK(history[1].nodes == 3);
  CHECK(historyIn(cluster.left("log", "c")) == std::vector{history[1]});
  CHECK(cluster.left("bits", "a") == replayed(training, history));
  for (const auto* name : {"b", "c"}) CHECK(cluster.left("bits", name) == cluster.left("bits", "a"));
  CHECK(cluster.inStore() == std::vector<std::string>{});
}

TEST_CASE(
    "of rules that send while they compute what is in flight lands where one joins, and is lost with one") {
  for (const std::string rule : {"overlapped", "streaming"}) {
    CAPTURE(rule);
    const Training training{.rule = rule, .epochs = 8, .step = 30};
    Cluster cluster(training);
    auto a = cluster.start("a"), b = cluster.start("b");
    REQUIRE(cluster.says("a", " of 2, from iteration 0"));
    checkJoinAndKill(training, cluster, a, b);
    CHECK(cluster.inStore() == std::vector<std::string>{});
  }
}

TEST_CASE("a Redis server as the store: it forgets all and comes back, a process joins, one is killed") {
#ifdef MUSTER_REDIS_SERVER
  RedisServer server(MUSTER_REDIS_SERVER);
  const Training training{.epochs = 8, .step = 30, .store = server.address()};
  Cluster cluster(training);
  auto a = cluster.start("a"), b = cluster.start("b");
  REQUIRE(cluster.says("a", " of 2, from iteration 0"));
  server.kill();
  std::this_thread::sleep_for(300ms);
  server.start();
  checkJoinAndKill(training, cluster, a, b);
  CHECK(openRedisStore(server.address())->names("").empty());
#else
  skip("there is no hiredis, or no redis-server");
#endif
}

TEST_CASE("a process that throws leaves, with its own error, and one that waits takes its place") {
  const Training training{.workers = 2, .step = 5};
  Cluster cluster(training);
  auto a = cluster.start("a"), b = cluster.start("b", "throw", 12);
  CHECK(b.wait(100s) == 3);
  CHECK(cluster.left("problem", "b").find("out of coffee") != std::string::npos);
  auto c = cluster.start("c");
  CHECK(a.wait(150s) == 0);
  CHECK(c.wait(30s) == 0);
  const auto history = historyIn(cluster.left("log", "a"));
  REQUIRE(history.size() == 2);
  CHECK(history[1].nodes == 2);
  CHECK(cluster.left("bits", "a") == replayed(training, history));
  CHECK(cluster.left("bits", "c") == cluster.left("bits", "a"));
}

TEST_CASE("a process that was stopped and comes back ends: the others have the lease") {
  Cluster cluster({.step = 10});
  auto a = cluster.start("a"), b = cluster.start("b"), c = cluster.start("c", "stop", 12);
  REQUIRE(cluster.says("a", " of 2, from iteration"));
  c.send(SIGCONT);
  CHECK(c.wait(60s) == 3);
  CHECK(cluster.left("problem", "c").find("the others go on without this node") != std::string::npos);
  CHECK(a.wait(150s) == 0);
  CHECK(b.wait(60s) == 0);
  CHECK(cluster.left("bits", "b") == cluster.left("bits", "a"));
}

TEST_CASE("too few wait, and end with one error") {
  Cluster cluster({.least = 2});
  auto a = cluster.start("a", "impatient");
  CHECK(a.wait(60s) == 3);
  const auto problem = cluster.left("problem", "a");
  CHECK(problem.starts_with(
      "the training over nodes that come and go has failed: of at least 2 nodes 1 has come to"));
  CHECK(cluster.inStore() == std::vector<std::string>{});
}
