#include "muster/datasets/published.h"

#include "muster/core/base/log.h"
#include "tests/datasets/gzip.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::Environment;
using test::gzip;
using test::HttpReply;
using test::HttpServer;
using test::thrown;

// Two sets whose files share a name: the sums of "letters" are of contents, those of "numbers" of gzip files.
// Python's hashlib computed all sums, and gzip.compress(b"first of the numbers", mtime=0) the packed file.
constexpr std::array<PublishedFile, 1> kLettersFile{{{"one.gz", "8b04d5e3775d298e78455efc5ca404d5"}}};
constexpr std::array<PublishedFile, 1> kNumbersFile{{{"one.gz", "60db0cdb700fd7140dbd586e325f2d7b"}}};
const std::string kLetters = "first";
const std::string kNumbers = "first of the numbers";
constexpr std::array<unsigned char, 40> kPacked{0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                                0x4b, 0xcb, 0x2c, 0x2a, 0x2e, 0x51, 0xc8, 0x4f, 0x53, 0x28,
                                                0xc9, 0x48, 0x55, 0xc8, 0x2b, 0xcd, 0x4d, 0x4a, 0x2d, 0x2a,
                                                0x06, 0x00, 0xf3, 0x69, 0xe8, 0x8c, 0x14, 0x00, 0x00, 0x00};
const std::string kNumbersPacked(kPacked.begin(), kPacked.end());

constexpr std::array<PublishedSet, 2> kSets{
    {{"letters", "http://letters.invalid/", "MUSTER_TEST_URL", SumOf::Contents, kLettersFile},
     {"numbers", "http://numbers.invalid/", "MUSTER_TEST_URL", SumOf::Packed, kNumbersFile}}};

/// Directories to search, and an environment that only sets the cache.
struct Places {
  test::TemporaryDirectory root;
  fs::path given = root / "given", fromVariable = root / "variable", cache = root / "cache";
  Environment variable{"MUSTER_DATA_DIR", std::nullopt};
  Environment cacheVariable{"MUSTER_CACHE_DIR", cache.string()};
  Environment address{"MUSTER_TEST_URL", std::nullopt};
  Environment direct{"no_proxy", "127.0.0.1"};
  DataOptions options{.directory = given, .allowDownload = false};

  Places() {
    fs::create_directories(given);
    fs::create_directories(fromVariable);
    options.download = {.attempts = 1, .backOff = std::chrono::milliseconds(1)};
  }

  static void put(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    test::writeFile(path, bytes);
  }
  std::pair<std::string, fs::path> find(std::size_t set) const {
    const auto found = findPublished(kSets[set], 0, kSets, options);
    return {std::string(found.bytes.begin(), found.bytes.end()), found.path};
  }
  std::pair<std::string, fs::path> letters() const { return find(0); }
  std::pair<std::string, fs::path> numbers() const { return find(1); }
};

TEST_CASE("a file is found compressed or plain, in the set's folder before the directory itself") {
  const Places places;
  Places::put(places.given / "one", kLetters);
  CHECK(places.letters() == std::pair(kLetters, places.given / "one"));
  Places::put(places.given / "one.gz", gzip(kLetters));
  CHECK(places.letters() == std::pair(kLetters, places.given / "one.gz"));
  Places::put(places.given / "letters/one", kLetters);
  CHECK(places.letters() == std::pair(kLetters, places.given / "letters/one"));
}

TEST_CASE("the option is tried before MUSTER_DATA_DIR, then the cache, then the network") {
  Places places;
  HttpServer server([](const std::string&, int) { return HttpReply::whole(gzip(kLetters)); });
  places.options.allowDownload = true;
  places.options.address = server.address();
  const Environment variable("MUSTER_DATA_DIR", places.fromVariable.string());
  CHECK(places.letters().second == places.cache / "letters/one.gz");
  CHECK(places.letters().second == places.cache / "letters/one.gz");
  CHECK(server.requests() == 1);
  Places::put(places.fromVariable / "one", kLetters);
  CHECK(places.letters().second == places.fromVariable / "one");
  Places::put(places.given / "one", kLetters);
  CHECK(places.letters().second == places.given / "one");
}

TEST_CASE("a missing directory is named, with the option or variable that gave it") {
  Places places;
  places.options.directory = places.root / "missing";
  const auto option = thrown<FileError>([&] { places.letters(); });
  CHECK_CONTAINS(option, places.options.directory.string());
  places.options.directory = "";
  const Environment variable("MUSTER_DATA_DIR", (places.root / "gone").string());
  const auto environment = thrown<FileError>([&] { places.letters(); });
  CHECK_CONTAINS(environment, (places.root / "gone").string());
  CHECK_CONTAINS(environment, "MUSTER_DATA_DIR");
}

TEST_CASE("a file with a wrong checksum gives an error that names it and both checksums") {
  const Places places;
  Places::put(places.given / "one.gz", gzip("forged"));
  const auto contents = thrown<FileError>([&] { places.letters(); });
  CHECK_CONTAINS(contents, (places.given / "one.gz").string());
  CHECK_CONTAINS(contents, "8b04d5e3775d298e78455efc5ca404d5");
  CHECK_CONTAINS(contents, "ea76aa1d2eceb24df1cae061feb57188");  // of "forged"
  CHECK_CONTAINS(thrown<FileError>([&] { places.numbers(); }), "60db0cdb700fd7140dbd586e325f2d7b");
}

TEST_CASE("a truncated gzip file gives an error that names it") {
  const Places places;
  Places::put(places.given / "one.gz", kNumbersPacked.substr(0, 30));
  CHECK_CONTAINS(thrown<FileError>([&] { places.letters(); }), "truncated");
  CHECK_CONTAINS(thrown<FileError>([&] { places.numbers(); }), (places.given / "one.gz").string());
}

TEST_CASE("a file of another set with the same name is skipped") {
  const Places places;
  Places::put(places.given / "one.gz", kNumbersPacked);
  CHECK_THROWS_AS(places.letters(), DownloadError);
  Places::put(places.given / "one", kLetters);
  CHECK(places.letters() == std::pair(kLetters, places.given / "one"));
  CHECK(places.numbers() == std::pair(kNumbers, places.given / "one.gz"));
  Places::put(places.given / "numbers/one.gz", gzip(kLetters));
  CHECK(places.numbers().second == places.given / "one.gz");
}

TEST_CASE("a plain file without a published checksum is accepted, with a warning") {
  const Places places;
  Places::put(places.given / "one", kNumbers);
  std::string warnings;
  const LogSink before = setLogSink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::Warning) warnings += text;
  });
  const auto found = places.numbers();
  setLogSink(before);
  CHECK(found == std::pair(kNumbers, places.given / "one"));
  CHECK_CONTAINS(warnings, (places.given / "one").string());
}

TEST_CASE("a broken file in the cache is downloaded again, or refused if downloads are not allowed") {
  Places places;
  const auto cached = places.cache / "letters/one.gz";
  Places::put(cached, gzip(kLetters).substr(0, 12));
  CHECK_CONTAINS(thrown<FileError>([&] { places.letters(); }), cached.string());
  HttpServer server([](const std::string&, int) { return HttpReply::whole(gzip(kLetters)); });
  places.options.allowDownload = true;
  places.options.address = server.address();
  CHECK(places.letters() == std::pair(kLetters, cached));
  CHECK(test::readFile(cached) == gzip(kLetters));
  CHECK(server.requests() == 1);
}

TEST_CASE("the environment variable replaces the published address, and the option replaces both") {
  Places places;
  std::vector<std::string> asked;
  HttpServer server([&](const std::string& path, int) {
    asked.push_back(path);
    return path == "/option/one.gz" ? HttpReply::whole(kNumbersPacked) : HttpReply{.status = 404};
  });
  places.options.allowDownload = true;
  const Environment address("MUSTER_TEST_URL", server.address() + "variable");
  CHECK_CONTAINS(thrown<DownloadError>([&] { places.numbers(); }), "/variable/one.gz");
  places.options.address = server.address() + "option/";
  CHECK(places.numbers() == std::pair(kNumbers, places.cache / "numbers/one.gz"));
  CHECK(asked == std::vector<std::string>{"/variable/one.gz", "/option/one.gz"});
}

TEST_CASE("wrong content from the network is refused with both checksums, and not kept") {
  Places places;
  HttpServer server([](const std::string&, int) { return HttpReply::whole(gzip("forged")); });
  places.options.allowDownload = true;
  places.options.address = server.address();
  const auto text = thrown<DownloadError>([&] { places.letters(); });
  CHECK_CONTAINS(text, server.address() + "one.gz");
  CHECK_CONTAINS(text, "8b04d5e3775d298e78455efc5ca404d5");
  CHECK_CONTAINS(text, "ea76aa1d2eceb24df1cae061feb57188");
  CHECK_FALSE(fs::exists(places.cache / "letters/one.gz"));

  HttpServer page([](const std::string&, int) { return HttpReply::whole("<html>"); });
  places.options.address = page.address();
  CHECK_CONTAINS(thrown<DownloadError>([&] { places.numbers(); }), "not a gzip file");
  CHECK_FALSE(fs::exists(places.cache / "numbers/one.gz"));
}

TEST_CASE("if downloads are not allowed, the error about a missing file names its address") {
  const Places places;
  const auto text = thrown<DownloadError>([&] { places.letters(); });
  CHECK_CONTAINS(text, "one.gz");
  CHECK_CONTAINS(text, "http://letters.invalid/one.gz");
  CHECK_CONTAINS(text, "one.gz is neither in ");
  CHECK_CONTAINS(text, places.cache.string());
  CHECK_CONTAINS(text,
                 "; if you have the files, name their directory in the environment variable MUSTER_DATA_DIR");
}

}  // namespace
}  // namespace muster
