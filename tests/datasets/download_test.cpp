#include "muster/datasets/download.h"

#include "tests/datasets/idx_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
using test::contains;
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

TEST_CASE("a file is downloaded, checked and stored") {
  const Place place;
  std::string asked;
  HttpServer server([&](const std::string& path, int) {
    asked = path;
    return HttpReply::whole(kContent);
  });
  place.get(server.address());
  CHECK(asked == "/file.gz");
  CHECK(place.holdsOnlyTheFile());
  CHECK(server.requests() == 1);
}

TEST_CASE("an existing file is not downloaded again, and a wrong one is replaced") {
  const Place place;
  HttpServer server([](const std::string&, int) { return HttpReply::whole(kContent); });
  test::writeFile(place.target, kContent);
  place.get(server.address());
  CHECK(server.requests() == 0);
  test::writeFile(place.target, "half a fi");
  place.get(server.address());
  CHECK(server.requests() == 1);
  CHECK(place.holdsOnlyTheFile());
}

TEST_CASE("an interrupted transfer is retried") {
  const Place place;
  HttpServer server([](const std::string&, int number) {
    auto reply = HttpReply::whole(kContent);
    if (number < 2) reply.body.resize(5000);
    return reply;
  });
  place.get(server.address());
  CHECK(server.requests() == 3);
  CHECK(place.holdsOnlyTheFile());
}

TEST_CASE("a transfer that is always interrupted fails and leaves no file") {
  const Place place;
  HttpServer server([](const std::string&, int) { return HttpReply{.body = "half", .promised = 100000}; });
  const auto text = place.failure(server.address());
  CHECK_CONTAINS(text, server.address() + "file.gz");
  CHECK_CONTAINS(text, "tried 3 times");
  CHECK_CONTAINS(text, "99996 bytes");  // which curl 7 and 8 say in different words
  CHECK(server.requests() == 3);
  CHECK(place.holdsNothing());
}

TEST_CASE("a file truncated without a Content-Length fails its check") {
  const Place place;
  HttpServer server([](const std::string&, int) { return HttpReply{.body = kContent.substr(1)}; });
  CHECK_CONTAINS(place.failure(server.address()), "99999 bytes are wrong");
  CHECK(place.holdsNothing());
}

TEST_CASE("wrong content fails and leaves the old file") {
  const Place place;
  test::writeFile(place.target, "old");
  HttpServer server([](const std::string&, int) { return HttpReply::whole("<html>log in first</html>"); });
  CHECK_CONTAINS(place.failure(server.address()), "25 bytes are wrong");
  CHECK(test::readFile(place.target) == "old");
  CHECK(place.directory.names().size() == 2);
}

TEST_CASE("a missing file is requested once, while a busy server is asked again") {
  const Place place;
  HttpServer missing(
      [](const std::string&, int) { return HttpReply{.status = 404, .body = "no such file"}; });
  const auto text = place.failure(missing.address());
  CHECK_CONTAINS(text, "HTTP 404");
  CHECK_CONTAINS(text, missing.address());
  CHECK(missing.requests() == 1);
  CHECK(place.holdsNothing());

  HttpServer busy([](const std::string&, int number) {
    return number == 0 ? HttpReply{.status = 503} : HttpReply::whole(kContent);
  });
  place.get(busy.address());
  CHECK(busy.requests() == 2);
}

TEST_CASE("an error about a refused connection names the address") {
  const Place place;
  const auto address = test::deadAddress();
  const auto text = place.failure(address);
  CHECK_CONTAINS(text, address);
  CHECK_CONTAINS(text, "onnect");
  CHECK(place.holdsNothing());
}

TEST_CASE("a stalled transfer is cancelled") {
  Place place;
  place.options.attempts = 1;
  place.options.stallTimeout = std::chrono::seconds(1);
  HttpServer server(
      [](const std::string&, int) { return HttpReply{.body = "some", .promised = 100000, .stall = true}; });
  CHECK_CONTAINS(place.failure(server.address()), "the last 1 seconds");
  CHECK(place.holdsNothing());
}

TEST_CASE("a file over the limit is refused") {
  Place place;
  place.options.maxBytes = kContent.size() - 1;
  HttpServer server([](const std::string&, int) { return HttpReply::whole(kContent); });
  CHECK_CONTAINS(place.failure(server.address()), "more than 99999 bytes");
  CHECK(place.holdsNothing());
}

TEST_CASE("redirections are followed, but not to files of this machine") {
  const Place place;
  HttpServer server([](const std::string& path, int) {
    return path == "/there" ? HttpReply::whole(kContent)
                            : HttpReply{.status = 302, .head = "Location: /there\r\n"};
  });
  place.get(server.address());
  CHECK(place.holdsOnlyTheFile());

  const Place other;
  HttpServer sly([](const std::string&, int) {
    return HttpReply{.status = 302, .head = "Location: file:///etc/hostname\r\n"};
  });
  CHECK_FALSE(other.failure(sly.address()).empty());
  CHECK_FALSE(other.failure("file:///etc/").empty());
  CHECK(other.holdsNothing());
}

TEST_CASE("two simultaneous downloads fetch the file once") {
  const Place place;
  HttpServer server([](const std::string&, int) {
    std::this_thread::sleep_for(50ms);
    return HttpReply::whole(kContent);
  });
  {
    std::jthread one([&] { place.get(server.address()); });
    std::jthread other([&] { place.get(server.address()); });
  }
  CHECK(server.requests() == 1);
  CHECK(place.holdsOnlyTheFile());
}

TEST_CASE("if the first of two downloads fails, the second one tries") {
  Place place;
  place.options.attempts = 1;
  HttpServer server([](const std::string&, int number) {
    std::this_thread::sleep_for(50ms);
    return number == 0 ? HttpReply{.status = 500} : HttpReply::whole(kContent);
  });
  std::atomic<int> failed{0};
  {
    const auto get = [&] {
      if (!place.failure(server.address()).empty()) ++failed;
    };
    std::jthread one(get), other(get);
  }
  CHECK(failed == 1);
  CHECK(place.holdsOnlyTheFile());
}

TEST_CASE("a path that cannot be written gives a FileError") {
  const Place place;
  test::writeFile(place.directory / "occupied", "");
  HttpServer server([](const std::string&, int) { return HttpReply::whole(kContent); });
  const auto get = [&] {
    download(server.address(), place.directory / "occupied/file.gz", wrongUnlessContent, place.options);
  };
  CHECK_CONTAINS(thrown<FileError>(get), "occupied");
  CHECK_THROWS_AS(download(server.address(), place.target, wrongUnlessContent, {.attempts = 0}),
                  InvalidArgument);
}

}  // namespace
}  // namespace muster
