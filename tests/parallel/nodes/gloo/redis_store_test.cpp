// A Redis server as a store, and servers that are no Redis. MUSTER_REDIS_SERVER is the server's path, or "".
#include <sys/stat.h>

#include "muster/parallel/nodes.h"
#include "muster/parallel/nodes/gloo/redis_store.h"
#include "muster/parallel/nodes/node_link.h"
#include "muster/parallel/nodes/node_transport.h"
#include "tests/parallel/nodes/node_processes/redis_server.h"
#include "tests/parallel/nodes/stored_texts.h"
#include "tests/support/environment.h"
#include "tests/support/skip.h"
#include "tests/support/texts.h"
#include "tests/support/thrown.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

bool noServer() {
  if (!std::string(MUSTER_REDIS_SERVER).empty()) return false;
  skip("there is no redis-server (Debian: redis-tools)");
  return true;
}

/// Answers every connection in the same way, one at a time.
class FakeServer {
 public:
  explicit FakeServer(std::function<void(int connection)> answer) : answer_(std::move(answer)) {
    ::listen(port_.socket(), 8);
    thread_ = std::thread([this] {
      for (int one; (one = ::accept(port_.socket(), nullptr, nullptr)) >= 0; ::close(one)) answer_(one);
    });
  }
  ~FakeServer() {
    ::shutdown(port_.socket(), SHUT_RDWR);
    thread_.join();
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  std::string address() const { return "redis://127.0.0.1:" + std::to_string(port_.number()); }

 private:
  FreePort port_;
  std::function<void(int)> answer_;
  std::thread thread_;
};

void say(int connection, const std::string& text) {
  ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

/// What the client has sent; "" once it has closed the connection.
std::string heard(int connection) {
  std::string got(4096, '\0');
  got.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::recv(connection, got.data(), got.size(), 0))));
  return got;
}

std::string problemOf(const std::function<void()>& call) {
  return thrown<NodeFailure>(call);
}

}  // namespace

TEST_CASE("the address of a Redis server is read") {
  const auto text = [](const char* address) { return RedisAddress::parse(address).text(); };
  CHECK(text("redis://host") == "redis://host:6379/muster");
  CHECK(text("redis://host:7/") == "redis://host:7/muster");
  CHECK(text("redis://host:65535/digits/mine") == "redis://host:65535/digits/mine");
  CHECK(text("redis://[::1]:80/x") == "redis://[::1]:80/x");
  for (const char* const wrong :
       {"redis:host", "redis://", "redis://:80", "redis://host:", "redis://host:0", "redis://host:65536",
        "redis://host:8o", "redis://[::1", "redis://host/a b"}) {
    CHECK_CONTAINS(thrown<InvalidArgument>([&] { RedisAddress::parse(wrong); }),
                   std::string(wrong) + " is not the address of a Redis server");
  }
  const auto secret = thrown<InvalidArgument>([] { RedisAddress::parse("redis://:secret@host"); });
  CHECK_CONTAINS(secret, "MUSTER_REDIS_PASSWORD");
  CHECK_LACKS(secret, "secret@");
  for (const char* const other : {"rediss://host", "http://host"})
    CHECK_CONTAINS(thrown<InvalidArgument>([&] { Nodes::elastic({.store = other, .interface = "lo"}); }),
                   other);
}

TEST_CASE("only one of several create() calls succeeds, and put() replaces a whole text, of limited length") {
  if (noServer()) return;
  const RedisServer server(MUSTER_REDIS_SERVER);
  const auto a = openRedisStore(server.address()), b = openRedisStore(server.address());
  checkStore(*a, *b);
  CHECK(openRedisStore(server.address() + "-other")->names("").empty());
  const std::string longest(NodeStore::kMostBytes - 1, 'x');
  a->put("long", longest);
  CHECK((b->get("long") == longest));
  CHECK_CONTAINS(problemOf([&] { a->put("long", longest + "xx"); }), "takes no text of more than 1048576 b");
  CHECK_CONTAINS(problemOf([&] { a->create("new", longest + "xx"); }), "takes no text of more than");
  CHECK((a->get("long") == longest));
}

TEST_CASE("a server that restarts is found again, and one that stays away gives an error") {
  if (noServer()) return;
  RedisServer server(MUSTER_REDIS_SERVER);
  const auto store = openRedisStore(server.address(), 30s), brief = openRedisStore(server.address(), 3s);
  store->put("name", "text");
  server.kill();
  CHECK_CONTAINS(problemOf([&] { brief->put("name", "text"); }), "cannot be reached: Connection refused");
  server.start();
  CHECK(store->get("name") == "");
  store->put("name", "again");
  server.kill();
  server.start();  // the connection was lost meanwhile
  CHECK(store->create("name", "new"));
  CHECK(store->get("name") == "new");
  server.kill();
  auto waits = std::async(std::launch::async, [&] { store->put("name", "late"); });
  std::this_thread::sleep_for(50ms);
  server.start();
  CHECK_NOTHROW(waits.get());
  CHECK(store->get("name") == "late");
  server.send(SIGSTOP);
  CHECK_CONTAINS(problemOf([&] { brief->get("name"); }), "has not answered in 3 s");
  server.send(SIGCONT);
  CHECK(store->get("name") == "late");
}

TEST_CASE("passwords are sent to the server, and a wrong one gives an error") {
  if (noServer()) return;
  const RedisServer server(MUSTER_REDIS_SERVER, {"--requirepass", "secret"});
  const auto open = [&] { openRedisStore(server.address())->put("name", "text"); };
  const TemporaryDirectory folder;
  writeFile(folder / "password", "secret\r\nmore\n");
  using Value = std::optional<std::string>;
  const auto problem = [&](const Value& password, const Value& file) {
    const Environment text("MUSTER_REDIS_PASSWORD", password), path("MUSTER_REDIS_PASSWORD_FILE", file);
    return problemOf(open);
  };
  CHECK_CONTAINS(problem({}, {}), "wants a password: MUSTER_REDIS_PASSWORD");
  CHECK_CONTAINS(problem("public", {}), "refuses the password");
  CHECK_LACKS(problem("public", {}), "public");
  CHECK(problem("secret", {}) == "");
  CHECK(problem({}, (folder / "password").string()) == "");
}

TEST_CASE("a file of a password that cannot be one is refused by its name, and no pipe is waited for") {
  const Environment none("MUSTER_REDIS_PASSWORD", {});
  const TemporaryDirectory folder;
  writeFile(folder / "empty", "\r\n");
  writeFile(folder / "large", "secret\n" + std::string(1 << 16, 'x'));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);  // no process writes to it
  for (const auto& [name, problem] : std::vector<std::pair<std::string, std::string>>{
           {"empty", "has no password in its first line"},
           {"missing", "cannot be read: No such file or directory"},
           {"large", "is no file of a password: it has 65543 bytes, and at most 65536 are read"},
           {"pipe", "cannot be read: it is not a regular file"},
           {"", "cannot be read: it is a directory"}}) {
    const auto path = (folder / name).string();
    const Environment file("MUSTER_REDIS_PASSWORD_FILE", path);
    CHECK_REFUSED(openRedisStore("redis://127.0.0.1:9"),
                  "store: MUSTER_REDIS_PASSWORD_FILE: " + path + ": " + problem);
  }
}

TEST_CASE("a server that is not Redis gives an error in time") {
  CHECK_CONTAINS(
      problemOf([] { openRedisStore("redis://127.0.0.1:" + std::to_string(FreePort().number())); }),
      "cannot be reached: Connection refused");
  // A list with more parts than hiredis accepts, nested lists, an answer without an end.
  for (const auto& [words, problem] : std::vector<std::pair<std::string, std::string>>{
           {"HTTP/1.1 400 Bad Request\r\n\r\n", "does not answer as Redis does"},
           {"*1000000\r\n", "answers with too much to HLEN"},
           {"*1\r\n*1000\r\n", "answers with too much to HLEN"},
           {"$2000000000\r\n" + std::string(3 << 20, 'x'), "answers with more than"},
           {"+" + std::string(3 << 20, 'x'), "answers with more than"},
           {"-ERR max number of \x1b[2Jclients reached\r\n", "refuses HLEN: ERR max number of ?[2Jclients"},
           {"", "has not answered in 0.3 s"}}) {
    std::promise<void> over;
    const auto end = over.get_future().share();
    const FakeServer server([words = words, end](int connection) {
      say(connection, words);
      end.wait();
    });
    const auto limit = words.empty() ? 300ms : 30s;  // the other servers answer
    CHECK_CONTAINS(problemOf([&] { openRedisStore(server.address(), limit); }), problem);
    over.set_value();
  }
  const FakeServer closes([](int) {});
  CHECK_CONTAINS(problemOf([&] { openRedisStore(closes.address()); }), "ends the connection");
  const FakeServer drips([](int connection) {  // each byte arrives in time, but the answer never ends
    for (int i = 0; i < 40; ++i) {
      say(connection, i ? "x" : "+");
      std::this_thread::sleep_for(20ms);
    }
  });
  CHECK_CONTAINS(problemOf([&] { openRedisStore(drips.address(), 300ms); }), "has not answered in 0.3 s");
}

TEST_CASE("an answer of an unexpected type gives an error") {
  const FakeServer server([](int connection) {
    while (heard(connection) != "") say(connection, ":0\r\n");
  });
  const auto store = openRedisStore(server.address());
  CHECK_CONTAINS(problemOf([&] { store->get("name"); }), "does not answer HGET as Redis does");
  CHECK_CONTAINS(problemOf([&] { store->names(""); }), "does not answer HKEYS as Redis does");
  CHECK_FALSE(store->create("name", "text"));
}

TEST_CASE("a server that loads its data or closes new connections is asked again") {
  int asked = 0;
  const FakeServer server([&](int connection) {
    while (heard(connection) != "") {
      if (++asked == 3 || asked == 4) return;
      say(connection, asked == 2 ? "-LOADING Redis is loading the dataset in memory\r\n" : ":1\r\n");
    }
  });
  const auto store = openRedisStore(server.address(), 30s);
  CHECK(store->create("name", "text"));
  CHECK(asked == 5);
}

TEST_CASE("create() may have succeeded although its answer was lost with the connection") {
  // A server with one field: it stores the first HSETNX, but closes the connection without an answer.
  std::string kept;
  int lost = 0;
  const FakeServer server([&](int connection) {
    for (std::string question; (question = heard(connection)) != "";) {
      if (contains(question, "HSETNX")) {
        const bool first = kept.empty();
        const auto value = question.substr(question.rfind('$'));
        if (first) kept = value;
        if (first && lost++ == 0) return;
        say(connection, first ? ":1\r\n" : ":0\r\n");
      } else {
        say(connection, contains(question, "HGET") ? kept : ":0\r\n");
      }
    }
  });
  const auto store = openRedisStore(server.address());
  CHECK(store->create("name", "text"));
  CHECK(lost == 1);
  CHECK_FALSE(store->create("name", "text"));
}

TEST_CASE("nodes of Gloo find each other with a Redis server") {
  if (noServer()) return;
  const RedisServer server(MUSTER_REDIS_SERVER);
  const auto take = [&](int node) {
    const auto nodes =
        Nodes::gloo({.store = server.address(), .node = node, .nodes = 2, .interface = "lo", .silence = 20s});
    const int mine = node + 1;
    std::vector<int> all(2);
    nodes.link()->gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  };
  auto other = std::async(std::launch::async, take, 1);
  CHECK(take(0) == std::vector{1, 2});
  CHECK(other.get() == std::vector{1, 2});
  CHECK(openRedisStore(server.address())->names("").empty());
}
