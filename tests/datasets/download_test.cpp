#include "muster/datasets/download.h"

#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using test::HttpReply;
using test::HttpServer;
using test::thrown;

const std::string kContent(100000, 'c');

std::string wrongUnlessContent(std::span<const std::uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end()) == kContent
             ? ""
             : fmt::format("{} bytes are wrong", bytes.size());
}

/// A directory to download to.
struct Place {
  test::Environment direct{"no_proxy", "127.0.0.1"};
  test::TemporaryDirectory directory;
  std::filesystem::path target = directory / "file.gz";
  DownloadOptions options{.attempts = 3, .backOff = 1ms};

  void get(const std::string& address) const {
    download(address + "file.gz", target, wrongUnlessContent, options);
  }
  std::string failure(const std::string& address) const {
    return thrown<DownloadError>([&] { get(address); });
  }
  bool holdsOnlyTheFile() const {
    return directory.names() == std::set<std::string>{".lock", "file.gz"} &&
           test::readFile(target) == kContent;
  }
  bool holdsNothing() const { return directory.names() == std::set<std::string>{".lock"}; }
};

TEST_CASE("a file is downloaded, checked and stored, once; a wrong one is replaced") {
  const Place place;
  std::string asked;
  HttpServer server([&](const std::string& path, int) {
    asked = path;
    return HttpReply::whole(kContent);
  });
  for (int i = 0; i < 2; ++i) place.get(server.address());
  CHECK(asked == "/file.gz");
  CHECK(server.requests() == 1);
  CHECK(place.holdsOnlyTheFile());
  test::writeFile(place.target, "half a fi");
  place.get(server.address());
  CHECK(server.requests() == 2);
  CHECK(place.holdsOnlyTheFile());
}

TEST_CASE("an interrupted transfer is retried, a busy server is asked again, and redirections are followed") {
  const Place place;
  HttpServer server([](const std::string& path, int number) {
    if (number == 0) return HttpReply{.status = 503};
    if (path != "/there") return HttpReply{.status = 302, .head = "Location: /there\r\n"};
    auto reply = HttpReply::whole(kContent);
    if (number == 2) reply.body.resize(5000);
    return reply;
  });
  place.get(server.address());
  CHECK(server.requests() == 5);
  CHECK(place.holdsOnlyTheFile());
}

TEST_CASE("what cannot be downloaded leaves no file, and the error names the address and the cause") {
  struct Case {
    HttpReply reply;
    int requests;
    std::string cause;
    DownloadOptions options = {.attempts = 3, .backOff = 1ms};
  };
  const DownloadOptions stalled{.attempts = 1, .stallTimeout = std::chrono::seconds(1)},
      limited{.attempts = 1, .maxBytes = kContent.size() - 1};
  for (const auto& [reply, requests, cause, options] :
       {Case{{.body = "half", .promised = 100000}, 3, "99996 bytes"},  // curl 7 and 8 use different words
        {{.body = kContent.substr(1)}, 3, "99999 bytes are wrong"},    // without a Content-Length
        {{.status = 404, .body = "no such file"}, 1, "HTTP 404"},
        {{.body = "some", .promised = 100000, .stall = true}, 1, "the last 1 seconds", stalled},
        {HttpReply::whole(kContent), 1, "more than 99999 bytes", limited},
        {{.status = 302, .head = "Location: file:///etc/hostname\r\n"}, 1, ""}}) {
    Place place;
    place.options = options;
    const HttpServer server(reply);
    const auto text = place.failure(server.address());
    CHECK_CONTAINS(text,
                   fmt::format("{}file.gz could not be fetched, tried {} time", server.address(), requests));
    CHECK_CONTAINS(text, cause);
    CHECK(server.requests() == requests);
    CHECK(place.holdsNothing());
  }
  const Place place;
  const auto dead = test::deadAddress(), text = place.failure(dead);
  CHECK_CONTAINS(text, dead);
  CHECK_CONTAINS(text, "onnect");
  CHECK_FALSE(place.failure("file:///etc/").empty());
  CHECK(place.holdsNothing());
}

TEST_CASE(
    "wrong content fails and leaves the old file, and a path that cannot be written gives a FileError") {
  const Place place;
  test::writeFile(place.target, "old");
  const HttpServer page(HttpReply::whole("<html>log in first</html>")), server(HttpReply::whole(kContent));
  CHECK_CONTAINS(place.failure(page.address()), "25 bytes are wrong");
  CHECK(test::readFile(place.target) == "old");
  CHECK(place.directory.names().size() == 2);
  CHECK_CONTAINS(thrown<FileError>([&] {
                   download(server.address(), place.target / "file.gz", wrongUnlessContent, place.options);
                 }),
                 place.target.string());
  CHECK_THROWS_AS(download(server.address(), place.target, wrongUnlessContent, {.attempts = 0}),
                  InvalidArgument);
}

TEST_CASE("two simultaneous downloads fetch the file once; if the first fails, the second one tries") {
  for (const bool fails : {false, true}) {
    Place place;
    place.options.attempts = 1;
    HttpServer server([&](const std::string&, int number) {
      std::this_thread::sleep_for(50ms);
      return fails && number == 0 ? HttpReply{.status = 500} : HttpReply::whole(kContent);
    });
    std::atomic<int> failed{0};
    {
      const auto get = [&] {
        if (!place.failure(server.address()).empty()) ++failed;
      };
      std::jthread one(get), other(get);
    }
    CHECK(failed == (fails ? 1 : 0));
    CHECK(server.requests() == (fails ? 2 : 1));
    CHECK(place.holdsOnlyTheFile());
  }
}

}  // namespace
}  // namespace muster
