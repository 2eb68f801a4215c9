#include "muster/datasets/published.h"

#include "tests/datasets/gzip.h"
#include "tests/support/environment.h"
#include "tests/support/http_server.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
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
  template <typename Refusal>
  std::string refusal(std::size_t set) const {
    return thrown<Refusal>([&] { find(set); });
  }
  void downloadFrom(const HttpServer& server) {
    options.allowDownload = true;
    options.address = server.address();
  }
};

TEST_CASE("a file is found compressed or plain, in the set's folder before the directory itself") {
  const Places places;
  for (const auto& [name, bytes] :
       {std::pair("one", kLetters), {"one.gz", gzip(kLetters)}, {"letters/one", kLetters}}) {
    Places::put(places.given / name, bytes);
    CHECK(places.letters() == std::pair(kLetters, places.given / name));
  }
}

TEST_CASE("the option is tried before MUSTER_DATA_DIR, then the cache, then the network") {
  Places places;
  const HttpServer server(HttpReply::whole(gzip(kLetters)));
  places.downloadFrom(server);
  const Environment variable("MUSTER_DATA_DIR", places.fromVariable.string());
  for (int i = 0; i < 2; ++i) CHECK(places.letters().second == places.cache / "letters/one.gz");
  CHECK(server.requests() == 1);
  for (const auto& directory : {places.fromVariable, places.given}) {
    Places::put(directory / "one", kLetters);
    CHECK(places.letters().second == directory / "one");
  }
}

TEST_CASE("a missing directory is named with what gave it, and a missing file with its address") {
  Places places;
  CHECK(places.refusal<DownloadError>(0) ==
        fmt::format(
            "letters: one.gz is neither in {} nor in {}, and fetching http://letters.invalid/one.gz is not "
            "allowed; if you have the files, name their directory in the environment variable "
            "MUSTER_DATA_DIR",
            places.given.string(), (places.cache / "letters").string()));
  places.options.directory = places.root / "missing";
  CHECK(places.refusal<FileError>(0) ==
        (places.root / "missing").string() + ": no such directory, given by DataOptions::directory");
  places.options.directory = "";
  const Environment variable("MUSTER_DATA_DIR", (places.root / "gone").string());
  CHECK(places.refusal<FileError>(0) ==
        (places.root / "gone").string() + ": no such directory, given by MUSTER_DATA_DIR");
}

TEST_CASE(
    "a file that is truncated or has a wrong checksum gives an error that names it and both checksums") {
  const Places places;
  const auto file = places.given / "one.gz";
  Places::put(file, gzip("forged"));
  CHECK(places.refusal<FileError>(0) ==
        file.string() +
            ": wrong checksum: the MD5 sum of its contents is ea76aa1d2eceb24df1cae061feb57188, but "
            "letters's is 8b04d5e3775d298e78455efc5ca404d5");
  CHECK_CONTAINS(places.refusal<FileError>(1), "60db0cdb700fd7140dbd586e325f2d7b");
  Places::put(file, kNumbersPacked.substr(0, 30));
  CHECK_CONTAINS(places.refusal<FileError>(0), "truncated");
  CHECK_CONTAINS(places.refusal<FileError>(1), file.string());
}

TEST_CASE("a file of another set with the same name is skipped, and one without a published sum is told") {
  const Places places;
  const auto plain = places.given / "one", packed = places.given / "one.gz";
  Places::put(plain, kNumbers);
  {
    const test::LogLines log;
    CHECK(places.numbers() == std::pair(kNumbers, plain));
    CHECK(log.all() == std::vector{"warning: " + plain.string() +
                                   ": cannot be checked, only the packed file's sum was published"});
  }
  fs::remove(plain);
  Places::put(packed, kNumbersPacked);
  CHECK_THROWS_AS(places.letters(), DownloadError);
  Places::put(plain, kLetters);
  CHECK(places.letters() == std::pair(kLetters, plain));
  CHECK(places.numbers() == std::pair(kNumbers, packed));
  Places::put(places.given / "numbers/one.gz", gzip(kLetters));
  CHECK(places.numbers().second == packed);
}

TEST_CASE("a broken file in the cache is downloaded again, or refused if downloads are not allowed") {
  Places places;
  const auto cached = places.cache / "letters/one.gz";
  Places::put(cached, gzip(kLetters).substr(0, 12));
  CHECK_CONTAINS(places.refusal<FileError>(0), cached.string());
  const HttpServer server(HttpReply::whole(gzip(kLetters)));
  places.downloadFrom(server);
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
  CHECK_CONTAINS(places.refusal<DownloadError>(1), "/variable/one.gz");
  places.options.address = server.address() + "option/";
  CHECK(places.numbers() == std::pair(kNumbers, places.cache / "numbers/one.gz"));
  CHECK(asked == std::vector<std::string>{"/variable/one.gz", "/option/one.gz"});
}

TEST_CASE("wrong content from the network is refused with both checksums, and not kept") {
  Places places;
  const HttpServer server(HttpReply::whole(gzip("forged"))), page(HttpReply::whole("<html>"));
  places.downloadFrom(server);
  const auto text = places.refusal<DownloadError>(0);
  for (const auto& part : {server.address() + "one.gz", std::string("8b04d5e3775d298e78455efc5ca404d5"),
                           std::string("ea76aa1d2eceb24df1cae061feb57188")})
    CHECK_CONTAINS(text, part);
  places.downloadFrom(page);
  CHECK_CONTAINS(places.refusal<DownloadError>(1), "not a gzip file");
  for (const char* set : {"letters", "numbers"}) CHECK_FALSE(fs::exists(places.cache / set / "one.gz"));
}

}  // namespace
}  // namespace muster
