#include "muster/core/listeners/watch/page/page_listener.h"

#include <regex>

#include <boost/json.hpp>

#include "muster/core/listeners/watch/page/page_assets.h"
#include "tests/core/listeners/watch/raw_client.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

/// A page with ticks of a millisecond, so that tests need not wait.
struct ServedPage {
  explicit ServedPage(PageLimits limits = {}) {
    if (limits.tick == PageLimits().tick) limits.tick = 1ms;
    listener = std::make_shared<PageListener>(
        PageOptions{.sink = [this](std::string_view line) { lines.emplace_back(line); },
                    .readEvery = 0ms,
                    .limits = limits});
  }
  std::string host() const { return "127.0.0.1:" + std::to_string(listener->port()); }
  std::string token() const {
    const auto address = listener->address();
    return address.substr(address.find('=') + 1);
  }
  std::string cookie() const { return "muster-" + std::to_string(listener->port()) + "=" + token(); }
  std::string request(const std::string& target, const std::string& more = {},
                      const std::string& method = "GET") const {
    return method + " " + target + " HTTP/1.1\r\nHost: " + host() + "\r\n" + more + "\r\n";
  }
  std::string answer(const std::string& bytes) const {
    const RawClient client(listener->port());
    client.send(bytes);
    return client.receiveAll();
  }
  std::string get(const std::string& target) const {
    return answer(request(target, "Cookie: " + cookie() + "\r\n"));
  }
  /// A client that has requested the events.
  std::unique_ptr<RawClient> events(int receiveBuffer = 0) const {
    auto client = std::make_unique<RawClient>(listener->port(), receiveBuffer);
    client->send(request("/events", "Cookie: " + cookie() + "\r\n"));
    return client;
  }

  std::vector<std::string> lines;
  std::shared_ptr<PageListener> listener;
};

std::string statusOf(const std::string& answer) {
  return answer.substr(0, answer.find("\r\n"));
}

std::string headerOf(const std::string& answer, const std::string& name) {
  const auto begin = answer.find("\r\n" + name + ": ");
  if (begin == std::string::npos || begin > answer.find("\r\n\r\n")) return "";
  const auto value = begin + 4 + name.size();
  return answer.substr(value, answer.find("\r\n", value) - value);
}

/// All fields are tested in page_answer_test.
void checkSecurity(const std::string& answer) {
  CHECK(headerOf(answer, "Content-Security-Policy").starts_with("default-src 'none'; "));
  CHECK(headerOf(answer, "Cache-Control") == "no-store");
  CHECK_LACKS(answer, "Access-Control-");
}

/// Two workers train a model of 5 numbers with a page on seven batches.
struct Trained {
  explicit Trained(PageListener& page)
      : wrapper(toyWrapper(model, 2, 2)
                    .listeners({std::shared_ptr<Listener>(std::shared_ptr<void>(), &page), page.workers()})
                    .build()) {}
  ToyModel model{{.size = 5}};
  ToyIterator data{randomBatches(3, 7, 4, 5, true), 5};
  ParallelWrapper wrapper;
};

TEST_CASE("a page listener prints an address with a token, and a command for ssh") {
  const ServedPage page;
  REQUIRE(page.lines.size() == 2);
  CHECK(page.lines[0] == "page: http://" + page.host() + "/?token=" + page.token());
  CHECK(page.token().size() == 64);
  CHECK_CONTAINS(page.lines[1], fmt::format("ssh -L {0}:127.0.0.1:{0} ", page.listener->port()));
}

TEST_CASE("the address gives a cookie, with which the page and its files are served") {
  const ServedPage page;
  const auto first = page.answer(page.request("/?token=" + page.token()));
  CHECK(statusOf(first) == "HTTP/1.1 303 See Other");
  CHECK(headerOf(first, "Location") == "/");
  CHECK(headerOf(first, "Set-Cookie") == page.cookie() + "; HttpOnly; SameSite=Strict; Path=/");
  checkSecurity(first);
  REQUIRE(pageAssets().size() == 4);
  for (const auto& asset : pageAssets()) {
    const auto answer = page.get(std::string(asset.path));
    CHECK(statusOf(answer) == "HTTP/1.1 200 OK");
    CHECK(headerOf(answer, "Content-Type") == asset.type);
    CHECK(answer.substr(answer.find("\r\n\r\n") + 4) == asset.text);
    checkSecurity(answer);
  }
  const auto html = page.get("/");  // the content security policy forbids inline code
  for (const char* part : {"style=", "<style", "<script>"}) CHECK_LACKS(html, part);
  CHECK_FALSE(std::regex_search(html, std::regex("\\son[a-z]+ *=")));
}

// page_access_test has all kinds of hosts, targets, methods and cookies.
TEST_CASE("a request of each kind that must be refused is refused over sockets") {
  const ServedPage page;
  const std::string cookie = "Cookie: " + page.cookie() + "\r\n";
  const auto port = std::to_string(page.listener->port());
  const auto refused = [&](const std::string& bytes, const std::string& status) {
    const auto answer = page.answer(bytes);
    CHECK_MESSAGE(statusOf(answer) == "HTTP/1.1 " + status, bytes.substr(0, 80));
    CHECK_LACKS(answer, page.token());
    checkSecurity(answer);
  };
  for (const auto& host : {"Host: evil.example:" + port + "\r\n", std::string("Host: \r\n"), std::string()})
    refused("GET / HTTP/1.1\r\n" + host + cookie + "\r\n", "421 Misdirected Request");
  refused("GET / HTTP/1.0\r\n\r\n", "421 Misdirected Request");
  refused(page.request("/", cookie + "Host: " + page.host() + "\r\n"), "400 Bad Request");
  CHECK(headerOf(page.answer(page.request("/", cookie, "HEAD")), "Allow") == "GET");
  refused(page.request("/", cookie + "Content-Length: 5\r\n", "POST") + "hello", "405 Method Not Allowed");
  for (const auto* target : {"/page.js", "/events", "/?token=x&token=y"})
    refused(page.request(target), "403 Forbidden");
  refused(page.request("/", "Cookie: muster-" + port + "=" + std::string(64, '0') + "\r\n"), "403 Forbidden");
  refused(page.request("/", "Cookie: muster-1=" + page.token() + "\r\n"), "403 Forbidden");
  refused(page.request("/../etc/passwd", cookie), "404 Not Found");
  refused(page.request("http://" + page.host() + "/", cookie), "400 Bad Request");
  refused("what is this\r\n\r\n", "400 Bad Request");
  refused(page.request("/", cookie + "X: " + std::string(20'000, 'x') + "\r\n"), "400 Bad Request");
}

TEST_CASE("a client receives all earlier events, then the new ones, as JSON that any parser reads") {
  ServedPage page;
  page.listener->text("plan", "<b>two</b> workers");
  page.listener->point("mine/one", 3, 0.5);
  const auto client = page.events();
  auto text = client->receiveUntil("mine/one");
  text += client->receiveUntil("\n\n");
  CHECK(statusOf(text) == "HTTP/1.1 200 OK");
  CHECK(headerOf(text, "Content-Type") == "text/event-stream");
  checkSecurity(text);
  page.listener->point("mine/one", 4, 0.25);
  const auto more = client->receiveUntil("\n\n");
  const auto news = boost::json::parse(more.substr(more.find('{'), more.rfind('}') + 1 - more.find('{')));
  CHECK(news.at("all").as_bool() == false);
  CHECK(boost::json::serialize(news.at("series")) == R"([{"name":"mine/one","points":[[4,2.5E-1]]}])");
}

TEST_CASE("the last round of a short training is shown, with its speed and histograms") {
  PageListener page({.serve = false, .readEvery = 1h});
  Trained trained(page);
  trained.data.knownExamples = 7 * 4;  // so it has 7 batches
  trained.data.knownBatchSize = 4;
  trained.wrapper.fit(trained.data, 3);
  const auto text = page.still("");
  CHECK_CONTAINS(text, R"("histograms":{"step":12,)");  // 4 iterations of worker 0 an epoch
  for (const char* name :
       {"score/merged", "score/worker 0", "training/samples per second", "time/all/computing", "ratio/p"}) {
    const auto begin = text.find(fmt::format("\"name\":\"{}\"", name));
    REQUIRE_MESSAGE(begin != std::string::npos, name);
    const auto curve = text.substr(begin, text.find("]]", begin) - begin);
    CHECK_MESSAGE(curve.rfind("[12,") == curve.rfind('['), curve);
  }
}

TEST_CASE(
    "a page that is not served is one file with all readings of a training, and a file of curves that "
    "grows") {
  const TemporaryDirectory directory;
  const auto path = directory / "runs" / "averaging" / "seed-1.curves.jsonl";
  PageListener page({.serve = false, .curves = path, .group = "averaging", .readEvery = 0ms});
  page.text("plan", "</script><script>");
  Trained trained(page);
  trained.wrapper.fit(trained.data, 2);

  const auto html = page.still(R"({"document":{"title":"<mine>"}})");
  for (const char* part :
       {"score/merged", "score/worker 0", "score/worker 1", "merge/divergence", "score/epoch",
        "training/samples per second", "time/all/computing", "time/worker 1/merging", "memory/resident bytes",
        "norm/p", "ratio/p", "at/samples", "at/seconds"})
    CHECK_MESSAGE(contains(html, part), part);
  for (const char* part : {"at/bytes", "\"epoch\":2,\"lastEpoch\":2", "\"machine\":\"", " of memory",
                           "\\u003cmine>", "\\u003c/script>\\u003cscript>", "default-src 'none'"})
    CHECK_MESSAGE(contains(html, part), part);
  for (const char* part : {" src=\"", "/page.css"}) CHECK_MESSAGE(!contains(html, part), part);

  const auto text = readFile(path);
  CHECK(text.starts_with("{\"format\":\"muster-curves/1\",\"group\":\"averaging\"}\n"));
  CHECK(text.ends_with("}\n"));
  for (const char* part : {"score/merged", "at/samples", "\"running\":false", "\"histograms\""})
    CHECK_MESSAGE(contains(text, part), part);
  CHECK_LACKS(text, "failed");
  page.failed(std::make_exception_ptr(
      TrainingError("worker 1 failed", 1, std::make_exception_ptr(NonFiniteScore("nan")))));
  CHECK_CONTAINS(page.still(), "\"failed\":\"worker 1 failed\"");
  const auto ended = readFile(path);
  CHECK_CONTAINS(ended, "\"failed\":\"worker 1 failed\"");
  CHECK_CONTAINS(ended, ",null]");  // the score that is no number
  trained.wrapper.fit(trained.data, 1);
  CHECK_LACKS(page.still(), "worker 1 failed");
  CHECK_LACKS(readFile(path), "worker 1 failed");
  CHECK_REFUSED(page.port(), "page: it is not served, so it has no port");
  CHECK_REFUSED(PageListener({.serve = false, .curves = "a.json"}),
                "curves: the name of a run's file must end in .curves.jsonl, by which muster page finds it; "
                "got a.json");
}

TEST_CASE("a client that reads nothing is dropped, and others are served") {
  ServedPage page({.writing = 3s, .connections = 2, .sendBuffer = 65536});
  const auto slow = page.events(/*receiveBuffer=*/2048);
  const auto quick = page.events();
  page.listener->text("big", std::string(4'000'000, 'x'));
  CHECK(quick->receiveUntil("xxx\"").size() > 4'000'000);
  // A new connection is accepted once the slow one has gone.
  int tries = 0;
  while (page.get("/page.js").empty() && ++tries < 200) std::this_thread::sleep_for(100ms);
  CHECK(tries < 200);
  CHECK(slow->receiveAll().size() < 4'000'000);  // only bytes that were under way
  page.listener->point("after", 1, 1);
  CHECK_CONTAINS(quick->receiveUntil("after"), "after");
}

TEST_CASE("an incomplete request is given up, and so are too many connections") {
  const ServedPage page({.reading = 100ms, .connections = 3});
  const RawClient silent(page.listener->port());
  silent.send("GET / HT");
  CHECK(silent.receiveAll().empty());  // the server closed the connection
  const auto one = page.events(), two = page.events(), three = page.events();
  for (const auto* client : {one.get(), two.get(), three.get()})
    CHECK_CONTAINS(client->receiveUntil("\n\n"), "200 OK");
  CHECK(RawClient(page.listener->port()).receiveAll().empty());
}

TEST_CASE("silent connections do not lock others out, and do not end those that are served") {
  const ServedPage page({.reading = 1h, .connections = 4});
  const auto events = page.events();
  CHECK_CONTAINS(events->receiveUntil("\n\n"), "200 OK");
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<RawClient>(page.listener->port()));
    if (i % 2 == 0) silent.back()->send("GET / HT");
    if (i % 10 == 9) CHECK(statusOf(page.get("/page.js")) == "HTTP/1.1 200 OK");
  }
  page.listener->point("after", 1, 1);
  CHECK_CONTAINS(events->receiveUntil("after"), "after");
}

TEST_CASE("a page can end while clients are connected, and the last events reach them before") {
  auto page = std::make_unique<ServedPage>(PageLimits{.tick = 1h});
  const auto client = page->events();
  client->receiveUntil("\r\n\r\n");
  page->listener->point("the last", 1, 0.5);
  page.reset();
  CHECK_CONTAINS(client->receiveAll(), "the last");
}

TEST_CASE("an answer being sent reaches its client before the page ends") {
  auto page = std::make_unique<ServedPage>(PageLimits{.ending = 20s, .sendBuffer = 2048});
  const auto whole = page->get("/dygraph.js").size();
  const RawClient client(page->listener->port(), /*receiveBuffer=*/2048);
  client.send(page->request("/dygraph.js", "Cookie: " + page->cookie() + "\r\n"));
  std::string answer = client.receiveUntil("\r\n\r\n");
  std::jthread rest([&] { answer += client.receiveAll(); });
  page.reset();
  rest.join();
  CHECK(answer.size() == whole);
}

TEST_CASE("a port that is in use or does not exist is refused") {
  const ServedPage page;
  const int used = page.listener->port();
  CHECK_REFUSED(
      PageListener({.port = used}),
      fmt::format("page: port {} of this machine is in use; give another one, or 0 for any that is free",
                  used));
  for (const int port : {-1, 65536})
    CHECK_REFUSED(PageListener({.port = port}),
                  fmt::format("page: the port must be between 0 and 65535, got {}", port));
}

}  // namespace
}  // namespace muster::test
