#include "muster/datasets/image_folder.h"

#include "tests/support/child_process.h"
#include "tests/support/log_lines.h"
#include "tests/support/png.h"
#include "tests/support/raw_png.h"
#include "tests/support/test.h"

using namespace muster;

namespace {

using Bytes = std::vector<std::uint8_t>;
using test::pngOfZeros;

constexpr char kRgb = 2;  // a colour type of PNG files

void draw(const std::filesystem::path& path, const Bytes& pixels, int width, int height,
          PictureColour colour = PictureColour::Grey) {
  std::filesystem::create_directories(path.parent_path());
  test::writePng(path, pixels, width, height, colour);
}

Bytes imageAt(const ImageFolder& folder, std::int64_t index) {
  const auto pixels = folder.images->image(index);
  return {pixels.begin(), pixels.end()};
}

}  // namespace

TEST_CASE("pictures are read class by class, sorted by name, with separate channels") {
  test::TemporaryDirectory directory;
  draw(directory / "dogs/b.png", {1, 2, 3, 4, 5, 6}, 2, 1, PictureColour::Rgb);
  draw(directory / "cats/2.png", {9, 9, 9, 8, 8, 8}, 2, 1, PictureColour::Rgb);
  draw(directory / "cats/1.PNG", {5, 5}, 2, 1);
  test::writeFile(directory / "cats/readme.txt", "x");
  test::writeFile(directory / "list.txt", "x");
  std::filesystem::create_directory(directory / ".hidden");
  const auto folder = readImageFolder(directory.path());
  CHECK(folder.classes == std::vector<std::string>{"cats", "dogs"});
  REQUIRE(folder.images->size() == 3);
  CHECK(folder.images->imageShape() == Shape{3, 1, 2});
  CHECK(imageAt(folder, 0) == Bytes{5, 5, 5, 5, 5, 5});
  CHECK(imageAt(folder, 2) == Bytes{1, 4, 2, 5, 3, 6});
  CHECK(folder.images->label(1) == 0);
  CHECK(folder.images->label(2) == 1);
  const auto problem = test::thrown<FileError>([&] {
    readImageFolder(directory.path(), {.classes = {"birds", "cats"}});
  });
  CHECK_CONTAINS(problem, "dogs: is no class; there are birds, cats");
}

TEST_CASE("pictures that need too much memory together are refused after the first one") {
  constexpr std::uint32_t kSide = 1024;
  test::TemporaryDirectory directory;
  const auto picture = pngOfZeros(kSide, kSide, {8, kRgb, 0, 0, 0}, kSide * (3 * kSide + 1));
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directory(directory / name);
    for (int i = 0; i < 20; ++i) test::writeFile(directory / name / fmt::format("{}.png", i), picture);
  }
  test::writeFile(directory / "b/9.png", "not a picture");  // is not read
  const auto problem = test::inChild([&] {
    test::allowMemory(std::size_t{64} << 20);
    return test::thrown<Error>([&] { readImageFolder(directory.path()); });
  });
  const auto expected =
      test::kSanitized
          ? fmt::format("{}: is neither a PNG nor a JPEG file", (directory / "b/9.png").string())
          : fmt::format(
                "readImageFolder: {}: its 40 pictures of 1024 x 1024 pixels take 125.8 MB, but of the ",
                directory.path().string());
  CHECK_MESSAGE(problem.starts_with(expected), problem);
}

TEST_CASE("pictures of several sizes and types are brought to one size, and what is left out is counted") {
  test::TemporaryDirectory directory;
  const std::filesystem::path pictures = MUSTER_TEST_PICTURES;
  std::filesystem::create_directories(directory / "big");
  std::filesystem::copy(pictures / "rgb.jpg", directory / "big/a.JPG");
  std::filesystem::copy(pictures / "grey.png", directory / "big/b.Png");
  draw(directory / "small/c.png", {1, 2, 3, 4}, 2, 2);
  for (const char* name : {"big/d.gif", "big/e.gif", "small/notes.txt", "small/Makefile", "small/.hidden"})
    test::writeFile(directory / name, "x");
  std::filesystem::create_directories(directory / "small/more");
  draw(directory / "top.png", {1}, 1, 1);
  const test::LogLines log;
  const auto folder = readImageFolder(directory.path(), {.size = {6, 4}});
  CHECK(log.all() ==
        std::vector<std::string>{fmt::format(
            "warning: {}: 3 pictures read, and left out 2 .gif, 1 .png, 1 .txt, 1 directories, 1 names "
            "without an ending; .png, .jpg and .jpeg in a directory of each class are read",
            directory.path().string())});
  REQUIRE(folder.images->imageShape() == Shape{3, 6, 4});
  CHECK(folder.files == std::vector<std::string>{"big/a.JPG", "big/b.Png", "small/c.png"});
  const Tensor alone = readPicture(pictures / "grey.png", {.size = {6, 4}});
  CHECK(std::ranges::equal(folder.images->image(1), alone.span<std::uint8_t>()));
  const auto description = folder.description();
  CHECK(description.pictures == PictureDescription{.channels = 3, .height = 6, .width = 4});
  CHECK(description.classes == std::vector<std::string>{"big", "small"});
  CHECK(picturesIn(directory.path()) ==
        std::vector<std::string>{"big/a.JPG", "big/b.Png", "small/c.png", "top.png"});
}

TEST_CASE("there may be more classes than a byte has") {
  test::TemporaryDirectory directory;
  for (int c = 0; c < 300; ++c)
    draw(directory / fmt::format("class{:03}/1.png", c), {static_cast<std::uint8_t>(c % 256)}, 1, 1);
  const auto folder = readImageFolder(directory.path(), {.colour = PictureColour::Grey});
  CHECK(folder.images->classes() == 300);
  for (int c = 0; c < 300; ++c) {
    CHECK(folder.images->label(c) == c);
    CHECK(folder.images->image(c)[0] == c % 256);
  }
}

TEST_CASE("folders and pictures that do not fit are refused by name") {
  test::TemporaryDirectory directory;
  const auto problem = [&] {
    return test::thrown<FileError>(
        [&] { readImageFolder(directory.path(), {.colour = PictureColour::Grey}); });
  };
  CHECK_CONTAINS(problem(), "has 0 directories");
  draw(directory / "a/1.png", {1, 2}, 2, 1);
  CHECK_CONTAINS(problem(), "has 1 directories");
  std::filesystem::create_directory(directory / "b");
  CHECK_CONTAINS(problem(), "b: has no PNG or JPEG files");
  draw(directory / "b/1.png", {1, 2}, 1, 2);
  CHECK_CONTAINS(problem(),
                 "1.png: has 1 x 2 pixels, and the first picture 2 x 1; give a size, as in {.size = {1, 2}} "
                 "or data.height and data.width, to which all are brought");
  test::writeFile(directory / "b/1.png", "not a picture");
  CHECK_CONTAINS(problem(), "b/1.png: is neither a PNG nor a JPEG file");
  CHECK_THROWS_AS(readImageFolder(directory / "none"), FileError);
}
