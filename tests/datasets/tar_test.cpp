#include "muster/datasets/tar.h"

#include "muster/datasets/file_bytes.h"
#include "tests/datasets/gzip.h"
#include "tests/datasets/tar_bytes.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::bytesOf;
using test::tarEnd;
using test::tarEntry;
using test::thrown;
using Files = std::vector<std::pair<std::string, std::string>>;

Files read(const std::vector<std::uint8_t>& archive) {
  Files files;
  for (const auto& entry : readTar(archive, "some/file.tar"))
    files.emplace_back(entry.name, std::string(entry.bytes.begin(), entry.bytes.end()));
  return files;
}

std::string tarRefusal(const std::string& archive) {
  return thrown<FileError>([&] { read(bytesOf(archive)); });
}

TEST_CASE("an archive gives its regular files in order, compressed or not") {
  const std::string block(512, 'x'), longer(1300, 'y');
  const auto archive = tarEntry("folder/", "", '5') + tarEntry("folder/a", "first") + tarEntry("empty", "") +
                       tarEntry("link", "", '2') + tarEntry("comment", "28 mtime=1257892407.24235\n", 'x') +
                       tarEntry("block", block) + tarEntry("b", longer, '0', "a/long/path") + tarEnd();
  const Files expected{{"folder/a", "first"}, {"empty", ""}, {"block", block}, {"a/long/path/b", longer}};
  CHECK(read(bytesOf(archive)) == expected);
  CHECK(read(unpackGzip(bytesOf(test::gzip(archive)), "f")) == expected);
  CHECK(read(bytesOf(tarEnd())).empty());
}

// `tar --format=gnu` ends the magic with two spaces, and stores times in ustar's field for the name's prefix.
TEST_CASE("GNU tar's own header is read") {
  auto header = tarEntry("b", "12345");
  header.replace(257, 8, std::string("ustar  \0", 8));
  header.replace(345, 11, "14527460100");
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 512; ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  header.replace(148, 6, fmt::format("{:06o}", sum));
  CHECK(read(bytesOf(header + tarEnd())) == Files{{"b", "12345"}});  // the times are no part of the name
}

TEST_CASE("an archive that is truncated anywhere or has a damaged header is refused, and so is no archive") {
  const auto archive = tarEntry("a", std::string(700, 'x')) + tarEntry("b", "second");
  for (std::size_t size = 0; size <= archive.size(); ++size) {
    CAPTURE(size);
    REQUIRE(test::contains(tarRefusal(archive.substr(0, size)), "some/file.tar: truncated tar archive"));
  }
  CHECK_CONTAINS(tarRefusal(archive.substr(0, 1000)), "a has 700 bytes, but 488 follow");
  CHECK_CONTAINS(tarRefusal(archive), "it ends at byte 2560 without an end mark");
  auto damaged = tarEntry("a", "first") + tarEntry("b", "second") + tarEnd(), large = tarEntry("a", "first");
  damaged[1024] = 'c';  // the second entry's name
  CHECK_CONTAINS(tarRefusal(damaged), "no header at byte 1024");
  CHECK_CONTAINS(tarRefusal(std::string(2048, 'x')), "not a tar archive");
  large[124] = '\x80';  // GNU's form for sizes above 8 GiB
  CHECK_CONTAINS(tarRefusal(large + tarEnd()), "no header at byte 0");
}

}  // namespace
}  // namespace muster
