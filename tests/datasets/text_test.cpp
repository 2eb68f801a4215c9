#include "muster/datasets/text.h"

#include "tests/datasets/gzip.h"
#include "tests/support/child_process.h"
#include "tests/support/test.h"

namespace muster {
namespace {

std::filesystem::path write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::u32string decoded(std::string_view bytes) {
  const auto characters = decodeUtf8(bytes, "text");
  return {characters.begin(), characters.end()};
}

/// All windows of an epoch, as text, with the labels after a bar.
std::vector<std::string> windowsOf(CharacterIterator& data, std::int64_t epoch) {
  std::vector<std::string> windows;
  Batch batch;
  const auto text = [&](const Tensor& indices, std::int64_t row) {
    std::vector<char32_t> characters;
    for (std::int64_t t = 0; t < data.steps(); ++t)
      characters.push_back(data.vocabulary().character(indices.data<std::int64_t>()[row * data.steps() + t]));
    return encodeUtf8(characters);
  };
  data.reset(epoch);
  while (data.next(batch))
    for (std::int64_t n = 0; n < batch.examples(); ++n)
      windows.push_back(text(batch.features.front().value, n) + "|" + text(batch.labels.front().value, n));
  return windows;
}

}  // namespace

TEST_CASE("UTF-8 of one to four bytes is decoded and encoded again") {
  const std::string bytes = "aé€😀\n\x7F\xC2\x80\xEF\xBF\xBF\xF4\x8F\xBF\xBF";
  const std::u32string characters = decoded(bytes);
  CHECK(characters == U"aé€😀\n\x7F\x80\xFFFF\x10FFFF");
  CHECK(encodeUtf8(characters) == bytes);
  CHECK(decoded("\xEF\xBB\xBFx\xEF\xBB\xBF") == U"x\xFEFF");  // a byte order mark at the start alone
  CHECK(decoded("").empty());
  const char32_t surrogate[] = {0xD800};
  CHECK_THROWS_WITH_AS(encodeUtf8(surrogate), "utf-8: U+D800 is no character", InvalidArgument);
}

TEST_CASE(
    "a compressed text takes five times its bytes in memory, and one that expands too much is refused") {
  const test::TemporaryDirectory directory;
  const std::string member = test::gzip(std::string(std::size_t{1} << 20, 'a'));
  std::string packed;
  for (int i = 0; i < 8; ++i) packed += member;
  write(directory / "book.gz", packed);
  CHECK(test::inChild([&] {
          test::allowMemory(std::size_t{60} << 20);
          return std::to_string(readCharacterText(directory / "book.gz")->indices.size());
        }) == "8388608");
  while (packed.size() <= 256 * member.size()) packed += packed;
  write(directory / "book.gz", packed);
  CHECK(test::thrown<FileError>([&] { readCharacterText(directory / "book.gz"); })
            .ends_with("book.gz: unpacks to more than 268435456 bytes, the most that is read from a gzip "
                       "file; unpack it first"));
}

TEST_CASE("invalid UTF-8 is refused, and the error names the offset of the byte") {
  const auto problem = [](std::string_view bytes) {
    return test::thrown<FileError>([&] { decodeUtf8(bytes, "book.txt"); });
  };
  const auto at = [](int offset, std::string_view byte, std::string_view why = "cannot begin a character") {
    return fmt::format("book.txt: is not UTF-8: the byte {} at offset {} {}; is it Latin-1?", byte, offset,
                       why);
  };
  const std::string_view invalid = "begins an invalid character";
  CHECK(problem("Gr\xFC\xDF") == at(2, "0xFC"));                 // Latin-1
  CHECK(problem("sch\xF6n") == at(3, "0xF6"));                   // as a lead byte: beyond U+10FFFF
  CHECK(problem("ab\x80") == at(2, "0x80"));                     // a continuation without a beginning
  CHECK(problem("a\xC0\xAF") == at(1, "0xC0"));                  // overlong
  CHECK(problem("a\xE0\x80\xAF") == at(1, "0xE0", invalid));     // overlong
  CHECK(problem("\xED\xA0\x80") == at(0, "0xED", invalid));      // a surrogate
  CHECK(problem("\xF4\x90\x80\x80") == at(0, "0xF4", invalid));  // beyond U+10FFFF
  CHECK(problem("caf\xE9 au") == at(3, "0xE9", "begins a character, but 0x20 does not continue it"));
  CHECK(problem("ab\xE2\x82(") == at(2, "0xE2", "begins a character, but 0x28 does not continue it"));
  CHECK(problem("abc\xE2\x82") == at(3, "0xE2", "begins a character that is cut off"));
}

TEST_CASE("a vocabulary holds all characters in the order of their code points") {
  const Vocabulary vocabulary(decodeUtf8("bananenöl", "text"));
  CHECK(encodeUtf8(vocabulary.characters()) == "abelnö");
  CHECK(vocabulary.size() == 6);
  CHECK(vocabulary.find(U'l') == 3);
  CHECK(vocabulary.find(U'x') == std::nullopt);
  CHECK(vocabulary.character(5) == U'ö');
  CHECK(Vocabulary(vocabulary.characters()) == vocabulary);
  CHECK(vocabulary.indicesOf(decodeUtf8("ölbe", "text")) == std::vector<std::int64_t>{5, 3, 1, 2});
  CHECK(test::thrown<InvalidArgument>([&] { vocabulary.indicesOf(decodeUtf8("bäh", "text")); }) ==
        "vocabulary: it does not know the character \"ä\" at place 1");
  CHECK_THROWS_AS(vocabulary.character(6), InvalidArgument);
}

TEST_CASE("a text is read in windows whose labels are shifted by one character") {
  const test::TemporaryDirectory directory;
  CharacterIterator data(write(directory / "text", "abcdéfghijk"), 3, 2);
  CHECK(data.vocabulary().size() == 11);
  CHECK(data.batchesPerEpoch() == 2);
  const std::vector<std::string> inOrder{"abc|bcd", "déf|éfg", "ghi|hij"};
  for (const std::int64_t epoch : {0, 1}) CHECK(windowsOf(data, epoch) == inOrder);
  data.setDropLast(true);  // the last batch is not full
  CHECK(windowsOf(data, 0) == std::vector<std::string>{"abc|bcd", "déf|éfg"});
  CHECK(data.examples() == 2);
  data.setDropLast(false);
  CHECK(windowsOf(data, 1) == inOrder);
  CHECK(data.examples() == 3);

  CharacterIterator shuffled(data.text(), 1, 4, 7);
  const auto first = windowsOf(shuffled, 0), second = windowsOf(shuffled, 1);
  CHECK(first.size() == 10);
  CHECK(first != second);
  CHECK(std::set(first.begin(), first.end()) == std::set(second.begin(), second.end()));
  CHECK(windowsOf(shuffled, 0) == first);

  // A batch from another iterator keeps none of its tensors.
  Batch batch;
  batch.masks.push_back({"features", Tensor::zeros({1})});
  batch.features.push_back({"pixels", Tensor::zeros({1})});
  data.reset(0);
  REQUIRE(data.next(batch));
  CHECK(batch.features.size() == 1);
  CHECK(batch.features.front().value.shape() == Shape{2, 3});
  CHECK(batch.masks.empty());
}

TEST_CASE("a text that is too short and invalid sizes are refused") {
  const test::TemporaryDirectory directory;
  const auto path = write(directory / "text", "äöü");
  CHECK(test::thrown<FileError>([&] { CharacterIterator(path, 3, 1); }) ==
        path.string() + ": too short: it has 3 characters, but a window of 3 and the next character need 4");
  CHECK(CharacterIterator(path, 2, 1).examples() == 1);
  CHECK_THROWS_AS(CharacterIterator(write(directory / "empty", ""), 1, 1), FileError);
  CHECK_THROWS_AS(CharacterIterator(directory / "missing", 1, 1), FileError);
  CHECK_THROWS_AS(CharacterIterator(path, 0, 1), InvalidArgument);
  CHECK_THROWS_AS(CharacterIterator(path, 2, 0), InvalidArgument);
}

}  // namespace muster
