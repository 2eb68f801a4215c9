// Trainings over real processes of this machine that find each other in a directory, by Gloo.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>

#include "muster/core/base/mutex.h"
#include "muster/parallel/nodes.h"
#include "muster/parallel/nodes/elastic/directory_store.h"
#include "muster/parallel/nodes/gloo/gloo_transport.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/nodes/node_processes/checks.h"
#include "tests/support/on_threads.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

std::string launch(const ProcessRun& run) {
  return fmt::format("{} {} {}/store '{}' {} {}", MUSTER_LAUNCH, run.nodes, run.folder, run.fate,
                     MUSTER_GLOO_NODE, run.arguments());
}

/// A store that lets processes of another kind connect to each address of a node before the other node knows
/// it. Attempt by attempt they say nothing, half of a message, the words of another protocol; the last time
/// there are many of them.
class Haunted final : public NodeStore {
 public:
  explicit Haunted(const std::filesystem::path& directory) : store_(directory) {}
  ~Haunted() override {
    const Lock lock(mutex_);
    for (const int socket : sockets_) ::close(socket);
  }
  std::string describe() const override { return store_.describe(); }
  void put(const std::string& name, const std::string& text) override {
    std::istringstream words(text);
    std::string word, address;
    std::size_t attempt = 0;
    if (name.starts_with("address-") && words >> word >> attempt >> address && attempt <= kAttempts.size())
      haunt(address, kAttempts.at(attempt - 1));
    store_.put(name, text);
  }
  bool create(const std::string& name, const std::string& text) override { return store_.create(name, text); }
  std::string get(const std::string& name) override { return store_.get(name); }
  void erase(const std::string& name) override { store_.erase(name); }
  std::vector<std::string> names(const std::string& prefix) override { return store_.names(prefix); }
  int connections() {
    const Lock lock(mutex_);
    return static_cast<int>(sockets_.size());
  }

  static constexpr int kMany = 1000;

 private:
  struct Strangers {
    int count = 0;
    std::string_view say;
  };
  static constexpr std::array<Strangers, 4> kAttempts{
      Strangers{1, ""}, Strangers{1, "\x60\x01\x02"},
      Strangers{1, "GET /health HTTP/1.1\r\nHost: node\r\n\r\n"}, Strangers{kMany, ""}};

  void haunt(const std::string& hex, const Strangers& strangers) {
    std::array<unsigned char, sizeof(sockaddr_in)> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes.at(i) = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    const Lock lock(mutex_);
    for (int i = 0; i < strangers.count; ++i) {
      // Only the first connection is accepted; the others must not wait.
      const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (i > 0 ? SOCK_NONBLOCK : 0), 0);
      if (socket < 0) throw Error("too many open files");
      ::connect(socket, reinterpret_cast<const sockaddr*>(bytes.data()), bytes.size());
      ::send(socket, strangers.say.data(), strangers.say.size(), MSG_NOSIGNAL);
      sockets_.push_back(socket);
    }
  }

  DirectoryStore store_;
  Mutex mutex_;
  std::vector<int> sockets_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

TEST_CASE("two processes of two workers have the bits of one process; their log lines name them") {
  checkRules(launch, 2, 2);
}

TEST_CASE("three processes of one worker have the bits of one process; their log lines name them") {
  checkRules(launch, 3, 1);
}

TEST_CASE("a process that is killed at a random moment ends the training of the others, which name it") {
  checkKills(launch, "is lost: the connection is broken");
}

TEST_CASE("a process that is stopped, or whose step throws, ends the training of the others") {
  checkSurvivors(launch, "averaging", "stop", "nothing was heard of");
  checkSurvivors(launch, "gossip on a ring", "throw", "has failed");
}

TEST_CASE("strangers that connect to a node are turned away, and the nodes find each other") {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4 * Haunted::kMany);
  ::setrlimit(RLIMIT_NOFILE, &files);
  const TemporaryDirectory folder;
  Haunted store(folder.path());
  std::array<std::array<std::byte, 2>, 2> heard{};
  onThreads(2, [&](int n) {
    const Nodes::Gloo options{.node = n, .nodes = 2, .interface = "lo", .silence = 8s};
    NodeLink link([&] { return makeGlooTransport(options, store, ""); }, options.silence);
    const std::array own{std::byte(n + 1)};
    link.gather(own, heard.at(static_cast<std::size_t>(n)));
  });
  for (const auto& all : heard) CHECK(all == std::array{std::byte{1}, std::byte{2}});
  CHECK(store.connections() >= 2 * (3 + Haunted::kMany));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("invalid options of Gloo are refused by name") {
  const TemporaryDirectory folder;
  const auto store = folder.path().string();
  const auto refusal = [](const Nodes::Gloo& options) {
    return thrown<InvalidArgument>([&] { Nodes::gloo(options); });
  };
  CHECK(refusal({.store = store, .node = 2, .nodes = 2, .interface = "lo"}) ==
        "Gloo: there is no node 2 among 2");
  CHECK(refusal({.store = store, .nodes = 0, .interface = "lo"}) == "Gloo: nodes must be at least 1, got 0");
  CHECK(refusal({.nodes = 2, .interface = "lo"}) ==
        "Gloo: store: name a directory that all nodes can reach, or a Redis server");
  CHECK(refusal({.store = store, .nodes = 2})
            .starts_with("Gloo: interface: name the network interface to listen on; this machine has "));
  CHECK(refusal({.store = store, .nodes = 2, .interface = "nowhere0"})
            .starts_with("Gloo: interface: there is no nowhere0 with an address here; this machine has "));
}

TEST_CASE("one node needs no network") {
  const TemporaryDirectory folder;
  const auto nodes = Nodes::gloo({.store = (folder / "new" / "store").string(), .interface = "lo"});
  CHECK(nodes.nodes() == 1);
  CHECK(nodes.link() == nullptr);
}

TEST_CASE("a node that does not connect is named, and no files are left") {
  const TemporaryDirectory folder;
  const Nodes::Gloo options{
      .store = folder.path().string(), .node = 1, .nodes = 3, .interface = "lo", .patience = 50ms};
  CHECK(thrown<NodeFailure>([&] { Nodes::gloo(options); }) ==
        fmt::format("not all nodes have joined {} in 0.05 s: node 0 is missing; node 2 is missing",
                    options.store));
  CHECK(std::filesystem::is_empty(folder.path()));
}
